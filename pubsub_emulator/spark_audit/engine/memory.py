"""Settings that keep the memory of an audit's processes small.

Arrow imports pandas, which takes 26 MiB, when it converts its first list. This program never passes
pandas objects to Arrow. Arrow's default allocator also keeps freed memory.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

import pyarrow as pa


def spare() -> None:
    """Make Arrow work without pandas and with the system's allocator.

    Only call it in a process that only runs this program, because it changes Arrow for the whole
    process.
    """
    without = _Without()
    sys.meta_path.insert(0, without)
    try:
        # At its first list, Arrow tries to import pandas and remembers whether that failed.
        pa.array([0])
    finally:
        sys.meta_path.remove(without)
    pa.set_memory_pool(pa.system_memory_pool())


def give_back() -> None:
    """Return memory that Arrow has freed to the system."""
    pa.default_memory_pool().release_unused()


class _Without(MetaPathFinder):
    """An import hook that hides pandas."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        """Raise `ModuleNotFoundError` for pandas, and leave other modules to the other finders."""
        del path, target
        if fullname == "pandas":
            raise ModuleNotFoundError(name=fullname)
