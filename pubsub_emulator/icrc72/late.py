"""Events that were on their way to a relay when it became wider (IC-40a).

An entry makes a relay wider before the exit serves a new subscriber. Events that wait at the entry passed the narrower
relay, so that others between them may be missing for that subscriber. The entry names it on these events, and its chain
begins with a later one; otherwise it would have to replay what it was never due.
"""

from collections.abc import Iterable
from typing import Final

from pubsub_emulator.icrc72.facts import Width
from pubsub_emulator.icrc72.ic.principal import Principal

EVERYBODY: Final = Principal()
"""The entry of a relay for all subscribers without filter and skip."""


def is_late(who: Principal, wanted: Iterable[Width], entries: frozenset[Principal]) -> bool:
    """Whether one of `entries` is that of a subscriber, given filter and skip of each of its subscriptions."""
    return who in entries or (EVERYBODY in entries and all(each == (None, None) for each in wanted))
