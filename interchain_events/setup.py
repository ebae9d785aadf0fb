"""The build: it compiles the hot modules with mypyc if possible, and makes the manual pages.

A wheel is compiled if mypyc and a C compiler are installed, unless PUBSUB_PURE=1. With
PUBSUB_COMPILE=1, a failure to compile is an error. Other settings are in pyproject.toml.
"""

import contextlib
import os
import shutil
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent
CHECKOUT = (HERE.parent / "development" / "manual_pages.py").is_file()
"""Whether this is a checkout, in which the program is beside this folder, and not a source
distribution."""
BUILD = HERE.parent / "build" / "interchain_events" if CHECKOUT else HERE / "build"
"""The folder for the files of a build. In a checkout it is outside of the package, because other
programs may be reading the package's files."""
DEMANDED = os.environ.get("PUBSUB_COMPILE") == "1"
VERSION = "0.4.0"
"""The version of both distributions: a test compares it with the one of `pubsub_emulator`."""

COMPILED = [
    f"interchain_events/prism/core/{name}.py"
    for name in ("wire", "messages", "well_formed", "state", "process")
]
"""The modules between a PRISM operation's bytes and the state of its DID."""


def packages() -> list[str]:
    """Return the names of the package in this folder and of its subpackages."""
    folders = sorted(place.parent for place in HERE.rglob("__init__.py"))
    names = []
    for folder in folders:
        parts = folder.relative_to(HERE).parts
        if parts[:1] != ("build",):
            names.append(".".join(("interchain_events", *parts)))
    return names


class BuildElsewhere(build):
    """A build in `BUILD`."""

    def initialize_options(self) -> None:
        """Set the folder, which an option can change."""
        super().initialize_options()
        self.build_base = str(BUILD)


class BuildWithoutSetup(build_py):
    """A build without this file, which is in the package's folder but is not a module of it."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        """Return the modules of a package, each with its package, name and file."""
        modules = super().find_package_modules(package, package_dir)
        return [module for module in modules if module[:2] != ("interchain_events", "setup")]


class BuildAllOrNone(build_ext):
    """A build with all extensions or none, because compiled modules need each other."""

    def run(self) -> None:
        """Build the extensions, or print why there are none."""
        try:
            super().run()
        except Exception as error:  # noqa: BLE001  # whatever a compiler or its absence raises
            give_up(error)
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []


def give_up(reason: BaseException) -> list[Extension]:
    """Print why there are no compiled modules, or raise the reason if PUBSUB_COMPILE=1."""
    if DEMANDED:
        raise reason
    sys.stderr.write(f"setup.py: not compiled, pure Python instead: {reason}\n")
    return []


def extensions() -> list[Extension]:
    """Return the compiled modules, an empty list if they are not wanted or mypyc is missing."""
    commands = {"bdist_wheel", "build", "build_ext", "install"}
    if os.environ.get("PUBSUB_PURE") == "1" or not commands & set(sys.argv):
        return []
    try:
        from mypyc.build import mypycify  # noqa: PLC0415  # may be missing

        options = (
            *("--config-file=", "--ignore-missing-imports", "--follow-imports=silent"),
            "--explicit-package-bases",  # packages are looked for in the copy only, not above it
        )
        with contextlib.chdir(named_sources()):
            return mypycify(
                [*options, *COMPILED],
                opt_level="3",
                debug_level="0",
                group_name="events",
                target_dir=str(BUILD),
            )
    except (ImportError, SystemExit) as error:  # mypycify exits where mypy finds fault
        return give_up(error)


def named_sources() -> Path:
    """Return a folder with a copy of the package under its own name.

    mypy takes the names of packages from their folders. In a source distribution the folder has
    another name.
    """
    folder = BUILD / "sources"
    shutil.rmtree(folder, ignore_errors=True)
    made = shutil.ignore_patterns("build", "dist", "*.egg-info", "__pycache__", "setup.py")
    shutil.copytree(HERE, folder / "interchain_events", ignore=made)
    return folder


def manual_pages() -> list[tuple[str, list[str]]]:
    """Return the manual pages, one for each command.

    In a checkout they are written. A source distribution contains them.
    """
    if not {"bdist_wheel", "sdist"} & set(sys.argv):
        return []
    folder = HERE / "man"
    if CHECKOUT:
        shutil.rmtree(folder, ignore_errors=True)
        sys.path.insert(0, str(HERE.parent))
        from development.manual_pages import write_pages  # noqa: PLC0415  # only in a checkout
        from interchain_events.extension import EXTENSION  # noqa: PLC0415  # as above

        write_pages(folder, f"interchain-events {VERSION}", EXTENSION)
    pages = sorted(str(page.relative_to(HERE)) for page in folder.glob("*.1"))
    return [("share/man/man1", pages)]


setup(
    version=VERSION,
    install_requires=[f"pubsub-emulator=={VERSION}"],
    packages=packages(),
    package_dir={"interchain_events": "."},
    ext_modules=extensions(),
    cmdclass={"build": BuildElsewhere, "build_ext": BuildAllOrNone, "build_py": BuildWithoutSetup},
    data_files=manual_pages(),
)
