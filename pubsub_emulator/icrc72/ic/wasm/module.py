"""Modules: what a `.wasm` exports and imports, and the exports that are added so that a trap can be undone.

WebAssembly hands out only what a module exports. Memory, table, mutable globals and the start function are therefore
exported under names of ours, as replicas of the Internet Computer do, and the start function runs when it is due.
"""

import atexit
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from typing import Final

import wasmtime

from pubsub_emulator.icrc72.ic.candid.encode import leb128
from pubsub_emulator.icrc72.ic.candid.wire import Reader
from pubsub_emulator.icrc72.ic.errors import CandidError, IcError
from pubsub_emulator.primitives.shown import safe

OURS: Final = "pubsub:"
MEMORY: Final = f"{OURS}memory"
TABLE: Final = f"{OURS}table"
START: Final = f"{OURS}start"
PERSISTENT: Final = "enhanced-orthogonal-persistence"  # marks modules whose memory upgrades keep
_PUBLIC: Final = "icp:public "
MODULE_BYTES: Final = 100 << 20  # most bytes of a module, unpacked

_CUSTOM, _TABLES, _MEMORIES, _GLOBALS, _EXPORTS, _START = 0, 4, 5, 6, 7, 8
_AFTER_EXPORTS: Final = {8, 9, 10, 11, 12}
_KINDS: Final = {"func": 0, "table": 1, "memory": 2, "global": 3}
_IMMEDIATES: Final = {0x41: "leb", 0x42: "leb", 0x43: 4, 0x44: 8, 0x23: "leb", 0xD0: "leb", 0xD2: "leb"}
"""The instructions of a constant expression that have an operand: a LEB128, or so many bytes."""


class ModuleError(IcError):
    """Bytes are no module that a canister can have."""


@dataclass(frozen=True, slots=True, eq=False)
class Module:
    """A module that is ready to be instantiated."""

    code: wasmtime.Module
    hash: bytes
    exports: frozenset[str]
    globals: tuple[str, ...]  # the names of ours of its mutable globals
    wide: bool  # true where addresses have 64 bits
    persistent: bool
    public: dict[str, bytes]  # the custom sections that everybody may read, by name


@cache
def engine() -> wasmtime.Engine:
    """The engine of all canisters: what it runs is a function of its input."""
    config = wasmtime.Config()
    config.signals_based_traps = False  # another handler may have taken the signal: a trap would end the process
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
    """The module of the bytes of a `.wasm` or `.wasm.gz`. Raises `ModuleError`."""
    raw = _unpacked(wasm)
    try:
        wasmtime.Module.validate(engine(), raw)
        return _prepared(raw, sha256(wasm).digest())
    except wasmtime.WasmtimeError as error:
        raise ModuleError(f"not a WebAssembly module: {safe(str(error).splitlines()[0])[:200]}") from None
    except (CandidError, UnicodeDecodeError) as error:
        raise ModuleError(f"not a module that is understood: {error}") from None


atexit.register(load.cache_clear)  # the library complains about what it has to free at the very end


def _unpacked(wasm: bytes) -> bytes:
    if wasm[:2] == b"\x1f\x8b":
        packed = zlib.decompressobj(31)
        try:
            wasm = packed.decompress(wasm, MODULE_BYTES + 1)
        except zlib.error as error:
            raise ModuleError(f"not a packed module: {error}") from None
    if len(wasm) > MODULE_BYTES:
        raise ModuleError(f"a module has at most {MODULE_BYTES} bytes")
    return wasm


def _prepared(raw: bytes, digest: bytes) -> Module:
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
    exports = frozenset(each.name for each in code.exports if isinstance(each.type, wasmtime.FuncType))
    mutable = tuple(name for name, kind, _ in added if kind == "global")
    return Module(code, digest, exports, mutable, wide, persistent, public)


def _mutable(reader: Reader) -> Iterator[int]:
    """The numbers of the mutable globals. Imported globals are refused elsewhere, so numbers begin with 0."""
    for at in range(reader.leb()):
        reader.byte()
        if reader.byte():
            yield at
        while (instruction := reader.byte()) != 0x0B:
            operand = _IMMEDIATES.get(instruction, 0)
            if instruction == 0xFD:  # v128.const
                reader.leb()
                operand = 16
            if isinstance(operand, int):
                reader.take(operand)
            else:
                reader.sleb()


def _assembled(sections: list[tuple[int, bytes]], added: list[tuple[str, str, int]]) -> bytes:
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
    for number, content in [*sections, (_EXPORTS, b"")]:
        if not written and (number in _AFTER_EXPORTS or number == _EXPORTS):
            _section(out, _EXPORTS, bytes(exports))
            written = True
        if number not in {_EXPORTS, _START}:
            _section(out, number, content)
    return bytes(out)


def _section(out: bytearray, number: int, content: bytes) -> None:
    out.append(number)
    leb128(len(content), out)
    out += content
