"""Barriers: they decide which messages may run (PS-22).

They return `None`, or why not, and never change the message: upstream shortens a slice where this uses an index.
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
"""A predicate on origins."""
Refusal = ProcessMessageError | None
"""Why a message may not run; `None` if it may."""


@dataclass(slots=True)
class Properties:
    """Further facts about a message that a barrier determines."""

    message_id: bytes


class Barrier(Protocol):
    """Decides whether a message may run."""

    def should_execute(self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties) -> Refusal:
        """Returns `None` if the message may run, otherwise why not."""
        ...


def everything(_origin: Location) -> bool:
    """Accepts any origin."""
    return True


def only_parachains(origin: Location) -> bool:
    """Accepts exactly the parachains of this relay chain: `(0, [Parachain(_)])`."""
    return as_parachain(origin) is not None


def only(*paras: ParaId) -> Filter:
    """A filter that accepts exactly these parachains."""
    allowed = frozenset(parachain(para) for para in paras)
    return lambda origin: origin in allowed


@dataclass(frozen=True, slots=True)
class AllowPublishFrom:
    """Admits messages that consist of `Publish` instructions only (PS-22).

    Checked in this order: an origin that `allowed` rejects is `Unsupported`; no `Publish` at all is `BadFormat`; more
    than `max_instructions` instructions of any kind are `StackLimitReached`; any instruction but `Publish` is
    `BadFormat`.

    With `tolerate_set_topic`, one trailing `SetTopic` sets the message's id, as `TrailingSetTopicAsId` does, and is not
    counted; otherwise such a message is `BadFormat`. Publishing still requires a parachain as origin: if the filter is
    too wide, the message reaches the executor, where `Publish` fails with `BadOrigin` (PS-21).
    """

    allowed: Filter
    max_instructions: int
    tolerate_set_topic: bool = False

    def should_execute(self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties) -> Refusal:
        """Why the message is not admitted, else `None`. The caller has compared the weight with its limit."""
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
    """Admits every message from the origins that the filter accepts; others are `Unsupported`."""

    allowed: Filter

    def should_execute(self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties) -> Refusal:
        """`Unsupported` if the filter does not accept the origin, else `None`."""
        del message, max_weight, properties
        return None if self.allowed(origin) else Unsupported()


class AnyOf:
    """Admits what one of its barriers admits; otherwise `Unsupported`, whatever their reasons, as a Rust tuple."""

    def __init__(self, *barriers: Barrier) -> None:
        self.barriers = barriers

    def should_execute(self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties) -> Refusal:
        """`None` if one of the barriers admits the message, else `Unsupported`."""
        for barrier in self.barriers:
            if barrier.should_execute(origin, message, max_weight, properties) is None:
                return None
        return Unsupported()
