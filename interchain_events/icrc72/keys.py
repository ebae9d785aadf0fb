"""The keys of configurations, headers, alerts and statistics.

`keys.toml` describes the value under each key, and is also the source of the documentation's
tables. The constants here are the keys that the code uses.
"""

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from itertools import chain as chained
from typing import Final, NamedTuple


class Key(NamedTuple):
    """A row of a table in `keys.toml`."""

    name: str
    """The key in the form in which it is written."""
    value: str
    """The type of the value, in words."""
    meaning: str
    aliases: tuple[str, ...] = ()
    """Other forms that are read as this key, because other implementations write them."""


LISTS: Final = (
    "publishers:allowed",
    "publishers:disallowed",
    "subscribers:allowed",
    "subscribers:disallowed",
)
"""The four lists of a publication, without prefix and kind."""


def list_key(which: str) -> str:
    """Return the key of a list of principals."""
    return f"icrc72:publication:{which}:list"


def icrc75_key(which: str) -> str:
    """Return the key of a list canister in place of a list."""
    return f"icrc72:publication:{which}:icrc75"


# Configuration of a publication.
MODE: Final = "icrc72:publication:mode"
PARTITIONS: Final = "icrc72:publication:partitions"
PRIORITIES: Final = "icrc72:publication:priorities"
TRUSTED: Final = "icrc72:publication:trusted"
CREATOR: Final = "icrc72:publication:creator"
CONTROLLERS_ADD: Final = "icrc72:publication:controllers:add"
CONTROLLERS_REMOVE: Final = "icrc72:publication:controllers:remove"
MEMO: Final = "icrc72:publication:memo"
REPLAY: Final = "icrc77:replay"
CAPABLE: Final = "icrc77:capable"
PRICING: Final = "icrc77:pricing"
MAX_RANGE: Final = "icrc77:max_range"
MAX_CONCURRENT: Final = "icrc77:max_concurrent"

# Configuration of a subscription.
SKIP: Final = "icrc72:subscription:skip"
FILTER: Final = "icrc72:subscription:filter"
STOPPED: Final = "icrc72:subscription:stopped"
SUBSCRIPTION_ADD: Final = "icrc72:subscription:controllers:add"
SUBSCRIPTION_REMOVE: Final = "icrc72:subscription:controllers:remove"
SUBSCRIPTION_MEMO: Final = "icrc72:subscription:memo"

# Configuration of a replay.
REPLAY_FILTER: Final = "icrc77:replay:filter"
REPLAY_SKIP: Final = "icrc77:replay:skip"
REPLAY_ISOLATED: Final = "icrc77:replay:isolated"

# Headers, in the order in which they are appended.
HASH: Final = "icrc72:eventData:hash"
PARTITION: Final = "icrc72:publisher:partition"
REPLAYED: Final = "icrc77:replay"
REPLAY_ID: Final = "icrc77:replay:id"
REPLAY_END: Final = "icrc77:replay:end_id"
RECEIVED: Final = "icrc72:broadcaster:received"
BROADCASTER: Final = "icrc72:broadcaster"
RELAY_SENT: Final = "icrc72:relay:sent"
RELAY_PREV: Final = "icrc72:relay:prev"
RELAY_LATE: Final = "icrc72:relay:late"
RELAY_RECEIVED: Final = "icrc72:relay:received"
RELAY: Final = "icrc72:relay"
EVENT_TIMESTAMP: Final = "icrc72:event:timestamp"
PRIORITY: Final = "icrc72:broadcaster:priority"
PREV: Final = "icrc72:broadcaster:prev"
SENT: Final = "icrc72:broadcaster:sent"

# Alerts to broadcasters.
PUBLISHER_ADD: Final = "icrc72:broadcaster:publisher:add"
PUBLISHER_REMOVE: Final = "icrc72:broadcaster:publisher:remove"
SUBSCRIBER_ADD: Final = "icrc72:broadcaster:subscriber:add"
SUBSCRIBER_REMOVE: Final = "icrc72:broadcaster:subscriber:remove"
RELAY_ADD: Final = "icrc72:broadcaster:relay:add"
RELAY_REMOVE: Final = "icrc72:broadcaster:relay:remove"
RELAYER_ADD: Final = "icrc72:broadcaster:relayer:add"
RELAYER_REMOVE: Final = "icrc72:broadcaster:relayer:remove"
REPLAY_ADD: Final = "icrc77:broadcaster:replay:add"
REPLAY_REMOVE: Final = "icrc77:broadcaster:replay:remove"
REPLAY_RELAY_ADD: Final = "icrc77:broadcaster:replay_relay:add"
REPLAY_RELAY_REMOVE: Final = "icrc77:broadcaster:replay_relay:remove"
REPLAY_RELAYER_ADD: Final = "icrc77:broadcaster:replay_relayer:add"
REPLAY_RELAYER_REMOVE: Final = "icrc77:broadcaster:replay_relayer:remove"

