"""Messages as bytes: `VersionedXcm`, the byte 5 and a `Vec<Instruction>` (PS-20).

Decoding is strict. Other versions, trailing bytes, long compact forms and input beyond the limits
of `schema` raise `XcmDecodeError`. So a decoded message encodes to the bytes from which it came.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.xcm.errors import UnsupportedXcmVersion, XcmDecodeError
from pubsub_emulator.xcm.instructions import (
    XCM,
    Instruction,
    Xcm,
    encode_instructions,
    join_instructions,
)
from pubsub_emulator.xcm.schema import (
    MAX_INSTRUCTIONS_TO_DECODE,
    MAX_XCM_DECODE_DEPTH,
    XcmReader,
    read_to_end,
)

VERSION: Final = 5
_V5: Final = bytes((VERSION,))
OTHER_VERSIONS: Final = (3, 4)
"""Versions that the relay runtime's `VersionedXcm` can have but that are not supported here."""

_LEVELS_BELOW_A_MESSAGE: Final = 3
"""The deepest nesting inside one instruction: filters > assets > junctions."""


def decode(data: bytes) -> Xcm:
    """Return the instructions of a `VersionedXcm::V5`.

    Raises `XcmDecodeError`, and its subclass `UnsupportedXcmVersion` for V3 and V4.
    """
    if not data:
        raise XcmDecodeError("no bytes", 0)
    version = data[0]
    if version in OTHER_VERSIONS:
        raise UnsupportedXcmVersion(version)
    if version != VERSION:
        raise XcmDecodeError(f"VersionedXcm has no variant {version}", 0)
    return read_to_end(XcmReader(data, 1), XCM.read)


def encode(message: Sequence[Instruction]) -> bytes:
    """Encode a message as `VersionedXcm::V5`.

    Raises `ScaleError` for messages that `decode` would refuse because of their depth, count, order
    or ranges.
    """
    depth, count = extent(message)
    if depth > MAX_XCM_DECODE_DEPTH or count > MAX_INSTRUCTIONS_TO_DECODE:
        raise ScaleError(
            f"a message of {count} instructions, {depth} levels deep, exceeds the limits"
        )
    data = _V5 + encode_instructions(message)
    if depth + _LEVELS_BELOW_A_MESSAGE > MAX_XCM_DECODE_DEPTH:
        # At this depth, the contents of the innermost instructions may exceed the limit.
        decode(data)
    return data


def message_of(encoded: Iterable[bytes]) -> bytes:
    """Encode a `VersionedXcm::V5` of instructions that are encoded already.

    There must be at most `MAX_INSTRUCTIONS_TO_DECODE`, and they must not hold messages.
    """
    return _V5 + join_instructions(encoded)


def _fields_with_messages() -> dict[type[Instruction], str]:
    """Return the name of the field that holds a message, by kind of instruction."""
    names: dict[type[Instruction], str] = {}
    for kind in Instruction.VARIANTS.values():
        for name, codec in kind.FIELDS:
            if codec is XCM:
                names[kind] = name
    return names


_INNER: Final = _fields_with_messages()


def nested(instruction: Instruction) -> Xcm | None:
    """Return the message inside an instruction, or `None`."""
    name = _INNER.get(type(instruction))
    return None if name is None else getattr(instruction, name)


def extent(message: Sequence[Instruction]) -> tuple[int, int]:
    """Return the depth of a message, in levels of nested messages, and its number of instructions.

    The number includes those of nested messages. Counting stops just beyond the limit of
    instructions.
    """
    depth = count = 0
    waiting: list[tuple[int, Sequence[Instruction]]] = [(1, message)]
    while waiting and count <= MAX_INSTRUCTIONS_TO_DECODE:
        level, instructions = waiting.pop()
        depth = max(depth, level)
        count += len(instructions)
        for instruction in instructions:
            inner = nested(instruction)
            if inner is not None:
                waiting.append((level + 1, inner))
    return depth, count
