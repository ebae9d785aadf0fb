"""Loading of WebAssembly modules, and what is added to them.

A host can reach only the parts of an instance that the module exports. To undo a trap, the host
copies memory, mutable globals and tables, and it finds callbacks in the table. All these are
therefore exported under additional names, as replicas of the Internet Computer do. The start
function is exported, too, instead of running at instantiation, because it may call functions of the
system.

One function is added that calls a function of the first table as a callback, and traps if that has
another type. Two functions are added that return all mutable globals as integers and set them, so
that vectors and the bits of every NaN survive. A module that changes its tables gets one more table
with all functions that can be in a table. Its tables are then saved as indices of this table.
"""

import atexit
import zlib
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final, NamedTuple

import wasmtime

from interchain_events.icrc72.ic.candid.encode import leb128
from interchain_events.icrc72.ic.candid.wire import Reader
from interchain_events.icrc72.ic.errors import CandidError, ModuleError
from interchain_events.icrc72.ic.wasm import scan
from interchain_events.icrc72.ic.wasm.compiler import compiled
from interchain_events.icrc72.ic.wasm.engine import engine
from interchain_events.icrc72.ic.wasm.scan import (
    FunctionType,
    Import,
    Section,
    imports_of,
    read_type,
    scan_code,
    types_of,
)
from pubsub_emulator.files.shown import safe

OURS: Final = "pubsub:"
"""The beginning of the names of added exports."""
MEMORY: Final = f"{OURS}memory"
TABLE: Final = f"{OURS}table"
"""The name of a table, before its number."""
LISTED: Final = f"{OURS}functions"
"""The name of the table of all functions that can be in a table."""
START: Final = f"{OURS}start"
SAVE: Final = f"{OURS}globals"
"""The name of the function that returns the mutable globals."""
LOAD: Final = f"{OURS}set globals"
"""The name of the function that sets them."""
CALL: Final = f"{OURS}call"
"""The name of the function that calls a function of the first table with an argument."""
PERSISTENT: Final = "enhanced-orthogonal-persistence"
"""The end of the name of the section that marks modules whose memory is kept over upgrades."""
_PUBLIC: Final = "icp:public "
"""The beginning of the names of sections that are public metadata."""

MODULE_BYTES: Final = 16 << 20
"""The most bytes of an uncompressed module."""
CODE_BYTES: Final = 4 << 20
"""The most bytes of its functions."""
FUNCTION_COUNT: Final = 50_000
"""The most functions."""
LOCAL_COUNT: Final = 500_000
"""The most local variables of all functions. A few bytes of a module can declare any number."""
WORK: Final = 16_000_000
"""The most work for the compiler, see `scan.Code.work`."""
EXPORT_COUNT: Final = 1_000
IMPORT_COUNT: Final = 1_000
GLOBAL_WORDS: Final = 1_000
"""The most words of the mutable globals; a vector has two."""
TABLE_COUNT: Final = 10
LISTED_COUNT: Final = 8_192
"""The most functions in element segments of a module that changes its tables."""
_CACHED_BYTES: Final = 128 << 20
"""The most memory of modules that are kept for `load` of the same bytes."""
_MODULE_BYTES: Final = 96 << 10
"""The memory of the smallest module with its linker, measured at 22 to 75 KiB."""
_COMPILED_RATIO: Final = 32
"""The memory of compiled code beside the bytes of its module, measured at 18 to 32."""

_EXTERNAL_KINDS: Final = {"func": 0, "table": 1, "memory": 2, "global": 3}
_IMMEDIATES: Final = {
    0x41: "leb",
    0x42: "leb",
    0x43: 4,
    0x44: 8,
    0x23: "leb",
    0xD0: "leb",
}
"""The operands of instructions in constant expressions: a LEB128, or this number of bytes."""
_REF_FUNC: Final = 0xD2
_END: Final = 0x0B
_ORDER: Final = (
    scan.TYPES,
    scan.IMPORTS,
    scan.FUNCTIONS,
    scan.TABLES,
    scan.MEMORIES,
    scan.GLOBALS,
    scan.EXPORTS,
    scan.START,
    scan.ELEMENTS,
    12,
    scan.CODE,
    11,
)
"""The order of sections. 12 has the number of data segments and 11 the segments."""
_PLACE: Final = {number: place for place, number in enumerate(_ORDER)}


