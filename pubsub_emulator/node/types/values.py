"""SCALE values as JSON and back, by the type descriptions from which metadata is made.

    integers     numbers, above 2^53 decimal strings       bytes        0x and hex
    accounts     SS58                                      structs      objects, camelCase
    enums        "Name", {"Name": value}                   Option       null or the value
    tuples, Vec  arrays                                    maps         arrays of pairs

Reading JSON is as lenient as in client libraries. Integers can be decimal or hexadecimal text,
names can have any case, accounts can be hexadecimal, and a missing field is the zero of its type.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from pubsub_emulator.primitives import type_info as kinds
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.scale import Reader, encode_compact
from pubsub_emulator.primitives.ss58 import BadAddress, decode_address, encode_address

LARGEST_NUMBER: Final = 2**53 - 1
"""The largest integer that all JSON readers preserve."""
MAX_DEPTH: Final = 128
"""The maximum nesting of values."""
_BYTES: Final = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "u128": 16, "u256": 32}
_SIGNED: Final = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "i128": 16, "i256": 32}

Names = Mapping[str, kinds.TypeInfo]
"""The descriptions of named types."""


class BadValue(PubsubError):
    """JSON that is not a value of the type. The message names the place."""


def camel(name: str) -> str:
    """Convert `snake_case` or `PascalCase` to `camelCase`."""
    head, *rest = name.split("_")
    return head[:1].lower() + head[1:] + "".join(part[:1].upper() + part[1:] for part in rest)


def folded(name: str) -> str:
    """Return a name without underscores and in lower case, for comparisons."""
    return name.replace("_", "").lower()


def number(value: int) -> int | str:
    """Return an integer in a form that JSON readers preserve."""
    return value if abs(value) <= LARGEST_NUMBER else str(value)


# Bytes to JSON


def to_json(info: kinds.TypeInfo, data: bytes, names: Names) -> object:
    """Decode a value from all bytes of `data`. Raises `ScaleError`."""
    reader = Reader(data)
    value = read(info, reader, names)
    reader.end()
    return value


def read(info: kinds.TypeInfo, reader: Reader, names: Names, depth: int = 0) -> object:
    """Decode the next value. Raises `ScaleError`.

    `depth` is the number of values around this one. It is limited because types can be recursive,
    so that even a short input can be nested very deeply.
    """
    if depth > MAX_DEPTH:
        raise ScaleError(f"values nest deeper than {MAX_DEPTH} at offset {reader.pos}")
    below = depth + 1
    match info:
        case kinds.Named(name):
            return read(names[name], reader, names, below)
        case kinds.Primitive(name):
            return _read_primitive(name, reader)
        case kinds.CompactOf(inner):
            return number(reader.compact()) if inner != kinds.TupleOf() else None
        case kinds.SequenceOf(item) if item == kinds.U8:
            return "0x" + reader.bytes_().hex()
        case kinds.SequenceOf(item):
            count = reader.length(0 if item == kinds.TupleOf() else 1)
            return [read(item, reader, names, below) for _ in range(count)]
        case kinds.ArrayOf(length, item) if item == kinds.U8:
            return "0x" + reader.take(length).hex()
        case kinds.ArrayOf(length, item):
            return [read(item, reader, names, below) for _ in range(length)]
        case kinds.TupleOf(parts):
            return [read(part, reader, names, below) for part in parts]
        case kinds.BitSequence():
            bits = reader.compact(32)
            data = reader.take((bits + 7) // 8)
            return "0b" + "".join(str(data[bit // 8] >> bit % 8 & 1) for bit in range(bits))
        case kinds.Composite() if info == kinds.ACCOUNT_ID:
            return encode_address(reader.take(32))
        case kinds.Composite():
            return _read_fields(info.fields, reader, names, below)
        case kinds.Variants():
            return _read_variant(info, reader, names, below)


def _read_primitive(name: str, reader: Reader) -> object:
    """Decode a value of a primitive type. Raises `ScaleError`."""
    if name == "bool":
        return reader.boolean()
    if name == "str":
        return reader.bytes_().decode(errors="replace")
    if name in _BYTES:
        return number(reader.uint(_BYTES[name]))
    if name in _SIGNED:
        return number(int.from_bytes(reader.take(_SIGNED[name]), "little", signed=True))
    raise ScaleError(f"values of type {name} are not supported")


def _read_fields(
    fields: tuple[kinds.Field, ...], reader: Reader, names: Names, depth: int
) -> object:
    """Decode the fields of a struct or variant.

    Named fields become an object, one field without a name its value, and several a list.
    """
    if fields and fields[0].name is not None:
        return {camel(field.name or ""): read(field.info, reader, names, depth) for field in fields}
    values = [read(field.info, reader, names, depth) for field in fields]
    return values[0] if len(values) == 1 else values or None


def _read_variant(info: kinds.Variants, reader: Reader, names: Names, depth: int) -> object:
    """Decode a variant of an enum as a name or as an object with one field."""
    start = reader.pos
    index = reader.u8()
    variant = next((variant for variant in info.variants if variant.index == index), None)
    if variant is None:
        raise ScaleError(f"{'::'.join(info.path)} has no variant {index}, at offset {start}")
    if info.path == ("Option",):
        # The variant `None` has the index 0, and `Some` the index 1.
        return read(variant.fields[0].info, reader, names, depth) if index else None
    if not variant.fields:
        return variant.name
    return {variant.name: _read_fields(variant.fields, reader, names, depth)}


# JSON to bytes


def from_json(
    info: kinds.TypeInfo, value: object, names: Names, place: str = "value", depth: int = 0
) -> bytes:
    """Encode a value. Raises `BadValue`, which names the `place`."""
    if depth > MAX_DEPTH:
        raise BadValue(f"{place}: nested deeper than {MAX_DEPTH}")
    below = depth + 1
    match info:
        case kinds.Named(name):
            return from_json(names[name], value, names, place, below)
        case kinds.Primitive(name):
            return _write_primitive(name, value, place)
        case kinds.CompactOf(inner):
            return encode_compact(_integer(value, place)) if inner != kinds.TupleOf() else b""
        case kinds.SequenceOf(item) if item == kinds.U8 and isinstance(value, str):
            data = _bytes(value, place)
            return encode_compact(len(data)) + data
        case kinds.SequenceOf(item):
            rows = _rows(value, place)
            parts = (
                from_json(item, row, names, f"{place}[{index}]", below)
                for index, row in enumerate(rows)
            )
            return encode_compact(len(rows)) + b"".join(parts)
        case kinds.ArrayOf():
            return _write_array(info, value, names, place, below)
        case kinds.TupleOf(parts):
            return _write_each(parts, [] if value is None else value, names, place, below)
        case kinds.BitSequence():
            return _write_bits(value, place)
        case kinds.Composite():
            return _write_composite(info, value, names, place, below)
        case kinds.Variants():
            return _write_variant(info, value, names, place, below)


def _write_primitive(name: str, value: object, place: str) -> bytes:
    """Encode a value of a primitive type. `None` is the zero of the type."""
    if name == "bool":
        if not isinstance(value, bool) and value is not None:
            raise BadValue(f"{place}: expected true or false")
        return b"\x01" if value else b"\x00"
    if name == "str":
        data = str("" if value is None else value).encode()
        return encode_compact(len(data)) + data
    size = _BYTES.get(name) or _SIGNED.get(name)
    if size is None:
        raise BadValue(f"{place}: values of type {name} are not supported")
    try:
        return _integer(value, place).to_bytes(size, "little", signed=name in _SIGNED)
    except OverflowError:
        raise BadValue(f"{place}: {value} does not fit into {name}") from None


def _integer(value: object, place: str) -> int:
    """Read an integer, also from decimal digits with commas or hexadecimal digits."""
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str):
        try:
            return int(value.replace(",", ""), 16 if value.startswith("0x") else 10)
        except ValueError:
            pass
    raise BadValue(f"{place}: expected an integer, not {value!r}"[:200])


def _bytes(value: object, place: str) -> bytes:
    """Read bytes from hexadecimal digits with `0x`, or from any other text as UTF-8."""
    if isinstance(value, str) and value.startswith("0x"):
        try:
            return bytes.fromhex(value[2:])
        except ValueError:
            raise BadValue(f"{place}: not hexadecimal digits") from None
    if isinstance(value, str):
        return value.encode()
    raise BadValue(f"{place}: expected bytes as 0x and hex")


def _rows(value: object, place: str) -> list[object]:
    """Read a list. An object becomes a list of its pairs, which is how maps are encoded."""
    if value is None:
        return []
    if isinstance(value, Mapping):
        return [list(pair) for pair in value.items()]
    if not isinstance(value, list | tuple):
        raise BadValue(f"{place}: expected an array")
    return list(value)


def _write_array(info: kinds.ArrayOf, value: object, names: Names, place: str, depth: int) -> bytes:
    """Encode an array. Arrays of bytes can be hexadecimal digits."""
    length = info.length
    item = info.item
    if item == kinds.U8 and (isinstance(value, str) or value is None):
        data = bytes(length) if value is None else _bytes(value, place)
        if len(data) != length:
            raise BadValue(f"{place}: expected {length} bytes, not {len(data)}")
        return data
    return _write_each([item] * length, value, names, place, depth)


def _write_each(
    infos: Sequence[kinds.TypeInfo], value: object, names: Names, place: str, depth: int
) -> bytes:
    """Encode a list with one value of each type. A missing list means the zeros of all types."""
    rows = [None] * len(infos) if value is None else _rows(value, place)
    if len(rows) != len(infos):
        raise BadValue(f"{place}: expected {len(infos)} values, not {len(rows)}")
    listed = enumerate(zip(infos, rows, strict=True))
    return b"".join(
        from_json(info, row, names, f"{place}[{index}]", depth) for index, (info, row) in listed
    )


def _write_bits(value: object, place: str) -> bytes:
    """Encode a `BitVec` with words of 8 bits and the least significant bit first."""
    text = "0b" if value is None else value
    if (
        not isinstance(text, str)
        or not text.startswith("0b")
        or any(bit not in "01" for bit in text[2:])
    ):
        raise BadValue(f"{place}: expected 0b and bits")
    bits = text[2:]
    data = bytearray((len(bits) + 7) // 8)
    for index, bit in enumerate(bits):
        data[index // 8] |= int(bit) << index % 8
    return encode_compact(len(bits)) + bytes(data)


def _write_composite(
    info: kinds.Composite, value: object, names: Names, place: str, depth: int
) -> bytes:
    """Encode a struct. Accounts can be SS58 addresses."""
    if info == kinds.ACCOUNT_ID and isinstance(value, str) and not value.startswith("0x"):
        try:
            return decode_address(value)
        except BadAddress as error:
            raise BadValue(f"{place}: {error}") from error
    return _write_fields(info.fields, value, names, place, depth)


def _write_fields(
    fields: tuple[kinds.Field, ...], value: object, names: Names, place: str, depth: int
) -> bytes:
    """Encode the fields of a struct or variant.

    Named fields are given by an object, one field without a name by its value, and several by a
    list.
    """
    if fields and fields[0].name is not None:
        if value is not None and not isinstance(value, Mapping):
            raise BadValue(f"{place}: expected an object")
        given = {folded(str(key)): inner for key, inner in (value or {}).items()}
        known = {field.name or "": field.info for field in fields}
        unknown = given.keys() - set(map(folded, known))
        if unknown:
            raise BadValue(
                f"{place}: no field is called {next(key for key in given if key in unknown)}"
            )
        parts = (
            (info, given.get(folded(name)), f"{place}.{camel(name)}")
            for name, info in known.items()
        )
        return b"".join(
            from_json(info, inner, names, inner_place, depth) for info, inner, inner_place in parts
        )
    if len(fields) == 1:
        return from_json(fields[0].info, value, names, place, depth)
    return _write_each([field.info for field in fields], value, names, place, depth)


def _write_variant(
    info: kinds.Variants, value: object, names: Names, place: str, depth: int
) -> bytes:
    """Encode a variant of an enum from `"Name"` or `{"Name": value}`.

    `null` means `None` of an `Option`, and the first variant of any other enum.
    """
    if info.path == ("Option",) and value is None:
        return b"\x00"
    if info.path == ("Option",):
        return b"\x01" + from_json(info.variants[1].fields[0].info, value, names, place, depth)
    inner = None
    if value is None and info.variants:
        name = info.variants[0].name
    elif isinstance(value, str):
        name = value
    elif isinstance(value, Mapping) and len(value) == 1:
        ((name, inner),) = value.items()
    else:
        raise BadValue(f"{place}: expected a name, or an object with one name")
    variant = next(
        (variant for variant in info.variants if folded(variant.name) == folded(str(name))), None
    )
    if variant is None:
        raise BadValue(f"{place}: {'::'.join(info.path)} has no variant {name}"[:200])
    fields = _write_fields(variant.fields, inner, names, f"{place}.{variant.name}", depth)
    return bytes((variant.index,)) + fields
