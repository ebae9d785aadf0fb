"""The comparison of two records, which finds the first block in which they differ.

A record is a history, or a set of fixtures. Two blocks for the same place are compared field by
field, as they were judged. If they differ, both are executed, and their states are compared by key
and by trie node.

Chains of two histories are compared by position. Fixtures are compared with a history by block hash
or, failing that, by chain, number, slot and relay parent. Two sets of fixtures are compared by
name.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain as chained
from itertools import zip_longest
from pathlib import Path

from pubsub_emulator.emulator.fixtures import DeliveryModel, Fixture, FixtureError
from pubsub_emulator.emulator.state_diff import (
    StateDifference,
    diff_states,
    differing_fields,
    shown,
)
from pubsub_emulator.laboratory.fixture_set import read_vectors
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import Hash, RelayBlockNumber, Slot
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.parachain.block import Candidate, ChainHead, InvalidBlock
from pubsub_emulator.runtime.parachain.validate import RelayContext, judge_block, validate_block
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.manifest import COMMITS, FileEntry
from pubsub_emulator.spark_audit.history.reader import Fault, History
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.rows import DELIVERED, RowError, candidate_of, state_of
from pubsub_emulator.spark_audit.judge.task import ChainFiles, Task, make_tasks

Occasion = tuple[int, int, int | None, int, Hash | None]
"""Chain, block number, slot, relay parent and its storage root."""


class CompareError(PubsubError):
    """A record that cannot be compared because it is damaged, or a folder that is not a record."""


@dataclass(frozen=True)
class RecordedBlock:
    """A block with its context and outcome according to a record."""

    place: str
    """Where it is, in words."""
    chain: int
    candidate: Candidate
    relay: RelayContext
    verdict: str | None
    """The verdict with which it was refused, `None` if it was accepted."""
    pre_root: Hash
    """The root of the state on which it was judged."""
    post_root: Hash
    """The root of the state after it: `pre_root` if it was refused."""
    deliveries: tuple[tuple[object, ...], ...]
    """Its callbacks, as the columns `DELIVERED` of each."""
    pre: Callable[[], tuple[Header, State]] = field(repr=False)
    """Returns the parent and the state on which it was judged. This can take long, as blocks may
    have to be executed."""
    rules: Rules = SHIPPED
    """The rules by which it is executed."""

    @property
    def occasion(self) -> Occasion:
        """A key by which blocks of two implementations for the same turn are matched."""
        header = self.candidate.header
        relay = self.relay
        return self.chain, header.number, header.aura_slot(), relay.number, relay.storage_root

    @property
    def identity(self) -> tuple[int, Hash]:
        """The chain and the block's hash."""
        return self.chain, self.candidate.hash()

    def fields(self) -> dict[str, object]:
        """Return the fields that are compared. Causes come before their effects."""
        header = self.candidate.header
        inherent = self.candidate.inherent
        messages = inherent.messages
        return {
            "pre-state root": self.pre_root,
            "parent": header.parent_hash,
            "number": header.number,
            "slot": header.aura_slot(),
            "relay parent": inherent.relay_parent_number,
            "relay storage root, claimed": inherent.relay_parent_storage_root,
            "relay storage root, by the relay chain": self.relay.storage_root,
            "newest slot allowed": self.relay.slot_now,
            "downward messages": messages.queues()[0][1],
            "horizontal messages": messages.queues()[1:],
            "parent head": inherent.parent_head,
            "max_pov_size": inherent.max_pov_size,
            "hashed messages": (messages.hashed_downward, messages.hashed_horizontal),
            "descendants": inherent.descendants,
            "collator_peer_id": inherent.collator_peer_id,
            "proof": inherent.proof,
            "extrinsics root": header.extrinsics_root,
            "claimed state root": header.state_root,
            "seal": header.aura_seal(),
            "verdict": self.verdict or "accepted",
            "post-state root": self.post_root,
            "callbacks": self.deliveries,
        }


