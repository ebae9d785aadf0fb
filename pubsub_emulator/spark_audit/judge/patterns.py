"""Patterns: habits in a chain's blocks that only a history shows, as findings (AU-2).

Their severity is `info`. The memory of earlier blocks has a fixed maximum size, however long the
history is, and an audit continues from it when the history grows (AU-16).

Only facts that the chain knows move the memory forward: the slot of the relay block in which a
candidate was judged, and included valid blocks. A refused candidate can claim any slot, so its
claim must neither make the memory grow nor make it forget.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pubsub_emulator.spark_audit.history.row import JsonObject, Row
from pubsub_emulator.spark_audit.history.rows import BLOCK_PLACE
from pubsub_emulator.spark_audit.judge import findings
from pubsub_emulator.spark_audit.judge.evidence import (
    equivocation_evidence,
    figures_evidence,
    hexed,
)
from pubsub_emulator.spark_audit.judge.findings import Severity, Thresholds, finding_row

HABIT_COLUMNS: Final = (
    *BLOCK_PLACE,
    "slot_now",
    "status",
    "verdict",
    "judged",
    "slot",
    "collator",
    "sealed",
    "relay_parent",
    "relay_lag",
    "budget",
    "used",
    "stopped",
    "expired_valid",
    "cursor_before",
    "cursor_after",
)
"""Columns of `block_measures` that patterns need."""

SERVED_COLUMNS: Final = ("publisher", "resolved", "unchanged")
"""Columns of `publisher_measures` that patterns need, beside the block's position."""

SLOT_WINDOW: Final = 1024
"""Two headers for one slot are noticed if both were judged at most this many slots away from it."""
MOST_SEALS: Final = 8 * SLOT_WINDOW
"""The maximum number of seals in the memory. One set of collators has at most two for each slot of
the window, so only a chain that keeps replacing its collators reaches it."""
MOST_RUNS: Final = 4096
"""The maximum number of runs, and of publishers, in the memory."""
_MILLION: Final = 1_000_000


Headers = Callable[[int, int], bytes | None]
"""Returns a candidate's encoded header, given its segment and position; `None` if it cannot be
read."""

PublisherRows = Callable[[int, int], list[Row]]
"""Returns a block's measures by publisher, given its segment and position; an empty list if the
block read no publisher."""


class _Place(NamedTuple):
    """The columns that identify a block and its author."""

    segment: int
    position: int
    number: int
    block: bytes
    collator: bytes | None

    @staticmethod
    def of(row: Row) -> "_Place":
        return _Place(
            row["segment"],
            row["position"],
            row["number"],
            block=row["block"],
            collator=row["collator"],
        )

    def to_json(self) -> list[object]:
        return [*self[:3], self.block.hex(), hexed(self.collator)]

    @staticmethod
    def from_json(data: list[Any]) -> "_Place":
        segment, position, number, block, collator = data
        return _Place(
            segment,
            position,
            number,
            block=bytes.fromhex(block),
            collator=collator and bytes.fromhex(collator),
        )


@dataclass(slots=True)
class _Run:
    """Consecutive blocks with the same habit."""

    first: _Place
    last: _Place
    length: int = 0
    """Number of blocks."""
    max_figure: int = 0
    """The largest figure (a lag or a share of the budget) of the blocks."""

    def add(self, row: Row, figure: int) -> None:
        self.last = _Place.of(row)
        self.length += 1
        self.max_figure = max(self.max_figure, figure)


