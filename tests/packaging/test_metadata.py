"""The metadata that a package index shows, and the source distributions: whole, without junk, and
tests run with the sources of the first, which has the whole repository.
"""

import email
import email.message
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from markdown_it import MarkdownIt

from pubsub_emulator.version import VERSION

ROOT = Path(__file__).resolve().parents[2]
WHOLE = (
    *(".ci", "bench", "changes", "development", "docs", "examples", "interchain_events"),
    *("interop", "tests"),
)
"""Folders of the repository that the source distribution holds with all of their files."""
JUNK = {
    *("__pycache__", ".hypothesis", ".pytest_cache", "_build", "build", "man", "target"),
    "interchain_events.egg-info",
}
"""Folders that programs make beside the sources."""
GENERATED = ("docs/api/", "interop/rust/Cargo.lock")
LARGEST = 10_000_000
"""Bytes that a source distribution may take."""

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging")]


@pytest.fixture(scope="module")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # since Python 3.11.4
        archive.extractall(folder)  # noqa: S202  # made by this test
    return folder / f"pubsub_emulator-{VERSION}"


@pytest.fixture(scope="module")
def metadata(unpacked: Path) -> email.message.Message:
    return email.message_from_string((unpacked / "PKG-INFO").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def event_metadata(event_sdist: Path) -> email.message.Message:
    with tarfile.open(event_sdist) as archive:
        file = archive.extractfile(f"interchain_events-{VERSION}/PKG-INFO")
        assert file is not None
        return email.message_from_bytes(file.read())


def files(root: Path) -> set[str]:
    """Every file below a folder that no program made, by its path."""
    held = set[str]()
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if name not in JUNK]
        held |= {
            Path(folder, name).relative_to(root).as_posix()
            for name in names
            if not name.endswith(".pyc")
        }
    return {name for name in held if not name.startswith(GENERATED)}


def links(text: str) -> Iterator[str]:
    """The targets of all links and pictures in Markdown, with those in its HTML."""
    for block in MarkdownIt("gfm-like", {"linkify": False}).parse(text):
        for token in (block, *(block.children or ())):
            if token.type.startswith("html"):
                yield from re.findall(r'(?:href|src)="([^"]*)"', token.content)
            for name in ("href", "src"):
                target = token.attrGet(name)
                if target is not None:
                    yield str(target)


