"""Names and descriptions for people: chains, keys, storage, verdicts, lifetimes and events."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from pubsub_emulator.emulator.relay.message_outcomes import MessageExecution
from pubsub_emulator.emulator.scenario.model import Scenario, published_key
from pubsub_emulator.emulator.state_diff import UNKNOWN_KEY, key_name
from pubsub_emulator.primitives import storage_keys
from pubsub_emulator.primitives.pubsub import Infinite, TtlState, ValidFor
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.runtime.parachain.block import Verdict
from pubsub_emulator.runtime.parachain.ledger import PublisherLedger
from pubsub_emulator.xcm import Complete, Incomplete

VERDICTS: Final[Mapping[Verdict, str]] = {
    Verdict.BAD_SEAL: (
        "The author is not the collator whose turn it was, or did not sign this block."
    ),
    Verdict.BAD_PARENT: "The block does not follow its parent.",
    Verdict.RELAY_PARENT_DECREASED: "The relay parent is older than that of the block before.",
    Verdict.BAD_VALIDATION_DATA: (
        "The inherent states another parent, or another maximum size of a proof."
    ),
    Verdict.BAD_DESCENDANTS: "The inherent has relay headers, which the chain does not use.",
    Verdict.MESSAGES_MISREPORTED: (
        "The messages are not those waiting on the relay chain, or exceed their share."
    ),
    Verdict.ADVANCEMENT_RULE: "Messages are left waiting although the block had room for them.",
    Verdict.DUPLICATE_NODE: "A proof node is listed more than once.",
    Verdict.UNSORTED_PROOF: "The proof nodes are not in ascending order.",
    Verdict.ROOT_MISMATCH: "The proof is of another relay state than the relay parent's.",
    Verdict.OMITTED_BELOW_BUDGET: (
        "A node that the walk needs is missing, although the budget was not used up."
    ),
    Verdict.UNUSED_NODES: "The proof holds nodes that the walk does not take.",
    Verdict.BAD_EXTRINSIC: (
        "A signed extrinsic cannot be part of the block: it is forged, stale, or does not fit."
    ),
    Verdict.STATE_ROOT_MISMATCH: "Executing the block gives another state root than it claims.",
}
"""The meaning of each verdict."""

_CHANNEL: Final = storage_keys.item_prefix("Hrmp", "HrmpChannels")


@dataclass(frozen=True, slots=True)
class DisplayNames:
    """The names of chains and published keys. Others are shown by number or hash."""

    chains: Mapping[ParaId, str] = field(default_factory=dict)
    keys: Mapping[PubsubKey, str] = field(default_factory=dict)

    def chain(self, para: ParaId) -> str:
        """Return a chain's id and name, such as `3000 prices`."""
        name = self.chains.get(para)
        return f"{para} {name}" if name else str(para)

    def key(self, key: PubsubKey) -> str:
        """Return the name of a published key, or its shortened digits."""
        return self.keys.get(key) or short(key)


def scenario_names(scenario: Scenario) -> DisplayNames:
    """Return the names in a scenario: those of subscribers, and those that keys derive from."""
    keys: dict[PubsubKey, str] = {}
    for group in scenario.publishers:
        for para in group.paras:
            keys |= {published_key(para, index): f"{para}/{index}" for index in range(group.keys)}
    return DisplayNames(
        {subscriber.para: subscriber.name for subscriber in scenario.subscribers}, keys
    )


def short(data: bytes) -> str:
    """Return a shortened hash or key for a line of text."""
    return f"0x{data.hex()}" if len(data) <= 8 else f"0x{data[:4].hex()}…{data[-2:].hex()}"


def preview(value: bytes, limit: int = 24) -> str:
    """Return the beginning of a value, as text if it is printable ASCII and otherwise as digits."""
    if value and value.isascii() and (text := value.decode("ascii")).isprintable():
        return f'"{text[: 2 * limit]}"' + ("…" if len(text) > 2 * limit else "")
    return f"0x{value[:limit].hex()}" + ("…" if len(value) > limit else "")


def with_names(text: str, names: DisplayNames) -> str:
    """Replace each `key` with hexadecimal digits in a text by the name of the key, if known."""

    def named(match: re.Match[str]) -> str:
        key = bytes.fromhex(match[1])
        if name := names.keys.get(PubsubKey(key)):
            return f"key {name}"
        return match[0] if key_name(key) == UNKNOWN_KEY else key_name(key)

    return re.sub(r"\bkey ((?:[0-9a-f]{2})+)\b", named, text)


def ttl_words(state: TtlState | None) -> str:
    """Return the remaining lifetime of an entry in words."""
    if state is None:
        return ""
    if isinstance(state, Infinite):
        return "never expires"
    if isinstance(state, ValidFor):
        return f"valid for {state.blocks} relay block{'' if state.blocks == 1 else 's'}"
    return "timed out"


