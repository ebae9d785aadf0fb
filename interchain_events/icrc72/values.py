"""ICRC16 values, the form of event data, headers and configurations (IC-20).

A value is a `Variant` with one of 24 tags and an immutable payload. The payloads follow from the
Candid types:

  Float             its 8 bytes, little-endian
  Floats            a tuple of such
  Bytes, Blob       bytes
  Array, Set        a tuple of values
  Map               a tuple of pairs of a text and a value
  ValueMap          a tuple of pairs of values
  Class             a tuple of `Property`
  Option            `None` or a value
"""

import struct
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple, assert_never, cast

from interchain_events.icrc72.errors import ConfigError
from interchain_events.icrc72.ic.candid.encode import leb128, sleb128
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.principal import LONGEST, Principal, shared_principal

Integer = Literal[
    "Nat", "Int", "Nat8", "Nat16", "Nat32", "Nat64", "Int8", "Int16", "Int32", "Int64"
]
Value = (
    Variant[Integer, int]
    | Variant[Literal["Text"], str]
    | Variant[Literal["Blob", "Bytes", "Float"], bytes]
    | Variant[Literal["Bool"], bool]
    | Variant[Literal["Principal"], Principal]
    | Variant[Literal["Array", "Set"], "tuple[Value, ...]"]
    | Variant[Literal["Map"], "Pairs"]
    | Variant[Literal["ValueMap"], "tuple[tuple[Value, Value], ...]"]
    | Variant[Literal["Class"], "tuple[Property, ...]"]
    | Variant[Literal["Option"], "Value | None"]
    | Variant[Literal["Nats"], tuple[int, ...]]
    | Variant[Literal["Floats"], tuple[bytes, ...]]
)
"""An ICRC16 value."""

Pairs = tuple[tuple[str, Value], ...]
"""An ICRC16Map. The first of repeated keys counts."""


class Property(NamedTuple):
    """A property of a Class."""

    name: str
    value: Value
    immutable: bool


def nat(number: int) -> Variant[Literal["Nat"], int]:
    """Return a Nat."""
    return Variant("Nat", number)


def integer(number: int) -> Variant[Literal["Int"], int]:
    """Return an Int."""
    return Variant("Int", number)


def text(words: str) -> Variant[Literal["Text"], str]:
    """Return a Text."""
    return Variant("Text", words)


def blob(raw: bytes) -> Variant[Literal["Blob"], bytes]:
    """Return a Blob, the form in which configurations, headers and alerts contain principals."""
    return Variant("Blob", bytes(raw))


def boolean(truth: bool) -> Variant[Literal["Bool"], bool]:
    """Return a Bool."""
    return Variant("Bool", truth)


def array(items: Iterable[Value]) -> Variant[Literal["Array"], tuple[Value, ...]]:
    """Return an Array."""
    return Variant("Array", tuple(items))


def map_(
    entries: Mapping[str, Value] | Iterable[tuple[str, Value]],
) -> Variant[Literal["Map"], Pairs]:
    """Return a Map, whose entries keep their order."""
    pairs = entries.items() if isinstance(entries, Mapping) else entries
    return Variant("Map", tuple((name, value) for name, value in pairs))


def class_(*fields: tuple[str, Value]) -> Variant[Literal["Class"], tuple[Property, ...]]:
    """Return a Class with immutable properties, which keep their order."""
    return Variant("Class", tuple(Property(name, value, immutable=True) for name, value in fields))


def option(value: Value | None) -> Variant[Literal["Option"], Value | None]:
    """Return an Option with a value or null."""
    return Variant("Option", value)


def float64(number: float) -> Variant[Literal["Float"], bytes]:
    """Return a Float."""
    return Variant("Float", struct.pack("<d", number))


def principal(who: Principal) -> Variant[Literal["Principal"], Principal]:
    """Return a Principal."""
    return Variant("Principal", who)


