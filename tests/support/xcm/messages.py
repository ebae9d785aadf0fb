"""Strategies derived from the XCM schema, and a chain on which messages publish."""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.xcm.assets import ASSETS, Asset, Fungible, _in_order, sorted_assets
from pubsub_emulator.xcm.barriers import AllowUnpaidExecutionFrom, Barrier, everything
from pubsub_emulator.xcm.errors import PublishFailure
from pubsub_emulator.xcm.executor import Execution, XcmExecutor
from pubsub_emulator.xcm.instructions import XCM, Instruction, Publish, Xcm
from pubsub_emulator.xcm.location import Location, parachain
from pubsub_emulator.xcm.outcome import (
    WEIGHT,
    XCM_ERROR,
    InstructionError,
    ProcessMessageError,
    XcmError,
    XcmErrorKind,
)
from pubsub_emulator.xcm.schema import Kind, XcmCodec
from pubsub_emulator.xcm.weigher import FixedWeightBounds, WeighedMessage, XcmWeights, weigh_message

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "vectors" / "xcm" / "xcm_v5.json").read_text(encoding="utf-8")
)


# -- strategies

_WEIGHTS = st.builds(Weight, st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))


def _error(kind: XcmErrorKind) -> st.SearchStrategy[XcmError]:
    if kind is XcmErrorKind.Trap:
        return st.builds(XcmError, st.just(kind), st.integers(0, 2**64 - 1))
    if kind is XcmErrorKind.WeightLimitReached:
        return st.builds(XcmError, st.just(kind), _WEIGHTS)
    return st.just(XcmError(kind))


def _lawful(assets: list[Asset]) -> tuple[Asset, ...]:
    kept: list[Asset] = []
    for asset in sorted_assets(assets):
        if not kept or _in_order(kept[-1], asset):
            kept.append(asset)
    return tuple(kept)


def _uint(bits: int) -> st.SearchStrategy[int]:
    edges = [
        edge for width in (6, 14, 30, bits) for edge in (2**width - 1, 2**width) if edge < 2**bits
    ]
    return st.one_of(st.integers(0, 2**bits - 1), st.sampled_from(edges))


@cache
def values(codec: XcmCodec[Any], level: int = 0) -> st.SearchStrategy[Any]:
    """Return values of a codec's type. `level` limits how deep messages nest in messages."""
    if codec is WEIGHT:
        return _WEIGHTS
    if codec is XCM_ERROR:
        return st.sampled_from(XcmErrorKind).flatmap(_error)
    if codec is ASSETS:
        return st.lists(values(Asset.codec), max_size=4).map(_lawful)
    if codec is XCM:
        return messages(level + 1)
    shape = codec.shape
    match shape.kind:
        case Kind.UINT | Kind.COMPACT:
            return _uint(shape.size or 0)
        case Kind.BOOL:
            return st.booleans()
        case Kind.FIXED:
            return st.binary(min_size=shape.size or 0, max_size=shape.size)
        case Kind.BYTES:
            return st.binary(max_size=min(shape.size or 80, 80))
        case Kind.NAMES:
            return st.sampled_from(shape.type)
        case Kind.OPTION:
            return st.none() | values(shape.parts[0], level)
        case Kind.SEQUENCE:
            return st.lists(values(shape.parts[0], level), max_size=min(shape.size or 3, 3)).map(
                tuple
            )
        case Kind.JUNCTIONS:
            return st.lists(values(shape.parts[0], level), max_size=shape.size).map(tuple)
        case Kind.TUPLE:
            return st.tuples(*(values(part, level) for part in shape.parts))
        case Kind.STRUCT:
            return of_class(shape.type, level)
        case Kind.VARIANTS:
            return st.one_of([of_class(kind, level) for kind in shape.type.VARIANTS.values()])
    raise AssertionError(codec)


@cache
def of_class(kind: Any, level: int = 0) -> st.SearchStrategy[Any]:
    """Return values of one declared class."""
    if kind is Fungible:
        return st.builds(Fungible, st.integers(1, 2**128 - 1))
    return st.builds(kind, *(values(codec, level) for _, codec in kind.FIELDS))


def _nests(kind: type[Instruction]) -> bool:
    return any(codec is XCM for _, codec in kind.FIELDS)


