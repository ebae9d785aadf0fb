"""Hash of ICRC16 values (IC-21, I10): ICRC-3's for its six variants, for the others a Map that names the variant."""

from collections.abc import Callable
from hashlib import sha256
from typing import Final, assert_never

from pubsub_emulator.icrc72.ic.candid.encode import leb128, sleb128
from pubsub_emulator.icrc72.values import Value, array, blob, integer, map_, nat

_NAN: Final = bytes.fromhex("000000000000f87f")


def value_hash(value: Value) -> bytes:
    """The 32-byte hash of a value."""
    if value.tag == "Map":
        pairs = [sha256(name.encode()).digest() + value_hash(each) for name, each in value.value]
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


def icrc3_value(value: Value) -> Value:
    """A value in the six variants of ICRC-3, with the same hash."""
    match value:
        case ("Nat" | "Int" | "Text" | "Blob", _):
            return value
        case ("Array", items):
            return array(icrc3_value(each) for each in items)
        case ("Map", pairs):
            return map_((name, icrc3_value(each)) for name, each in pairs)
        case _:
            return map_({f"icrc16:{value.tag}": icrc3_value(_stand_in(value))})


def _stand_in(value: Value) -> Value:
    """The stand-in for a value of a variant that ICRC-3 lacks."""
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
            return blob(b"".join(_float(each) for each in raws))
        case ("Nats", numbers):
            return array(nat(each) for each in numbers)
        case ("Option", inside):
            return array([] if inside is None else [inside])
        case ("Set", items):
            return array(sorted(items, key=value_hash))
        case ("ValueMap", entries):
            ordered = sorted(entries, key=lambda each: (value_hash(each[0]), value_hash(each[1])))
            return array(array(each) for each in ordered)
        case ("Class", properties):
            return map_((name, array([each, nat(int(fixed))])) for name, each, fixed in properties)
        case ("Text" | "Array" | "Map", _):
            return value
        case _:
            assert_never(value)


def _hashed(write: Callable[[int, bytearray], None], number: int) -> bytes:
    out = bytearray()
    write(number, out)
    return sha256(out).digest()


def _float(raw: bytes) -> bytes:
    """Every NaN is one: all bits of the exponent are set and some of the fraction."""
    bits = int.from_bytes(raw, "little") & (1 << 63) - 1
    return _NAN if bits > 0x7FF << 52 else raw
