"""Settings that keep the memory of an audit's processes small.

Arrow imports pandas, 26 MiB, at its first list; nothing here hands it pandas. Its usual allocator keeps what was freed.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

import pyarrow as pa


def spare() -> None:
    """Have Arrow go without pandas and use the system's memory, in a process that is this program's own."""
    without = _Without()
    sys.meta_path.insert(0, without)
    try:
        pa.array([0])  # Arrow looks for pandas once
    finally:
        sys.meta_path.remove(without)
    pa.set_memory_pool(pa.system_memory_pool())


def give_back() -> None:
    """Return to the system what Arrow has freed."""
    pa.default_memory_pool().release_unused()


class _Without(MetaPathFinder):
    """Says that there is no pandas."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        """Find nothing. Raises `ModuleNotFoundError` for pandas."""
        del path, target
        if fullname == "pandas":
            raise ModuleNotFoundError(name=fullname)
