"""An instance of a module, and the copy of its state from which it can be made again.

The state is the memory, the mutable globals and the content of the tables. Everything else of an
instance, such as segments that were dropped, begins anew with a new instance.
"""

import ctypes
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

import wasmtime

from interchain_events.icrc72.ic.errors import IcError
from interchain_events.icrc72.ic.wasm.engine import engine
from interchain_events.icrc72.ic.wasm.module import LISTED, LOAD, MEMORY, SAVE, TABLE, Module

PAGE: Final = 1 << 16
"""The bytes of a page of memory."""
TABLE_ENTRY_BYTES: Final = 8
"""The bytes that an entry of a table takes."""
_OWN_FUEL: Final = 1_000_000
"""The instructions for functions that `module` has added."""
_NO_FUNCTION: Final = -1
_LIBC: Final = ctypes.CDLL(None)
_COMPARE: Final = _LIBC.memcmp
_COMPARE.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


@dataclass(frozen=True, slots=True)
class InstanceLimits:
    """The limits of an instance in bytes."""

    memory: int
    tables: int
    """The most bytes of all tables together."""


class Instance:
    """An instance of a module, in a store of its own."""

    def __init__(self, module: Module, linker: wasmtime.Linker, limits: InstanceLimits) -> None:
        """Instantiate a module. Raises `IcError` if it needs more than the limits allow."""
        self.module = module
        self.store = wasmtime.Store(engine())
        entries = limits.tables // TABLE_ENTRY_BYTES
        added = int(module.changes_tables)
        self.store.set_limits(
            memory_size=limits.memory,
            # wasmtime's limit is that of each table, so the module's own tables share the entries
            # equally. The table that is added to a module has its own limit (`LISTED_COUNT`).
            table_elements=entries // max(module.tables, 1),
            instances=1,
            tables=module.tables + added,
            memories=1,
        )
        self.store.set_fuel(_OWN_FUEL)
        try:
            instance = linker.instantiate(self.store, module.code)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
            raise IcError(
                f"the module cannot be instantiated: {str(error).splitlines()[-1].strip()}"
            ) from None
        self.exports = instance.exports(self.store)
        memory = self.exports.get(MEMORY)
        self.memory = memory if isinstance(memory, wasmtime.Memory) else None

    def close(self) -> None:
        """Free the instance now and not when Python collects it."""
        self.store.close()

    def table(self, number: int) -> wasmtime.Table | None:
        """Return a table of the module, or `None` if it has fewer."""
        table = self.exports.get(f"{TABLE}{number}")
        return table if isinstance(table, wasmtime.Table) else None

    def memory_size(self) -> int:
        """Return the bytes of the memory."""
        return 0 if self.memory is None else self.memory.data_len(self.store)

    def memory_address(self) -> int:
        """Return where the memory is in this process. Growth can move it."""
        if self.memory is None or not self.memory_size():
            return 0
        return ctypes.addressof(self.memory.data_ptr(self.store).contents)

    def set_memory(self, source: int, size: int) -> None:
        """Set the first bytes of the memory to a copy of those at another place in this process.

        The memory grows if it is smaller. Raises `IcError` if it cannot.
        """
        if self.memory is None:
            return
        more = size - self.memory_size()
        if more > 0:
            try:
                self.memory.grow(self.store, more // PAGE)
            except wasmtime.WasmtimeError:
                raise IcError(f"the memory of the module cannot have {size:,} bytes") from None
        _copy_pages(self.memory_address(), source, size)

    def globals(self) -> tuple[int, ...]:
        """Return the mutable globals as integers."""
        if not self.module.words:
            return ()
        self.store.set_fuel(_OWN_FUEL)
        values: object = self._function(SAVE)(self.store)
        # wasmtime returns a list, or the value itself if there is only one.
        if isinstance(values, list):
            return tuple(cast("list[int]", values))
        return (cast("int", values),)

    def set_globals(self, values: tuple[int, ...]) -> None:
        """Set the mutable globals."""
        if values:
            self.store.set_fuel(_OWN_FUEL)
            self._function(LOAD)(self.store, *values)

    def tables(self) -> tuple[tuple[int, ...], ...]:
        """Return the content of the tables, as numbers in the list of functions.

        A module that cannot change its tables has no such list, and its tables need no copy.
        """
        if not self.module.changes_tables:
            return ()
        numbers = {_key(function): number for number, function in enumerate(self._listed())}
        contents: list[tuple[int, ...]] = []
        for table in self._tables():
            functions = _functions(table, self.store)
            contents.append(
                tuple(
                    _NO_FUNCTION if function is None else numbers[_key(function)]
                    for function in functions
                )
            )
        return tuple(contents)

    def set_tables(self, content: tuple[tuple[int, ...], ...]) -> None:
        """Set the content of the tables of a new instance."""
        if not content:
            return
        listed = list(self._listed())
        for table, numbers in zip(self._tables(), content, strict=True):
            more = len(numbers) - table.size(self.store)
            if more > 0:
                table.grow(self.store, more, None)
            present = [
                None if function is None else _key(function)
                for function in _functions(table, self.store)
            ]
            for index, number in enumerate(numbers):
                wanted = None if number == _NO_FUNCTION else listed[number]
                wanted_key = None if wanted is None else _key(wanted)
                # Setting an entry takes several times as long as reading it.
                if present[index] != wanted_key:
                    table.set(self.store, index, wanted)

    def _tables(self) -> Iterator[wasmtime.Table]:
        """Yield the module's own tables."""
        for number in range(self.module.tables):
            table = self.table(number)
            if table is not None:
                yield table

    def _listed(self) -> Iterator[wasmtime.Func]:
        """Yield the functions that can be in a table, in the order of their numbers."""
        for function in _functions(cast("wasmtime.Table", self.exports[LISTED]), self.store):
            if function is not None:
                yield function

    def _function(self, name: str) -> wasmtime.Func:
        return cast("wasmtime.Func", self.exports[name])


def _functions(table: wasmtime.Table, store: wasmtime.Store) -> Iterator[wasmtime.Func | None]:
    """Yield the entries of a table of functions, `None` for an empty one."""
    for index in range(table.size(store)):
        entry = table.get(store, index)
        yield entry if isinstance(entry, wasmtime.Func) else None


def _key(function: wasmtime.Func) -> bytes:
    """Return bytes that are equal for references to the same function of an instance."""
    return bytes(function._func)  # noqa: SLF001  # wasmtime compares no functions


class State:
    """A copy of the state of an instance.

    The copy of the memory is a mapping in which pages of zeros take no memory. Only pages that
    differ are copied, in both directions.
    """

    def __init__(self) -> None:
        self.size = 0
        """The bytes of the memory."""
        self._globals: tuple[int, ...] = ()
        self._tables: tuple[tuple[int, ...], ...] = ()
        self._map: ctypes.Array[ctypes.c_char] | None = None

    def copy_from(self, instance: Instance) -> None:
        """Copy the state of an instance."""
        self.size = instance.memory_size()
        if self._map is None or len(self._map) < self.size:
            self._map = _mapping(self.size)
        _copy_pages(ctypes.addressof(self._map), instance.memory_address(), self.size)
        self._globals = instance.globals()
        self._tables = instance.tables()

    def write_to(self, instance: Instance) -> None:
        """Set the state of an instance of the same module to this one."""
        if self._map is not None:
            instance.set_memory(ctypes.addressof(self._map), self.size)
        instance.set_globals(self._globals)
        instance.set_tables(self._tables)

    def parts(self) -> Iterator[bytes]:
        """Yield the memory, the globals and the tables as bytes."""
        if self._map is not None:
            yield ctypes.string_at(ctypes.addressof(self._map), self.size)
        yield repr(self._globals).encode()
        if self._tables:
            yield repr(self._tables).encode()


def _mapping(size: int) -> "ctypes.Array[ctypes.c_char]":
    """Return private memory of the operating system.

    It is filled with zeros, and its pages take memory only when they are written.
    """
    # It is twice as long as needed. Otherwise a memory that grows page by page would be copied to a
    # new mapping for each page.
    length = max(2 * size, PAGE)
    area = mmap.mmap(-1, length, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return (ctypes.c_char * length).from_buffer(area)


def _copy_pages(target: int, source: int, size: int) -> None:
    """Copy the pages that differ between two places in this process."""
    for offset in range(0, size, PAGE):
        if _COMPARE(target + offset, source + offset, PAGE):
            ctypes.memmove(target + offset, source + offset, PAGE)
