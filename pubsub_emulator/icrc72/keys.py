"""Every key that configurations, headers, alerts and statistics may have: written once, for the program and its docs.

Aliases are understood when they are read and never written.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Key(NamedTuple):
    """A key as it is written, the value under it, and what else is read as it."""

    name: str
    value: str
    meaning: str
    aliases: tuple[str, ...] = ()


_P: Final = "icrc72:publication:"
_S: Final = "icrc72:subscription:"
_B: Final = "icrc72:broadcaster:"

LISTS: Final = tuple(f"{who}:{how}" for who in ("publishers", "subscribers") for how in ("allowed", "disallowed"))
"""The four lists of a publication, without prefix and kind."""


def list_key(which: str) -> str:
    """The key of a list of principals."""
    return f"{_P}{which}:list"


def icrc75_key(which: str) -> str:
    """The key of a list canister."""
    return f"{_P}{which}:icrc75"


def _lists() -> list[Key]:
    found: list[Key] = []
    for which in LISTS:
        key, canister = list_key(which), icrc75_key(which)
        found += [
            Key(key, "Array of Blob", "replaces the list"),
            Key(f"{key}:add", "Array of Blob", "adds to the list"),
            Key(f"{key}:remove", "Array of Blob", "takes from the list"),
            Key(
                canister, "Array[Blob canister, Text list]", "a list canister is asked instead", (f"{canister}:update",)
            ),
            Key(f"{canister}:remove", "any", "no list canister is asked"),
        ]
    return found


MODE: Final = f"{_P}mode"
PARTITIONS: Final = f"{_P}partitions"
PRIORITIES: Final = f"{_P}priorities"
TRUSTED: Final = f"{_P}trusted"
CREATOR: Final = f"{_P}creator"
CONTROLLERS_ADD: Final = f"{_P}controllers:add"
CONTROLLERS_REMOVE: Final = f"{_P}controllers:remove"
MEMO: Final = f"{_P}memo"
REPLAY: Final = "icrc77:replay"
CAPABLE: Final = "icrc77:capable"
PRICING: Final = "icrc77:pricing"
MAX_RANGE: Final = "icrc77:max_range"
MAX_CONCURRENT: Final = "icrc77:max_concurrent"

PUBLICATION: Final = (
    *_lists(),
    Key(CONTROLLERS_ADD, "Array of Blob", "adds controllers", (f"{_P}controllers:list:add",)),
    Key(
        CONTROLLERS_REMOVE,
        "Array of Blob",
        "removes controllers; the last one cannot be removed",
        (f"{_P}controllers:list:remove",),
    ),
    Key(MODE, "Text fifo, priority or unordered", "fifo by default"),
    Key(PARTITIONS, "Nat 1…16", "1 by default; at registration only"),
    Key(PRIORITIES, "Array of Array[Blob subscriber, Nat]", "higher is sent first; subscribers not listed have 0"),
    Key(TRUSTED, "Bool", "batches are sent by guaranteed calls, and the answer confirms them"),
    Key(CREATOR, "Blob", "returned, never accepted"),
    Key(MEMO, "Blob", "the last memo; returned, never accepted"),
    Key(REPLAY, "Bool", "the publication can be replayed", (CAPABLE,)),
    Key(PRICING, "Class{perEvent Nat, currency Text icrc2:<ledger> or cycles}", "what a replay costs"),
    Key(MAX_RANGE, "Nat", "most event ids of one replay, 10,000 by default"),
    Key(MAX_CONCURRENT, "Nat", "most replays that run at once, 8 by default"),
)

SKIP: Final = f"{_S}skip"
FILTER: Final = f"{_S}filter"
STOPPED: Final = f"{_S}stopped"
SUBSCRIPTION_ADD: Final = f"{_S}controllers:add"
SUBSCRIPTION_REMOVE: Final = f"{_S}controllers:remove"
SUBSCRIPTION_MEMO: Final = f"{_S}memo"

SUBSCRIPTION: Final = (
    Key(SKIP, "Array[Nat mod, Nat offset?]", "only every mod-th event; Option(null) clears it", (f"{SKIP}:update",)),
    Key(f"{SKIP}:remove", "any", "clears the skip"),
    Key(FILTER, "Text", "only events whose data match; Option(null) clears it", (f"{FILTER}:update",)),
    Key(f"{FILTER}:remove", "any", "clears the filter"),
    Key(STOPPED, "Bool", "nothing is sent", (f"{_S}bStopped",)),
    Key(SUBSCRIPTION_ADD, "Array of Blob", "adds controllers", (f"{_S}controllers:list:add",)),
    Key(SUBSCRIPTION_REMOVE, "Array of Blob", "removes controllers", (f"{_S}controllers:list:remove",)),
    Key(SUBSCRIPTION_MEMO, "Blob", "the last memo; returned, never accepted"),
)

REPLAY_FILTER: Final = "icrc77:replay:filter"
REPLAY_SKIP: Final = "icrc77:replay:skip"
REPLAY_ISOLATED: Final = "icrc77:replay:isolated"

REPLAY_CONFIG: Final = (
    Key(REPLAY_FILTER, "Option(null), Option(Text) or Text", "instead of the subscription's filter", ("filter",)),
    Key(
        REPLAY_SKIP, "Option(null), Option(Array) or Array[Nat, Nat?]", "instead of the subscription's skip", ("skip",)
    ),
    Key(REPLAY_ISOLATED, "Bool", "a queue and window of its own; false by default"),
)

HASH: Final = "icrc72:eventData:hash"
PARTITION: Final = "icrc72:publisher:partition"
REPLAYED: Final = "icrc77:replay"
REPLAY_ID: Final = "icrc77:replay:id"
REPLAY_END: Final = "icrc77:replay:end_id"
RECEIVED: Final = f"{_B}received"
BROADCASTER: Final = "icrc72:broadcaster"
RELAY_SENT: Final = "icrc72:relay:sent"
RELAY_PREV: Final = "icrc72:relay:prev"
RELAY_LATE: Final = "icrc72:relay:late"
RELAY_RECEIVED: Final = "icrc72:relay:received"
RELAY: Final = "icrc72:relay"
EVENT_TIMESTAMP: Final = "icrc72:event:timestamp"
PRIORITY: Final = f"{_B}priority"
PREV: Final = f"{_B}prev"
SENT: Final = f"{_B}sent"

HEADERS: Final = (
    Key(HASH, "Blob", "publisher, optional: the hash of data"),
    Key(PARTITION, "Array[Nat index, Nat count]", "publisher, where there are several partitions"),
    Key(REPLAYED, "Bool true", "publisher, on replayed events"),
    Key(REPLAY_ID, "Nat", "publisher, on replayed events"),
    Key(REPLAY_END, "Nat", "publisher, on replayed events: the last of the replay", ("icrc77:replay:end",)),
    Key(RECEIVED, "Nat ns", "first broadcaster, when it accepts"),
    Key(BROADCASTER, "Blob", "first broadcaster: itself"),
    Key(RELAY_SENT, "Nat ns", "first broadcaster, when it first sends to a relay"),
    Key(RELAY_PREV, "Nat", "first broadcaster: the last event of this chain that it sent to this relay"),
    Key(
        RELAY_LATE,
        "Array[Blob]",
        "first broadcaster, if the relay became wider while the event waited: the subscribers that it became wider "
        "for; an empty array means every subscriber without filter and skip",
    ),
    Key(RELAY_RECEIVED, "Nat ns", "relay, when it accepts"),
    Key(RELAY, "Blob", "relay: itself"),
    Key(EVENT_TIMESTAMP, "Nat ns", "delivering broadcaster: the event's own timestamp"),
    Key(PRIORITY, "Array[Nat position, Nat subscribers]", "delivering broadcaster"),
    Key(PREV, "Nat", "delivering broadcaster: the last event of this chain that it sent to this subscriber"),
    Key(SENT, "Nat ns", "delivering broadcaster: when it first sent"),
)

BROADCASTER_HEADERS: Final = frozenset(each.name for each in HEADERS) - {
    HASH,
    PARTITION,
    REPLAYED,
    REPLAY_ID,
    REPLAY_END,
}
"""What a publisher may not bring (IC-41)."""

PUBLISHER_ADD: Final = f"{_B}publisher:add"
PUBLISHER_REMOVE: Final = f"{_B}publisher:remove"
SUBSCRIBER_ADD: Final = f"{_B}subscriber:add"
SUBSCRIBER_REMOVE: Final = f"{_B}subscriber:remove"
RELAY_ADD: Final = f"{_B}relay:add"
RELAY_REMOVE: Final = f"{_B}relay:remove"
RELAYER_ADD: Final = f"{_B}relayer:add"
RELAYER_REMOVE: Final = f"{_B}relayer:remove"
REPLAY_ADD: Final = "icrc77:broadcaster:replay:add"
REPLAY_REMOVE: Final = "icrc77:broadcaster:replay:remove"
REPLAY_RELAY_ADD: Final = "icrc77:broadcaster:replay_relay:add"
REPLAY_RELAY_REMOVE: Final = "icrc77:broadcaster:replay_relay:remove"
REPLAY_RELAYER_ADD: Final = "icrc77:broadcaster:replay_relayer:add"
REPLAY_RELAYER_REMOVE: Final = "icrc77:broadcaster:replay_relayer:remove"

_REPLAYED_TO: Final = (
    "Array[Nat id, Text namespace, Blob from, Blob subscriber, Text filter, Array skip, Blob publisher]; "
    "null is Option(null), and the publisher is optional"
)
_RELAYED: Final = "Array[Text namespace, Blob target, Option(Blob subscriber), Option(Text filter), Option(Array) skip]"

BROADCASTER_ALERTS: Final = (
    Key(PUBLISHER_ADD, "Array[Text namespace, Blob publisher]", "accept its events"),
    Key(PUBLISHER_REMOVE, "Array[Text namespace, Blob publisher]", "stop accepting them"),
    Key(SUBSCRIBER_ADD, "Array[Text namespace, Blob subscriber]", "notify it"),
    Key(SUBSCRIBER_REMOVE, "Array[Text namespace, Blob subscriber]", "stop notifying it"),
    Key(RELAY_ADD, _RELAYED, "forward to the target"),
    Key(RELAY_REMOVE, _RELAYED, "stop forwarding"),
    Key(RELAYER_ADD, "Array[Text namespace, Blob source]", "accept from that broadcaster"),
    Key(RELAYER_REMOVE, "Array[Text namespace, Blob source]", "stop accepting"),
    Key(REPLAY_ADD, _REPLAYED_TO, "deliver a replay"),
    Key(REPLAY_REMOVE, "Array[Nat id]", "stop accepting it"),
    Key(
        REPLAY_RELAY_ADD,
        "Array[Nat id, Text namespace, Blob target, Blob publisher, Text filter, Array skip]; null is Option(null)",
        "forward a replay",
    ),
    Key(REPLAY_RELAY_REMOVE, "Nat id", "stop accepting it"),
    Key(REPLAY_RELAYER_ADD, "Array[Nat id, Text namespace, Blob source]", "accept a replay from that broadcaster"),
    Key(REPLAY_RELAYER_REMOVE, "Nat id", "stop accepting it"),
)

ENTRY_ADD: Final = "icrc72:publisher:broadcaster:add"
ENTRY_REMOVE: Final = "icrc72:publisher:broadcaster:remove"
PUBLISHER_ERROR: Final = "icrc72:publisher:broadcaster:error"
PUBLISHER_REPLAY_ADD: Final = "icrc77:publisher:replay:add"
PUBLISHER_REPLAY_REMOVE: Final = "icrc77:publisher:replay:remove"

PUBLISHER_ALERTS: Final = (
    Key(
        ENTRY_ADD,
        "Array[Nat publicationId, Blob broadcaster]",
        "publish there; in order of partition",
        ("icrc72:publication:broadcaster:add", "icrc72:broadcaster:publisher:broadcaster:add"),
    ),
    Key(
        ENTRY_REMOVE,
        "Nat publicationId",
        "stop publishing",
        ("icrc72:publication:broadcaster:remove", "icrc72:broadcaster:publisher:broadcaster:remove"),
    ),
    Key(
        PUBLISHER_ERROR,
        "Map{error Text, id Nat, code Nat?}",
        "something is wrong",
        ("icrc72:publication:broadcaster:error",),
    ),
    Key(
        PUBLISHER_REPLAY_ADD,
        "Array[Nat id, Text namespace, Nat start, Option(Nat end), Blob broadcaster]",
        "replay these events",
    ),
    Key(PUBLISHER_REPLAY_REMOVE, "Nat id", "stop the replay"),
)

EXIT_ADD: Final = "icrc72:subscriber:broadcaster:add"
EXIT_REMOVE: Final = "icrc72:subscriber:broadcaster:remove"
SUBSCRIBER_ERROR: Final = "icrc72:subscriber:error"
SUBSCRIBER_REPLAY_ADD: Final = "icrc77:subscriber:replay:add"
SUBSCRIBER_REPLAY_REMOVE: Final = "icrc77:subscriber:replay:remove"

SUBSCRIBER_ALERTS: Final = (
    Key(EXIT_ADD, "Array[Nat subscriptionId, Blob broadcaster]", "events flow", ("icrc72:subscriber:activated",)),
    Key(EXIT_REMOVE, "Array[Nat subscriptionId, Blob broadcaster]", "events stop"),
    Key(
        SUBSCRIBER_ERROR,
        "Map{error Text, id Nat, code Nat?, namespace Text?, eventId Nat?}",
        "something is wrong; code 5: events from eventId on are missing",
        ("icrc72:subscription:error",),
    ),
    Key(SUBSCRIBER_REPLAY_ADD, "Array[Nat id, Blob broadcaster]", "a replay begins"),
    Key(SUBSCRIBER_REPLAY_REMOVE, "Array[Nat id]", "all events of the replay that arrived were delivered"),
)

_NAMES: Final = {
    "publication": "publishers events events:sent notifications confirmations",
    "publisher": "publications events",
    "subscription": "notifications confirmations",
    "subscriber": """subscriptions notifications confirmations duplicates gaps refused_callers handler_failures
        unreadable unconfirmed notifications_last_100_rounds held""",
    "broadcaster": """events events_last_100_rounds notifications confirmations retries refused busy queued bytes
        suspended filter_overruns unreadable unconfirmed""",
}
STATISTICS: Final = {f"icrc72:{prefix}:stats:": tuple(names.split()) for prefix, names in _NAMES.items()} | {
    "icrc77:replay:stats:": ("published", "filtered_out", "notifications", "confirmations")
}
"""Names of statistics by prefix; all are Nat."""

NOT_FOUND: Final = 1
NO_SUBNET: Final = 2
QUOTA: Final = 3
TOO_LARGE: Final = 4
SUSPENDED: Final = 5
LIST_SILENT: Final = 6
HASH_MISMATCH: Final = 7
NO_REPLAY: Final = 8
WRONG_STATE: Final = 9
CANCELED: Final = 10

CODES: Final[Mapping[int, str]] = {
    NOT_FOUND: "not found",
    NO_SUBNET: "subnet not available",
    QUOTA: "quota",
    TOO_LARGE: "too large",
    SUSPENDED: "suspended, queue full",
    LIST_SILENT: "list canister does not answer",
    HASH_MISMATCH: "hash mismatch",
    NO_REPLAY: "cannot be replayed",
    WRONG_STATE: "wrong state",
    CANCELED: "canceled",
}
"""Codes of GenericError."""

TABLES: Final[Mapping[str, tuple[Key, ...]]] = {
    "Configuration of a publication": PUBLICATION,
    "Configuration of a subscription": SUBSCRIPTION,
    "Configuration of a replay": REPLAY_CONFIG,
    "Headers, in the order in which they are appended": HEADERS,
    "Alerts to broadcasters": BROADCASTER_ALERTS,
    "Alerts to publishers": PUBLISHER_ALERTS,
    "Alerts to subscribers": SUBSCRIBER_ALERTS,
}
"""Every table of keys by its title."""

ALIASES: Final[Mapping[str, str]] = {
    alias: key.name for table in TABLES.values() for key in table for alias in key.aliases
}


def canonical(name: str) -> str:
    """The key that a name is read as."""
    return ALIASES.get(name, name)
