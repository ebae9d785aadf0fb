"""Compiles the hot modules with mypyc where that is possible; everything else stands in pyproject.toml.

The compiled modules are the same source, and behave the same (PS-90). A wheel is compiled when mypyc and a C compiler
are there, and is pure Python otherwise; PUBSUB_PURE=1 asks for pure Python. An editable install is pure, or a change
of the source would change nothing, unless PUBSUB_COMPILE=1 asks for it.
"""

import os
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

COMPILED = [
    # Root, update, proof and reading of tries.
    "trie/nibbles.py",
    "trie/codec.py",
    "trie/nodes.py",
    "trie/walk.py",
    "trie/bulk.py",
    "trie/mutable.py",
    "trie/proof.py",
    "trie/parts.py",
    "trie/compact.py",
    # What every stored value goes through.
    "primitives/hashing.py",
    "primitives/pubsub.py",
    # The walk.
    "runtime/pallet_subscriber/meter.py",
    "runtime/pallet_subscriber/delivered.py",
    "runtime/pallet_subscriber/cache/base.py",
    "runtime/pallet_subscriber/cache/nodes.py",
    "runtime/pallet_subscriber/cache/slots.py",
    "runtime/pallet_subscriber/plan.py",
]


class BuildAllOrNone(build_ext):
    """Some modules compiled and some not would not import: one that fails leaves pure Python."""

    def run(self) -> None:
        """Build the extensions, or say why there are none."""
        try:
            super().run()
        except Exception as error:  # whatever a compiler or its absence raises
            if os.environ.get("PUBSUB_COMPILE") == "1":
                raise
            sys.stderr.write(f"setup.py: not compiled, pure Python instead: {error}\n")
            for extension in self.extensions:
                path = self.get_ext_fullpath(extension.name)
                if os.path.exists(path):  # noqa: PTH110  # setuptools speaks in strings
                    os.unlink(path)  # noqa: PTH108  # the same
            self.extensions = []


def extensions() -> list[Extension]:
    """The compiled modules; none where they are not wanted or mypyc is not there."""
    if os.environ.get("PUBSUB_PURE") == "1":
        return []
    building = {"bdist_wheel", "build", "build_ext", "install"} & set(sys.argv)
    if not building and not ("editable_wheel" in sys.argv and os.environ.get("PUBSUB_COMPILE") == "1"):
        return []
    try:
        from mypyc.build import mypycify  # noqa: PLC0415  # optional
    except ImportError:
        return []
    # Not pyproject's mypy settings: the packages that they name need not be there when a wheel is built.
    return mypycify(
        ["--config-file=", "--ignore-missing-imports", *COMPILED],
        opt_level="3",
        debug_level="0",
        group_name="pubsub",
    )


setup(ext_modules=extensions(), cmdclass={"build_ext": BuildAllOrNone})
