"""`VersionedXcm`, the byte 5 and a `Vec<Instruction>`: bytes to messages and back (PS-20).

Decoding is strict: other versions, trailing bytes, long compact forms and anything beyond the limits of `schema` are
`XcmDecodeError`, so a decoded message re-encodes to the bytes it came from.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.xcm.errors import UnsupportedXcmVersion, XcmDecodeError
from pubsub_emulator.xcm.instructions import XCM, Instruction, Xcm, encode_instructions, join_instructions
from pubsub_emulator.xcm.schema import MAX_INSTRUCTIONS_TO_DECODE, MAX_XCM_DECODE_DEPTH, XcmReader, read_to_end

VERSION: Final = 5
_V5: Final = bytes((VERSION,))
OTHER_VERSIONS: Final = (3, 4)
"""Versions that a `VersionedXcm` of the relay runtime can have but that are not supported here."""

_LEVELS_BELOW_A_MESSAGE: Final = 3
"""The deepest nesting inside one instruction: filters > assets > junctions."""


def decode(data: bytes) -> Xcm:
    """The instructions of a `VersionedXcm::V5`. Raises `XcmDecodeError`, for V3 and V4 `UnsupportedXcmVersion`."""
    if not data:
        raise XcmDecodeError("no bytes", 0)
    version = data[0]
    if version in OTHER_VERSIONS:
        raise UnsupportedXcmVersion(version)
    if version != VERSION:
        raise XcmDecodeError(f"VersionedXcm has no variant {version}", 0)
    return read_to_end(XcmReader(data, 1), XCM.read)


def encode(message: Sequence[Instruction]) -> bytes:
    """`VersionedXcm::V5` bytes. Raises `ScaleError` for what `decode` would refuse: depth, count, order, ranges."""
    depth, count = extent(message)
    if depth > MAX_XCM_DECODE_DEPTH or count > MAX_INSTRUCTIONS_TO_DECODE:
        raise ScaleError(f"a message of {count} instructions, {depth} levels deep")
    data = _V5 + encode_instructions(message)
    if depth + _LEVELS_BELOW_A_MESSAGE > MAX_XCM_DECODE_DEPTH:
        decode(data)  # at this depth, the contents of the innermost instructions decide
    return data


def message_of(encoded: Iterable[bytes]) -> bytes:
    """`VersionedXcm::V5` bytes of at most `MAX_INSTRUCTIONS_TO_DECODE` encoded instructions that hold no messages."""
    return _V5 + join_instructions(encoded)


_INNER: Final = {kind: name for kind in Instruction.VARIANTS.values() for name, codec in kind.FIELDS if codec is XCM}


def nested(instruction: Instruction) -> Xcm | None:
    """The message inside an instruction, or `None`."""
    name = _INNER.get(type(instruction))
    return None if name is None else getattr(instruction, name)


def extent(message: Sequence[Instruction]) -> tuple[int, int]:
    """The levels of messages and the instructions in all, counted up to just beyond the limits."""
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
