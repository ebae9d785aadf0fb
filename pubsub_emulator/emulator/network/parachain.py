"""A parachain of a network: its newest block, its collators, and its unsent messages.

Nothing writes to a parachain's `State`, so that a snapshot only copies references.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from pubsub_emulator.emulator.fork import base
from pubsub_emulator.emulator.relay.xcm_messages import PUBLISHES_PER_MESSAGE
from pubsub_emulator.primitives.draws import MILLION, secret
from pubsub_emulator.primitives.ed25519 import public_key
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.header import Header, turn_of
from pubsub_emulator.primitives.types import ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.runtime.framework.fork import Fork
from pubsub_emulator.runtime.framework.message_chains import OutboundHrmpMessage
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.pallet_subscriber.config import (
    RuntimeSpec,
    Subscriptions,
    runtime_spec,
)
from pubsub_emulator.runtime.parachain.block import ChainHead
from pubsub_emulator.runtime.parachain.genesis import genesis
from pubsub_emulator.runtime.parachain.pallets import PARACHAIN
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.xcm import Publish, decode, encode_instruction, message_of

MESSAGE_BYTES: Final = 60_000
"""The maximum size of an upward message of publishes in bytes. The relay chain accepts 65,531."""
_MESSAGE_HEAD: Final = 4
"""The number of bytes reserved for a message's version and its number of instructions."""


class Unsendable(PubsubError):
    """A message that the relay chain would never accept."""


@dataclass(frozen=True, slots=True)
class Collator:
    """An author of blocks."""

    seed: bytes
    """Its Ed25519 seed."""
    key: bytes
    """Its Ed25519 public key."""
    strategies: tuple[str, ...] = ()
    """The strategies from which it draws when it cheats."""
    rate: int = MILLION
    """The share of its turns in which it cheats, in millionths."""


class CollatorConfig(NamedTuple):
    """A collator before it has keys."""

    strategies: tuple[str, ...] = ()
    """The strategies from which it draws when it cheats."""
    rate: int = MILLION
    """The share of its turns in which it cheats, in millionths."""


HONEST: Final = CollatorConfig((), 0)
"""The configuration of an honest collator."""


@dataclass(frozen=True, slots=True)
class Pace:
    """When a parachain builds blocks."""

    blocks: int = 1
    """The number of blocks per turn. They share a relay parent."""
    every: int = 1
    """The number of relay blocks from one turn to the next."""
    lag: int = 0
    """The number of relay blocks by which the relay parent is older than the newest relay block."""
    on_demand: bool = False
    """Whether to build only when there is something to send. This is for parachains that publish
    and do not subscribe.
    """