def of(plain: object) -> Value:
    """Return the ICRC16 value of a plain Python object.

    `None` becomes an empty Option, an int a Nat (an Int if it is negative), bytes a Blob, a mapping
    a Map and any other iterable an Array. ICRC16 values are returned unchanged. Raises `TypeError`
    for other objects.
    """
    match plain:
        case Variant():
            return cast("Value", plain)
        case None:
            return option(None)
        case bool():
            return boolean(plain)
        case int():
            return nat(plain) if plain >= 0 else integer(plain)
        case float():
            return float64(plain)
        case str():
            return text(plain)
        case Principal():
            return principal(plain)
        case bytes():
            return blob(plain)
        case Mapping():
            return map_((str(key), of(value)) for key, value in plain.items())
        case Iterable():
            return array(of(item) for item in plain)
    raise TypeError(f"{type(plain).__name__} has no ICRC16 value")


def plain(value: Value) -> Any:
    """Return the plain Python object of an ICRC16 value, for reading.

    Widths of numbers and the difference between similar tags, such as Array and Set, are lost. The
    result is untyped like parsed JSON: the author of the data knows its form.
    """
    match value:
        case ("Array" | "Set", items):
            return [plain(item) for item in items]
        case ("Map", pairs):
            return {name: plain(inside) for name, inside in pairs}
        case ("ValueMap", entries):
            return [[plain(key), plain(inside)] for key, inside in entries]
        case ("Class", properties):
            return {name: plain(inside) for name, inside, _ in properties}
        case ("Option", inside):
            return None if inside is None else plain(inside)
        case ("Float", raw):
            return struct.unpack("<d", raw)[0]
        case ("Floats", raws):
            return [struct.unpack("<d", raw)[0] for raw in raws]
        case ("Nats", numbers):
            return list(numbers)
        case (
            (
                "Nat" | "Int" | "Nat8" | "Nat16" | "Nat32" | "Nat64"
                | "Int8" | "Int16" | "Int32" | "Int64"
                | "Text" | "Blob" | "Bytes" | "Bool" | "Principal"
            ),
            inside,
        ):  # fmt: skip
            return inside
        case _:
            assert_never(value)


def first(pairs: Pairs | None, key: str) -> Value | None:
    """Return the first value under a key of a map, or `None`."""
    for name, value in pairs or ():
        if name == key:
            return value
    return None


def opened(value: Value) -> Value | None:
    """Return the value inside of an Option, or any other value unchanged."""
    return value.value if value.tag == "Option" else value


def as_nat(value: Value | None) -> int | None:
    """Return the number in a Nat, or `None` for anything else."""
    return value.value if value is not None and value.tag == "Nat" else None


def as_text(value: Value | None) -> str | None:
    """Return the text in a Text, or `None` for anything else."""
    return value.value if value is not None and value.tag == "Text" else None


def as_principal(value: Value | None) -> Principal | None:
    """Return the principal in a Blob or a Principal, or `None` for anything else."""
    if value is None:
        return None
    if value.tag == "Principal" or (value.tag == "Blob" and len(value.value) <= LONGEST):
        return shared_principal(value.value)
    return None


def as_items(value: Value | None) -> tuple[Value, ...] | None:
    """Return the items of an Array, or `None` for anything else."""
    return value.value if value is not None and value.tag == "Array" else None


class Skip(NamedTuple):
    """A condition on ids: an event passes if its id is `offset` modulo `mod` (IC-27, I3)."""

    mod: int
    offset: int = 0

    def passes(self, identifier: int) -> bool:
        """Return whether an event with this id passes."""
        return identifier % self.mod == self.offset

    @property
    def value(self) -> Value:
        """Return the form in configurations and alerts: `Array[Nat mod, Nat offset]`."""
        return array([nat(self.mod), nat(self.offset)])