@dataclass(frozen=True, slots=True)
class BlockDifference:
    """Two blocks for the same place that differ."""

    a: str | None
    """The block of the first record in words, `None` if the record has ended."""
    b: str | None
    """The block of the second record in words, `None` if the record has ended."""
    fields: tuple[tuple[str, object, object], ...] = ()
    """The fields that differ, with both values."""
    state: StateDifference | None = None
    which: str = ""
    """Which states are compared: `pre-state` or `post-state`."""
    notes: tuple[str, ...] = ()
    """Remarks about records whose outcome differs from that of executing their block here."""

    def lines(self) -> list[str]:
        """Return the difference in words, in several lines."""
        if self.a is None or self.b is None:
            ended, other = ("A", "B") if self.a is None else ("B", "A")
            return [f"{ended} ends here; {other} continues with {self.a or self.b}"]
        out = [f"A: {self.a}", f"B: {self.b}"]
        for name, mine, theirs in self.fields:
            out += _field_lines(name, mine, theirs)
        out += self.notes
        if self.state is not None:
            out += [f"the {self.which}s differ:", *self.state.lines()]
        return out


def _field_lines(name: str, a: object, b: object) -> list[str]:
    """Return the difference of one field in words.

    If both values are tuples, only the first difference is shown.
    """
    if isinstance(a, tuple) and isinstance(b, tuple):
        pairs = enumerate(zip_longest(a, b))
        index = next((index for index, (in_a, in_b) in pairs if in_a != in_b), 0)
        out = [f"{name} differ"]
        for label, items in (("A", a), ("B", b)):
            text = _text(items[index]) if index < len(items) else "nothing"
            out.append(f"  {label}: {len(items)} in all; at {index}: {text}")
        if name == "proof":
            only_a = len(set(a) - set(b))
            only_b = len(set(b) - set(a))
            out.append(f"  nodes only in A: {only_a}, only in B: {only_b}")
        return out
    return [f"{name} differs", f"  A: {_text(a)}", f"  B: {_text(b)}"]


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return shown(value)
    if isinstance(value, tuple):
        return ", ".join(map(_text, value))
    return "none" if value is None else str(value)


@dataclass(slots=True)
class RecordComparison:
    """The result of a comparison."""

    compared: int = 0
    """Pairs of blocks that were compared."""
    genesis: list[str] = field(default_factory=list)
    """Networks whose relay blocks 0 differ: they have another seed or configuration, so that all
    blocks differ."""
    first: BlockDifference | None = None
    """The first difference."""
    others: list[str] = field(default_factory=list)
    """Further chains or fixtures that differ, in words."""
    unmatched: list[str] = field(default_factory=list)
    """Chains or fixtures that only one record has, in words."""
    partial: bool = False
    """Whether one record is a set of fixtures that shows only some blocks of the other. Blocks that
    only one record has are no difference then."""

    def note(self, name: str, difference: BlockDifference | None) -> None:
        """Count a pair of blocks that was compared, and add its difference if there is one."""
        self.compared += 1
        if difference is not None and self.first is None:
            self.first = difference
        elif difference is not None:
            self.others.append(name)

    @property
    def equal(self) -> bool:
        """Whether there is no difference.

        A comparison that is not partial must also have matched everything. A partial one must have
        compared at least one pair of blocks.
        """
        return self.first is None and (self.compared > 0 if self.partial else not self.unmatched)


def compare(a: Path, b: Path) -> RecordComparison:
    """Compare two records. Raises `CompareError`, `CommitError`, `FixtureError`."""
    first = _open(a)
    second = _open(b)
    if isinstance(first, HistoryRecord):
        if isinstance(second, HistoryRecord):
            return _histories(first, second)
        return _with_fixtures(first, second, swapped=False)
    if isinstance(second, HistoryRecord):
        return _with_fixtures(second, first, swapped=True)
    return _fixtures(first, second)


FixtureRecord = Mapping[str, RecordedBlock]
"""Fixtures as judged blocks, by name."""


