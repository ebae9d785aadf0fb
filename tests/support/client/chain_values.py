"""Values of the types in a chain's metadata, for properties of encoding and decoding."""

import gzip
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

from pubsub_emulator.client.decode import SIGNED, UNSIGNED, compact_bits
from pubsub_emulator.client.metadata import (
    Array,
    Bits,
    Compact,
    Composite,
    Enum,
    Field,
    Metadata,
    Primitive,
    Sequence,
    Tuple,
    Type,
    Variant,
    parse_metadata,
)

REAL: Final = Path(__file__).parents[2] / "vectors" / "metadata" / "real"
RUNTIMES: Final = ("polkadot-14", "substrate-14")
"""Metadata of real runtimes by the names of their files."""
_ENDLESS: Final = 1_000_000
"""The height of a type that has no finite value, such as an enum without variants."""
_CHARACTERS: Final = "aé\u00df\u4e16\U0001f600\0"


@cache
def real_bytes(name: str) -> bytes:
    """Return the metadata of a real runtime, as its node returns it."""
    return gzip.decompress((REAL / f"{name}.scale.gz").read_bytes())


@cache
def real_metadata(name: str) -> Metadata:
    return parse_metadata(real_bytes(name))


class Values:
    """Random values of a runtime's types, in the form that `decode` has."""

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata
        self._heights = _heights(metadata)

    def kinds(self) -> list[int]:
        """Return the types that have values."""
        return [kind for kind in self.metadata.types if self._heights[kind] < _ENDLESS]

    def value(self, kind: int, random: Random, depth: int = 0) -> object:
        """Return a random value of a type.

        Below some depth, only the variants that end soonest are chosen.
        """
        metadata = self.metadata
        match metadata.types[kind]:
            case Composite(fields):
                return self._fields(fields, random, depth)
            case Enum(variants):
                variant = self._variant(list(variants.values()), random, depth)
                inner = metadata.optional(kind)
                if inner is None:
                    if not variant.fields:
                        return variant.name
                    return {variant.name: self._fields(variant.fields, random, depth)}
                if not variant.fields:
                    return None
                some = self.value(inner, random, depth + 1)
                return {"Some": some} if metadata.may_be_none(inner) else some
            case Sequence(item):
                count = self._count(item, random, depth)
                if metadata.is_byte(item):
                    return _bytes(random, count)
                return [self.value(item, random, depth + 1) for _ in range(count)]
            case Array(item, length):
                if metadata.is_byte(item):
                    return _bytes(random, length)
                return [self.value(item, random, depth + 1) for _ in range(length)]
            case Tuple(items):
                return [self.value(item, random, depth + 1) for item in items] or None
            case Primitive(name):
                return _primitive(name, random)
            case Compact(item):
                bits = compact_bits(metadata, item)
                return _integer(random, 0, 1 << bits) if bits else None
            case Bits():
                return "0b" + "".join(random.choice("01") for _ in range(random.randint(0, 70)))

    def _fields(self, fields: tuple[Field, ...], random: Random, depth: int) -> object:
        values = [self.value(field.type, random, depth + 1) for field in fields]
        if len(fields) == 1 and fields[0].name is None:
            return values[0]
        if not fields:
            return None
        if any(field.name is None for field in fields):
            return values
        return {field.name: value for field, value in zip(fields, values, strict=True)}

    def _variant(self, variants: list[Variant], random: Random, depth: int) -> Variant:
        """Return a random variant that ends. Below depth 6, it is one of the shallowest."""
        heights = {variant.name: _height(variant.fields, self._heights) for variant in variants}
        bound = _ENDLESS if depth < 6 else min(heights.values()) + 1
        return random.choice([variant for variant in variants if heights[variant.name] < bound])

    def _count(self, item: int, random: Random, depth: int) -> int:
        if depth > 8 or self._heights[item] >= _ENDLESS:
            return 0
        return random.choice([0, 1, 2, 3] if depth < 3 else [0, 1])


def _heights(metadata: Metadata) -> dict[int, int]:
    """Return the depth of the shallowest value of each type."""
    heights = dict.fromkeys(metadata.types, _ENDLESS)
    changed = True
    while changed:
        changed = False
        for kind, found in metadata.types.items():
            height = min(_ENDLESS, 1 + _inner_height(found, heights))
            if height < heights[kind]:
                heights[kind] = height
                changed = True
    return heights


def _inner_height(found: Type, heights: dict[int, int]) -> int:
    match found:
        case Composite(fields):
            return _height(fields, heights)
        case Enum(variants):
            inner = [_height(variant.fields, heights) for variant in variants.values()]
            return min(inner, default=_ENDLESS)
        case Array(item, length):
            return heights[item] if length else 0
        case Tuple(items):
            return max((heights[item] for item in items), default=0)
    return 0


def _height(fields: tuple[Field, ...], heights: dict[int, int]) -> int:
    return max((heights[field.type] for field in fields), default=0)


def _bytes(random: Random, count: int) -> bytes:
    return bytes(random.randrange(256) for _ in range(count))


def _integer(random: Random, low: int, end: int) -> int:
    """Return a random integer.

    Values at the ends and powers of two, which choose the forms of Compact, are more frequent.
    """
    edges = [low, end - 1, *_powers(low, end)]
    return random.choice([random.randrange(low, end), random.choice(edges)])


def _powers(low: int, end: int) -> Iterator[int]:
    for bits in (6, 14, 30, 32, 63, 64, 128, 255):
        for value in ((1 << bits) - 1, 1 << bits):
            if low <= value < end:
                yield value


def _primitive(name: str, random: Random) -> object:
    if name in UNSIGNED:
        return _integer(random, 0, 1 << 8 * UNSIGNED[name])
    if name in SIGNED:
        half = 1 << 8 * SIGNED[name] - 1
        return _integer(random, -half, half)
    if name == "bool":
        return random.random() < 0.5
    length = 1 if name == "char" else random.randint(0, 5)
    return "".join(random.choice(_CHARACTERS) for _ in range(length))