def skip_of(value: Value) -> Skip:
    """Parse a skip from `Array[Nat mod, Nat offset]`, where the offset may be null or missing.

    An offset that is not below `mod` stands for its remainder. Raises `ConfigError` if the value
    has another form, or `mod` is 0.
    """
    items = as_items(opened(value)) or ()
    if not 1 <= len(items) <= 2:
        raise ConfigError("skip is an Array of one or two Nat")
    mod = as_nat(opened(items[0]))
    offset_value = opened(items[1]) if len(items) == 2 else None
    offset = 0 if offset_value is None else as_nat(offset_value)
    if mod is None or offset is None:
        raise ConfigError("skip is an Array of one or two Nat")
    if mod == 0:
        raise ConfigError("skip has the modulus 0")
    return Skip(mod, offset % mod)


_NAN: Final = bytes.fromhex("000000000000f87f")
"""The bytes that stand for every NaN in hashes."""


def value_hash(value: Value) -> bytes:
    """Return the 32-byte hash of a value (IC-21, I10).

    The six tags of ICRC-3 are hashed as ICRC-3 says. Another tag `X` is hashed as a Map with the
    only entry `icrc16:X`, so values of different tags have different hashes.
    """
    if value.tag == "Map":
        pairs = [
            sha256(name.encode()).digest() + value_hash(inside) for name, inside in value.value
        ]
        return sha256(b"".join(sorted(pairs))).digest()
    if value.tag == "Nat":
        return _hashed(leb128, value.value)
    if value.tag == "Int":
        return _hashed(sleb128, value.value)
    if value.tag == "Text":
        return sha256(value.value.encode()).digest()
    if value.tag == "Blob":
        return sha256(value.value).digest()
    if value.tag == "Array":
        return sha256(b"".join(map(value_hash, value.value))).digest()
    return value_hash(map_({f"icrc16:{value.tag}": _stand_in(value)}))


_FORM: Final = "icrc16:"
"""The beginning of the only key of a Map that stands for a variant which ICRC-3 lacks (IC-21)."""
_FLOAT: Final = 8
"""The bytes of a float."""


def icrc3_value(value: Value) -> Value:
    """Return a value that has only the six tags of ICRC-3, and the same hash."""
    match value:
        case ("Nat" | "Int" | "Text" | "Blob", _):
            return value
        case ("Array", items):
            return array(icrc3_value(item) for item in items)
        case ("Map", pairs):
            return map_((name, icrc3_value(inside)) for name, inside in pairs)
        case _:
            return map_({f"{_FORM}{value.tag}": icrc3_value(_stand_in(value))})


def from_icrc3(value: Value) -> Value:
    """Return the ICRC16 value whose ICRC-3 form is given: the reverse of `icrc3_value`.

    Items of a Set and entries of a ValueMap are in the order of their hashes. A Map that is spelt
    like the form of another variant is read as that variant, which has the same hash. Raises
    `ConfigError` if a Map only begins like such a form.
    """
    match value:
        case ("Array", items):
            return array(from_icrc3(item) for item in items)
        case ("Map", ((name, inside),)) if name.startswith(_FORM):
            return _from_stand_in(name.removeprefix(_FORM), inside)
        case ("Map", pairs):
            return map_((name, from_icrc3(part)) for name, part in pairs)
        case _:
            return value