def _open(path: Path) -> "HistoryRecord | FixtureRecord":
    """Return the record in a folder: a history, or fixtures."""
    if (path / COMMITS).is_dir():
        return HistoryRecord(path)
    if (path / "history" / COMMITS).is_dir():
        return HistoryRecord(path / "history")
    fixtures = read_vectors(path)
    if not fixtures:
        raise CompareError(
            f"{path}: neither a history (no {COMMITS}/) nor a folder of fixtures (no JSON files)"
        )
    return {fixture.name: judged_fixture(fixture) for fixture in fixtures}


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def judged_fixture(fixture: Fixture) -> RecordedBlock:
    """Return a fixture as a judged block. Raises `FixtureError` if it does not decode."""
    try:
        parent = Header.decode(_bytes(fixture.parent_header))
        candidate = Candidate.decode(_bytes(fixture.candidate))
    except ScaleError as error:
        raise FixtureError(f"{fixture.name}: {error}") from error
    state = State.from_entries([(_bytes(key), _bytes(value)) for key, value in fixture.pre_state])
    relay = fixture.relay
    root = None if relay.storage_root is None else Hash(_bytes(relay.storage_root))
    return RecordedBlock(
        f"fixture {fixture.name}, chain {fixture.chain}, block {candidate.header.number}",
        fixture.chain,
        candidate,
        relay=RelayContext(RelayBlockNumber(relay.number), root, Slot(relay.slot_now)),
        verdict=fixture.expected.verdict,
        pre_root=state.root(),
        post_root=Hash(_bytes(fixture.expected.post_state_root)),
        deliveries=tuple(map(_delivered, fixture.expected.deliveries)),
        pre=lambda: (parent, state),
    )


def _delivered(delivery: DeliveryModel) -> tuple[object, ...]:
    ttl = None if delivery.ttl_state is None else _bytes(delivery.ttl_state)
    return (
        delivery.publisher,
        _bytes(delivery.key),
        delivery.kind,
        _bytes(delivery.entry_hash),
        ttl,
        delivery.failed,
    )


class HistoryRecord:
    """A history as a record: its chains with their blocks in the order of judgement.

    Imported relay proofs are left out.
    """

    def __init__(self, path: Path, rules: Rules = SHIPPED) -> None:
        """Read the manifests of a history.

        Raises `CommitError` if there is no history, and `CompareError` if a manifest is damaged.
        """
        self.path = path
        self.rules = rules
        self.history = History.open(path)
        if self.history.faults:
            fault = self.history.faults[0]
            raise CompareError(f"{path}: {fault.path}: {fault.error}")
        self.chains: dict[tuple[str, int], list[_Segment]] = {}
        for task in make_tasks(self.history.root.uri, self.history.commits):
            for files in task.chains:
                self.chains.setdefault((task.network, files.chain), []).append(
                    _Segment(self, task, files)
                )

    def blocks(self, network: str, chain: int) -> Iterator[RecordedBlock]:
        """Yield a chain's blocks. Raises `CompareError` if something cannot be read."""
        for segment in self.chains[network, chain]:
            yield from segment.blocks()

    def genesis(self, network: str) -> Hash | None:
        """Return the hash of a network's relay block 0, `None` if the history starts later."""
        entries = self.history.files(schema.RELAY_HEADERS, network)[:1]
        return next((row["hash"] for row in self.rows(tuple(entries)) if row["number"] == 0), None)

    def rows(self, entries: Sequence[FileEntry]) -> list[Row]:
        """Return the rows of files. Raises `CompareError` if some cannot be read."""
        faults: list[Fault] = []
        rows = list(self.history.rows(list(entries), faults))
        if faults:
            raise CompareError(
                f"{self.path}: {faults[0].path}: {faults[0].error}; only whole histories are"
                " compared"
            )
        return rows