@cache
def instructions(level: int = 0) -> st.SearchStrategy[Instruction]:
    kinds = [kind for kind in Instruction.VARIANTS.values() if level < 2 or not _nests(kind)]
    return st.one_of([of_class(kind, level) for kind in kinds])


@cache
def messages(level: int = 0) -> st.SearchStrategy[Xcm]:
    return st.lists(instructions(level), max_size=5 if level == 0 else 2).map(tuple)


PUBLISHES = st.builds(
    Publish,
    st.binary(min_size=32, max_size=32),
    st.binary(max_size=300) | st.just(b"v" * 20_000),
    _uint(32),
)


def shown(value: object) -> str:
    """Return a value as the id of a test.

    It has no backslashes, because pytest may not find an id with them again.
    """
    return str(value).replace("\\", "")


def classes_below(codec: XcmCodec[Any]) -> Iterator[type[Any]]:
    """Yield every declared class that a codec can reach, once, in the order of discovery."""
    met: dict[type[Any], None] = {}
    waiting = [codec]
    seen: list[XcmCodec[Any]] = []
    while waiting:
        current = waiting.pop()
        if any(current is other for other in seen):
            continue
        seen.append(current)
        waiting.extend(current.shape.parts)
        kind = current.shape.type
        members: Iterable[Any] = [kind] if kind else []
        if current.shape.kind is Kind.VARIANTS:
            members = kind.VARIANTS.values()
        for member in members:
            met[member] = None
            waiting.extend(inner for _, inner in getattr(member, "FIELDS", ()))
    return iter(met)


# -- a chain to publish on


class TooManyStoredKeys(PubsubError):
    """Stands for a pallet's error."""


class Ledger:
    """A chain that stores publications.

    Beyond `room` keys, it fails only after writing, so that rolling back matters.
    """

    def __init__(self, room: int = 1000) -> None:
        self.room = room
        self.stored: dict[tuple[ParaId, PubsubKey], tuple[bytes, int]] = {}
        self.layers = 0

    @contextmanager
    def transaction(self) -> Iterator[None]:
        before = dict(self.stored)
        self.layers += 1
        try:
            yield
        except BaseException:
            self.stored = before
            raise

    def publish(self, para: ParaId, key: PubsubKey, value: bytes, ttl: int) -> None:
        self.stored[para, key] = (value, ttl)
        if len(self.stored) > self.room:
            raise PublishFailure(TooManyStoredKeys(f"{self.room} keys"))


UNIT = Weight(1_000, 10)
PER_PUBLISH = Weight(500, 5)
PER_BYTE = Weight(7, 1)
WEIGHTS = XcmWeights(instruction=UNIT, publish=PER_PUBLISH, publish_byte=PER_BYTE)
WEIGHER = FixedWeightBounds(WEIGHTS)
PARA = ParaId(1000)
ORIGIN = parachain(PARA)
ID = b"\x1d" * 32


def key(name: int) -> PubsubKey:
    return PubsubKey(bytes([name]) * 32)


def publish(name: int = 1, value: bytes = b"value", ttl: int = 0) -> Publish:
    return Publish(key(name), value, ttl)


def execute(
    *message: Instruction,
    origin: Location = ORIGIN,
    config: Ledger | None = None,
    barrier: Barrier | None = None,
) -> Execution:
    """Run a message behind a barrier that lets everything through, unless another is given."""
    weight = WEIGHER.weight(message)
    assert isinstance(weight, Weight)
    executor = XcmExecutor(WEIGHER, barrier or AllowUnpaidExecutionFrom(everything))
    return executor.execute(config or Ledger(), origin, message, weight, ID)


def run(
    executor: XcmExecutor, data: bytes, chain: Ledger, para: ParaId = PARA
) -> Execution | ProcessMessageError:
    """Weigh and execute a message as a queue does. Its id is the hash of its bytes."""
    weighed = weigh_message(executor.weigher, data)
    if not isinstance(weighed, WeighedMessage):
        return weighed
    return executor.execute(
        chain, parachain(para), weighed.message, weighed.weight, blake2_256(data)
    )


def failed(index: int, kind: XcmErrorKind, detail: int | None = None) -> InstructionError:
    return InstructionError(index, XcmError(kind, detail))