class HabitMemory:
    """The memory of a chain's earlier blocks that is needed to find patterns in later ones."""

    def __init__(self, limits: Thresholds) -> None:
        self.limits = limits
        self.min_lengths = {
            findings.RELAY_LAG: 1,
            findings.STALLING: limits.stalled_blocks,
            findings.AT_BUDGET: limits.at_budget_blocks,
            findings.STARVATION: limits.starved_blocks,
        }
        """Blocks that a run must have to be a finding, by code."""
        self.chain: tuple[str, int] = ("", 0)
        """Network and ParaId."""
        self.runs: dict[tuple[str, str], _Run] = {}
        """Runs that may continue, by code and by the collator or publisher concerned."""
        self.slots: dict[tuple[int, bytes], _Place] = {}
        """The first block that an author sealed for a slot, by slot and author."""
        self.reported: set[tuple[int, bytes]] = set()
        """Slots and authors whose equivocation is reported already."""
        self.slot_now = 0
        """The newest slot that the chain is known to have reached."""
        self.crowded = False
        """Whether seals were forgotten although their slots are within the window."""
        self.last: tuple[int, bytes | None] | None = None
        """Relay parent and cursor of the last valid included block."""
        self.known: dict[int, None] = {}
        """Publishers that any block has met, in the order in which they were last met."""

    def add(
        self, blocks: Iterable[Row], publishers: PublisherRows, headers: Headers
    ) -> Iterator[Row]:
        """Add more blocks of the chain, in order, and yield the findings that are now certain.

        `publishers` and `headers` read further data of a block when it is needed.
        """
        for row in blocks:
            self.chain = (row["network"], row["chain"])
            if not row["judged"] or row["status"] == "imported":
                continue
            self.advance(row)
            yield from self.equivocation(row, headers)
            if row["status"] == "included" and row["verdict"] is None:
                yield from self.included(row, publishers(row["segment"], row["position"]))

    def to_json(self) -> dict[str, object]:
        """Return the memory in a form for the state of a fold."""
        return {
            "chain": list(self.chain),
            "runs": [
                [*key, run.first.to_json(), run.last.to_json(), run.length, run.max_figure]
                for key, run in self.runs.items()
            ],
            "slots": [
                [slot, author.hex(), place.to_json()]
                for (slot, author), place in self.slots.items()
            ],
            "reported": sorted([slot, author.hex()] for slot, author in self.reported),
            "slot_now": self.slot_now,
            "crowded": self.crowded,
            "last": None if self.last is None else [self.last[0], hexed(self.last[1])],
            "known": list(self.known),
        }

    @staticmethod
    def from_json(data: JsonObject, limits: Thresholds) -> "HabitMemory":
        """Return the memory that `to_json` wrote."""
        out = HabitMemory(limits)
        network, chain = data["chain"]
        out.chain = (network, chain)
        for code, actor, first, last, length, max_figure in data["runs"]:
            out.runs[code, actor] = _Run(
                _Place.from_json(first), _Place.from_json(last), length, max_figure=max_figure
            )
        out.slots = {
            (slot, bytes.fromhex(author)): _Place.from_json(place)
            for slot, author, place in data["slots"]
        }
        out.reported = {(slot, bytes.fromhex(author)) for slot, author in data["reported"]}
        out.slot_now = data["slot_now"]
        out.crowded = data["crowded"]
        if data["last"] is not None:
            relay_parent, cursor = data["last"]
            out.last = relay_parent, None if cursor is None else bytes.fromhex(cursor)
        out.known = dict.fromkeys(data["known"])
        return out

    def advance(self, row: Row) -> None:
        """Move on to the slot in which a row was judged, and forget seals for slots long before it.

        That slot is the relay chain's. If it is not known, the block's own slot is used if the
        block is included and valid: such a slot is never in the future.
        """
        newest = self.slot_now
        if row["slot_now"] is not None:
            newest = max(newest, row["slot_now"])
        elif row["slot"] is not None and row["status"] == "included" and row["verdict"] is None:
            newest = max(newest, row["slot"])
        if newest == self.slot_now:
            return
        self.slot_now = newest
        self.forget([place for place in self.slots if place[0] < newest - SLOT_WINDOW])

    def make_room(self) -> None:
        """Forget a quarter of the seals if there are too many, those for the farthest slots first.

        A seal whose slot was reported already is kept as long as possible, so that it is not
        reported twice.
        """
        if len(self.slots) <= MOST_SEALS:
            return
        self.crowded = True

        def priority(place: tuple[int, bytes]) -> tuple[bool, int, tuple[int, bytes]]:
            return place in self.reported, -abs(place[0] - self.slot_now), place

        self.forget(sorted(self.slots, key=priority)[: MOST_SEALS // 4])

    def forget(self, places: Iterable[tuple[int, bytes]]) -> None:
        """Forget the seals for these slots."""
        for place in places:
            del self.slots[place]
            self.reported.discard(place)

    def equivocation(self, row: Row, headers: Headers) -> Iterator[Row]:
        """Yield a finding if the block's author sealed another header for the same slot.

        An author is reported once for a slot. A finding needs both headers as evidence. A slot that
        is far from the present one is not remembered, because a refused candidate may claim any
        slot.
        """
        slot = row["slot"]
        author = row["collator"]
        if slot is None or author is None or not row["sealed"]:
            return
        if abs(slot - self.slot_now) > SLOT_WINDOW:
            return
        place = (slot, author)
        first = self.slots.setdefault(place, _Place.of(row))
        self.make_room()
        if first.block == row["block"] or place in self.reported:
            return
        first_header = headers(first.segment, first.position)
        second_header = headers(row["segment"], row["position"])
        # Without one of the headers, the history cannot prove the equivocation.
        if first_header is None or second_header is None:
            return
        self.reported.add(place)
        detail = f"blocks {first.block.hex()} and {row['block'].hex()} for slot {slot}"
        subject = slot.to_bytes(8, "little") + author
        evidence = equivocation_evidence(author, first_header, second_header)
        yield self.finding(
            _Place.of(row), findings.EQUIVOCATION, subject, evidence=evidence, detail=detail
        )

    def included(self, row: Row, publishers: list[Row]) -> Iterator[Row]:
        """Add an included valid block to the runs, and yield the findings that are now certain.

        Runs of lag and budget have the blocks of one collator. Runs of stalling and starvation have
        all blocks of the chain.
        """
        limits = self.limits
        author = row["collator"].hex()
        lag = row["relay_lag"]
        yield from self.run(
            findings.RELAY_LAG, author, row, figure=lag, holds=lag >= limits.relay_lag
        )
        stalled = self.last is not None and self.last[0] == row["relay_parent"]
        yield from self.run(findings.STALLING, "", row, figure=lag, holds=stalled)
        share = row["used"] * _MILLION // row["budget"]
        full = row["stopped"] or share >= limits.budget_ppm
        yield from self.run(findings.AT_BUDGET, author, row, figure=share, holds=full)
        if self.last is not None and self.last[1] != row["cursor_before"]:
            evidence = figures_evidence(
                {"after": hexed(self.last[1]), "before": hexed(row["cursor_before"])}
            )
            detail = "the cursor is not where the block before left it"
            yield self.finding(
                _Place.of(row), findings.CURSOR_JUMP, row["block"], evidence=evidence, detail=detail
            )
        if row["expired_valid"]:
            evidence = figures_evidence({"deliveries": row["expired_valid"], "relay_lag": lag})
            detail = (
                f"{row['expired_valid']} entries had expired when the block was judged, {lag} after"
                " its relay parent"
            )
            yield self.finding(
                _Place.of(row),
                findings.EXPIRED_AS_VALID,
                row["block"],
                evidence=evidence,
                detail=detail,
            )
        served = {
            measures["publisher"]
            for measures in publishers
            if measures["resolved"] or measures["unchanged"]
        }
        yield from self.remember(measures["publisher"] for measures in publishers)
        for publisher in sorted(self.known):
            starved = row["stopped"] and publisher not in served
            yield from self.run(
                findings.STARVATION, str(publisher), row, figure=share, holds=starved
            )
        self.last = (row["relay_parent"], row["cursor_after"])

    def remember(self, publishers: Iterable[int]) -> Iterator[Row]:
        """Remember the publishers that a block read, the latest last.

        If there are too many, forget the one that was read longest ago, and yield a finding if its
        run is long enough.
        """
        for publisher in publishers:
            self.known.pop(publisher, None)
            self.known[publisher] = None
        while len(self.known) > MOST_RUNS:
            forgotten = next(iter(self.known))
            del self.known[forgotten]
            yield from self.end(findings.STARVATION, str(forgotten))

    def run(self, code: str, actor: str, row: Row, figure: int, *, holds: bool) -> Iterator[Row]:
        """Lengthen a run of blocks with one habit, or end it and yield its finding.

        `holds` says whether this block has the habit. `actor` is the collator or publisher that the
        habit is about, empty for the whole chain. `figure` is a lag or a share of the budget; the
        finding names the largest one of its run.
        """
        key = (code, actor)
        if holds:
            if key not in self.runs:
                self.runs[key] = _Run(_Place.of(row), _Place.of(row))
            self.runs[key].add(row, figure)
            # If a collator stops building blocks, its run does not end by itself.
            while len(self.runs) > MOST_RUNS:
                yield from self.end(*next(iter(self.runs)))
            return
        yield from self.end(code, actor)

    def end(self, code: str, actor: str) -> Iterator[Row]:
        """End a run, if there is one, and yield its finding if it was long enough."""
        run = self.runs.pop((code, actor), None)
        if run is not None and run.length >= self.min_lengths[code]:
            yield self.report(code, actor, run)

    def open_runs(self) -> Iterator[Row]:
        """Yield findings about runs that reach the last block. Later blocks may lengthen them."""
        for (code, actor), run in sorted(self.runs.items(), key=lambda entry: entry[0]):
            if run.length >= self.min_lengths[code]:
                yield self.report(code, actor, run)

    def report(self, code: str, actor: str, run: _Run) -> Row:
        """Return the finding about a run."""
        ends = {
            name: [place.number, place.block.hex()]
            for name, place in (("first", run.first), ("last", run.last))
        }
        figures = {"subject": actor, "blocks": run.length, "most": run.max_figure, **ends}
        detail = _WORDS[code].format(length=run.length, most=run.max_figure, who=actor)
        return self.finding(
            run.first,
            code,
            actor.encode() + run.first.block,
            evidence=figures_evidence(figures),
            detail=detail,
        )

    def finding(
        self, place: _Place, code: str, subject: bytes, evidence: bytes, detail: str
    ) -> Row:
        """Return a finding of severity `info` about a block."""
        return finding_row(
            self.chain,
            code,
            Severity.INFO,
            subject=subject,
            evidence=evidence,
            detail=detail,
            place=place._asdict(),
        )


_WORDS: Final = {
    findings.RELAY_LAG: "{length} blocks on relay parents up to {most} relay blocks old",
    findings.STALLING: "{length} blocks in a row on the relay parent of the block before",
    findings.AT_BUDGET: "{length} blocks in a row at the budget, up to {most} millionths of it",
    findings.STARVATION: (
        "publisher {who} was not served for {length} blocks in a row while the budget ran out"
    ),
}
