"""Which messages are let through to the executor (PS-22).

A barrier looks at origin, message and weight and says nothing, or why not. It never changes the message: what upstream
does by shortening a mutable slice is done here with an index.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.xcm.instructions import Publish, SetTopic, Xcm
from pubsub_emulator.xcm.location import Location, as_parachain, parachain
from pubsub_emulator.xcm.outcome import BadFormat, ProcessMessageError, StackLimitReached, Unsupported

Filter = Callable[[Location], bool]
"""Which origins are meant."""


@dataclass(slots=True)
class Properties:
    """What a barrier may settle about a message besides letting it through."""

    message_id: bytes


class Barrier(Protocol):
    """Decides whether a message may run."""

    def should_execute(
        self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties
    ) -> ProcessMessageError | None:
        """None lets the message through; otherwise why not."""
        ...


def everything(_origin: Location) -> bool:
    """Any origin at all."""
    return True


def only_parachains(origin: Location) -> bool:
    """Exactly a parachain of this relay chain: `(0, [Parachain(_)])`."""
    return as_parachain(origin) is not None


def only(*paras: ParaId) -> Filter:
    """Exactly one of these parachains."""
    allowed = frozenset(parachain(para) for para in paras)
    return lambda origin: origin in allowed


@dataclass(frozen=True, slots=True)
class AllowPublishFrom:
    """Lets messages through that only publish (PS-22).

    Checked in this order: an origin that `allowed` does not name is `Unsupported`; no `Publish` at all is `BadFormat`;
    more than `max_instructions` is `StackLimitReached`, whatever they are; any instruction but `Publish` is
    `BadFormat`.

    `tolerate_set_topic` takes one trailing `SetTopic` as the message's id, as `TrailingSetTopicAsId` does; it is not
    counted. Without it such a message is `BadFormat`. Publishing still needs a parachain as origin: a filter that is
    too wide lets a message reach the executor, and `Publish` fails there with `BadOrigin` (PS-21).
    """

    allowed: Filter
    max_instructions: int
    tolerate_set_topic: bool = False

    def should_execute(
        self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties
    ) -> ProcessMessageError | None:
        """See the class. The weight was held against its limit before any barrier is asked."""
        del max_weight
        if not self.allowed(origin):
            return Unsupported()
        count = len(message)
        topic = message[-1] if message and self.tolerate_set_topic else None
        if isinstance(topic, SetTopic):
            count -= 1
        if count == 0:
            return BadFormat()
        if count > self.max_instructions:
            return StackLimitReached()
        for instruction in message[:count]:
            if not isinstance(instruction, Publish):
                return BadFormat()
        if isinstance(topic, SetTopic):
            properties.message_id = topic.inner
        return None


@dataclass(frozen=True, slots=True)
class AllowUnpaidExecutionFrom:
    """Lets everything through from the origins named; others are `Unsupported`."""

    allowed: Filter

    def should_execute(
        self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties
    ) -> ProcessMessageError | None:
        """See the class."""
        del message, max_weight, properties
        return None if self.allowed(origin) else Unsupported()


class AnyOf:
    """Lets through what one of its barriers lets through, asked in turn; otherwise `Unsupported`, as a Rust tuple does.

    Why each of them refused is lost, as it is upstream: to keep it, use the one barrier alone.
    """

    __slots__ = ("barriers",)

    def __init__(self, *barriers: Barrier) -> None:
        self.barriers = barriers

    def should_execute(
        self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties
    ) -> ProcessMessageError | None:
        """See the class."""
        for barrier in self.barriers:
            if barrier.should_execute(origin, message, max_weight, properties) is None:
                return None
        return Unsupported()
