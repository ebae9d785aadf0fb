"""Facts, the units in which the orchestrator assigns work to the other roles (IC-38).

A fact is a tuple of its kind and its key, and has one value. The orchestrator compares the facts
that a canister should have with those that it has confirmed, and sends the difference in system
events. `alerts` converts facts to the data of these events.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.values import Skip

Width = tuple[str | None, Skip | None]
"""Filter and skip of a subscription or relay: how many of the events pass."""

Wanted = tuple[int, str | None, Skip | None, int]
"""A subscription that is in force: id, filter, skip and version."""

Delivering = tuple[str, Principal, Principal, str | None, Skip | None, Principal | None]
"""A replay at its exit, the broadcaster that delivers it.

The parts are the namespace, the sender of the events (the entry, or the exit itself if it is also
the entry), the subscriber, filter, skip, and the publisher if the orchestrator names it.
"""

Forwarding = tuple[str, Principal, Principal, str | None, Skip | None]
"""A replay at its entry, which forwards it: namespace, target, publisher, filter and skip."""

Handing = tuple[str, Principal]
"""The source of a relayed replay at its exit: namespace and the entry that forwards it."""

Fact = (
    tuple[Literal["sub", "pub", "relayer"], str, Principal]
    | tuple[Literal["relay"], str, Principal, Principal]
    | tuple[Literal["rp", "rr", "rf"], int]
)
"""A fact about the work of a broadcaster. The first part is its kind:

  sub      namespace, subscriber             notify this subscriber
  pub      namespace, publisher              accept events of this publisher
  relayer  namespace, broadcaster            accept events from this broadcaster
  relay    namespace, target, subscriber     forward events to the target broadcaster for this
                                             subscriber, or for `EVERYBODY`
  rp       id of a replay                    deliver the replay
  rr       id of a replay                    forward the replay to another broadcaster
  rf       id of a replay                    accept the replay from another broadcaster
"""

FactValue = int | Width | tuple[Wanted, ...] | Delivering | Forwarding | Handing
"""The value of a fact.

sub has the subscriptions, pub and relayer have a version, relay has its width, and rp, rr and rf
have `Delivering`, `Forwarding` and `Handing`.
"""

MemberFact = tuple[Literal["bc", "rp"], int] | tuple[Literal["sb"], int, Principal]
"""A fact for a member, which is a publisher or a subscriber.

A publisher is informed about its entries for a publication (bc, id) and about a replay that it has
to make (rp, id), a subscriber about the exit of a subscription (sb, id, exit).
"""

Due = tuple[str, int, int | None, Principal]
"""A replay that a publisher has to make: namespace, first id, end and entry.

The end is the id after the last one, or `None`.
"""

MemberValue = bool | tuple[Principal, ...] | Due
"""The value of a member's fact: entries by partition (bc), `Due` (rp) or true (sb)."""

Cause = (
    tuple[Literal["member", "replay"], Principal | int]
    | tuple[Literal["publisher", "pair"], int, Principal]
)
"""The reason for facts: a member, a replay, or a publisher or subscriber of a publication.

The facts of a cause are planned and withdrawn together.
"""

Facts = Mapping[Fact, FactValue]
MemberFacts = Mapping[MemberFact, MemberValue]

EVERYBODY: Final = Principal()
"""In place of a subscriber in a relay fact: all subscribers that have neither filter nor skip."""


def is_late(who: Principal, wanted: Iterable[Width], entries: frozenset[Principal]) -> bool:
    """Return whether a relay was widened for a subscriber while an event waited for it (IC-40a).

    An entry widens a relay before the exit serves a new subscriber. Events that already wait at the
    entry have passed the narrower relay, so other events between them may be missing. The entry
    therefore names the subscriber on these events (`entries`), and the exit begins the subscriber's
    chain with a later event. Otherwise the subscriber would see a gap, and ask for a replay of
    events that it was never due. `wanted` has the filters and skips of its subscriptions.
    """
    return who in entries or (EVERYBODY in entries and all(each == (None, None) for each in wanted))
