"""Facts, the units in which the orchestrator assigns work and informs publishers and subscribers.

A fact names one thing that a canister has to do or to know, and has one value. The orchestrator
compares the facts that a canister should have with those that it has confirmed, and sends the
difference in system events (IC-38). `alerts` converts facts to the data of these events and back.

Each class of facts has a field `kind`. Named tuples are equal if their fields are equal, whatever
their classes are, so a publisher and a subscriber of one namespace would otherwise be one key.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.ic.stable import stable
from interchain_events.icrc72.values import Skip


@stable
class Width(NamedTuple):
    """Filter and skip of a subscription or relay: how many of the events pass."""

    filter: str | None
    skip: Skip | None


WIDE: Final = Width(None, None)
"""Filter and skip through which all events pass."""


# Facts of broadcasters: their work.


@stable
class SubscriberFact(NamedTuple):
    """Notify a subscriber of the events of a namespace. The value has its subscriptions."""

    namespace: str
    subscriber: Principal
    kind: Literal["subscriber"] = "subscriber"


@stable
class PublisherFact(NamedTuple):
    """Accept the events of a publisher in a namespace. The value is a version."""

    namespace: str
    publisher: Principal
    kind: Literal["publisher"] = "publisher"


@stable
class RelayerFact(NamedTuple):
    """Accept the events of a namespace from another broadcaster. The value is a version."""

    namespace: str
    broadcaster: Principal
    kind: Literal["relayer"] = "relayer"


@stable
class RelayFact(NamedTuple):
    """Relay the events of a namespace to another broadcaster. The value is the width."""

    namespace: str
    target: Principal
    subscriber: Principal
    """The subscriber for which events are relayed, or `EVERYBODY`."""
    kind: Literal["relay"] = "relay"


@stable
class ReplayFact(NamedTuple):
    """Deliver a replay to its subscriber. The value is a `Delivering`."""

    replay: int
    kind: Literal["replay"] = "replay"


@stable
class ReplayRelayFact(NamedTuple):
    """Forward a replay to the broadcaster that delivers it. The value is a `Forwarding`."""

    replay: int
    kind: Literal["replay relay"] = "replay relay"


@stable
class ReplayRelayerFact(NamedTuple):
    """Accept a replay from the broadcaster that forwards it. The value is a `Handing`."""

    replay: int
    kind: Literal["replay relayer"] = "replay relayer"


Fact = (
    SubscriberFact
    | PublisherFact
    | RelayerFact
    | RelayFact
    | ReplayFact
    | ReplayRelayFact
    | ReplayRelayerFact
)
"""A fact about the work of a broadcaster."""


@stable
class WantedSubscription(NamedTuple):
    """A subscription that is in force."""

    id: int
    filter: str | None
    skip: Skip | None
    version: int

    @property
    def width(self) -> Width:
        """Filter and skip."""
        return Width(self.filter, self.skip)


@stable
class Delivering(NamedTuple):
    """A replay at its exit, the broadcaster that delivers it."""

    namespace: str
    hands: Principal
    """The sender of the events: the entry, or the exit itself if it is also the entry."""
    subscriber: Principal
    filter: str | None
    skip: Skip | None
    publisher: Principal | None
    """`None` if the orchestrator does not name it."""


@stable
class Forwarding(NamedTuple):
    """A replay at its entry, which forwards it."""

    namespace: str
    target: Principal
    """The exit."""
    publisher: Principal
    filter: str | None
    skip: Skip | None


@stable
class Handing(NamedTuple):
    """The source of a relayed replay at its exit."""

    namespace: str
    entry: Principal
    """The broadcaster that forwards it."""


FactValue = int | Width | tuple[WantedSubscription, ...] | Delivering | Forwarding | Handing
"""The value of a broadcaster's fact."""


# Facts of members, which are publishers and subscribers: their knowledge.


@stable
class EntriesFact(NamedTuple):
    """The entries of a publisher for a publication. The value has them by partition."""

    publication: int
    kind: Literal["entries"] = "entries"


@stable
class ExitFact(NamedTuple):
    """A subscription and the broadcaster that serves it. The value is true."""

    subscription: int
    broadcaster: Principal
    kind: Literal["exit"] = "exit"


@stable
class DueFact(NamedTuple):
    """A replay that a publisher has to make. The value is a `Due`."""

    replay: int
    kind: Literal["due"] = "due"


@stable
class BegunFact(NamedTuple):
    """A replay that begins for a subscriber. The value is the exit.

    The exit itself informs the subscriber, not the orchestrator.
    """

    replay: int
    kind: Literal["begun"] = "begun"


MemberFact = EntriesFact | ExitFact | DueFact | BegunFact
"""A fact that a publisher or subscriber knows."""


@stable
class Due(NamedTuple):
    """The events of a replay and the broadcaster to which a publisher sends them."""

    namespace: str
    start: int
    """The first id."""
    end: int | None
    """The id after the last one; `None` for all events that exist."""
    entry: Principal


MemberValue = bool | tuple[Principal, ...] | Due | Principal
"""The value of a member's fact."""


@stable
class Trouble(NamedTuple):
    """An error of a publication or subscription, of which its member is informed."""

    id: int
    """The id of the publication or subscription, 0 if it is missing."""
    code: int
    """One of `keys.CODES`, or 0 for unauthorized."""
    namespace: str = ""
    """Empty if it is missing."""
    missed: int | None = None
    """The first event that a suspended subscriber does not get."""


# Causes, the reasons for facts. The facts of a cause are planned and withdrawn together.


@stable
class MemberCause(NamedTuple):
    """A canister is a member, so its exit delivers its system events."""

    member: Principal
    kind: Literal["member"] = "member"


@stable
class PublisherCause(NamedTuple):
    """A canister publishes in a publication."""

    publication: int
    publisher: Principal
    kind: Literal["publisher"] = "publisher"


@stable
class PairCause(NamedTuple):
    """A canister subscribes to a publication."""

    publication: int
    subscriber: Principal
    kind: Literal["pair"] = "pair"


@stable
class ReplayCause(NamedTuple):
    """A replay was asked for."""

    replay: int
    kind: Literal["replay"] = "replay"


Cause = MemberCause | PublisherCause | PairCause | ReplayCause

Facts = Mapping[Fact, FactValue]
MemberFacts = Mapping[MemberFact, MemberValue]

EVERYBODY: Final = Principal()
"""In place of a subscriber in a relay fact: all subscribers that have neither filter nor skip."""


def is_late(subscriber: Principal, wanted: Iterable[Width], entries: frozenset[Principal]) -> bool:
    """Return whether a relay was widened for a subscriber while an event waited for it (IC-40a).

    An entry widens a relay before the exit serves a new subscriber. Events that already wait at the
    entry have passed the narrower relay, so other events between them may be missing. The entry
    therefore names the subscriber on these events (`entries`), and the exit begins the subscriber's
    chain with a later event. Otherwise the subscriber would see a gap, and ask for a replay of
    events that it was never due. `wanted` has the filters and skips of its subscriptions.
    """
    return subscriber in entries or (
        EVERYBODY in entries and all(width == WIDE for width in wanted)
    )