class Global(NamedTuple):
    """A mutable global."""

    number: int
    type: int
    """The byte of its type."""


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Module:
    """A module that is ready to be instantiated."""

    code: wasmtime.Module
    hash: bytes
    imports: tuple[tuple[str, FunctionType], ...]
    """The functions of the system that it imports."""
    exports: frozenset[str]
    """The names of the exported functions."""
    words: int
    """The integers in which the mutable globals are saved."""
    tables: int
    """The number of tables."""
    changes_tables: bool
    """Whether it can change its tables."""
    drops_segments: bool
    """Whether it can drop its data and element segments."""
    wide: bool
    """Whether its addresses have 64 bits."""
    persistent: bool
    """Whether its memory is kept over upgrades."""
    public: dict[str, bytes]
    """The public metadata by name."""


_CACHE: Final[OrderedDict[bytes, tuple[int, Module]]] = OrderedDict()
"""The modules that were loaded last, by the hash of their bytes, with the memory that they take."""


def load(wasm: bytes) -> Module:
    """Load a `.wasm` or `.wasm.gz`. The hash is that of these bytes. Raises `ModuleError`."""
    digest = sha256(wasm).digest()
    if digest in _CACHE:
        _CACHE.move_to_end(digest)
        return _CACHE[digest][1]
    raw = _unpacked(wasm)
    module = _loaded(raw, digest)
    # A module of a few hundred bytes takes much more memory when it is compiled.
    _CACHE[digest] = _MODULE_BYTES + _COMPILED_RATIO * len(raw), module
    while len(_CACHE) > 1 and sum(size for size, _ in _CACHE.values()) > _CACHED_BYTES:
        _CACHE.popitem(last=False)
    return module


def _loaded(raw: bytes, digest: bytes) -> Module:
    """Check, prepare and compile a module. Raises `ModuleError`."""
    try:
        wasmtime.Module.validate(engine(), raw)
    except wasmtime.WasmtimeError as error:
        reason = _unsupported(raw) or f"not a WebAssembly module: {_first_line(error)}"
        raise ModuleError(reason) from None
    try:
        return _prepared(raw, digest)
    except wasmtime.WasmtimeError as error:
        raise ModuleError(f"the module cannot be compiled: {_first_line(error)}") from None
    except (CandidError, UnicodeDecodeError) as error:
        raise ModuleError(f"not a module that is understood: {error}") from None


def _first_line(error: Exception) -> str:
    """Return the first line of an error's text, in printable characters and cut."""
    return safe(str(error).splitlines()[0])[:200]


def _unsupported(raw: bytes) -> str:
    """Return why an invalid module has types that cannot be saved, or an empty text.

    wasmtime refuses them because the proposals are switched off, but does not name the type.
    """
    try:
        sections = scan.sections_of(raw)
        for section in sections:
            if section.number == scan.TYPES:
                types_of(section.content)
            elif section.number == scan.TABLES:
                _check_tables(Reader(section.content))
            elif section.number == scan.GLOBALS:
                _Globals(Reader(section.content))
    except ModuleError as error:
        return str(error)
    except CandidError:
        return ""
    return ""


# wasmtime prints complaints if objects are freed after it has shut down.
atexit.register(_CACHE.clear)


def _unpacked(wasm: bytes) -> bytes:
    """Return an uncompressed module. Raises `ModuleError` if it is damaged or too large."""
    if wasm[:2] == b"\x1f\x8b":
        packed = zlib.decompressobj(31)
        try:
            # The limit keeps a small file from filling the memory.
            wasm = packed.decompress(wasm, MODULE_BYTES + 1)
        except zlib.error as error:
            raise ModuleError(f"not a packed module: {error}") from None
    if len(wasm) > MODULE_BYTES:
        raise ModuleError(f"a module has at most {MODULE_BYTES} bytes")
    return wasm


@dataclass(slots=True)
class _Parts:
    """The parts of a module that were read from its sections."""

    persistent: bool = False
    wide: bool = False
    public: dict[str, bytes] = field(default_factory=dict)
    types: list[FunctionType] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)
    functions: list[int] = field(default_factory=list)
    """The types of the module's own functions."""
    exported: list[tuple[str, int]] = field(default_factory=list)
    """The names and indices of the exported functions."""
    tables: int = 0
    """The number of tables."""
    wide_table: bool = False
    """Whether the first table has indices of 64 bits."""
    globals: list[Global] = field(default_factory=list)
    """The mutable globals."""
    listed: dict[int, None] = field(default_factory=dict)
    """The functions that can be in a table, by index."""
    exports: list[tuple[str, str, int]] = field(default_factory=list)
    """Exports that are added: name, kind and index."""

    def type_of(self, function: int) -> FunctionType:
        """Return the type of a function, imported or not."""
        # Imports come first in the index space. All of them are functions (see `_check_imports`).
        indices = [import_.type or 0 for import_ in self.imports]
        indices += self.functions
        return self.types[indices[function]]


