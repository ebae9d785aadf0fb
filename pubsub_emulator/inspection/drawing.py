"""The page of a history, a saved session, a fixture, a case or a finding."""

from collections import defaultdict
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pubsub_emulator.emulator.fixtures import parse_fixture
from pubsub_emulator.emulator.network.records import (
    AuthorityRecord,
    BlockRecord,
    CheckpointRecord,
    RelayRecord,
)
from pubsub_emulator.explorer.cards import Picture
from pubsub_emulator.explorer.judged import block_card, cards_page, judge_again
from pubsub_emulator.explorer.page import page_html, page_of, record
from pubsub_emulator.explorer.recorder import Recorder
from pubsub_emulator.explorer.tree import draw_trie
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.files.progress import Stage, unwatched
from pubsub_emulator.files.untrusted import parse_json, read_bytes
from pubsub_emulator.inspection.kinds import NO_TOML, kind_of
from pubsub_emulator.laboratory.cases import Case, read_case
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import (
    EMPTY_TRIE_ROOT,
    Hash,
    ParaBlockNumber,
    ParaId,
    RelayBlockNumber,
    Slot,
)
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_subscriber.config import runtime_spec
from pubsub_emulator.runtime.rules import SHIPPED, Rules

if TYPE_CHECKING:
    from pubsub_emulator.spark_audit.compare import HistoryRecord
    from pubsub_emulator.spark_audit.history.row import Row

MOST_BLOCKS: Final = 500
"""The relay blocks on the page of a history, unless the user gives another number."""
KINDS: Final = (
    "a scenario, a history, a saved session, a fixture, a case of a campaign or a finding"
)


def page_from(
    path: Path,
    network: str | None = None,
    blocks: int = MOST_BLOCKS,
    rules: Rules = SHIPPED,
    stage: Stage = unwatched,
) -> str:
    """Return the page about a folder or a JSON file, for a browser.

    The page of a history has its first `blocks` relay blocks. `network` chooses one of several
    networks. Blocks of chains that name `rules` are executed by them. `stage` shows the progress.

    Raises `InputError` if the path cannot be drawn, and the errors of the reader of its kind.
    """
    if path.is_dir():
        from pubsub_emulator.spark_audit.history.manifest import history_folder

        folder = history_folder(path)
        if folder is None:
            raise InputError(f"{path}: this folder has no history; sources are {KINDS}")
        return _history(folder, network, blocks, rules=rules, stage=stage)
    kind = kind_of(parse_json(read_bytes(path, error=InputError), f"{path}: {NO_TOML}", InputError))
    page_by_kind = {"session": _session, "case": _case, "finding": _finding, "fixture": _fixture}
    if kind not in page_by_kind:
        raise InputError(f"{path}: not a source that can be drawn: {KINDS}")
    return page_by_kind[kind](path, rules, stage)


def _session(path: Path, rules: Rules, stage: Stage) -> str:
    """Play the commands of a session file and return the page of the resulting run."""
    from pubsub_emulator.session import saved

    recorders: list[Recorder] = []
    with stage(f"replaying {path.name}") as advance:
        session = saved.play(
            path, lambda simulation: recorders.append(record(simulation)), advance, rules
        )
    return page_of(recorders[0], session.scenario)


def _fixture(path: Path, _rules: Rules, _stage: Stage) -> str:
    """Return a page with the block of a fixture, executed by the shipped rules."""
    from pubsub_emulator.spark_audit.compare import judged_fixture

    fixture = parse_fixture(read_bytes(path, error=InputError), str(path))
    judged = judged_fixture(fixture)
    parent, state = judged.pre()
    again = judge_again(judged.chain, parent, state, judged.candidate, judged.relay)
    description = f"recorded: {judged.verdict or 'accepted'}"
    return cards_page(
        f"fixture {fixture.name}", description, [("the block", block_card(again, state))]
    )


def _case(path: Path, rules: Rules, _stage: Stage) -> str:
    """Return a page with the honest and the changed block or proof of a case."""
    case = read_case(path, rules)
    strategies = " + ".join(case.strategies) or "the honest block"
    description = (
        f"due: {', '.join(case.expected) or 'accepted'}; found:"
        f" {', '.join(case.verdicts) or 'accepted'}"
    )
    return cards_page(f"case: {strategies}", description, _case_cards(case, rules))


def _case_cards(case: Case, rules: Rules) -> Iterator[tuple[str, str]]:
    """Yield the heading and the card of the honest and of the changed block or proof."""
    judging = case.judging
    parent = judging.parent
    if case.block is None:
        changed = case.changed_proof(case.shrunk)
        for heading, nodes in (("the honest proof", case.proof), ("the changed proof", changed)):
            title = f"{counted(len(nodes), 'node')} under 0x{judging.root.hex()[:16]}…"
            yield heading, Picture(draw_trie(judging.root, nodes), title)._repr_html_()
        return
    chain = runtime_spec(Storage(parent.state)).para_id
    blocks = (
        ("the honest block", case.block),
        ("the changed block", case.changed_block(case.block, case.shrunk)),
    )
    for heading, block in blocks:
        again = judge_again(
            chain,
            parent.header,
            parent.state,
            block,
            judging.context(block),
            rules=rules,
        )
        yield heading, block_card(again, parent.state, rules)