# Alerts to publishers.
ENTRY_ADD: Final = "icrc72:publisher:broadcaster:add"
ENTRY_REMOVE: Final = "icrc72:publisher:broadcaster:remove"
PUBLISHER_ERROR: Final = "icrc72:publisher:broadcaster:error"
PUBLISHER_REPLAY_ADD: Final = "icrc77:publisher:replay:add"
PUBLISHER_REPLAY_REMOVE: Final = "icrc77:publisher:replay:remove"

# Alerts to subscribers.
EXIT_ADD: Final = "icrc72:subscriber:broadcaster:add"
EXIT_REMOVE: Final = "icrc72:subscriber:broadcaster:remove"
SUBSCRIBER_ERROR: Final = "icrc72:subscriber:error"
SUBSCRIBER_REPLAY_ADD: Final = "icrc77:subscriber:replay:add"
SUBSCRIBER_REPLAY_REMOVE: Final = "icrc77:subscriber:replay:remove"


def _key(name: str, row: list[str], which: str) -> Key:
    """Return a row of `keys.toml` with the name of a list in place of `LIST`."""
    name, value, meaning, *aliases = (text.replace(":LIST:", f":{which}:") for text in (name, *row))
    return Key(name, value, meaning, tuple(aliases))


def _table(rows: Mapping[str, list[str]]) -> tuple[Key, ...]:
    """Return the rows of a table. Rows with `LIST` stand for four keys each and come first."""
    listed = {name: row for name, row in rows.items() if ":LIST:" in name}
    others = [_key(name, row, "") for name, row in rows.items() if name not in listed]
    of_lists: list[Key] = []
    for which in LISTS:
        of_lists += [_key(name, row, which) for name, row in listed.items()]
    return (*of_lists, *others)


_WRITTEN: Final = tomllib.loads((files(__package__) / "keys.toml").read_text(encoding="utf-8"))
TABLES: Final = {title: _table(rows) for title, rows in _WRITTEN.items()}
"""The tables of keys by title, in the order of the file."""

PUBLICATION, SUBSCRIPTION, REPLAY_CONFIG, HEADERS, *_ = TABLES.values()

BROADCASTER_HEADERS: Final = {header.name for header in HEADERS} - {
    HASH,
    PARTITION,
    REPLAYED,
    REPLAY_ID,
    REPLAY_END,
}
"""The headers that only broadcasters append, and no publisher may bring (IC-41)."""

_NAMES: Final = {
    "publication": "publishers events events:sent notifications confirmations",
    "publisher": "publications events",
    "subscription": "notifications confirmations",
    "subscriber": (
        "subscriptions notifications confirmations duplicates gaps refused_callers"
        " handler_failures unreadable unconfirmed notifications_last_100_rounds held"
    ),
    "broadcaster": (
        "events events_last_100_rounds notifications confirmations retries refused busy queued"
        " bytes suspended filter_overruns unreadable unconfirmed"
    ),
}
STATISTICS: Final = {
    f"icrc72:{prefix}:stats:": tuple(names.split()) for prefix, names in _NAMES.items()
} | {"icrc77:replay:stats:": ("published", "filtered_out", "notifications", "confirmations")}
"""The names of statistics by prefix. All values are Nat."""

# The position decides the code, counted from 1.
_CODES: Final = (
    "not found",
    "subnet not available",
    "quota",
    "too large",
    "suspended, queue full",
    "list canister does not answer",
    "hash mismatch",
    "cannot be replayed",
    "wrong state",
    "canceled",
)
CODES: Final = dict(enumerate(_CODES, 1))
"""The codes of `GenericError` and of error alerts, with their texts."""

(
    NOT_FOUND,
    NO_SUBNET,
    QUOTA,
    TOO_LARGE,
    SUSPENDED,
    LIST_SILENT,
    HASH_MISMATCH,
    NO_REPLAY,
    WRONG_STATE,
    CANCELED,
) = CODES

ALIASES: Final[dict[str, str]] = {}
"""The canonical key of each alias."""


for _named in chained.from_iterable(TABLES.values()):
    ALIASES.update(dict.fromkeys(_named.aliases, _named.name))


def canonical(name: str) -> str:
    """Return the canonical key of an alias, and any other name unchanged."""
    return ALIASES.get(name, name)