@dataclass
class _Segment:
    """One segment of one chain. It is read when it is needed."""

    record: HistoryRecord
    task: Task
    files: ChainFiles

    @cached_property
    def candidates(self) -> list[Row]:
        """The rows of its candidates by position."""
        rows = [row for row in self.record.rows(self.files.blocks) if row["status"] != "imported"]
        return sorted(rows, key=lambda row: row["position"])

    @cached_property
    def nodes(self) -> dict[int, bytes]:
        """Its proof nodes by number."""
        return {row["number"]: row["data"] for row in self.record.rows(self.task.nodes)}

    def blocks(self) -> Iterator[RecordedBlock]:
        """Yield its candidates as they were judged."""
        delivered: dict[int, list[Row]] = {}
        for row in self.record.rows(self.files.deliveries):
            delivered.setdefault(row["position"], []).append(row)
        for row in self.candidates:
            rows = sorted(
                delivered.get(row["position"], ()), key=lambda delivery: delivery["sequence"]
            )
            included = row["status"] == "included"
            yield RecordedBlock(
                f"{row['network']}, chain {row['chain']}, block {row['number']} at position"
                f" {row['position']}",
                row["chain"],
                self.candidate(row),
                relay=_relay(row),
                verdict=None if included else row["verdict"],
                pre_root=Hash(row["parent_state_root"]),
                post_root=Hash(row["state_root"] if included else row["parent_state_root"]),
                deliveries=tuple(map(_delivered_row, rows)),
                pre=lambda position=row["position"]: self.before(position),  # type: ignore[misc]  # a default binds the value of now
                rules=self.record.rules,
            )
        # The nodes are large. They are read again if they are needed once more.
        self.__dict__.pop("nodes", None)

    def candidate(self, row: Row) -> Candidate:
        """Return the candidate of a row. Raises `CompareError` if it cannot be rebuilt."""
        try:
            return candidate_of(row, self.nodes)
        except RowError as error:
            place = f"chain {row['chain']}, position {row['position']}"
            raise CompareError(f"{self.record.path}: {place}: {error}") from error

    def before(self, position: int) -> tuple[Header, State]:
        """Return parent and state on which the candidate at a position was judged.

        All included blocks before it are executed again, from the checkpoint on. Raises
        `CompareError` if that is not possible.
        """
        checkpoints = self.record.rows(self.files.checkpoints)
        start = next((row for row in checkpoints if row["segment"] == self.task.segment), None)
        if start is None:
            raise CompareError(
                f"{self.record.path}: chain {self.files.chain} has no checkpoint of"
                f" {self.task.segment}"
            )
        try:
            parent, state = state_of(start)
        except RowError as error:
            raise CompareError(f"{self.record.path}: chain {self.files.chain}: {error}") from error
        for row in self.candidates:
            if row["position"] >= position:
                break
            if row["status"] == "included":
                candidate = self.candidate(row)
                try:
                    head = ChainHead(parent, state, self.record.rules)
                    state = validate_block(head, candidate, _relay(row)).state
                    parent = candidate.header
                except InvalidBlock as invalid:
                    where = f"chain {row['chain']}, position {row['position']}"
                    raise CompareError(
                        f"{self.record.path}: {where} is included and not valid: {invalid}"
                    ) from invalid
        return parent, state


def _delivered_row(row: Row) -> tuple[object, ...]:
    return tuple(row[name] for name in DELIVERED)


def _relay(row: Row) -> RelayContext:
    root = None if row["relay_root"] is None else Hash(row["relay_root"])
    return RelayContext(RelayBlockNumber(row["relay_parent"]), root, Slot(row["slot_now"]))


def difference(a: RecordedBlock, b: RecordedBlock) -> BlockDifference | None:
    """Return the difference of two blocks for the same place, `None` if they are equal.

    If their states before differ, these are compared. Otherwise both blocks are executed, and the
    states after them are compared.
    """
    first = a.fields()
    second = b.fields()
    if first == second:
        return None
    fields = tuple(differing_fields(first, second))
    notes: list[str] = []
    compared = "pre-state"
    state = diff_states(a.pre()[1], b.pre()[1]) if a.pre_root != b.pre_root else None
    if state is None:
        compared = "post-state"
        state = diff_states(_executed("A", a, notes), _executed("B", b, notes))
        if state is None:
            notes.append("executing both leads to equal states")
    return BlockDifference(
        a.place, b.place, fields, state=state, which=compared, notes=tuple(notes)
    )


def _executed(label: str, block: RecordedBlock, notes: list[str]) -> State:
    """Execute a block and return the state after it.

    If verdict or state root differ from the record's, add a remark to `notes`.
    """
    parent, state = block.pre()
    head = ChainHead(parent, state, block.rules)
    outcome, refusal = judge_block(head, block.candidate, block.relay)
    verdict = None if refusal is None else refusal.verdict.value
    state = state if outcome is None else outcome.state
    if verdict != block.verdict:
        recorded = block.verdict or "accepted"
        found = verdict or "accepted"
        notes.append(f"{label} says {recorded}; judging its block here gives {found}")
    elif state.root() != block.post_root:
        notes.append(
            f"{label} says post-state root {shown(block.post_root)}; here it is"
            f" {shown(state.root())}"
        )
    return state


