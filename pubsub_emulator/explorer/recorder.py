"""Records a run for the explorer's page, as an observer that turns each record into rows at once.

index      one row per candidate and per relay block, for the time line and the search
details    by candidate: ledger, drawing, deliveries, evidence, state changes, events
nodes      every drawn node and value once, by its hash
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeVar

from pubsub_emulator.emulator.network import records
from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.emulator.relay.chain import RelayChain
from pubsub_emulator.emulator.runtimes import relay_runtime
from pubsub_emulator.explorer import words
from pubsub_emulator.explorer.block_tree import draw_block
from pubsub_emulator.explorer.changes import state_changes
from pubsub_emulator.explorer.inherent import (
    descendant_rows,
    message_count,
    message_rows,
    requested_rows,
)
from pubsub_emulator.explorer.svg import arrange, packed
from pubsub_emulator.explorer.tree import Drawn, PlaceShape
from pubsub_emulator.explorer.words import DisplayNames, event_words, ttl_words
from pubsub_emulator.primitives.types import (
    EMPTY_TRIE_ROOT,
    Hash,
    ParaId,
    PubsubKey,
    RelayBlockNumber,
)
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_pubsub.events import DataPublished
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.config import runtime_spec
from pubsub_emulator.runtime.pallet_subscriber.plan import Plan
from pubsub_emulator.runtime.pallet_subscriber.view import Item, SubscriberView
from pubsub_emulator.runtime.parachain.descendants import authority_keys
from pubsub_emulator.runtime.parachain.governance import root_calls
from pubsub_emulator.runtime.parachain.ledger import BlockLedger, make_ledger, own_state_bytes
from pubsub_emulator.runtime.parachain.validate import judge_proof
from pubsub_emulator.runtime.rules import SHIPPED, Rules

Json = dict[str, object]
K = TypeVar("K")

VALUE_BYTES: Final = 32
"""The number of bytes of a value that are stored besides its length."""


class Walked(NamedTuple):
    """The walk over a candidate's proof."""

    plan: Plan
    ledger: BlockLedger
    start: Item | None
    """The cursor at which the walk began."""


@dataclass(slots=True)
class RecordedChain:
    """A parachain and its present state."""

    para: ParaId
    collators: tuple[bytes, ...] = ()
    """The public keys of the collators."""
    cache: str = ""
    subscribes: bool = False
    """Whether it has ever subscribed to a key."""
    head: Hash = EMPTY_TRIE_ROOT
    """The hash of its newest block."""
    first: Hash | None = None
    """The hash of the block after which the record begins."""
    state: State = field(default_factory=State)


def _number(table: dict[K, int], value: K) -> int:
    """Return the number of a thing in the order of first occurrence."""
    return table.setdefault(value, len(table))


