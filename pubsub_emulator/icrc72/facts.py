"""Facts for broadcasters, publishers and subscribers: by kind and what names them, each with one value (IC-38)."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.values import Skip

Width = tuple[str | None, Skip | None]  # filter and skip

Wanted = tuple[int, str | None, Skip | None, int]  # a subscription in force: id, filter, skip and version

Delivering = tuple[str, Principal, Principal, str | None, Skip | None, Principal | None]
"""A replay at its exit: namespace, who hands the events over, subscriber, filter, skip, publisher if it is named."""

Forwarding = tuple[str, Principal, Principal, str | None, Skip | None]  # namespace, target, publisher, filter, skip

Handing = tuple[str, Principal]  # a relayed replay at its exit: namespace and the entry

Fact = (
    tuple[Literal["sub", "pub", "relayer"], str, Principal]
    | tuple[Literal["relay"], str, Principal, Principal]
    | tuple[Literal["rp", "rr", "rf"], int]
)
"""What a broadcaster is told: who subscribes (sub) and publishes (pub), from whom it accepts (relayer) and to whom it
forwards (relay: namespace, target, and the subscriber or no bytes for all); of a replay that it delivers it (rp), that
it forwards it (rr), and from whom it comes (rf)."""

FactValue = int | Width | tuple[Wanted, ...] | Delivering | Forwarding | Handing
"""Of sub the subscriptions, of pub and relayer a version, of relay its width."""

MemberFact = tuple[Literal["bc", "rp"], int] | tuple[Literal["sb"], int, Principal]
"""What a publisher is told: its entries for a publication (bc) and a replay that it is to make (rp); what a subscriber
is told: the exit of a subscription (sb)."""

Due = tuple[str, int, int | None, Principal]  # namespace, first id, id behind the last, entry

MemberValue = bool | tuple[Principal, ...] | Due

Cause = tuple[Literal["member", "replay"], Principal | int] | tuple[Literal["publisher", "pair"], int, Principal]
"""Why something is to be told."""

Facts = Mapping[Fact, FactValue]
MemberFacts = Mapping[MemberFact, MemberValue]

EVERYBODY: Final = Principal()  # the entry of a relay for all subscribers without filter and skip


def is_late(who: Principal, wanted: Iterable[Width], entries: frozenset[Principal]) -> bool:
    """Whether a relay became wider for a subscriber while an event waited for it (IC-40a).

    An entry makes a relay wider before the exit serves a new subscriber. Events that wait at the entry passed the
    narrower relay, so others between them may be missing. The entry names the subscriber on these events, and its chain
    begins with a later one; otherwise it would replay what it was never due. `wanted` has its filters and skips.
    """
    return who in entries or (EVERYBODY in entries and all(each == (None, None) for each in wanted))