def _histories(a: HistoryRecord, b: HistoryRecord) -> RecordComparison:
    """Compare two histories chain by chain, up to the first difference of each chain."""
    comparison = RecordComparison()
    networks_in_a = sorted({network for network, _ in a.chains})
    networks_in_b = sorted({network for network, _ in b.chains})
    # If each history has one network, these are compared even if they have different names.
    renamed = (
        {networks_in_b[0]: networks_in_a[0]}
        if len(networks_in_a) == len(networks_in_b) == 1
        else {}
    )
    places_in_b = {
        (renamed.get(network, network), chain): (network, chain) for network, chain in b.chains
    }
    original_names = {renamed.get(network, network): network for network in networks_in_b}
    for network in networks_in_a:
        if network in original_names:
            first = a.genesis(network)
            second = b.genesis(original_names[network])
            if first is not None and second is not None and first != second:
                comparison.genesis.append(
                    f"{network}: relay block 0 is {shown(first)} in A and {shown(second)} in B"
                )
    first_differences: list[tuple[tuple[int, bool, int], str, BlockDifference]] = []
    for place in a.chains:
        name = f"{place[0]}, chain {place[1]}"
        if place not in places_in_b:
            comparison.unmatched.append(f"{name} is only in A")
            continue
        for first_block, second_block in zip_longest(
            a.blocks(*place), b.blocks(*places_in_b[place])
        ):
            comparison.compared += first_block is not None and second_block is not None
            block_difference: BlockDifference | None
            if first_block is None or second_block is None:
                places = [
                    None if record is None else record.place
                    for record in (first_block, second_block)
                ]
                block_difference = BlockDifference(places[0], places[1])
            else:
                block_difference = difference(first_block, second_block)
            if block_difference is not None:
                shown_block = first_block or second_block
                number = (
                    0 if shown_block is None else shown_block.candidate.inherent.relay_parent_number
                )
                # If several chains differ first on the same relay parent, one with another state
                # before the block is the cause. The others are its effects.
                caused = all(field != "pre-state root" for field, _, _ in block_difference.fields)
                first_differences.append(((number, caused, place[1]), name, block_difference))
                break
    comparison.unmatched += [
        f"{place[0]}, chain {place[1]} is only in B"
        for place in places_in_b
        if place not in a.chains
    ]
    if first_differences:
        first_differences.sort(key=lambda record: record[0])
        comparison.first = first_differences[0][2]
        comparison.others = [
            f"{name}, from {block_difference.a or block_difference.b} on"
            for _, name, block_difference in first_differences[1:]
        ]
    return comparison


def _with_fixtures(
    history: HistoryRecord, fixtures: FixtureRecord, *, swapped: bool
) -> RecordComparison:
    """Compare fixtures with a history.

    Fixtures may contain any blocks of a history. Those that the history does not have are
    unmatched. `swapped` says that the fixtures are the first record.
    """
    comparison = RecordComparison(partial=True)
    by_identity = {judged.identity: name for name, judged in fixtures.items()}
    blocks = chained.from_iterable(history.blocks(*place) for place in history.chains)
    known = {block.identity for block in blocks}
    by_occasion: dict[Occasion, str] = {}
    for name, judged in fixtures.items():
        # If a fixture's own block is in the history, it must not be compared with another block.
        if judged.identity not in known:
            by_occasion.setdefault(judged.occasion, name)
    remaining = dict(fixtures)
    for place in history.chains:
        for block in history.blocks(*place):
            name = by_identity.get(block.identity, by_occasion.get(block.occasion, ""))
            if name not in remaining:
                continue
            fixture = remaining.pop(name)
            comparison.note(
                name, difference(fixture, block) if swapped else difference(block, fixture)
            )
    comparison.unmatched = [
        f"{judged.place} is not in the history" for judged in remaining.values()
    ]
    return comparison


def _fixtures(a: FixtureRecord, b: FixtureRecord) -> RecordComparison:
    """Compare two sets of fixtures by name."""
    comparison = RecordComparison()
    for name, judged in a.items():
        if name not in b:
            comparison.unmatched.append(f"{judged.place} is only in A")
            continue
        comparison.note(name, difference(judged, b[name]))
    comparison.unmatched += [
        f"{judged.place} is only in B" for name, judged in b.items() if name not in a
    ]
    return comparison
