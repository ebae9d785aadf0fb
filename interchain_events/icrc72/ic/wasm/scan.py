"""A scan of the sections and instructions of a module that wasmtime has found valid.

The host has to know three properties of a module that wasmtime does not report: whether it can
change its tables, whether it can drop its segments, and how much work its functions are for the
compiler. Most instructions are skipped by one regular expression, which reads about 20 MB a second.
Only the instructions that matter here, and those whose operands a regular expression cannot
describe, are read one by one.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from interchain_events.icrc72.ic.candid.wire import Reader
from interchain_events.icrc72.ic.errors import ModuleError


class Section(NamedTuple):
    """A section of a module."""

    number: int
    content: bytes


# The numbers of sections in the binary format.
CUSTOM: Final = 0
TYPES: Final = 1
IMPORTS: Final = 2
FUNCTIONS: Final = 3
TABLES: Final = 4
MEMORIES: Final = 5
GLOBALS: Final = 6
EXPORTS: Final = 7
START: Final = 8
ELEMENTS: Final = 9
CODE: Final = 10

I32: Final = 0x7F
I64: Final = 0x7E
F32: Final = 0x7D
F64: Final = 0x7C
V128: Final = 0x7B
_FUNCTION_FORM: Final = 0x60
FUNCTION_KIND: Final = 0
"""The kind of functions among imports and exports."""
FUNCREF: Final = 0x70
_REF_NULL: Final = 0x63
_REF: Final = 0x64
"""The bytes that begin a type of references which names the kind of its target."""

_NAMES: Final = {
    I32: "i32",
    I64: "i64",
    F32: "f32",
    F64: "f64",
    V128: "v128",
    0x74: "nullexnref",
    0x73: "nullfuncref",
    0x72: "nullexternref",
    0x71: "nullref",
    FUNCREF: "funcref",
    0x6F: "externref",
    0x6E: "anyref",
    0x6D: "eqref",
    0x6C: "i31ref",
    0x6B: "structref",
    0x6A: "arrayref",
    0x69: "exnref",
}
"""The types of values by their first byte."""

_LEB: Final = rb"[\x80-\xff]*+[\x00-\x7f]"
_PLAIN: Final = re.compile(
    rb"(?:[\x00\x01\x05\x0f\x1a\x1b\x45-\xc4\xd1]"
    rb"|[\x10\x12\x20-\x25\x3f-\x42\xd0\xd2]"
    + _LEB
    + rb"|[\x11\x13\x28-\x3e]"
    + _LEB
    + _LEB
    + rb"|\x43.{4}|\x44.{8})*+",
    re.DOTALL,
)
"""Instructions that are skipped, with their operands."""

# Instructions that are looked at.
_LOOP: Final = 0x03
_BLOCKS: Final = {0x02, _LOOP, 0x04}
_END: Final = 0x0B
_BRANCHES: Final = {0x0C, 0x0D}
_BR_TABLE: Final = 0x0E
_SELECT: Final = 0x1C
_TABLE_SET: Final = 0x26
_MORE: Final = 0xFC
_VECTOR: Final = 0xFD
_DROPS: Final = {9, 13}
"""`data.drop` and `elem.drop`, after `_MORE`."""
_TABLE_CHANGES: Final = {12, 14, 15, 17}
"""`table.init`, `table.copy`, `table.grow` and `table.fill`, after `_MORE`."""
_TWO_OPERANDS: Final = {8, 10, 12, 14}
_NO_OPERANDS: Final = range(8)
_LAST_OF_MORE: Final = 17
_WITH_16_BYTES: Final = {12, 13}
"""`v128.const` and `i8x16.shuffle`, after `_VECTOR`."""


@dataclass(slots=True)
class Code:
    """The properties of a module's functions."""

    changes_tables: bool = False
    """Whether an instruction sets, fills, copies, grows or initializes a table."""
    drops_segments: bool = False
    """Whether an instruction drops a data or element segment."""
    functions: int = 0
    locals: int = 0
    """The local variables of all functions, without parameters."""
    work: int = 0
    """The sum of (local variables + parameters) · joins of all functions.

    The compiler examines each variable of a function wherever branches meet, and again for each
    loop around that place. `joins` therefore counts each block and each branch once, and once more
    for each loop around it.
    """


def sections_of(raw: bytes) -> list[Section]:
    """Split a module into its sections. Raises `CandidError` if it ends too early."""
    reader = Reader(raw, 8)
    sections = []
    while reader.at < len(raw):
        number = reader.byte()
        sections.append(Section(number, reader.take(reader.leb())))
    return sections


def read_type(reader: Reader) -> tuple[int, str]:
    """Read a value type. Returns its byte and its name.

    The long form of a type, such as `(ref null func)`, gets the byte of the short one if there is
    one.
    """
    first = reader.byte()
    if first not in {_REF_NULL, _REF}:
        return first, _NAMES.get(first, f"type {first:#x}")
    target = reader.sleb()
    short = target & 0x7F
    nullable = first == _REF_NULL
    if nullable and target < 0 and short in _NAMES:
        return short, _NAMES[short]
    heap_type = f"{target}"
    if target < 0 and short in _NAMES:
        heap_type = _NAMES[short].removesuffix("ref")
    return first, f"(ref null {heap_type})" if nullable else f"(ref {heap_type})"


