"""The `pubsub_*` methods that read publishers, subscriptions, ledgers, candidates and deliveries.

They concern the whole network, so that the path of the call does not matter.
"""

from collections.abc import Iterator
from typing import Final

from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.node.chain.block import RELAY, Chain, Moment, StoredBlock
from pubsub_emulator.node.chain.timeline import Advance
from pubsub_emulator.node.rpc.call import RpcCall, streams
from pubsub_emulator.node.rpc.encode import maybe_hexed
from pubsub_emulator.node.rpc.method import Json, method
from pubsub_emulator.node.rpc.params import (
    AT,
    Param,
    Read,
    block_hash,
    fields,
    height,
    para,
    pubsub_key,
)
from pubsub_emulator.node.rpc.session import compact
from pubsub_emulator.node.types.values import camel
from pubsub_emulator.primitives.draws import MILLION
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.pubsub import Infinite, TtlState, ValidFor, node_cost, ttl_state
from pubsub_emulator.primitives.types import ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub.storage import (
    PublishedKeys,
    RegisteredPublishers,
    TotalStorageSize,
)
from pubsub_emulator.runtime.pallet_subscriber import delivered
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.apply import Delivery
from pubsub_emulator.runtime.pallet_subscriber.config import runtime_spec
from pubsub_emulator.runtime.pallet_subscriber.storage import LastDelivered
from pubsub_emulator.runtime.parachain.block import Offence
from pubsub_emulator.runtime.parachain.ledger import PublisherLedger

PARA: Final = Param("para", para)
KEY: Final = Param("key", pubsub_key)


def ttl_json(state: TtlState | None) -> Json:
    """Return the remaining lifetime of an entry as JSON."""
    if state is None:
        return None
    if isinstance(state, Infinite):
        return "Infinite"
    return {"ValidFor": state.blocks} if isinstance(state, ValidFor) else "TimedOut"


def _block(call: RpcCall, chain: Chain, at: bytes | None) -> StoredBlock | None:
    """Return a block of a chain, the best one by default.

    Returns `None` if there is no such chain or the block is not stored.
    """
    timeline = call.node.timeline
    if chain not in timeline.views:
        return None
    return timeline.views[chain].best if at is None else timeline.block(chain, at)


# Publishers


@method("pubsub_publishers", AT)
def publishers(call: RpcCall, at: bytes | None) -> Json:
    """Return all publishers that are registered or have published."""
    block = _block(call, RELAY, at)
    if block is None:
        return None
    storage = Storage(block.state)
    registered = dict(RegisteredPublishers.items(storage))
    system = call.node.network.config.relay.pubsub.is_system
    rules = call.node.network.rules
    rows = [
        {
            "para": para_id,
            "system": system(para_id),
            "manager": hexed(registered[para_id].manager) if para_id in registered else None,
            "deposit": str(registered[para_id].deposit) if para_id in registered else None,
            "keys": PublishedKeys.get(storage, para_id),
            "bytes": TotalStorageSize.get(storage, para_id),
            "childRoot": maybe_hexed(block.state.child_root(rules.placed(para_id, ())[0])),
        }
        for para_id in sorted({*registered, *PublishedKeys.keys(storage)})
    ]
    return {"at": hexed(block.hash), "number": block.number, "publishers": rows}


@method("pubsub_entry", Param("publisher", para), KEY, AT)
def entry(call: RpcCall, publisher: ParaId, key: PubsubKey, at: bytes | None) -> Json:
    """Return one entry of a publisher, or null if there is none."""
    block = _block(call, RELAY, at)
    rules = call.node.network.rules
    child, (trie_key,) = rules.placed(publisher, (key,))
    raw = None if block is None else Storage(block.state).child_get(child, trie_key)
    if block is None or raw is None:
        return None
    stored = rules.read(raw)
    return {
        "at": hexed(block.hash),
        "publisher": publisher,
        "key": hexed(key),
        "value": hexed(stored.value),
        "ttl": stored.ttl,
        "whenInserted": stored.when_inserted,
        "entryHash": hexed(blake2_256(raw)),
        "ttlState": ttl_json(
            ttl_state(stored.ttl, stored.when_inserted, RelayBlockNumber(block.number))
        ),
    }


# Subscribers


def _para_block(call: RpcCall, chain: ParaId, at: bytes | None) -> StoredBlock | None:
    """Return a parachain's block by its own hash, or by the hash of a relay block.

    For a relay block, it is the parachain's newest block at that time.
    """
    timeline = call.node.timeline
    relay = None if at is None else timeline.block(RELAY, at)
    if relay is None or chain not in timeline.views:
        return _block(call, chain, at)
    moment = timeline.moment_of(relay)
    return None if moment is None else moment.heads[chain]


