"""Messages as plain data for people and JSON, in the form of polkadot-js.

Names are in lower camel case, enums with data are `{"variant": value}`, and bytes are 0x hex.
Integers are numbers up to 52 bits and 0x hex of their type's full width above that, so that no JSON
reader loses digits.
"""

from collections.abc import Sequence
from typing import Any

from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.xcm.instructions import XCM, Instruction
from pubsub_emulator.xcm.outcome import WEIGHT, XCM_ERROR, XcmError
from pubsub_emulator.xcm.schema import AnyXcm, Kind

MAX_NUMBER_BITS = 52


def to_json(message: Sequence[Instruction]) -> dict[str, Any]:
    """Return a message as `{"v5": [...]}`."""
    return {"v5": render(XCM, tuple(message))}


def camel(name: str) -> str:
    """Return `ClearOrigin` or `clear_origin` as `clearOrigin`."""
    head, *rest = name.split("_")
    return head[:1].lower() + head[1:] + "".join(part[:1].upper() + part[1:] for part in rest)


def _number(value: int, bits: int | None) -> int | str:
    if value.bit_length() <= MAX_NUMBER_BITS:
        return value
    return f"0x{value:0{(bits or 0) // 4}x}"


def _weight(value: Weight) -> dict[str, Any]:
    return {"refTime": _number(value.ref_time, 64), "proofSize": _number(value.proof_size, 64)}


def _error(value: XcmError) -> dict[str, Any]:
    detail = value.detail
    return {camel(value.kind.name): _weight(detail) if isinstance(detail, Weight) else detail}


def _fields(value: Any) -> dict[str, Any]:
    return {camel(name): render(codec, getattr(value, name)) for name, codec in value.FIELDS}


def render(codec: AnyXcm, value: Any) -> Any:
    """Return a value of the codec's type as plain data."""
    if codec is WEIGHT:
        return _weight(value)
    if codec is XCM_ERROR:
        return _error(value)
    shape = codec.shape
    match shape.kind:
        case Kind.UINT | Kind.COMPACT:
            return _number(value, shape.size)
        case Kind.BOOL:
            return value
        case Kind.FIXED | Kind.BYTES:
            return hexed(value)
        case Kind.NAMES:
            return value.name
        case Kind.OPTION:
            return None if value is None else render(shape.parts[0], value)
        case Kind.SEQUENCE:
            return [render(shape.parts[0], item) for item in value]
        case Kind.JUNCTIONS:
            return (
                {f"x{len(value)}": [render(shape.parts[0], item) for item in value]}
                if value
                else {"here": None}
            )
        case Kind.TUPLE:
            return [render(part, item) for part, item in zip(shape.parts, value, strict=True)]
        case Kind.STRUCT:
            return _fields(value)
        case Kind.VARIANTS:
            fields = value.FIELDS
            if not fields:
                inner = None
            elif fields[0][0] == "inner":
                inner = render(fields[0][1], value.inner)
            else:
                inner = _fields(value)
            return {camel(type(value).__name__): inner}
    raise DefensiveFailure(f"{codec} has no rendering")