class FunctionType(NamedTuple):
    """The type of a function, with the names of the types of its values."""

    takes: tuple[str, ...]
    gives: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as a text, for example `(i32 i64) -> ()`."""
        return f"({' '.join(self.takes)}) -> ({' '.join(self.gives)})"


class Import(NamedTuple):
    """An import of a module."""

    module: str
    name: str
    type: int | None
    """The index of the function's type; `None` if it is not a function."""


def types_of(content: bytes) -> list[FunctionType]:
    """Read the section of types. Raises `ModuleError` for a type that is not a function.

    wasmtime could return the types, too, but its interface for C, and so for Python, ends the
    process if a type has a vector.
    """
    reader = Reader(content)
    types: list[FunctionType] = []
    for _ in range(reader.leb()):
        form = reader.byte()
        if form != _FUNCTION_FORM:
            kind = {0x5F: "a struct", 0x5E: "an array"}.get(form, "recursive or a subtype")
            raise ModuleError(f"type {len(types)} is {kind}, which cannot be saved")
        takes = tuple(read_type(reader)[1] for _ in range(reader.leb()))
        gives = tuple(read_type(reader)[1] for _ in range(reader.leb()))
        types.append(FunctionType(takes, gives))
    return types


def imports_of(content: bytes) -> Iterator[Import]:
    """Read the section of imports. It ends at the first one that is not a function."""
    reader = Reader(content)
    for _ in range(reader.leb()):
        module = reader.take(reader.leb()).decode()
        name = reader.take(reader.leb()).decode()
        if reader.byte() != FUNCTION_KIND:
            yield Import(module, name, None)
            return
        yield Import(module, name, reader.leb())


def scan_code(sections: list[Section]) -> Code:
    """Scan all functions of a valid module.

    Raises `ModuleError` at an unknown instruction.
    """
    parameters: list[int] = []
    types: list[int] = []
    code = Code()
    for section in sections:
        reader = Reader(section.content)
        if section.number == TYPES:
            parameters = [len(type_.takes) for type_ in types_of(section.content)]
        elif section.number == FUNCTIONS:
            count = reader.leb()
            types = [reader.leb() for _ in range(count)]
        elif section.number == CODE:
            code.functions = reader.leb()
            for number in range(code.functions):
                size = reader.leb()
                end = reader.at + size
                _scan_function(reader, end, parameters[types[number]], code)
    return code


def _scan_function(reader: Reader, end: int, parameters: int, code: Code) -> None:
    """Scan the function between the position of `reader` and `end`."""
    variables = 0
    for _ in range(reader.leb()):
        variables += reader.leb()
        read_type(reader)
    joins = _scan_instructions(reader, end, code)
    code.locals += variables
    code.work += (variables + parameters) * joins


def _scan_instructions(reader: Reader, end: int, code: Code) -> int:
    """Scan instructions up to `end`. Returns the joins, see `Code.work`."""
    data = reader.data
    joins = 1
    # 1, and 1 more for each loop around the instruction.
    weight = 1
    # For each block around the instruction, the weight outside of it.
    outer_weights: list[int] = []
    while True:
        skipped = _PLAIN.match(data, reader.at, end)
        if skipped is not None:
            reader.at = skipped.end()
        if reader.at >= end:
            return joins
        instruction = reader.byte()
        if instruction == _END:
            # The last `end` ends the function, not a block.
            weight = outer_weights.pop() if outer_weights else 1
        elif instruction in _BLOCKS:
            outer_weights.append(weight)
            if instruction == _LOOP:
                weight += 1
            joins += weight
            # The type of the block: a value type, or the index of a function's type.
            if data[reader.at] in {_REF_NULL, _REF}:
                reader.byte()
            reader.leb()
        elif instruction in _BRANCHES:
            joins += weight
            reader.leb()
        elif instruction == _BR_TABLE:
            targets = reader.leb() + 1
            joins += targets * weight
            for _ in range(targets):
                reader.leb()
        elif instruction == _SELECT:
            for _ in range(reader.leb()):
                read_type(reader)
        elif instruction == _TABLE_SET:
            code.changes_tables = True
            reader.leb()
        elif instruction == _MORE:
            _scan_more(reader, code)
        elif instruction == _VECTOR:
            _scan_vector(reader)
        else:
            raise ModuleError(f"instruction {instruction:#x} is not supported")


def _scan_more(reader: Reader, code: Code) -> None:
    """Read an instruction on memories, tables or segments, or a conversion that saturates."""
    number = reader.leb()
    if number > _LAST_OF_MORE:
        raise ModuleError(f"instruction 0xfc {number:#x} is not supported")
    if number in _DROPS:
        code.drops_segments = True
    if number in _TABLE_CHANGES:
        code.changes_tables = True
    if number not in _NO_OPERANDS:
        reader.leb()
    if number in _TWO_OPERANDS:
        reader.leb()


def _scan_vector(reader: Reader) -> None:
    """Skip an instruction on vectors."""
    number = reader.leb()
    loads_lane = 84 <= number <= 91
    if number <= 11 or loads_lane or number in {92, 93}:
        reader.leb()
        reader.leb()
    if number in _WITH_16_BYTES:
        reader.take(16)
    if 21 <= number <= 34 or loads_lane:
        reader.byte()
