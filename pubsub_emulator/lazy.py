"""Lazy exports of a package.

The package's stub lists the names. Each name is imported from its module on first use.
"""

import re
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Final

_LINE: Final = re.compile(r"^from \.(\S+) import (?:\(\n +)?(\w+) as (\w+)\b", re.MULTILINE)
"""An import of a stub, also one whose name stands in parentheses on a line of its own."""


@cache
def homes(package: str) -> dict[str, tuple[str, str]]:
    """Return the module of each name of a package, and its name there.

    The package's `__init__.pyi` lists them.
    """
    import pkgutil  # noqa: PLC0415  # only a program that asks for names needs it

    # `get_data` also reads from a zip archive.
    stub = pkgutil.get_data(package, "__init__.pyi") or b""
    return {
        public: (f"{package}.{module}", name)
        for module, name, public in _LINE.findall(stub.decode())
    }


def face(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package, for its `__init__.py`."""

    def find(name: str) -> object:
        if name == "__all__":
            return sorted(homes(package))
        if name.startswith("_") or name not in homes(package):
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, inner = homes(package)[name]
        value: object = getattr(import_module(module), inner)
        setattr(sys.modules[package], name, value)
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes(package), "__all__"})

    return find, listed