def _from_stand_in(tag: str, value: Value) -> Value:
    """Return the value with a tag, from the value that `_stand_in` made for its payload.

    Raises `ConfigError` if that value does not fit the tag.
    """
    items = value.value if value.tag == "Array" else ()
    # The types of the payloads follow from the tags.
    result: Variant[str, object]
    match tag, value:
        case ("Bool", ("Nat", number)) if number < 2:
            result = boolean(number == 1)
        case ("Nat8" | "Nat16" | "Nat32" | "Nat64", ("Nat", number)) if number < 1 << _bits(tag):
            result = Variant(tag, number)
        case ("Int8" | "Int16" | "Int32" | "Int64", ("Int", number)) if (
            -1 <= number >> _bits(tag) - 1 <= 0
        ):
            result = Variant(tag, number)
        case ("Bytes", ("Blob", raw)):
            result = Variant("Bytes", raw)
        case ("Principal", ("Blob", raw)) if len(raw) <= LONGEST:
            result = principal(Principal(raw))
        case ("Float", ("Blob", raw)) if len(raw) == _FLOAT:
            result = Variant("Float", raw)
        case ("Floats", ("Blob", raw)) if len(raw) % _FLOAT == 0:
            floats = (raw[start : start + _FLOAT] for start in range(0, len(raw), _FLOAT))
            result = Variant("Floats", tuple(floats))
        case ("Nats", ("Array", _)) if all(item.tag == "Nat" for item in items):
            result = Variant("Nats", tuple(item.value for item in items))
        case ("Option", ("Array", _)) if len(items) < 2:
            result = option(from_icrc3(items[0]) if items else None)
        case ("Set", ("Array", _)):
            result = Variant("Set", tuple(from_icrc3(item) for item in items))
        case ("ValueMap", ("Array", _)):
            result = Variant("ValueMap", tuple(_entry_of(item) for item in items))
        case ("Class", ("Map", fields)):
            result = Variant("Class", tuple(_property_of(name, inside) for name, inside in fields))
        case _:
            raise ConfigError(f"the ICRC-3 form of a {tag[:20]} does not hold a {value.tag}")
    return cast("Value", result)


def _bits(tag: str) -> int:
    """Return how many bits a number with this tag has."""
    return int(tag.removeprefix("Nat").removeprefix("Int"))


def _entry_of(value: Value) -> tuple[Value, Value]:
    """Return key and value of an entry in the ICRC-3 form of a ValueMap."""
    match value:
        case ("Array", (key, inside)):
            return from_icrc3(key), from_icrc3(inside)
        case _:
            raise ConfigError("the ICRC-3 form of a ValueMap has entries of two values")


def _property_of(name: str, value: Value) -> Property:
    """Return a property from the ICRC-3 form of a Class."""
    match value:
        case ("Array", (inside, ("Nat", fixed))) if fixed < 2:
            return Property(name, from_icrc3(inside), fixed == 1)
        case _:
            raise ConfigError("the ICRC-3 form of a Class has a value and a truth value each")


def _stand_in(value: Value) -> Value:
    """Return the value that is hashed for the payload of a tag.

    Sets and ValueMaps are sorted by hashes, because their order has no meaning.
    """
    match value:
        case ("Bool", truth):
            return nat(int(truth))
        case ("Nat" | "Nat8" | "Nat16" | "Nat32" | "Nat64", number):
            return nat(number)
        case ("Int" | "Int8" | "Int16" | "Int32" | "Int64", number):
            return integer(number)
        case ("Blob" | "Bytes" | "Principal", raw):
            return blob(raw)
        case ("Float", raw):
            return blob(_float(raw))
        case ("Floats", raws):
            return blob(b"".join(_float(raw) for raw in raws))
        case ("Nats", numbers):
            return array(nat(number) for number in numbers)
        case ("Option", inside):
            return array([] if inside is None else [inside])
        case ("Set", items):
            return array(sorted(items, key=value_hash))
        case ("ValueMap", entries):
            ordered = sorted(
                entries, key=lambda entry: (value_hash(entry[0]), value_hash(entry[1]))
            )
            return array(array(entry) for entry in ordered)
        case ("Class", properties):
            return map_(
                (name, array([inside, nat(int(immutable))]))
                for name, inside, immutable in properties
            )
        case ("Text" | "Array" | "Map", _):
            return value
        case _:
            assert_never(value)


def _hashed(write: Callable[[int, bytearray], None], number: int) -> bytes:
    out = bytearray()
    write(number, out)
    return sha256(out).digest()


def _float(raw: bytes) -> bytes:
    """Return the bytes of a float, with one representation for all NaNs."""
    # As an integer without the sign, a NaN is greater than infinity, which has the exponent of all
    # ones and the fraction 0.
    bits = int.from_bytes(raw, "little") & (1 << 63) - 1
    return _NAN if bits > 0x7FF << 52 else raw