@method("pubsub_subscriptions", PARA, AT)
def subscriptions(call: RpcCall, chain: ParaId, at: bytes | None) -> Json:
    """Return a parachain's subscriptions and the last delivery of each key."""
    block = _para_block(call, chain, at)
    if block is None:
        return None
    storage = Storage(block.state)
    spec = runtime_spec(storage)
    roots = items.PROCESSED_ROOTS.get(storage)
    cursor = items.PROCESSING_CURSOR.get(storage)
    parent = items.LAST_RELAY_PARENT.get(storage)
    subscribed = []
    for publisher, keys in spec.subscriptions.items():
        reason = items.DISABLED_PUBLISHERS.get(storage, publisher)
        rows = [
            _key_json(key, delivered.get(storage, spec, publisher, key), parent) for key in keys
        ]
        subscribed.append(
            {
                "publisher": publisher,
                "processedRoot": maybe_hexed(roots.get(publisher)),
                "disabled": None if reason is None else reason.value,
                "keys": rows,
            }
        )
    return {
        "at": hexed(block.hash),
        "number": block.number,
        "relayParent": parent,
        "specVersion": spec.spec_version,
        "cache": spec.cache.value,
        "cursor": None if cursor is None else [cursor[0], hexed(cursor[1])],
        "items": subscribed,
    }


def _key_json(
    key: PubsubKey, row: LastDelivered | None, parent: RelayBlockNumber | None
) -> dict[str, object]:
    """Return a subscribed key with its last delivery, which is null if there is none.

    `parent` is the relay parent at which the remaining lifetime is computed.
    """
    if row is None:
        return {
            "key": hexed(key),
            "entryHash": None,
            "ttl": None,
            "whenInserted": None,
            "ttlState": None,
        }
    state = None if parent is None else ttl_state(row.ttl, row.when_inserted, parent)
    return {
        "key": hexed(key),
        "entryHash": hexed(row.entry_hash),
        "ttl": row.ttl,
        "whenInserted": row.when_inserted,
        "ttlState": ttl_json(state),
    }


@method("pubsub_ledger", PARA, Param("hash", block_hash, optional=True, aliases=("at",)))
def ledger(call: RpcCall, chain: ParaId, name: bytes | None) -> Json:
    """Return how a parachain block uses its budget of bytes (PS-70)."""
    block = _block(call, chain, name)
    record = None if block is None else call.node.timeline.candidate(block.hash)
    if block is None or record is None or record.outcome is None:
        return None
    block_ledger = record.outcome.ledger
    unpruned = dict(record.unpruned)
    return {
        "block": hexed(block.hash),
        "number": block.number,
        "relayParent": record.candidate.inherent.relay_parent_number,
        "stopped": record.outcome.plan.cursor is not None,
        **{camel(field): getattr(block_ledger, field) for field in _BLOCK},
        "proofSize": block_ledger.weight.proof_size,
        "publishers": [
            _publisher_json(publisher, unpruned.get(publisher.para, 0))
            for publisher in block_ledger.publishers
        ],
    }


def _publisher_json(publisher: PublisherLedger, unpruned_bytes: int) -> dict[str, object]:
    figures = {camel(field): getattr(publisher, field) for field in _PUBLISHER}
    return {**figures, "unprunedBytes": unpruned_bytes}


_BLOCK: Final = (
    "budget",
    "used",
    "unused",
    "messages_bytes",
    "static_bytes",
    "map_charges",
    "proof_bytes",
    "proof_nodes",
    "own_state_bytes",
    "cache_state_bytes",
    "extrinsics_bytes",
    "extrinsics_state_bytes",
    "requested_bytes",
    "ref_time",
)
"""The fields of `BlockLedger` that `pubsub_ledger` returns."""
_PUBLISHER: Final = (
    "para",
    "unchanged",
    "complete",
    "top_path_bytes",
    "child_node_bytes",
    "value_bytes",
    "cache_charges",
    "row_charges",
    "cached_bytes",
)
"""The fields of a publisher in a ledger that `pubsub_ledger` returns."""


# Candidates


def candidate_json(call: RpcCall, record: BlockRecord) -> dict[str, object]:
    """Return a judged candidate as JSON."""
    header = record.candidate.header
    inherent = record.candidate.inherent
    slot = header.aura_slot()
    collators = len(call.node.network.parachain(record.chain).collators)
    return {
        "hash": hexed(record.candidate.hash()),
        "para": record.chain,
        "number": header.number,
        "includedAt": record.included_at,
        "relayParent": inherent.relay_parent_number,
        "slot": slot,
        "collator": None if slot is None else slot % collators + 1,
        "status": "included" if record.outcome is not None else "rejected",
        "verdict": None if record.refusal is None else record.refusal.verdict.value,
        "strategy": record.strategy,
        "proofNodes": len(inherent.proof),
        "proofBytes": sum(node_cost(len(node)) for node in inherent.proof),
    }


def _block_or_height(value: object) -> int | bytes:
    """Read a block hash (66 characters with `0x`) or a height."""
    return block_hash(value) if isinstance(value, str) and len(value) == 66 else height(value)


