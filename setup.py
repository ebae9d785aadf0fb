"""Compiles the hot modules with mypyc if possible (PS-90), and makes a wheel's manual pages.

It also makes the wheel's description. A wheel is compiled if mypyc and a C compiler are installed,
unless PUBSUB_PURE=1. An editable install is pure, or a change of the source would change nothing,
unless PUBSUB_COMPILE=1. Everything else is in pyproject.toml.
"""

import os
import re
import sys
import tomllib
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
DEMANDED = os.environ.get("PUBSUB_COMPILE") == "1"

COMPILED = [
    f"pubsub_emulator/{folder}/{name}.py"
    for folder, names in {
        # Root, update, proof and reading of tries; what every stored value goes through.
        "trie": (
            "nibbles codec nodes step descent bulk batch recording mutable proof decoded compact"
        ),
        "primitives": "hashing pubsub byte_lists",
        # The walk, and what a block of it writes.
        "runtime/pallet_subscriber": (
            "meter delivered outcome child_trie plan view own_state handler apply"
        ),
        "runtime/pallet_subscriber/cache": "base nodes slots",
        "runtime/framework": "static_keys storage",
        "runtime/parachain": "ledger execute",
        # A relay block: queue, messages, publishes.
        "runtime/relay/message_queue": "ring pallet",
        "xcm": "message weigher barriers executor",
        "runtime/pallet_pubsub": "publish",
    }.items()
    for name in names.split()
]


class BuildAllOrNone(build_ext):
    """Some modules compiled and some not would not import: one that fails leaves pure Python."""

    def run(self) -> None:
        """Build the extensions, or say why there are none."""
        try:
            super().run()
        except Exception as error:  # noqa: BLE001  # whatever a compiler or its absence raises
            give_up(error)
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []


def give_up(reason: BaseException) -> list[Extension]:
    """Say why there is nothing compiled; raise it where compiling was asked for."""
    if DEMANDED:
        raise reason
    sys.stderr.write(f"setup.py: not compiled, pure Python instead: {reason}\n")
    return []


def extensions() -> list[Extension]:
    """The compiled modules; none where they are not wanted or mypyc is not there."""
    commands = {"bdist_wheel", "build", "build_ext", "install"} | (
        {"editable_wheel"} if DEMANDED else set()
    )
    if os.environ.get("PUBSUB_PURE") == "1" or not commands & set(sys.argv):
        return []
    try:
        from mypyc.build import mypycify  # noqa: PLC0415  # may be missing

        # Not pyproject's mypy settings: the packages that they name need not be there when a wheel
        # is built.
        options = ("--config-file=", "--ignore-missing-imports")
        return mypycify([*options, *COMPILED], opt_level="3", debug_level="0", group_name="pubsub")
    except (
        ImportError,
        SystemExit,
    ) as error:  # mypycify exits where mypy finds fault with the source
        return give_up(error)


def manual_pages() -> list[tuple[str, list[str]]]:
    """Write the manual page of each command for a wheel and return the pages."""
    if "bdist_wheel" not in sys.argv:
        return []
    sys.path.insert(0, str(ROOT))
    from development.manual_pages import write_pages  # noqa: PLC0415  # needs click
    from pubsub_emulator.version import VERSION  # noqa: PLC0415

    pages = write_pages(ROOT / "build" / "man", f"pubsub-emulator {VERSION}")
    return [("share/man/man1", [str(page.relative_to(ROOT)) for page in pages])]


FENCED = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
LINKED_PICTURE = re.compile(
    r"^<a href=\"([^\"]+)\"><img src=\"([^\"]+)\"[^>]* alt=\"([^\"]*)\"></a>$", re.MULTILINE
)
PICTURES = re.compile(r"^<p>\n(.*?)^</p>$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")


def description(readme: str, source: str | None) -> str:
    """Return the README for a package index, where a relative link leads nowhere.

    If the address of the repository is known, links and pictures lead there. Otherwise a link is
    its text and the name of a file, which the source distribution has, and a picture is its
    alternative text.
    """
    parts = FENCED.split(readme)
    for number in range(0, len(parts), 2):  # the parts between are blocks of code
        parts[number] = (
            _named(parts[number]) if source is None else _absolute(parts[number], source)
        )
    return "".join(parts)


def _named(text: str) -> str:
    """Replace relative links by the names of the files that they lead to."""

    def name(link: re.Match[str]) -> str:
        words, target = link.groups()
        if "://" in target:
            return link.group()
        file = target.partition("#")[0]
        return f"{words} (`{file}`)" if file else words

    text = PICTURES.sub(r"\1", text)
    text = LINKED_PICTURE.sub(r"- \3 (`\1`)", text)
    text = PICTURE.sub(r"*\1* (`\2`)", text)
    return LINK.sub(name, text)


def _absolute(text: str, source: str) -> str:
    """Let relative links lead to the files of a repository, as hosts such as GitHub name them."""

    def lead(link: re.Match[str]) -> str:
        words, target = link.groups()
        if "://" in target:
            return link.group()
        return (
            words if target.startswith("#") else f"[{words}]({source}/blob/HEAD/{target})"
        )  # an index has no anchors

    text = LINKED_PICTURE.sub(
        rf'<a href="{source}/blob/HEAD/\1"><img src="{source}/raw/HEAD/\2" alt="\3"></a>', text
    )
    text = PICTURE.sub(rf"![\1]({source}/raw/HEAD/\2)", text)
    return LINK.sub(lead, text)


def long_description() -> str:
    """Return the description of this version.

    Its links lead to the repository that pyproject.toml names as the source.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    source = project.get("urls", {}).get("Source")
    return description((ROOT / "README.md").read_text(encoding="utf-8"), source)


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": BuildAllOrNone},
    data_files=manual_pages(),
    long_description=long_description(),
    long_description_content_type="text/markdown",
)
