"""Compiles the hot modules with mypyc where that is possible, and reads the version.

A wheel is compiled when mypyc and a C compiler are there, unless PUBSUB_PURE=1. With
PUBSUB_COMPILE=1, a failure to compile is an error. Everything else is in pyproject.toml.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

HERE = Path(__file__).resolve().parent
DEMANDED = os.environ.get("PUBSUB_COMPILE") == "1"
VERSION = "0.3.0"
"""The version of both distributions: a test compares it with the one of `pubsub_emulator`."""

COMPILED = [
    f"prism/core/{name}.py" for name in ("wire", "messages", "well_formed", "state", "process")
]
"""From a PRISM operation's bytes to the state of its DID."""


def packages() -> list[str]:
    """Return the packages: this folder and those in it."""
    folders = sorted(place.parent for place in HERE.rglob("__init__.py"))
    names = []
    for folder in folders:
        parts = folder.relative_to(HERE).parts
        if parts[:1] not in {("build",), ("dist",)}:
            names.append(".".join(("interchain_events", *parts)))
    return names


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
    """Say why nothing is compiled, or raise the reason where compiling was asked for."""
    if DEMANDED:
        raise reason
    sys.stderr.write(f"setup.py: not compiled, pure Python instead: {reason}\n")
    return []


def extensions() -> list[Extension]:
    """Return the compiled modules: none where they are not wanted or mypyc is missing."""
    commands = {"bdist_wheel", "build", "build_ext", "install"}
    if os.environ.get("PUBSUB_PURE") == "1" or not commands & set(sys.argv):
        return []
    try:
        from mypyc.build import mypycify  # noqa: PLC0415  # may be missing

        options = ("--config-file=", "--ignore-missing-imports", "--follow-imports=silent")
        return mypycify([*options, *COMPILED], opt_level="3", debug_level="0", group_name="events")
    except (ImportError, SystemExit) as error:  # mypycify exits where mypy finds fault
        return give_up(error)


setup(
    version=VERSION,
    install_requires=[f"pubsub-emulator=={VERSION}"],
    packages=packages(),
    package_dir={"interchain_events": "."},
    ext_modules=extensions(),
    cmdclass={"build_ext": BuildAllOrNone},
)