RELAY_BLOCK: Final = Param("relayBlock", _block_or_height, aliases=("at",))
ANY_PARA: Final = Param("para", para, optional=True)


def moment_at(call: RpcCall, chain: ParaId | None, at: int | bytes) -> Moment | None:
    """Return the moment of a relay block, by its height on the best chain or by its hash.

    Returns `None` if it is not stored, or if there is no parachain `chain`.
    """
    timeline = call.node.timeline
    if chain not in timeline.views:
        return None
    if isinstance(at, int):
        return timeline.moment(at)
    relay = timeline.block(RELAY, at)
    return None if relay is None else timeline.moment_of(relay)


@method("pubsub_candidates", ANY_PARA, RELAY_BLOCK)
def candidates(call: RpcCall, chain: ParaId | None, at: int | bytes) -> Json:
    """Return the candidates judged for a relay block, of one parachain or of all."""
    moment = moment_at(call, chain, at)
    if moment is None:
        return None
    wanted = (record for record in moment.records if chain in {None, record.chain})
    return [candidate_json(call, record) for record in wanted]


@method("pubsub_deliveries", ANY_PARA, RELAY_BLOCK)
def past_deliveries(call: RpcCall, chain: ParaId | None, at: int | bytes) -> Json:
    """Return the deliveries with a relay block, to one parachain or to all."""
    moment = moment_at(call, chain, at)
    if moment is None:
        return None
    return [document for record, _, document in deliveries(moment) if chain in {None, record.chain}]


@method("pubsub_collators", PARA)
def collators(call: RpcCall, chain: ParaId) -> Json:
    """Return the collators of a parachain, with the cheats that they use."""
    parachain = call.node.network.parachains.get(chain)
    if parachain is None:
        return None
    return [
        {
            "collator": number,
            "key": hexed(collator.key),
            "strategies": list(collator.strategies),
            "rate": collator.rate / MILLION,
        }
        for number, collator in enumerate(parachain.collators, start=1)
    ]


@method("pubsub_candidate", Param("hash", block_hash))
def candidate(call: RpcCall, name: bytes) -> Json:
    """Return a candidate with the evidence against it, or null if it is not stored."""
    record = call.node.timeline.candidate(name)
    if record is None:
        return None
    evidence = () if record.refusal is None else record.refusal.evidence
    return {
        **candidate_json(call, record),
        "evidence": list(map(_offence_json, evidence)),
        "relayRoot": maybe_hexed(record.relay_storage_root),
        "slotNow": record.slot_now,
        "bytes": hexed(record.candidate.encode()),
    }


def _offence_json(offence: Offence) -> dict[str, object]:
    return {
        "verdict": offence.verdict.value,
        "detail": offence.detail,
        "subject": [hexed(part) for part in offence.subject],
    }


@streams("pubsub_subscribeCandidates", "pubsub_candidateJudged", ANY_PARA)
def candidates_judged(call: RpcCall, advance: Advance, wanted: ParaId | None) -> Iterator[str]:
    """Subscribe to judged candidates of one parachain or of all."""
    if advance.rewound:
        return
    for record in advance.moment.records:
        if wanted in {None, record.chain}:
            yield compact(candidate_json(call, record))


# Deliveries


def deliveries(moment: Moment) -> Iterator[tuple[BlockRecord, Delivery, dict[str, object]]]:
    """Yield the deliveries of a moment in order: the candidate, the delivery, and it as JSON."""
    for record in moment.records:
        if record.outcome is None or not record.outcome.deliveries:
            continue
        after = Storage(record.outcome.state)
        spec = runtime_spec(after)
        name = hexed(record.candidate.hash())
        for delivery in record.outcome.deliveries:
            row = None
            if delivery.value is not None:
                row = delivered.get(after, spec, delivery.publisher, delivery.key)
            age = None if row is None else record.included_at - row.when_inserted
            document = {
                "para": record.chain,
                "block": name,
                "number": record.candidate.header.number,
                "includedAt": record.included_at,
                "publisher": delivery.publisher,
                "key": hexed(delivery.key),
                "kind": delivery.kind,
                "value": maybe_hexed(delivery.value),
                "ttlState": ttl_json(delivery.ttl_state),
                "blocksSincePublished": age,
                "failed": delivery.failed,
            }
            yield record, delivery, document


_FILTER: Final[Read[dict[str, object]]] = fields(
    dict, {"para": para, "publisher": para, "key": pubsub_key}
)


@streams("pubsub_subscribeDeliveries", "pubsub_delivery", Param("filter", _FILTER, optional=True))
def deliveries_made(
    _call: RpcCall, advance: Advance, wanted: dict[str, object] | None
) -> Iterator[str]:
    """Subscribe to deliveries, optionally of one parachain, publisher or key."""
    if advance.rewound:
        return
    for record, delivery, document in deliveries(advance.moment):
        fields_of = {"para": record.chain, "publisher": delivery.publisher, "key": delivery.key}
        if all(fields_of[name] == value for name, value in (wanted or {}).items()):
            yield compact(document)
