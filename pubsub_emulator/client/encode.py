"""Encodes plain values into SCALE by the types of metadata. `decode` is the inverse.

Values have the form that `decode` describes. Two more forms are accepted because people write them.
A struct may be a list of its fields in order, and a struct with one field the value of this field.

Errors are `ClientError` and begin with the path of the field, such as `dest.Id` or
`calls[2].value`.
"""

import reprlib
from collections.abc import Mapping
from typing import Final

from pubsub_emulator.client import metadata as kinds
from pubsub_emulator.client.decode import (
    MAX_DEPTH,
    MOST_BITS,
    SIGNED,
    UNSIGNED,
    bit_layout,
    compact_bits,
)
from pubsub_emulator.client.errors import ClientError
from pubsub_emulator.client.metadata import Field, Metadata
from pubsub_emulator.files.shown import safe
from pubsub_emulator.primitives.hexadecimal import shortened
from pubsub_emulator.primitives.scale import encode_bytes, encode_compact
from pubsub_emulator.primitives.words import counted

_SHOWN: Final = 60
"""The maximum length of a value in an error, in characters."""
_SHOWN_BYTES: Final = 28
"""The maximum number of bytes of a value in an error."""
_NAMES: Final = 12
"""The maximum number of names in an error."""
_SHORT: Final = reprlib.Repr()
"""Shows the beginning of a value without writing all of it."""
_SHORT.maxstring = _SHOWN
_SHORT.maxother = _SHOWN


class Encoded(bytes):
    """Bytes that are already SCALE. They are accepted for any type and copied unchanged."""


def encode_call(
    metadata: Metadata, pallet: str, name: str, arguments: Mapping[str, object]
) -> Encoded:
    """Encode a call with its arguments by name.

    Raises `ClientError` if the chain has no such call, the arguments have other names, or a value
    does not have the type of its argument.
    """
    described = metadata.pallets.get(pallet)
    if described is None or described.calls is None:
        raise ClientError(f"the chain has no calls of {pallet}")
    calls = metadata.types.get(described.calls)
    if not isinstance(calls, kinds.Enum):
        raise ClientError(f"the chain has no calls of {pallet}")
    for index, variant in calls.variants.items():
        if variant.name == name:
            names = [str(field.name) for field in variant.fields]
            if set(names) != set(arguments):
                raise ClientError(
                    f"{pallet}.{name} takes {_listed(names)}, and not {_listed(list(arguments))}"
                )
            writer = _Writer(metadata, f"{pallet}.{name}: ")
            body = b"".join(
                writer.value(field.type, arguments[str(field.name)], (str(field.name),))
                for field in variant.fields
            )
            return Encoded(bytes((described.index, index)) + body)
    raise ClientError(f"the chain has no call {pallet}.{name}")


def encode(metadata: Metadata, kind: int, value: object) -> bytes:
    """Encode a value of type number `kind`.

    Raises `ClientError` with the path of the field if the value does not have that type, and
    `BadAnswer` if the metadata describes a type that cannot exist.
    """
    return _Writer(metadata, "").value(kind, value, ())


Path = tuple[str, ...]
"""The place of a part within the encoded value: field names, variants, and indices in brackets."""


