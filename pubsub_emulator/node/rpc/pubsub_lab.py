"""The `pubsub_*` methods of the live page: columns of a time line, actions, dry runs, sessions."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from pydantic import ValidationError

from pubsub_emulator.collator.cheats import STRATEGIES
from pubsub_emulator.emulator.fixtures import first_fault
from pubsub_emulator.emulator.network.actions import Action, action_adapter
from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.emulator.runtimes import every_runtime
from pubsub_emulator.emulator.scenario.model import published_key
from pubsub_emulator.node.chain.block import RELAY, Moment
from pubsub_emulator.node.chain.lines import NoSession, line, scenario_document, session_document
from pubsub_emulator.node.chain.live import LiveNetwork
from pubsub_emulator.node.chain.timeline import Advance
from pubsub_emulator.node.rpc.call import RpcCall, streams
from pubsub_emulator.node.rpc.errors import refused
from pubsub_emulator.node.rpc.method import Json, method
from pubsub_emulator.node.rpc.params import Param, block_hash, integer
from pubsub_emulator.node.rpc.pubsub_act import act
from pubsub_emulator.node.rpc.pubsub_read import RELAY_BLOCK, candidate_json, deliveries, moment_at
from pubsub_emulator.node.rpc.pubsub_session import failures
from pubsub_emulator.node.rpc.session import compact
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.types import PubsubKey
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_pubsub.events import DataPublished, KeyExpired
from pubsub_emulator.runtime.relay.message_queue.types import BOOKS

MOST_COLUMNS: Final = 256
"""The maximum number of columns of one request."""
MOST_TRIED: Final = 16
"""The maximum number of relay blocks of a dry run."""
MOST_NAMED: Final = 512
"""The maximum number of published keys, of expired keys, and of deliveries that a column lists. It
also has the numbers of all.
"""
MOST_NAMES: Final = 4096
"""The maximum number of key names that the node stores."""
MOST_LETTERS: Final = 64
"""The maximum length of a key name that the node stores."""


# Columns


def column_json(call: RpcCall, moment: Moment) -> dict[str, object]:
    """Return a relay block and the candidates judged for it, summarized for a time line."""
    state = Storage(moment.relay.state)
    events = [record.event for record in every_runtime().stored_events(state)]
    published = [event for event in events if isinstance(event, DataPublished)]
    expired = [event for event in events if isinstance(event, KeyExpired)]
    total = system.BLOCK_WEIGHT.get(state).total()
    queued = [book for _, book in BOOKS.items(state)]
    delivered = [document for _, _, document in deliveries(moment)]
    names = call.node.names
    return {
        "number": moment.number,
        "hash": hexed(moment.relay.hash),
        "parent": hexed(moment.relay.header.parent_hash),
        "published": [
            [event.publisher, hexed(event.key), event.value_size, names.get(event.key)]
            for event in published[:MOST_NAMED]
        ],
        "publishedCount": len(published),
        "expired": [[event.publisher, hexed(event.key)] for event in expired[:MOST_NAMED]],
        "expiredCount": len(expired),
        "queuedMessages": sum(book.message_count for book in queued),
        "queuedBytes": sum(book.size for book in queued),
        "weight": [total.ref_time, total.proof_size],
        "candidates": [_candidate(call, record) for record in moment.records],
        "deliveries": [_delivery(document) for document in delivered[:MOST_NAMED]],
        "deliveredCount": len(delivered),
        "idle": [{"para": para, "why": why} for para, why in moment.idle.items()],
        "failures": list(_failures(moment)),
    }


def _candidate(call: RpcCall, record: BlockRecord) -> dict[str, object]:
    """Return a candidate with its evidence and, if it was included, the use of its budget."""
    document = candidate_json(call, record)
    outcome = record.outcome
    evidence = () if record.refusal is None else record.refusal.evidence
    document["evidence"] = [[item.verdict.value, item.detail] for item in evidence]
    if outcome is not None:
        ledger = outcome.ledger
        document |= {
            "unprunedBytes": ledger.static_bytes
            + ledger.requested_bytes
            + sum(size for _, size in record.unpruned),
            "used": ledger.used,
            "budget": ledger.budget,
            "cachedBytes": sum(publisher.cached_bytes for publisher in ledger.publishers),
            "stopped": outcome.plan.cursor is not None,
            "delivered": len(outcome.deliveries),
            "publishers": [
                [
                    publisher.para,
                    publisher.top_path_bytes + publisher.child_node_bytes + publisher.value_bytes,
                ]
                for publisher in ledger.publishers
            ],
        }
    return document


def _delivery(document: dict[str, object]) -> dict[str, object]:
    """Return a delivery with its value shortened."""
    value = document["value"]
    return {
        **document,
        "value": f"{value[:128]}…" if isinstance(value, str) and len(value) > 130 else value,
    }


def _failures(moment: Moment) -> Iterator[str]:
    """Yield the failed messages and calls of a relay block as sentences."""
    for failure in failures(moment):
        instruction = failure["instruction"]
        message = f"the message of {failure['para']}"
        if instruction is None:
            yield f"{message} was not executed: {failure['why']}"
        else:
            yield f"instruction {instruction} of {message}: {failure['why']}"
    for record in every_runtime().stored_events(Storage(moment.relay.state)):
        if isinstance(record.event, system.ExtrinsicFailed):
            yield f"a call on the relay chain: {record.event.dispatch_error}"


@method(
    "pubsub_columns",
    RELAY_BLOCK,
    Param("count", integer(MOST_COLUMNS, 1), optional=True),
    heavy=True,
)
async def columns(call: RpcCall, at: int | bytes, count: int | None) -> Json:
    """Return a relay block and the blocks before it on its branch, the newest first.

    `count` is the number of blocks (1). Blocks that are no longer stored are missing.
    """
    moments: list[Moment] = []
    moment = moment_at(call, RELAY, at)
    timeline = call.node.timeline
    while moment is not None and moment is not timeline.genesis and len(moments) < (count or 1):
        moments.append(moment)
        parent = timeline.block(RELAY, moment.relay.header.parent_hash)
        moment = None if parent is None else timeline.moment_of(parent)
    # Steps change the timeline, so it is read in the event loop. Moments do not change, so another
    # thread can read them.
    return await call.node.control.beside(
        lambda: [column_json(call, past_moment) for past_moment in moments]
    )


@streams("pubsub_subscribeColumns", "pubsub_column")
def columns_built(call: RpcCall, advance: Advance) -> Iterator[str]:
    """Subscribe to new relay blocks, in the form of `pubsub_columns`, and to rewinds."""
    moment = advance.moment
    if not advance.column:
        column = None if moment is call.node.timeline.genesis else column_json(call, moment)
        row = {"rewound": advance.rewound, "number": moment.number, "column": column}
        # All subscribers of a step share the text.
        advance.column.append(compact(row))
    yield advance.column[0]


@method("pubsub_explained", Param("hash", block_hash), heavy=True)
async def explained(call: RpcCall, name: bytes) -> Json:
    """Return a candidate as on the page of a run, with its ledger, proof drawing and changes.

    Returns null if the candidate or the relay block before it is not stored, or the node has no
    pages.
    """
    record = call.node.timeline.candidate(name)
    explain = call.node.explain
    if record is None or explain is None:
        return None
    moment = call.node.timeline.moment(record.included_at)
    before = call.node.timeline.moment(record.included_at - 1) or call.node.timeline.genesis
    if moment is None or record not in moment.records or before.number != record.included_at - 1:
        return None
    return await call.node.control.beside(lambda: explain(call.node, before, moment, record))


# Actions


def _action(value: object) -> tuple[Action, dict[PubsubKey, str]]:
    """Read an action, and return it with the names that it uses for keys, by key."""
    try:
        action = action_adapter.validate_python(value)
    except ValidationError as error:
        raise ValueError(first_fault(error, "action")) from None
    keys = (value.get("key"), *(value.get("keys") or ())) if isinstance(value, dict) else ()
    texts = (key for key in keys if isinstance(key, str) and len(key) <= MOST_LETTERS)
    names = (text for text in texts if not text.startswith("0x"))
    return action, {key_from_data(name.encode()): name for name in names}


ACTION: Final = Param("action", _action)


@method("pubsub_keyNames")
def key_names(call: RpcCall) -> Json:
    """Return the known names of keys as triples `[publisher, key, name]`.

    These are the names in the scenario, up to a limit, and those that actions used. The names in
    actions have no publisher.
    """
    scenario = call.node.live.simulation.scenario

    def of_scenario() -> Iterator[list[object]]:
        for group in scenario.publishers:
            for para in group.paras:
                for index in range(group.keys):
                    yield [para, hexed(published_key(para, index)), f"{para}/{index}"]

    return [
        *islice(of_scenario(), MOST_NAMES),
        *([None, hexed(key), name] for key, name in call.node.names.items()),
    ]


@method("pubsub_strategies")
def strategies(_call: RpcCall) -> Json:
    """Return the cheats that a collator can use, with their aims and the verdicts against them."""
    return [
        {
            "name": strategy.name,
            "gain": strategy.gain,
            "meets": [verdict.value for verdict in strategy.meets],
        }
        for strategy in STRATEGIES.values()
    ]


@method("pubsub_act", ACTION, unsafe=True)
async def do(call: RpcCall, given: tuple[Action, dict[PubsubKey, str]]) -> Json:
    """Apply an action and return its result and the equivalent line of `pubsub step`."""
    action, names = given
    result = await act(call, action)
    if len(call.node.names) + len(names) <= MOST_NAMES:
        call.node.names |= names
    return {"line": line(action), "result": result, "action": action.model_dump(mode="json")}


@method(
    "pubsub_tryAct", ACTION, Param("blocks", integer(MOST_TRIED, 1), optional=True), unsafe=True
)
async def try_act(
    call: RpcCall, given: tuple[Action, dict[PubsubKey, str]], count: int | None
) -> Json:
    """Try an action on a copy of the network and return the failures and verdicts that it causes.

    The copy builds `blocks` relay blocks (4). Failures and verdicts that also occur without the
    action are left out.
    """
    action, _ = given
    newest = call.node.timeline.newest
    blocks = count or 4

    def work(live: LiveNetwork) -> dict[str, object]:
        """Compare two branches, one with the action and one without it."""
        without = set(_tried(live, newest, (*live.pending,), blocks))
        try:
            caused = [
                result
                for result in _tried(live, newest, (*live.pending, action), blocks)
                if result not in without
            ]
        except PubsubError as error:
            return {"line": line(action), "refused": str(error), "verdicts": []}
        refusals = [text for kind, text in caused if kind == "failed"]
        verdicts = [text for kind, text in caused if kind == "verdict"]
        return {"line": line(action), "refused": "; ".join(refusals) or None, "verdicts": verdicts}

    return await call.node.control.aside(work)


def _tried(
    live: LiveNetwork, newest: Moment, todo: tuple[Action, ...], blocks: int
) -> Iterator[tuple[str, str]]:
    """Apply actions on a branch, build blocks, and yield the failures and verdicts.

    Each is a pair of its kind, `failed` or `verdict`, and a text. Raises `PubsubError` if an action
    is refused.
    """
    branch = live.branch(newest)
    for action in todo:
        branch.apply(action)
    for _ in range(blocks):
        moment = branch.step()
        yield from (("failed", words) for words in _failures(moment))
        yield from (
            ("failed", f"{para} could not build: {why}") for para, why in moment.idle.items()
        )
        for record in moment.records:
            if record.refusal is not None:
                yield "verdict", f"{record.chain}: {record.refusal.verdict.value}"


@method("pubsub_session")
async def session(call: RpcCall) -> Json:
    """Return a session of `pubsub step` that leads to the newest relay block.

    It contains the actions of all callers in order.
    """
    return await _of_session(call, session_document)


@method("pubsub_sessionScenario")
async def session_scenario(call: RpcCall) -> Json:
    """Return the session as a scenario with acts, and remarks, as `[scenario, sentences]`.

    The remarks say what a scenario cannot express.
    """
    return await _of_session(call, scenario_document)


async def _of_session(call: RpcCall, make: Callable[[LiveNetwork, Moment], Json]) -> Json:
    """Return a document about the newest moment.

    Raises `RpcError` if a session cannot express it.
    """
    newest = call.node.timeline.newest
    try:
        return await call.node.control.aside(lambda live: make(live, newest))
    except NoSession as error:
        raise refused(error) from error
