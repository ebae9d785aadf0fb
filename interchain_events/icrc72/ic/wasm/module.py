"""Loading of WebAssembly modules, and the exports that are added to them.

A host can reach only the parts of an instance that the module exports. To undo a trap, memory and
mutable globals must be copied, and callbacks are in the table. All these are therefore exported
under names of ours, as replicas of the Internet Computer do. The start function is exported, too,
instead of running at instantiation, because it may call functions of the system.
"""

import atexit
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from typing import Final

import wasmtime

from interchain_events.icrc72.ic.candid.encode import leb128
from interchain_events.icrc72.ic.candid.wire import Reader
from interchain_events.icrc72.ic.errors import CandidError, IcError
from pubsub_emulator.files.shown import safe

OURS: Final = "pubsub:"
"""The beginning of the names of added exports."""
MEMORY: Final = f"{OURS}memory"
TABLE: Final = f"{OURS}table"
START: Final = f"{OURS}start"
PERSISTENT: Final = "enhanced-orthogonal-persistence"
"""The end of the name of the section that marks modules whose memory is kept over upgrades."""
_PUBLIC: Final = "icp:public "
"""The beginning of the names of sections that are public metadata."""
MODULE_BYTES: Final = 100 << 20
"""The most bytes of an uncompressed module."""

# The numbers of sections in the binary format.
_CUSTOM, _TABLES, _MEMORIES, _GLOBALS, _EXPORTS, _START = 0, 4, 5, 6, 7, 8
_AFTER_EXPORTS: Final = {8, 9, 10, 11, 12}
"""The sections that come after the exports: sections must be in order."""
_KINDS: Final = {"func": 0, "table": 1, "memory": 2, "global": 3}
_IMMEDIATES: Final = {
    0x41: "leb",
    0x42: "leb",
    0x43: 4,
    0x44: 8,
    0x23: "leb",
    0xD0: "leb",
    0xD2: "leb",
}
"""The operands of instructions in constant expressions: a LEB128, or this number of bytes."""


class ModuleError(IcError):
    """Bytes are not a module that a canister can run."""


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """A module that is ready to be instantiated."""

    code: wasmtime.Module
    hash: bytes
    exports: frozenset[str]
    """The names of the exported functions."""
    globals: tuple[str, ...]
    """The names under which its mutable globals are exported."""
    wide: bool
    """Whether its addresses have 64 bits."""
    persistent: bool
    """Whether its memory is kept over upgrades."""
    public: dict[str, bytes]
    """The public metadata by name."""


@cache
def engine() -> wasmtime.Engine:
    """Return the engine of all canisters.

    It is configured so that every execution is deterministic: the same NaNs, no threads, and fuel
    instead of time limits.
    """
    config = wasmtime.Config()
    # If another library has taken the signal, a trap would end the process.
    config.signals_based_traps = False
    config.consume_fuel = True
    config.cranelift_nan_canonicalization = True
    config.wasm_memory64 = True
    config.wasm_threads = False
    config.wasm_relaxed_simd = False
    config.wasm_multi_memory = False
    config.wasm_exceptions = False
    return wasmtime.Engine(config)


@lru_cache(maxsize=64)
def load(wasm: bytes) -> Module:
    """Load a `.wasm` or `.wasm.gz`. The hash is that of these bytes. Raises `ModuleError`."""
    raw = _unpacked(wasm)
    try:
        wasmtime.Module.validate(engine(), raw)
        return _prepared(raw, sha256(wasm).digest())
    except wasmtime.WasmtimeError as error:
        raise ModuleError(
            f"not a WebAssembly module: {safe(str(error).splitlines()[0])[:200]}"
        ) from None
    except (CandidError, UnicodeDecodeError) as error:
        raise ModuleError(f"not a module that is understood: {error}") from None


# wasmtime prints complaints if objects are freed after it has shut down.
atexit.register(load.cache_clear)


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


def _prepared(raw: bytes, digest: bytes) -> Module:
    """Read the sections of a valid module, add the exports, and compile it.

    Raises `ModuleError` if it imports anything but functions of the system.
    """
    reader = Reader(raw, 8)
    sections: list[tuple[int, bytes]] = []
    while reader.at < len(raw):
        number = reader.byte()
        sections.append((number, reader.take(reader.leb())))
    added: list[tuple[str, str, int]] = []
    public: dict[str, bytes] = {}
    wide = persistent = False
    for number, content in sections:
        inside = Reader(content)
        if number == _CUSTOM:
            name = inside.take(inside.leb()).decode()
            persistent = persistent or name.endswith(PERSISTENT)
            if name.startswith(_PUBLIC):
                public[name.removeprefix(_PUBLIC)] = content[inside.at :]
        elif number == _TABLES and inside.leb():
            added.append((TABLE, "table", 0))
        elif number == _MEMORIES and inside.leb():
            # Bit 2 of the limits' flags marks a memory with 64-bit addresses.
            wide = bool(inside.byte() & 4)
            added.append((MEMORY, "memory", 0))
        elif number == _GLOBALS:
            added += [(f"{OURS}{at}", "global", at) for at in _mutable(inside)]
        elif number == _START:
            added.append((START, "func", inside.leb()))
    code = wasmtime.Module(engine(), _assembled(sections, added))
    for each in code.imports:
        if each.module != "ic0" or not isinstance(each.type, wasmtime.FuncType):
            name = f"{safe(each.module)}.{safe(each.name or '')}"
            raise ModuleError(f"the module imports {name}, which is no function of the system")
    exports = frozenset(
        each.name for each in code.exports if isinstance(each.type, wasmtime.FuncType)
    )
    mutable = tuple(name for name, kind, _ in added if kind == "global")
    return Module(code, digest, exports, mutable, wide, persistent, public)


def _mutable(reader: Reader) -> Iterator[int]:
    """Yield the indices of the mutable globals in a global section.

    Modules with imported globals are refused, so indices begin with 0. The initial values have to
    be read only to find the next global.
    """
    for at in range(reader.leb()):
        reader.byte()
        if reader.byte():
            yield at
        while (instruction := reader.byte()) != 0x0B:
            operand = _IMMEDIATES.get(instruction, 0)
            # `v128.const` has a second opcode and 16 bytes.
            if instruction == 0xFD:
                reader.leb()
                operand = 16
            if isinstance(operand, int):
                reader.take(operand)
            else:
                reader.sleb()


def _assembled(sections: list[tuple[int, bytes]], added: list[tuple[str, str, int]]) -> bytes:
    """Return the module with more exports (name, kind and index) and without its start section."""
    known = Reader(next((content for number, content in sections if number == _EXPORTS), b"\0"))
    exports = bytearray()
    leb128(known.leb() + len(added), exports)
    exports += known.data[known.at :]
    for name, kind, index in added:
        leb128(len(name), exports)
        exports += name.encode() + bytes([_KINDS[kind]])
        leb128(index, exports)
    out = bytearray(b"\0asm\1\0\0\0")
    written = False
    # The last pair makes sure that the exports are written if no section follows them.
    for number, content in [*sections, (_EXPORTS, b"")]:
        if not written and (number in _AFTER_EXPORTS or number == _EXPORTS):
            _section(out, _EXPORTS, bytes(exports))
            written = True
        if number not in {_EXPORTS, _START}:
            _section(out, number, content)
    return bytes(out)


def _section(out: bytearray, number: int, content: bytes) -> None:
    """Append a section."""
    out.append(number)
    leb128(len(content), out)
    out += content
