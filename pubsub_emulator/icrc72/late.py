"""Events that were on their way to a relay when it became wider (IC-40a).

An entry makes a relay wider before the exit serves a new subscriber. Events that wait at the entry passed the narrower
relay, so that others between them may be missing for that subscriber. The entry names it on these events, and its chain
begins with a later one; otherwise it would have to replay what it was never due.
"""

from collections.abc import Iterable
from typing import Any, Final

from pubsub_emulator.eventplane.ic.principal import Principal
from pubsub_emulator.eventplane.icrc72 import keys
from pubsub_emulator.eventplane.icrc72.messages import Event
from pubsub_emulator.eventplane.icrc72.values import as_items, as_principal, first

EVERYBODY: Final = Principal()
"""The entry of a relay for all subscribers without filter and skip."""


def late(event: Event) -> frozenset[Principal]:
    """The entries that a relay gained while `event` waited for it."""
    if not event.headers:
        return frozenset()
    named = as_items(first(event.headers, keys.RELAY_LATE)) or ()
    return frozenset(who for who in map(as_principal, named) if who is not None)


def is_late(who: Principal, wanted: Iterable[tuple[Any, Any]], entries: frozenset[Principal]) -> bool:
    """Whether one of `entries` is that of a subscriber, given filter and skip of each of its subscriptions."""
    return who in entries or (EVERYBODY in entries and all(each == (None, None) for each in wanted))


__all__ = ["EVERYBODY", "is_late", "late"]