class Recorder(records.Observer):
    """The observer. If `relay` is given, relay blocks get events and messages.

    Proofs are walked by the rules of `relay`, or by `rules` if it is not given.
    """

    def __init__(
        self,
        names: DisplayNames | None = None,
        relay: RelayChain | None = None,
        rules: Rules = SHIPPED,
    ) -> None:
        self.names = names or DisplayNames()
        self.relay = relay
        self.rules = rules if relay is None else relay.runtime.config.pubsub.rules
        self.chains: dict[ParaId, RecordedChain] = {}
        self.relay_blocks: list[Json] = []
        self.built = 0
        """The number of relay blocks that were built during the run."""
        self.relay_details: list[bytes] = []
        """The details of relay blocks as JSON."""
        self.index: list[list[Any]] = []
        """A row per candidate. The page's scripts read its columns by position."""
        self.details: list[bytes] = []
        """The details of candidates as JSON, in the order of the index."""
        self.keys: dict[tuple[ParaId, PubsubKey], int] = {}
        """Published keys, each with the number that stands for it in the index."""
        self.strategies: dict[str, int] = {}
        """Names of strategies, each with the number that stands for it in the index."""
        self.nodes: dict[Hash, tuple[int, int, bytes]] = {}
        """Number, length and stored bytes of nodes by hash.

        Only the first bytes of values are stored. If only a reference to a node is known, the bytes
        are empty.
        """

    # An observer

    def relay_block(self, record: records.RelayRecord) -> None:
        """Add a relay block, with its events and messages if the relay chain is given."""
        published, events, messages = self._relay_events(record.number)
        first = 0 if self.relay is None else self.relay.first
        if record.number > first:
            self.built += 1
        name = record.hash.hex()
        root = record.storage_root.hex()
        self.relay_blocks.append(
            {"number": record.number, "hash": name, "root": root, "keys": published}
        )
        self.relay_details.append(as_json({"events": events, "messages": messages}))

    def authorities(self, record: records.AuthorityRecord) -> None:
        """Store the collators of a chain."""
        self._chain(record.chain).collators = record.keys

    def subscriptions(self, record: records.SubscriptionRecord) -> None:
        """Store that a chain subscribes to keys."""
        if record.items:
            self._chain(record.chain).subscribes = True

    def checkpoint(self, record: records.CheckpointRecord) -> None:
        """Store the state of a chain."""
        chain = self._chain(record.chain)
        chain.head = record.header.hash()
        chain.state = record.state
        chain.first = chain.first or chain.head
        chain.cache = runtime_spec(Storage(record.state)).cache.value

    def candidate(self, record: BlockRecord) -> None:
        """Add a candidate with all details that the page shows."""
        chain = self._chain(record.chain)
        walked = walk_again(record, chain.state, self.rules)
        outcome = record.outcome
        refusal = record.refusal
        deliveries = () if outcome is None else outcome.deliveries
        keys = [_number(self.keys, (delivery.publisher, delivery.key)) for delivery in deliveries]
        header = record.candidate.header
        inherent = record.candidate.inherent
        place = (
            record.chain,
            header.number,
            record.included_at,
            inherent.relay_parent_number,
            header.aura_slot(),
        )
        verdict = None if refusal is None else refusal.verdict.value
        strategy = None if record.strategy is None else _number(self.strategies, record.strategy)
        block = (verdict, record.candidate.hash().hex(), strategy, len(inherent.proof))
        used_and_budget = (0, 0)
        is_stopped = False
        if walked is not None:
            used_and_budget = (walked.ledger.used, walked.ledger.budget)
            is_stopped = walked.plan.cursor is not None
        self.index.append([*place, *block, *used_and_budget, int(is_stopped), keys])
        self.details.append(as_json(self._detail(record, chain, walked, keys=keys)))
        if outcome is not None:
            chain.state = outcome.state
            chain.head = record.candidate.hash()

    # Helpers

    def _detail(
        self, record: BlockRecord, chain: RecordedChain, walked: Walked | None, keys: list[int]
    ) -> Json:
        """Return a candidate's details as JSON. `keys` are the numbers of the delivered keys."""
        header = record.candidate.header
        inherent = record.candidate.inherent
        outcome = record.outcome
        refusal = record.refusal
        plan = None if walked is None else walked.plan
        start = None if walked is None else walked.start
        drawing = arrange(draw_block(record, plan, self.names, start=start))
        detail: Json = {
            "parent": None if header.parent_hash == chain.head else header.parent_hash.hex(),
            "root": header.state_root.hex(),
            "relayRoot": inherent.relay_parent_storage_root.hex(),
            "messages": message_count(inherent.messages),
            "inbound": message_rows(inherent.messages, self.names),
            "descendants": descendant_rows(inherent.descendants),
            "requested": [] if walked is None else requested_rows(walked.plan.requested),
            "ledger": None if walked is None else ledger_json(walked, record.unpruned),
            "drawing": packed(drawing),
            "nodes": [self._node(entry.place) for entry in drawing.placed],
        }
        if refusal is not None:
            detail["evidence"] = [
                [
                    entry.verdict.value,
                    words.with_names(entry.detail, self.names),
                    list(map(_subject, entry.subject)),
                ]
                for entry in refusal.evidence
            ]
        if outcome is not None:
            shown = []
            for key, entry in zip(keys, outcome.deliveries, strict=True):
                value = (
                    (None, "")
                    if entry.value is None
                    else (len(entry.value), words.preview(entry.value, 16))
                )
                shown.append([key, *value, ttl_words(entry.ttl_state), int(entry.failed)])
            detail["deliveries"] = shown
            detail["changes"] = [
                [entry.item, entry.where, entry.before, entry.after, int(entry.bookkeeping)]
                for entry in state_changes(chain.state, outcome.state, self.names)
            ]
            detail["events"] = [event_words(entry.event, self.names) for entry in outcome.events]
        return detail

    def _chain(self, para: ParaId) -> RecordedChain:
        return self.chains.setdefault(para, RecordedChain(para))

    def _node(self, place: Drawn) -> int:
        """Return the number of a place's node, or -1 if it has none.

        The bytes of a node are added when they are first known.
        """
        if place.hash is None:
            return -1
        known = self.nodes.get(place.hash)
        if known is not None and (known[2] or place.data is None):
            return known[0]
        number = len(self.nodes) if known is None else known[0]
        data = place.data or b""
        self.nodes[place.hash] = (
            number,
            len(data),
            data[:VALUE_BYTES] if place.shape is PlaceShape.VALUE else data,
        )
        return number

    def _relay_events(self, number: RelayBlockNumber) -> tuple[list[int], list[str], list[str]]:
        """Return the numbers of published keys, and the events and messages in words."""
        block = None if self.relay is None else self.relay.block(number)
        if block is None:
            return [], [], []
        data = Storage(block.state).get(system.EVENTS)
        events: list[Event] = (
            [] if data is None else [item.event for item in relay_runtime().decode_records(data)]
        )
        published = [item for item in events if isinstance(item, DataPublished)]
        keys = [_number(self.keys, (item.publisher, PubsubKey(item.key))) for item in published]
        messages = [words.execution_words(item, self.names) for item in block.executions]
        return keys, [event_words(item, self.names) for item in events], messages


