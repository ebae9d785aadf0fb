"""The parsed headers of an event (IC-23).

The first of repeated keys counts. A header whose value has the wrong type has no value, but its
presence still matters: `hash`, `partition` and `relayed` show it.
"""

from typing import NamedTuple

from interchain_events.icrc72 import keys
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.values import Pairs, Value, as_items, as_nat, as_principal


class Headers(NamedTuple):
    """The headers that the roles use. A missing header is `None`."""

    hash: bytes | None
    """The hash of the data, or empty if the header has the wrong type."""
    partition: tuple[int | None, ...] | None
    """Index and number of partitions, or another tuple if the header has the wrong type."""
    replay: int | None
    """The id of the replay."""
    end: int | None
    """The id of the last event of the replay."""
    broadcaster: Principal | None
    """The broadcaster that accepted the event from its publisher."""
    relay: Principal | None
    """The broadcaster that accepted the event from that one."""
    relayed: bool
    """Whether a broadcaster has already accepted the event from another one."""
    relay_prev: int | None
    """The last event of this chain that was sent to the same relay."""
    late: frozenset[Principal]
    """The subscribers for which the relay was widened while the event waited (`facts.is_late`)."""
    priority: tuple[int | None, ...]
    """The position among the notifications of the event, and their number."""
    prev: int | None
    """The last event of this chain that was sent to the same subscriber."""
    planted: bool
    """Whether there is a header that only broadcasters append."""


_NONE = Headers(
    hash=None,
    partition=None,
    replay=None,
    end=None,
    broadcaster=None,
    relay=None,
    relayed=False,
    relay_prev=None,
    late=frozenset(),
    priority=(),
    prev=None,
    planted=False,
)


def read(pairs: Pairs | None) -> Headers:
    """Parse the headers of an event."""
    if not pairs:
        return _NONE
    # Reversed, because the first of repeated keys counts.
    values = dict(reversed(pairs))
    hash_value = values.get(keys.HASH)
    hash_ = None
    if hash_value is not None:
        hash_ = hash_value.value if hash_value.tag == "Blob" else b""
    partition = values.get(keys.PARTITION)
    late = as_items(values.get(keys.RELAY_LATE)) or ()
    return Headers(
        hash=hash_,
        partition=None if partition is None else _numbers(partition),
        replay=as_nat(values.get(keys.REPLAY_ID)),
        end=as_nat(values.get(keys.REPLAY_END, values.get("icrc77:replay:end"))),
        broadcaster=as_principal(values.get(keys.BROADCASTER)),
        relay=as_principal(values.get(keys.RELAY)),
        relayed=keys.RELAY in values or keys.RELAY_RECEIVED in values,
        relay_prev=as_nat(values.get(keys.RELAY_PREV)),
        late=frozenset(entry for entry in map(as_principal, late) if entry is not None),
        priority=_numbers(values.get(keys.PRIORITY)),
        prev=as_nat(values.get(keys.PREV)),
        planted=not keys.BROADCASTER_HEADERS.isdisjoint(values),
    )


def _numbers(value: Value | None) -> tuple[int | None, ...]:
    """Return the items of an Array as numbers, with `None` for an item that is not a Nat."""
    return tuple(map(as_nat, as_items(value) or ()))