def _finding(path: Path, rules: Rules, _stage: Stage) -> str:
    """Return a page with the block in a finding's evidence.

    It is executed on the part of the state that the evidence contains.
    """
    from pubsub_emulator.spark_audit.judge.evidence import partial_state, read_block_evidence
    from pubsub_emulator.spark_audit.judge.finding_file import check_finding

    checked = check_finding(path, rules)
    evidence = read_block_evidence(checked.finding["evidence"])
    title = f"finding {checked.finding['code']}"
    description = checked.judgement.detail
    if evidence is None:
        return cards_page(
            title, f"{description}. Its evidence is not a block, so there is nothing to draw.", ()
        )
    nodes = {bytes(blake2_256(node)): node for node in evidence.nodes}
    state = partial_state(evidence.parent.state_root, nodes.get)
    again = judge_again(
        checked.finding["chain"] or 0,
        evidence.parent,
        state,
        evidence.candidate,
        evidence.relay,
        rules=rules,
    )
    return cards_page(
        title,
        description,
        [("the block, on the part of the state in its evidence", block_card(again, state, rules))],
    )


def _history(
    path: Path, network: str | None, max_blocks: int, *, rules: Rules, stage: Stage
) -> str:
    """Execute the first blocks of one network in a history again and return their page.

    `network` may be `None` if the history has a single network. Raises `InputError`.
    """
    from pubsub_emulator.spark_audit.compare import HistoryRecord
    from pubsub_emulator.spark_audit.history import schema

    history = HistoryRecord(path, rules)
    networks = sorted({name for name, _ in history.chains})
    if not networks:
        raise InputError(
            f"{path}: it has no blocks that can be executed; `pubsub inspect` shows its content"
        )
    if network is None and len(networks) > 1:
        raise InputError(f"{path}: --network is missing: it has {', '.join(networks)}")
    chosen = network or networks[0]
    if chosen not in networks:
        raise InputError(f"{path}: --network {chosen}: it has {', '.join(networks)}")
    recorder = Recorder(rules=rules)

    def rows(table: schema.Table) -> "list[Row]":
        return history.rows(tuple(history.history.files(table, chosen)))

    relays = sorted(
        (row for row in rows(schema.RELAY_HEADERS) if row["number"] is not None),
        key=itemgetter("number"),
    )
    for row in rows(schema.AUTHORITIES):
        keys = tuple(row["keys"])
        recorder.authorities(
            AuthorityRecord(ParaId(row["chain"]), ParaBlockNumber(row["from_block"]), keys)
        )
    subscribing = {row["chain"] for row in rows(schema.SUBSCRIPTIONS) if row["items"]}
    chains = [chain for name, chain in history.chains if name == chosen]
    first, newest = (relays[0]["number"], relays[-1]["number"]) if relays else (0, 0)
    # The genesis block, which is the first one, is drawn in addition to `max_blocks`.
    last = first + max_blocks
    blocks: list[BlockRecord] = []
    title = f"executing the blocks of {counted(len(chains), 'chain')} again"
    with stage(title, len(chains)) as advance:
        for done, chain in enumerate(chains, start=1):
            blocks += _blocks(history, chosen, chain, last=last, recorder=recorder)
            if chain in subscribing:
                recorder.chains[ParaId(chain)].subscribes = True
            advance(done, len(chains), f"executing blocks again: chain {chain}")
    _tell(recorder, relays, blocks, last)
    return page_html(recorder, chosen, f"Relay blocks {first} to {min(last, newest)} of {path}.")


def _blocks(
    history: "HistoryRecord", network: str, chain: int, *, last: int, recorder: Recorder
) -> Iterator[BlockRecord]:
    """Yield the blocks of a chain that were included up to the relay block `last`.

    The blocks are executed again in their order. If a block does not follow the state after the
    block before it, as at the beginning of another branch, a new checkpoint is recorded.
    """
    from pubsub_emulator.spark_audit.history import schema

    rows = history.rows(tuple(history.history.files(schema.BLOCKS, network, chain)))
    rows = sorted(
        (row for row in rows if row["status"] != "imported"), key=itemgetter("segment", "position")
    )
    parent: Header | None = None
    state = State()
    for row, judged in zip(rows, history.blocks(network, chain), strict=True):
        if row["included_at"] is not None and row["included_at"] > last:
            return
        if parent is None or state.root() != judged.pre_root:
            parent, state = judged.pre()
            recorder.checkpoint(CheckpointRecord(ParaId(chain), row["segment"], parent, state))
        unpruned = tuple(
            (ParaId(entry["publisher"]), entry["bytes"]) for entry in row["unpruned"] or ()
        )
        again = judge_again(
            chain,
            parent,
            state,
            judged.candidate,
            judged.relay,
            included_at=row["included_at"],
            segment=row["segment"],
            unpruned=unpruned,
            strategy=row["strategy"],
            rules=recorder.rules,
        )
        if again.outcome is not None and row["status"] == "included":
            parent = judged.candidate.header
            state = again.outcome.state
        yield again


def _tell(recorder: Recorder, relays: "list[Row]", blocks: list[BlockRecord], last: int) -> None:
    """Give a recorder the relay blocks up to the height `last`, each with its parachain blocks."""
    by_block = defaultdict[int, list[BlockRecord]](list)
    for block in blocks:
        by_block[block.included_at].append(block)
    for row in relays:
        if row["number"] > last:
            break
        number = RelayBlockNumber(row["number"])
        header = Hash(row["hash"]) if row["hash"] is not None else EMPTY_TRIE_ROOT
        recorder.relay_block(
            RelayRecord(number, header, Hash(row["storage_root"]), Slot(row["slot"] or 0))
        )
        for block in by_block[row["number"]]:
            recorder.candidate(block)