@dataclass(slots=True)
class Parachain:
    """One parachain, with the messages and extrinsics that wait."""

    para: ParaId
    head: ChainHead
    """The header and state of the newest block."""
    collators: tuple[Collator, ...]
    """The authors in the order of their turns."""
    pace: Pace
    """When the parachain builds blocks."""
    publishes: list[tuple[bytes, int]] = field(default_factory=list)
    """Encoded publish instructions that wait, each with the bytes that packing counts for it."""
    upward: list[bytes] = field(default_factory=list)
    """Whole upward messages that wait."""
    horizontal: list[OutboundHrmpMessage] = field(default_factory=list)
    """Messages to other parachains that wait."""
    offered: tuple[bytes, ...] = ()
    """Signed extrinsics that are offered to the next block."""
    offline: bool = False
    """Whether the collators build no blocks, regardless of the pace."""
    known_subscriptions: Subscriptions = field(default_factory=dict)
    """The subscriptions of the last notification of observers."""

    @staticmethod
    def start(
        spec: RuntimeSpec,
        collators: tuple[Collator, ...],
        pace: Pace,
        fork: Fork | None = None,
        rules: Rules = SHIPPED,
    ) -> "Parachain":
        """Return a parachain at its genesis, on the state of `fork` if given.

        `rules` are those of its network. Raises `ImpossibleConfig`.
        """
        state = None if fork is None else base(fork, PARACHAIN)
        head = genesis(spec, tuple(collator.key for collator in collators), state, rules)
        return Parachain(
            spec.para_id, head, collators, pace, known_subscriptions=spec.subscriptions
        )

    @property
    def header(self) -> Header:
        """Return the newest block's header."""
        return self.head.header

    @property
    def state(self) -> State:
        """Return the state after the newest block."""
        return self.head.state

    def spec(self) -> RuntimeSpec:
        """Return the runtime that executes the next block."""
        return runtime_spec(self.state.top)

    def author_of(self, slot: int) -> Collator:
        """Return the collator whose turn `slot` is (PS-80)."""
        return turn_of(slot, self.collators)

    def has_turn(self, block: RelayBlockNumber) -> bool:
        """Return whether candidates are built for relay block `block`."""
        return block % self.pace.every == 0 and (
            not self.pace.on_demand or bool(self.offered) or self.has_messages()
        )

    def has_messages(self) -> bool:
        """Return whether any message waits to be sent."""
        return bool(self.publishes or self.upward or self.horizontal)

    def publish(self, key: PubsubKey, value: bytes, ttl: int) -> None:
        """Queue a key to be published.

        Raises `ScaleError` if the instruction cannot be encoded, and `Unsendable` if its message
        would be too long.
        """
        waiting = encoded(Publish(key, value, ttl))
        size = len(message_of(waiting[:1]))
        if size > MESSAGE_BYTES:
            raise Unsendable(
                f"a message with this publish alone has {size} bytes; at most {MESSAGE_BYTES} can"
                " be sent"
            )
        self.publishes.append(waiting)

    def send_upward(self, message: bytes) -> None:
        """Queue a whole upward message behind everything that waits."""
        self.pack()
        self.upward.append(message)

    def pack(self) -> None:
        """Pack the waiting publishes into as few upward messages as possible.

        The number of instructions and the size of a message are limited.
        """
        self.upward.extend(_packed(self.publishes, MESSAGE_BYTES))
        self.publishes.clear()

    def fit(self, longest: int) -> None:
        """Split those waiting messages of publishes that are longer than `longest` bytes."""
        fitting: list[bytes] = []
        for message in self.upward:
            fitting += split(message, longest)
        self.upward = fitting

    def abandon(self) -> None:
        """Drop everything that waits to be sent, because the parachain has left the relay chain."""
        for queue in (self.publishes, self.upward, self.horizontal):
            queue.clear()

    def copy(self) -> "Parachain":
        """Return an independent copy that shares the state."""
        return replace(
            self,
            publishes=list(self.publishes),
            upward=list(self.upward),
            horizontal=list(self.horizontal),
        )

    def fork(self) -> "Parachain":
        """Return an independent copy with a fork of the state."""
        copied = self.copy()
        copied.head = self.head.fork()
        return copied


def pack(publishes: Iterable[Publish], longest: int = MESSAGE_BYTES) -> list[bytes]:
    """Return messages with these publishes in order, of at most `longest` bytes each.

    A publish that is longer gets a message of its own.
    """
    return _packed(map(encoded, publishes), longest)


def encoded(publish: Publish) -> tuple[bytes, int]:
    """Return the encoded instruction of a publish, and the bytes that packing counts for it.

    They are an upper bound: the key, the value, and 10 bytes for ttl, length and number.
    """
    return encode_instruction(publish), 32 + len(publish.value) + 10


def _packed(publishes: Iterable[tuple[bytes, int]], longest: int) -> list[bytes]:
    """Return messages with these encoded publishes, in order.

    The size of a message is estimated by the bytes that `encoded` counts for each publish.
    """
    messages: list[bytes] = []
    batch: list[bytes] = []
    size = 0
    limit = min(longest - _MESSAGE_HEAD, MESSAGE_BYTES)
    for instruction, counted in publishes:
        if batch and (len(batch) == PUBLISHES_PER_MESSAGE or size + counted > limit):
            messages.append(message_of(batch))
            batch = []
            size = 0
        batch.append(instruction)
        size += counted
    if batch:
        messages.append(message_of(batch))
    return messages


def split(message: bytes, longest: int) -> list[bytes]:
    """Split a message of publishes into messages of at most `longest` bytes.

    Any other message is returned unchanged.
    """
    if len(message) <= longest:
        return [message]
    try:
        instructions = decode(message)
    except ScaleError:
        return [message]
    publishes = [instruction for instruction in instructions if isinstance(instruction, Publish)]
    if len(publishes) < 2 or len(publishes) != len(instructions):
        return [message]
    return pack(publishes, longest=longest)


def make_collators(
    seed: bytes, para: ParaId, settings: Sequence[CollatorConfig]
) -> tuple[Collator, ...]:
    """Return one collator for each setting, with keys derived from the network's seed."""
    collators = []
    for index, (strategies, rate) in enumerate(settings):
        own_seed = secret(seed, f"collator/{para}/{index}")
        collators.append(Collator(own_seed, public_key(own_seed), strategies, rate=rate))
    return tuple(collators)
