"""The headers of an event, read once: what each says, by type (IC-23).

Of a repeated key the first counts. A header of another type than that of `keys.HEADERS` says nothing, but it is there:
`hash`, `partition` and `relayed` tell that it was brought.
"""

from typing import NamedTuple

from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.values import Pairs, Value, as_items, as_nat, as_principal


class Headers(NamedTuple):
    """The fields of headers; `None` where there is none."""

    hash: bytes | None  # the hash of the data; no bytes where the header has another type
    partition: tuple[int | None, ...] | None  # index and count; something else where the header has another type
    replay: int | None
    end: int | None  # the last event of the replay
    broadcaster: Principal | None
    relay: Principal | None
    relayed: bool  # a relay has brought it
    relay_prev: int | None
    late: frozenset[Principal]  # the entries that the relay gained while the event waited for it
    priority: tuple[int | None, ...]
    prev: int | None
    planted: bool  # there is a header that only broadcasters append


_NONE = Headers(None, None, None, None, None, None, False, None, frozenset(), (), None, False)


def read(pairs: Pairs | None) -> Headers:
    """Parse headers."""
    if not pairs:
        return _NONE
    found = dict(reversed(pairs))
    said = found.get(keys.HASH)
    partition, late = found.get(keys.PARTITION), as_items(found.get(keys.RELAY_LATE)) or ()
    return Headers(
        None if said is None else said.value if said.tag == "Blob" else b"",
        None if partition is None else _numbers(partition),
        as_nat(found.get(keys.REPLAY_ID)),
        as_nat(found.get(keys.REPLAY_END, found.get("icrc77:replay:end"))),
        as_principal(found.get(keys.BROADCASTER)),
        as_principal(found.get(keys.RELAY)),
        keys.RELAY in found or keys.RELAY_RECEIVED in found,
        as_nat(found.get(keys.RELAY_PREV)),
        frozenset(who for who in map(as_principal, late) if who is not None),
        _numbers(found.get(keys.PRIORITY)),
        as_nat(found.get(keys.PREV)),
        not keys.BROADCASTER_HEADERS.isdisjoint(found),
    )


def _numbers(value: Value | None) -> tuple[int | None, ...]:
    return tuple(map(as_nat, as_items(value) or ()))