class _Added:
    """The entries that are added to the sections of a module."""

    def __init__(self, parts: _Parts) -> None:
        self.entries: dict[int, list[bytes]] = {}
        self._parts = parts
        self._types = len(parts.types)
        self._functions = len(parts.imports) + len(parts.functions)

    def put(self, section: int, entry: bytes) -> None:
        """Add an entry to a section."""
        self.entries.setdefault(section, []).append(entry)

    def function(self, name: str, takes: bytes, gives: bytes, body: bytes) -> None:
        """Add an exported function without local variables."""
        self.put(scan.TYPES, b"\x60" + _natural(len(takes)) + takes + _natural(len(gives)) + gives)
        self.put(scan.FUNCTIONS, _natural(self._types))
        # The first byte is the number of groups of local variables.
        code = b"\0" + body + bytes([_END])
        self.put(scan.CODE, _natural(len(code)) + code)
        self._parts.exports.append((name, "func", self._functions))
        self._types += 1
        self._functions += 1

    @property
    def next_type(self) -> int:
        """Return the index of the next type that is added."""
        return self._types


def _prepared(raw: bytes, digest: bytes) -> Module:
    """Read the sections of a valid module, add the exports of the host, and compile it.

    Raises `ModuleError` if it exceeds a limit, has types that cannot be saved or functions that the
    system cannot call, or imports anything but functions of the system.
    """
    sections = scan.sections_of(raw)
    parts = _Parts()
    for section in sections:
        _read_section(section, parts)
    _check_imports(parts)
    size = sum(len(section.content) for section in sections if section.number == scan.CODE)
    _check_most(size, CODE_BYTES, "bytes of functions")
    code = scan_code(sections)
    _check_most(code.locals, LOCAL_COUNT, "local variables")
    _check_most(code.work, WORK, "local variables times blocks and branches")
    exports = _exported(parts)
    added = _Added(parts)
    words = _add_globals(added, parts)
    if parts.tables:
        _add_call(added, parts)
    if code.changes_tables:
        _add_list(added, parts)
    for name, kind, index in parts.exports:
        raw_name = name.encode()
        entry = _natural(len(raw_name)) + raw_name + bytes([_EXTERNAL_KINDS[kind]])
        added.put(scan.EXPORTS, entry + _natural(index))
    # An import without a type is not a function, which `_check_imports` has refused.
    imports = tuple((import_.name, parts.types[import_.type or 0]) for import_ in parts.imports)
    return Module(
        code=compiled(_assembled(sections, added.entries), code),
        hash=digest,
        imports=imports,
        exports=exports,
        words=words,
        tables=parts.tables,
        changes_tables=code.changes_tables,
        drops_segments=code.drops_segments,
        wide=parts.wide,
        persistent=parts.persistent,
        public=parts.public,
    )


def _read_section(section: Section, parts: _Parts) -> None:
    """Store the parts of a section that the host needs. Raises `ModuleError`."""
    reader = Reader(section.content)
    match section.number:
        case scan.CUSTOM:
            name = reader.take(reader.leb()).decode()
            parts.persistent = parts.persistent or name.endswith(PERSISTENT)
            if name.startswith(_PUBLIC):
                parts.public[name.removeprefix(_PUBLIC)] = section.content[reader.at :]
        case scan.TYPES:
            parts.types = types_of(section.content)
        case scan.IMPORTS:
            _counted(reader, IMPORT_COUNT, "imports")
            parts.imports = list(imports_of(section.content))
        case scan.FUNCTIONS:
            count = _counted(reader, FUNCTION_COUNT, "functions")
            parts.functions = [reader.leb() for _ in range(count)]
        case scan.TABLES:
            parts.tables, parts.wide_table = _check_tables(reader)
            parts.exports += [
                (f"{TABLE}{number}", "table", number) for number in range(parts.tables)
            ]
        case scan.MEMORIES if reader.leb():
            # Bit 2 of the limits' flags marks a memory with 64-bit addresses.
            parts.wide = bool(reader.byte() & 4)
            parts.exports.append((MEMORY, "memory", 0))
        case scan.GLOBALS:
            section_globals = _Globals(reader)
            parts.globals = section_globals.mutable
            parts.listed |= dict.fromkeys(section_globals.functions)
        case scan.EXPORTS:
            for _ in range(_counted(reader, EXPORT_COUNT, "exports")):
                name = reader.take(reader.leb()).decode()
                kind = reader.byte()
                index = reader.leb()
                if kind == scan.FUNCTION_KIND:
                    parts.exported.append((name, index))
                    parts.listed[index] = None
        case scan.START:
            parts.exports.append((START, "func", reader.leb()))
        case scan.ELEMENTS:
            parts.listed |= dict.fromkeys(_listed(reader))
        case _:
            pass