def described(folder: Path) -> str:
    """The long description that `setup.py` in a folder gives."""
    code = (
        # setuptools brings distutils
        "import sys, setuptools\nfrom distutils.core import run_setup\n"
        "sys.stdout.reconfigure(encoding='utf-8')\n"
        "print(run_setup('setup.py', stop_after='init').metadata.long_description)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    return ended.stdout


def test_an_index_shows_authors_addresses_and_the_readme(
    metadata: email.message.Message, event_metadata: email.message.Message
) -> None:
    for shown, title in ((metadata, "pubsub-emulator"), (event_metadata, "interchain-events")):
        assert shown["Author"] == "the pubsub-emulator authors"
        addresses = [line.rpartition(", ")[2] for line in shown.get_all("Project-URL", [])]
        assert addresses
        assert all(urlsplit(address).scheme == "https" for address in addresses)
        assert shown["Description-Content-Type"] == "text/markdown"
        assert f"# {title}\n" in str(shown.get_payload())


def test_every_link_of_the_description_is_absolute(
    metadata: email.message.Message, unpacked: Path
) -> None:
    """Without a public repository, files are named instead, which the source distribution has."""
    text = str(metadata.get_payload())
    assert [link for link in links(text) if urlsplit(link).scheme == "https"]
    assert not [link for link in links(text) if urlsplit(link).scheme != "https"]
    named = set(re.findall(r"\(`([^`]+\.\w+)`\)", text))
    assert {"docs/index.md", "CONTRIBUTING.md", "docs/images/path-of-a-key.svg"} <= named
    assert not [name for name in named if not (unpacked / name).is_file() and "/" in name]


def test_every_link_of_the_description_of_the_event_systems_is_absolute(
    event_metadata: email.message.Message,
) -> None:
    found = list(links(str(event_metadata.get_payload())))
    assert found
    assert not [link for link in found if urlsplit(link).scheme != "https"]


def test_with_the_address_of_a_repository_the_links_lead_there(tmp_path: Path) -> None:
    source = "https://code.example/pubsub-emulator"
    for name in ("README.md", "setup.py"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named = project.replace("[project.urls]\n", f'[project.urls]\nSource = "{source}"\n')
    (tmp_path / "pyproject.toml").write_text(named, encoding="utf-8")
    targets = set(links(described(tmp_path)))
    assert not [target for target in targets if urlsplit(target).scheme != "https"]
    assert f"{source}/blob/HEAD/docs/index.md" in targets
    assert f"{source}/blob/HEAD/SECURITY.md#what-each-verdict-proves" in targets
    assert {
        f"{source}/raw/HEAD/docs/images/{name}" for name in ("lab.svg", "path-of-a-key.svg")
    } <= targets
    of_files = {urlsplit(target).path for target in targets if target.startswith(source)}
    paths = {re.sub(r"^/pubsub-emulator/(blob|raw)/HEAD/", "", path) for path in of_files}
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_the_wheels_have_the_same_descriptions(
    wheel: Path,
    metadata: email.message.Message,
    event_wheel: Path,
    event_metadata: email.message.Message,
) -> None:
    for file, of_sdist in ((wheel, metadata), (event_wheel, event_metadata)):
        with zipfile.ZipFile(file) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            of_wheel = email.message_from_string(archive.read(name).decode())
        assert of_wheel.get_payload() == of_sdist.get_payload()


def test_the_sdist_has_every_file_of_the_repository_and_no_other(unpacked: Path) -> None:
    held = files(unpacked)
    for folder in WHOLE:
        wanted = {f"{folder}/{name}" for name in files(ROOT / folder)}
        wanted -= {name for name in wanted if name.startswith(GENERATED)}
        assert {name for name in held if name.split("/")[0] == folder} == wanted
    at_top = {name for name in held if "/" not in name}
    tops = {
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "README.md",
        "SECURITY.md",
        "biome.jsonc",
        "constraints.txt",
        "dev.py",
    }
    hidden = {".gitignore", ".pre-commit-config.yaml"}
    assert at_top == tops | hidden | {
        "MANIFEST.in",
        "PKG-INFO",
        "pyproject.toml",
        "setup.cfg",
        "setup.py",
    }


def test_an_sdist_has_no_links_or_build_products_and_a_sensible_size(
    sdist: Path, event_sdist: Path
) -> None:
    for file in (sdist, event_sdist):
        with tarfile.open(file) as archive:
            members = archive.getmembers()
        assert all(member.isfile() or member.isdir() for member in members)
        names = [member.name.partition("/")[2] for member in members]
        assert not [name for name in names if name.startswith(GENERATED)]
        assert not [name for name in names if name.endswith((".pyc", ".so"))]
        assert file.stat().st_size < LARGEST
        junk = {part for name in names for part in name.split("/")} & JUNK
        made_for_it = {"man", "interchain_events.egg-info"} if file == event_sdist else set()
        assert junk == made_for_it


def test_the_event_systems_sdist_has_exactly_the_files_of_its_folder(
    event_sdist: Path,
) -> None:
    with tarfile.open(event_sdist) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
    held = {member.name.partition("/")[2] for member in members}
    made = {name for name in held if name.startswith(("man/", "interchain_events.egg-info/"))}
    assert held - made == files(ROOT / "interchain_events") | {"PKG-INFO", "setup.cfg"}


def test_tests_of_the_sdist_pass_with_its_own_sources(unpacked: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PY")}
    environment["PYTHONPATH"] = str(unpacked)
    place = "import pubsub_emulator; print(pubsub_emulator.__file__)"
    where = subprocess.run(
        [sys.executable, "-c", place],
        cwd=unpacked,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(where.stdout.strip()).is_relative_to(unpacked)
    # They read vectors, the helpers of tests, and the sources of all tests and examples.
    tests = (
        "tests/pubsub_emulator/xcm/test_xcm_vectors.py",
        "tests/pubsub_emulator/trie/test_trie_vectors.py",
        "tests/test_hypothesis_profiles.py::test_no_test_overrides_what_a_profile_decides",
    )
    plugins = ("-p", "no:cacheprovider", "-p", "no:schemathesis")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *plugins, *tests],
        cwd=unpacked,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_a_build_in_a_checkout_leaves_nothing_in_package_folders() -> None:
    """Other programs read the package meanwhile, and would take a copy for a part of it."""
    code = (
        "from distutils.core import run_setup\n"
        "build = run_setup('setup.py', stop_after='init').get_command_obj('build')\n"
        "build.ensure_finalized()\n"
        "print(build.build_base)\n"
    )
    folder = ROOT / "interchain_events"
    done = subprocess.run(
        [sys.executable, "-c", f"import setuptools\n{code}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout.strip()) == ROOT / "build" / "interchain_events"
