"""The hash of ICRC16 values (IC-21): ICRC-3's for its six variants, and a Map that names the variant for the others."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

from pubsub_emulator.eventplane.ic.candid.encode import leb128, sleb128
from pubsub_emulator.eventplane.ic.candid.types import Variant

_NAN: Final = bytes.fromhex("000000000000f87f")


def value_hash(value: Variant) -> bytes:
    """The 32-byte hash of a value."""
    tag, inside = value
    made = _ICRC3.get(tag)
    if made is not None:
        return made(inside)
    return _hash_map([(f"icrc16:{tag}", _OTHERS[tag](inside))])


def _nat(number: int) -> bytes:
    out = bytearray()
    leb128(number, out)
    return sha256(out).digest()


def _int(number: int) -> bytes:
    out = bytearray()
    sleb128(number, out)
    return sha256(out).digest()


def _text(words: str) -> bytes:
    return sha256(words.encode()).digest()


def _blob(raw: bytes) -> bytes:
    return sha256(raw).digest()


def _hash_array(hashes: list[bytes]) -> bytes:
    return sha256(b"".join(hashes)).digest()


def _hash_map(entries: list[tuple[str, bytes]]) -> bytes:
    return sha256(b"".join(sorted(_text(name) + hashed for name, hashed in entries))).digest()


def _array(items: tuple[Variant, ...]) -> bytes:
    return _hash_array([value_hash(each) for each in items])


def _map(pairs: tuple[tuple[str, Variant], ...]) -> bytes:
    return _hash_map([(name, value_hash(each)) for name, each in pairs])


def _float(raw: bytes) -> bytes:
    """Every NaN is one: all bits of the exponent are set and some of the fraction."""
    bits = int.from_bytes(raw, "little") & (1 << 63) - 1
    return _NAN if bits > 0x7FF << 52 else raw


def _value_map(pairs: tuple[tuple[Variant, Variant], ...]) -> bytes:
    hashed = sorted((value_hash(key), value_hash(each)) for key, each in pairs)
    return _hash_array([_hash_array([key, each]) for key, each in hashed])


def _class(properties: tuple[Any, ...]) -> bytes:
    return _hash_map(
        [(name, _hash_array([value_hash(each), _nat(int(immutable))])) for name, each, immutable in properties]
    )


_ICRC3: Final[dict[str, Callable[[Any], bytes]]] = {
    "Nat": _nat,
    "Int": _int,
    "Text": _text,
    "Blob": _blob,
    "Array": _array,
    "Map": _map,
}

_OTHERS: Final[dict[str, Callable[[Any], bytes]]] = {
    "Bool": lambda truth: _nat(int(truth)),
    **dict.fromkeys(("Nat8", "Nat16", "Nat32", "Nat64"), _nat),
    **dict.fromkeys(("Int8", "Int16", "Int32", "Int64"), _int),
    "Bytes": _blob,
    "Principal": _blob,
    "Float": lambda raw: _blob(_float(raw)),
    "Floats": lambda raws: _blob(b"".join(_float(each) for each in raws)),
    "Nats": lambda numbers: _hash_array([_nat(each) for each in numbers]),
    "Option": lambda inside: _hash_array([] if inside is None else [value_hash(inside)]),
    "Set": lambda items: _hash_array(sorted(value_hash(each) for each in items)),
    "ValueMap": _value_map,
    "Class": _class,
}

__all__ = ["value_hash"]