def _counted(reader: Reader, most: int, things: str) -> int:
    """Read a count. Raises `ModuleError` if it is too large."""
    count = reader.leb()
    _check_most(count, most, things)
    return count


def _check_most(count: int, most: int, things: str) -> None:
    """Raise `ModuleError` if there are too many things."""
    if count > most:
        raise ModuleError(f"a module has at most {most:,} {things}, not {count:,}")


def _check_tables(reader: Reader) -> tuple[int, bool]:
    """Read the table section. Raises `ModuleError`.

    Returns the number of tables, and whether the first one has indices of 64 bits.
    """
    count = _counted(reader, TABLE_COUNT, "tables")
    wide = False
    for number in range(count):
        first, name = read_type(reader)
        if first != scan.FUNCREF:
            raise ModuleError(f"table {number} has the type {name}, which cannot be saved")
        limits = reader.byte()
        reader.leb()
        if limits & 1:
            reader.leb()
        if number == 0:
            wide = bool(limits & 4)
    return count, wide


class _Globals:
    """The global section. Modules with imported globals are refused, so indices begin with 0."""

    def __init__(self, reader: Reader) -> None:
        """Read the section. Raises `ModuleError` for mutable globals that cannot be saved."""
        self.mutable: list[Global] = []
        self.functions: list[int] = []
        """The functions to which globals refer."""
        # The integers in which the globals are saved, of which a vector takes two.
        words = 0
        for index in range(reader.leb()):
            first, name = read_type(reader)
            if reader.byte():
                if first not in _LANES:
                    raise ModuleError(
                        f"the mutable global {index} has the type {name}, which cannot be saved"
                    )
                self.mutable.append(Global(index, first))
                words += len(_LANES[first].types)
            self.functions += _constant(reader)
        if words > GLOBAL_WORDS:
            raise ModuleError(f"mutable globals have at most {GLOBAL_WORDS:,} words, not {words:,}")


def _constant(reader: Reader) -> list[int]:
    """Skip a constant expression. Returns the functions to which it refers."""
    functions = []
    instruction = reader.byte()
    while instruction != _END:
        operand = _IMMEDIATES.get(instruction, 0)
        if instruction == _REF_FUNC:
            functions.append(reader.leb())
        elif instruction == 0xFD:
            # `v128.const` has a second opcode and 16 bytes.
            reader.leb()
            reader.take(16)
        elif isinstance(operand, int):
            reader.take(operand)
        else:
            reader.sleb()
        instruction = reader.byte()
    return functions


def _listed(reader: Reader) -> Iterable[int]:
    """Yield the functions in the element section."""
    for _ in range(reader.leb()):
        flags = reader.leb()
        active = not flags & 1
        explicit = bool(flags & 2)
        expressions = bool(flags & 4)
        if active:
            if explicit:
                reader.leb()
            _constant(reader)
        if not active or explicit:
            # The kind of the elements: a type for expressions, otherwise 0 for functions.
            if expressions:
                read_type(reader)
            else:
                reader.byte()
        for _ in range(reader.leb()):
            if expressions:
                yield from _constant(reader)
            else:
                yield reader.leb()


def _check_imports(parts: _Parts) -> None:
    """Check that only functions of the system are imported. Raises `ModuleError`."""
    for import_ in parts.imports:
        if import_.module != "ic0" or import_.type is None:
            name = f"{safe(import_.module)}.{safe(import_.name)}"[:200]
            raise ModuleError(f"the module imports {name}, which is not a function of the system")


def _exported(parts: _Parts) -> frozenset[str]:
    """Return the names of the exported functions.

    Raises `ModuleError` if one that the system calls has parameters or results.
    """
    for name, index in parts.exported:
        function_type = parts.type_of(index)
        if name.startswith("canister_") and (function_type.takes or function_type.gives):
            raise ModuleError(
                f"{safe(name)[:80]} has the type {str(function_type)[:80]}, the system calls"
                " functions of type () -> ()"
            )
    return frozenset(name for name, _ in parts.exported)


class _Lanes(NamedTuple):
    """The way in which a global is saved as integers."""

    types: bytes
    save: tuple[bytes, ...]
    """For each integer, the instructions that make it from the value."""
    load: bytes
    """The instructions that make the value from one integer, or from two for a vector."""


