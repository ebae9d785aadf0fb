"""Barriers, which decide which messages may run (PS-22).

They return `None` or the reason for a refusal, and never change the message. Upstream shortens the
message where this module counts its instructions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.xcm.instructions import Publish, SetTopic, Xcm
from pubsub_emulator.xcm.location import Location, as_parachain, parachain
from pubsub_emulator.xcm.outcome import (
    BadFormat,
    ProcessMessageError,
    StackLimitReached,
    Unsupported,
)

Filter = Callable[[Location], bool]
"""A predicate on origins."""
Refusal = ProcessMessageError | None
"""The reason why a message may not run, or `None` if it may."""


@dataclass(slots=True)
class Properties:
    """Further facts about a message that a barrier determines."""

    message_id: bytes


class Barrier(Protocol):
    """An object that decides whether a message may run."""

    def should_execute(
        self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties
    ) -> Refusal:
        """Return `None` if the message may run, else the reason for the refusal."""
        ...


def everything(_origin: Location) -> bool:
    """Accept any origin."""
    return True


def only_parachains(origin: Location) -> bool:
    """Accept exactly the parachains of this relay chain: `(0, [Parachain(_)])`."""
    return as_parachain(origin) is not None


def only(*paras: ParaId) -> Filter:
    """Return a filter that accepts exactly these parachains."""
    allowed = frozenset(parachain(para) for para in paras)
    return lambda origin: origin in allowed


@dataclass(frozen=True, slots=True)
class AllowPublishFrom:
    """A barrier that admits messages of `Publish` instructions only (PS-22).

    It checks in this order:

    - an origin that `allowed` rejects is `Unsupported`
    - a message without instructions is `BadFormat`
    - more than `max_instructions` instructions of any kind are `StackLimitReached`
    - any instruction other than `Publish` is `BadFormat`

    With `tolerate_set_topic`, one trailing `SetTopic` sets the message's id, as
    `TrailingSetTopicAsId` does, and is not counted. Otherwise such a message is `BadFormat`.

    Publishing still requires a parachain as origin. If the filter is too wide, the message reaches
    the executor, where `Publish` fails with `BadOrigin` (PS-21).
    """

    allowed: Filter
    max_instructions: int
    tolerate_set_topic: bool = False

    def should_execute(
        self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties
    ) -> Refusal:
        """Return the reason why the message is not admitted, else `None`.

        The caller has already compared the weight with its limit.
        """
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
    """A barrier that admits every message from the origins that the filter accepts.

    Other messages are `Unsupported`.
    """

    allowed: Filter

    def should_execute(
        self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties
    ) -> Refusal:
        """Return `Unsupported` if the filter does not accept the origin, else `None`."""
        del message, max_weight, properties
        return None if self.allowed(origin) else Unsupported()


class AnyOf:
    """A barrier that admits the messages that any of its barriers admits.

    Other messages are `Unsupported`, whatever the reasons of its barriers, as with a Rust tuple.
    """

    def __init__(self, *barriers: Barrier) -> None:
        self.barriers = barriers

    def should_execute(
        self, origin: Location, message: Xcm, max_weight: Weight, properties: Properties
    ) -> Refusal:
        """Return `None` if one of the barriers admits the message, else `Unsupported`."""
        for barrier in self.barriers:
            if barrier.should_execute(origin, message, max_weight, properties) is None:
                return None
        return Unsupported()