class _Writer:
    """Encodes the parts of one value.

    In its methods, `kind` is a type's number or the name of a primitive type, and `path` is the
    place of the part for errors.
    """

    def __init__(self, metadata: Metadata, prefix: str) -> None:
        self._metadata = metadata
        self._prefix = prefix
        self._depth = 0
        """The number of values around the current one.

        The length of a path is less, because a struct with one unnamed field adds no part to it.
        """

    def value(self, kind: int, value: object, path: Path) -> bytes:
        """Encode a value. Raises `ClientError`."""
        if isinstance(value, Encoded):
            return bytes(value)
        if self._depth > MAX_DEPTH:
            raise self._error(path, f"values are nested at most {MAX_DEPTH} levels deep")
        self._depth += 1
        try:
            return self._encoded(kind, value, path)
        finally:
            self._depth -= 1

    def _encoded(self, kind: int, value: object, path: Path) -> bytes:
        """Encode a value by the kind of its type."""
        metadata = self._metadata
        match metadata.types.get(kind):
            case kinds.Composite(fields):
                return self._fields(kind, fields, value, path)
            case kinds.Enum(variants):
                return self._enum(kind, variants, value, path)
            case kinds.Sequence(item):
                if metadata.is_byte(item):
                    return encode_bytes(self._bytes(kind, value, path))
                items = self._list(kind, value, path)
                return encode_compact(len(items)) + self._items(item, items, path)
            case kinds.Array(item, length):
                return self._array(kind, item, length, value, path)
            case kinds.Tuple(()):
                return self._unit(kind, value, path)
            case kinds.Tuple(items):
                parts = self._list(kind, value, path)
                self._same_length(kind, len(items), len(parts), path)
                return b"".join(
                    self.value(item, part, (*path, f"[{index}]"))
                    for index, (item, part) in enumerate(zip(items, parts, strict=True))
                )
            case kinds.Primitive(name):
                return self._primitive(name, value, path)
            case kinds.Compact(item):
                bits = compact_bits(metadata, item)
                if not bits:
                    return self._unit(kind, value, path)
                return encode_compact(self._integer(kind, value, low=0, end=1 << bits, path=path))
            case kinds.Bits(store, order):
                return self._bits(kind, value, path, *bit_layout(metadata, store, order))
            case _:
                raise self._error(path, f"the metadata has no type {kind}")

    # Structs and enums

    def _fields(self, kind: int, fields: tuple[Field, ...], value: object, path: Path) -> bytes:
        """Encode the fields of a struct or variant.

        They are a dict if all have names, or a list in order. A single field can also be given as
        its value alone. A dict for a single field is therefore read as its fields only if its one
        key is the field's name, and is the field's value otherwise.
        """
        if not fields:
            return self._unit(kind, value, path)
        names = [field.name for field in fields]
        if (
            isinstance(value, dict)
            and None not in names
            and (len(fields) > 1 or set(value) == set(names))
        ):
            return self._named(kind, fields, value, path)
        if len(fields) == 1:
            place = path if names[0] is None else (*path, names[0])
            return self.value(fields[0].type, value, place)
        parts = self._list(kind, value, path)
        self._same_length(kind, len(fields), len(parts), path)
        return b"".join(
            self.value(field.type, part, (*path, field.name or f"[{index}]"))
            for index, (field, part) in enumerate(zip(fields, parts, strict=True))
        )

    def _named(
        self, kind: int, fields: tuple[Field, ...], value: dict[object, object], path: Path
    ) -> bytes:
        """Encode the fields of a struct or variant that are given by name."""
        names = [str(field.name) for field in fields]
        unknown = [str(name) for name in value if name not in names]
        missing = [name for name in names if name not in value]
        if unknown or missing:
            problems = [f"unknown field {_listed(unknown)}"] if unknown else []
            if missing:
                verb = "is" if len(missing) == 1 else "are"
                problems.append(f"{_listed(missing)} {verb} missing")
            raise self._error(path, f"{self._name(kind)}: {' and '.join(problems)}")
        return b"".join(
            self.value(field.type, value[field.name], (*path, str(field.name))) for field in fields
        )

    def _enum(
        self, kind: int, variants: Mapping[int, kinds.Variant], value: object, path: Path
    ) -> bytes:
        """Encode an enum, or an `Option`."""
        inner = self._metadata.optional(kind)
        if inner is not None:
            return self._option(kind, inner, value, path)
        match value:
            case str() as name:
                has_body = False
                body = None
            case dict() if len(value) == 1:
                has_body = True
                ((name, body),) = value.items()
            case _:
                raise self._mismatch(kind, value, path)
        indices = {variant.name: index for index, variant in variants.items()}
        index = indices.get(name)
        if index is None:
            known = f"{_shown(name)}, only {_listed(list(indices))}"
            raise self._error(path, f"{self._name(kind)} has no variant {known}")
        variant = variants[index]
        if variant.fields and not has_body:
            raise self._error(path, f"the variant {name} needs its fields")
        return bytes((index,)) + self._fields(kind, variant.fields, body, (*path, variant.name))

    def _option(self, kind: int, inner: int, value: object, path: Path) -> bytes:
        """Encode an `Option` of type `inner`. `Some` needs a dict where `decode` returns one."""
        if value is None:
            return b"\0"
        if not self._metadata.may_be_none(inner):
            return b"\1" + self.value(inner, value, path)
        if isinstance(value, dict) and list(value) == ["Some"]:
            return b"\1" + self.value(inner, value["Some"], (*path, "Some"))
        raise self._mismatch(kind, value, path, "None or {'Some': value} is expected")

    def _unit(self, kind: int, value: object, path: Path) -> bytes:
        """Require `None`, the value of types without content, and return no bytes."""
        if value is not None:
            raise self._mismatch(kind, value, path, "None is expected")
        return b""

    # Lists

    def _array(self, kind: int, item: int, length: int, value: object, path: Path) -> bytes:
        """Encode `length` items of the type `item`, without a count. Bytes are given as bytes."""
        if self._metadata.is_byte(item):
            data = self._bytes(kind, value, path)
            self._same_length(kind, length, len(data), path)
            return data
        items = self._list(kind, value, path)
        self._same_length(kind, length, len(items), path)
        return self._items(item, items, path)

    def _items(self, item: int, items: list[object], path: Path) -> bytes:
        return b"".join(
            self.value(item, part, (*path, f"[{index}]")) for index, part in enumerate(items)
        )

    def _list(self, kind: int, value: object, path: Path) -> list[object]:
        if not isinstance(value, (list, tuple)):
            raise self._mismatch(kind, value, path, "a list is expected")
        return list(value)

    def _bytes(self, kind: int, value: object, path: Path) -> bytes:
        if not isinstance(value, (bytes, bytearray)):
            raise self._mismatch(kind, value, path, "bytes are expected")
        return bytes(value)

    def _same_length(self, kind: int, wanted: int, actual: int, path: Path) -> None:
        """Raise `ClientError` unless a value has as many parts as its type."""
        if wanted != actual:
            raise self._error(
                path, f"{self._name(kind)} has {counted(wanted, 'part')}, not {actual}"
            )

    # Primitives

    def _primitive(self, name: str, value: object, path: Path) -> bytes:
        """Encode an integer, a bool, a str, or a char, which is a str of one character."""
        if name in UNSIGNED:
            size = UNSIGNED[name]
            number = self._integer(name, value, low=0, end=1 << 8 * size, path=path)
            return number.to_bytes(size, "little")
        if name in SIGNED:
            size = SIGNED[name]
            half = 1 << 8 * size - 1
            number = self._integer(name, value, low=-half, end=half, path=path)
            return number.to_bytes(size, "little", signed=True)
        if name == "bool":
            if not isinstance(value, bool):
                raise self._mismatch(name, value, path)
            return b"\1" if value else b"\0"
        if not isinstance(value, str) or (name == "char" and len(value) != 1):
            raise self._mismatch(name, value, path)
        try:
            text = value.encode()
        except UnicodeEncodeError:
            raise self._mismatch(name, value, path) from None
        return encode_bytes(text) if name == "str" else ord(value).to_bytes(4, "little")

    def _integer(self, kind: int | str, value: object, low: int, end: int, path: Path) -> int:
        """Require an integer from `low` to below `end` and return it. A bool is refused."""
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value < end:
            raise self._mismatch(kind, value, path)
        return value

    def _bits(self, kind: int, value: object, path: Path, size: int, highest_first: bool) -> bytes:
        """Encode "0b" and digits as a `BitVec` with the layout of `bit_layout`."""
        if not isinstance(value, str) or value[:2] != "0b" or value[2:].strip("01"):
            raise self._mismatch(kind, value, path, "0b and binary digits are expected")
        digits = value[2:]
        if len(digits) > MOST_BITS:
            raise self._error(path, f"a BitVec has at most {MOST_BITS:,} bits")
        width = 8 * size
        words = [digits[at : at + width].ljust(width, "0") for at in range(0, len(digits), width)]
        return encode_compact(len(digits)) + b"".join(
            int(word if highest_first else word[::-1], 2).to_bytes(size, "little") for word in words
        )

    # Errors

    def _name(self, kind: int | str) -> str:
        return kind if isinstance(kind, str) else self._metadata.name_of(kind)

    def _mismatch(
        self, kind: int | str, value: object, path: Path, wanted: str = ""
    ) -> ClientError:
        """Return the error that a value does not have its type. `wanted` says what is expected."""
        hint = f"; {wanted}" if wanted else ""
        return self._error(
            path, f"{_shown(value)} is not a value of the chain's type {self._name(kind)}{hint}"
        )

    def _error(self, path: Path, problem: str) -> ClientError:
        """Return an error that begins with the path, such as `calls[2].value: …`."""
        place = ""
        for part in path:
            place += part if part.startswith("[") or not place else f".{part}"
        if place:
            place += ": "
        return ClientError(safe(f"{self._prefix}{place}{problem}"))


def _shown(value: object) -> str:
    """Return the beginning of a value as text. Bytes are shown in hexadecimal digits."""
    if isinstance(value, (bytes, bytearray)):
        return shortened(bytes(value), _SHOWN_BYTES)
    try:
        text = _SHORT.repr(value)
    except ValueError:
        # Python refuses to write integers of more than 4,300 digits.
        return "a very large integer"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _listed(names: list[str]) -> str:
    """Return the first names in one line, with the number of further ones."""
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES] + ([f"and {more} more"] if more > 0 else [])) or "nothing"