_LANES: Final = {
    scan.I32: _Lanes(bytes([scan.I32]), (b"",), b""),
    scan.I64: _Lanes(bytes([scan.I64]), (b"",), b""),
    scan.F32: _Lanes(bytes([scan.I32]), (b"\xbc",), b"\xbe"),
    scan.F64: _Lanes(bytes([scan.I64]), (b"\xbd",), b"\xbf"),
    # i64x2.extract_lane 0 and 1; i64x2.splat, and i64x2.replace_lane 1.
    scan.V128: _Lanes(
        bytes([scan.I64, scan.I64]), (b"\xfd\x1d\x00", b"\xfd\x1d\x01"), b"\xfd\x1e\x01"
    ),
}
_SPLAT: Final = b"\xfd\x12"


def _add_globals(added: _Added, parts: _Parts) -> int:
    """Add the functions that save and load the mutable globals.

    Returns the number of integers that the first one returns and the second one takes.
    """
    if not parts.globals:
        return 0
    types = b"".join(_LANES[global_.type].types for global_ in parts.globals)
    saving = bytearray()
    loading = bytearray()
    parameter = 0
    for global_ in parts.globals:
        lanes = _LANES[global_.type]
        for instructions in lanes.save:
            saving += _with_operand(0x23, global_.number) + instructions
        for half in range(len(lanes.types)):
            loading += _with_operand(0x20, parameter)
            # The first half of a vector is put into both lanes. `lanes.load` then writes the second
            # half over one of them.
            if global_.type == scan.V128 and half == 0:
                loading += _SPLAT
            parameter += 1
        loading += lanes.load + _with_operand(0x24, global_.number)
    added.function(SAVE, b"", types, bytes(saving))
    added.function(LOAD, types, b"", bytes(loading))
    return len(types)


def _add_call(added: _Added, parts: _Parts) -> None:
    """Add the function that calls a callback.

    Its parameters are the callback's index in the first table and the callback's argument.
    """
    index = bytes([scan.I64 if parts.wide_table else scan.I32])
    argument = bytes([scan.I64 if parts.wide else scan.I32])
    # The type of a callback follows the type of the function that is added.
    callback = added.next_type + 1
    body = _with_operand(0x20, 1) + _with_operand(0x20, 0)
    added.function(CALL, index + argument, b"", body + _with_operand(0x11, callback) + b"\0")
    added.put(scan.TYPES, b"\x60\1" + argument + b"\0")


def _add_list(added: _Added, parts: _Parts) -> None:
    """Add the table of the functions that can be in a table. Raises `ModuleError`."""
    count = len(parts.listed)
    if count > LISTED_COUNT:
        raise ModuleError(
            f"a module that changes its tables has at most {LISTED_COUNT:,} functions in its"
            f" element segments and exports, not {count:,}"
        )
    size = _natural(count)
    added.put(scan.TABLES, bytes([scan.FUNCREF, 1]) + size + size)
    entries = b"".join(_natural(function) for function in parts.listed)
    # An active segment of function indices for a table that is named, from index 0 on.
    segment = b"\2" + _natural(parts.tables) + b"\x41\0\x0b\0" + size + entries
    added.put(scan.ELEMENTS, segment)
    parts.exports.append((LISTED, "table", parts.tables))


def _natural(number: int) -> bytes:
    """Return a number in LEB128."""
    out = bytearray()
    leb128(number, out)
    return bytes(out)


def _with_operand(instruction: int, operand: int) -> bytes:
    return bytes([instruction]) + _natural(operand)


def _assembled(sections: list[Section], added: dict[int, list[bytes]]) -> bytes:
    """Return the module with more entries in its sections, and without its start section."""
    out = bytearray(b"\0asm\1\0\0\0")
    remaining = dict(sorted(added.items(), key=lambda pair: _PLACE[pair[0]]))
    for section in sections:
        if section.number == scan.START:
            continue
        if section.number != scan.CUSTOM:
            # Sections that the module does not have are written at their places in the order.
            for number in list(remaining):
                if _PLACE[number] < _PLACE[section.number]:
                    _write_section(out, number, b"\0", remaining.pop(number))
        _write_section(out, section.number, section.content, remaining.pop(section.number, []))
    for number, entries in remaining.items():
        _write_section(out, number, b"\0", entries)
    return bytes(out)


def _write_section(out: bytearray, number: int, content: bytes, entries: list[bytes]) -> None:
    """Append a section, with more entries behind those that it has."""
    if entries:
        reader = Reader(content)
        count = _natural(reader.leb() + len(entries))
        content = count + content[reader.at :] + b"".join(entries)
    out.append(number)
    leb128(len(content), out)
    out += content