def as_json(value: object) -> bytes:
    """Return compact JSON.

    Details are stored in this form, because hundreds of thousands of small objects would slow down
    every step of the run.
    """
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def walk_again(record: BlockRecord, state: State, rules: Rules = SHIPPED) -> Walked | None:
    """Return the walk over a candidate's proof on `state`, the state of its parent.

    The walk of a valid block is in its record. The proof of an invalid block is walked again as far
    as possible, and its ledger has the costs up to there. Returns `None` if the relay parent is
    unknown.
    """
    storage = Storage(state)
    start = items.PROCESSING_CURSOR.get(storage)
    if record.outcome is not None:
        return Walked(record.outcome.plan, record.outcome.ledger, start)
    if record.relay_storage_root is None:
        return None
    inherent = record.candidate.inherent
    spec = runtime_spec(storage)
    weight = inherent.messages.weight
    storage.start_recording()
    view = SubscriberView(storage, spec, rules)
    calls = root_calls(spec, inherent.messages)
    plan, _ = judge_proof(
        view,
        record.relay_storage_root,
        inherent.proof,
        spec.budget(weight),
        calls,
        authorities=authority_keys(spec, inherent.descendants),
    )
    own = own_state_bytes(state, storage.recorded or (), plan.own_state)
    return Walked(plan, make_ledger(plan, weight, own), start)


def ledger_json(walked: Walked, unpruned: Iterable[tuple[ParaId, int]]) -> Json:
    """Return the ledger of a block (PS-70) with the sizes of the publishers' full proofs."""
    ledger = walked.ledger
    full = dict(unpruned)
    return {
        "budget": ledger.budget,
        "used": ledger.used,
        "messages": ledger.messages_bytes,
        "static": ledger.static_bytes,
        "requested": ledger.requested_bytes,
        "maps": ledger.map_charges,
        "proof": ledger.proof_bytes,
        "nodes": ledger.proof_nodes,
        "ownState": ledger.own_state_bytes,
        "cacheState": ledger.cache_state_bytes,
        "weight": [ledger.weight.ref_time, ledger.weight.proof_size],
        "full": ledger.static_bytes + ledger.requested_bytes + sum(full.values()),
        "publishers": [
            [
                publisher.para,
                *words.ledger_cells(publisher),
                publisher.cached_bytes,
                full.get(publisher.para, 0),
            ]
            for publisher in ledger.publishers
        ],
    }


def _subject(part: bytes) -> str:
    """Return a part of an offence's subject in hex, cut after 64 bytes."""
    return part.hex() if len(part) <= 64 else f"{part[:64].hex()}… ({len(part)} B)"