def ledger_cells(walked: PublisherLedger) -> tuple[str | int, ...]:
    """Return how a publisher's walk ended, and its bytes by use.

    The uses are top path, child nodes, values, delivered rows and cache reads.
    """
    if walked.unchanged:
        ended = "unchanged"
    elif walked.complete:
        ended = "complete"
    else:
        ended = "open"
    nodes = walked.top_path_bytes, walked.child_node_bytes, walked.value_bytes
    return ended, *nodes, walked.row_charges, walked.cache_charges


def static_labels(keys: Iterable[bytes]) -> dict[str, str]:
    """Return names of the static keys of a parachain's proof, by their hexadecimal digits."""
    return {key.hex(): _static_label(key) for key in keys}


@lru_cache(maxsize=4096)
def _static_label(key: bytes) -> str:
    if not key.startswith(_CHANNEL) or len(key) < len(_CHANNEL) + 8:
        return key_name(key).partition("[")[0]
    sender = int.from_bytes(key[-8:-4], "little")
    recipient = int.from_bytes(key[-4:], "little")
    return f"Hrmp.HrmpChannels {sender} → {recipient}"


def event_words(event: Event, names: DisplayNames) -> str:
    """Return an event in one line.

    It looks like `Subscriber.DataProcessed publisher 1000, key 1000/3, value_size 12`.
    """
    return f"{event.PALLET}.{type(event).__name__} {', '.join(_fields(event, names))}".rstrip()


def _fields(value: Any, names: DisplayNames) -> Iterator[str]:
    """Yield name and value of each field of an event."""
    for name in (event_field.name for event_field in fields(value)):
        yield f"{name.rstrip('_')} {_argument(name, getattr(value, name), names)}"


def execution_words(message: MessageExecution, names: DisplayNames) -> str:
    """Return the outcome of an upward message: `from 1000: done, 1,250,108,000 ps and 9,716 B`."""
    outcome = message.execution.outcome
    failures = "; ".join(
        f"instruction {failure.index}: {failure.cause or failure.error}"
        for failure in message.execution.failures
    )
    if isinstance(outcome, Complete | Incomplete):
        result = (
            f"{'done' if isinstance(outcome, Complete) else 'stopped'},"
            f" {_argument('', outcome.used, names)}"
        )
    else:
        result = f"not executed, {message.execution.rejected or outcome}"
    return f"from {names.chain(message.para)}: {result}{f'; {failures}' if failures else ''}"


def _argument(name: str, value: object, names: DisplayNames) -> str:
    """Return a field of an event in words. Its name tells whether a number is a chain's id."""
    if isinstance(value, bytes):
        return names.keys.get(PubsubKey(value)) or (
            short(value) if len(value) > 8 else f"0x{value.hex()}"
        )
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, Weight):
        return f"{value.ref_time:,} ps and {value.proof_size:,} B"
    if isinstance(value, int) and name in {"para", "publisher", "sender", "recipient"}:
        return names.chain(ParaId(value))
    if is_dataclass(value) and not isinstance(value, type):
        return f"({', '.join(_fields(value, names))})"
    text = str(value)
    return text if len(text) <= 120 else f"{text[:119]}…"


def state_key_words(key: bytes, names: DisplayNames) -> tuple[str, str]:
    """Return the item of a parachain's storage key, and its keys in words."""
    item, bracket, _ = key_name(key).partition("[")
    if not bracket:
        return item, short(key) if item == UNKNOWN_KEY else ""
    # The pallet's and the item's hash have 16 bytes each. The keys of the entry follow.
    rest = key[32:]
    if item == "Subscriber.CachedTrieNodes" and len(rest) >= 24:
        # The hash of the key has 16 bytes.
        owner = int.from_bytes(rest[16:20], "little")
        generation = int.from_bytes(rest[20:24], "little")
        return item, f"{owner}, generation {generation}, node {short(rest[24:])}"
    # The hash of the para id has 8 bytes (twox64).
    para = int.from_bytes(rest[8:12], "little")
    tail = rest[12:]
    match item.removeprefix("Subscriber.") if len(rest) >= 12 else "":
        case "LastDelivered":
            return item, f"{para}, {names.key(PubsubKey(tail[-32:]))}"
        case "LastDeliveredPacked":
            row = int.from_bytes(tail[8:12], "little")
            return item, f"{para}, items {16 * row} to {16 * row + 15}"
        case "CacheSlots" if tail:
            return item, f"{para}, prefix {tail[1:].hex()[: tail[0]] or 'none'}"
        case "CacheSlots" | "CacheInfo" | "DisabledPublishers":
            return item, str(para)
    return item, short(rest)
