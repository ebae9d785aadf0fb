"""Habits of a chain's blocks beyond thresholds, which only a history shows, as findings of severity `info` (AU-2).

What is kept between rows is bounded whatever the history's length, so that a longer one goes on from there (AU-16).
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pubsub_emulator.spark_audit.history.row import Kept, Row
from pubsub_emulator.spark_audit.history.rows import BLOCK_PLACE
from pubsub_emulator.spark_audit.judge import findings
from pubsub_emulator.spark_audit.judge.evidence import equivocation_evidence, figures_evidence, hexed
from pubsub_emulator.spark_audit.judge.findings import Severity, Thresholds, finding_row

HABIT_COLUMNS: Final = (
    *(*BLOCK_PLACE, "status", "verdict", "judged", "slot", "collator", "sealed", "relay_parent", "relay_lag"),
    *("budget", "used", "stopped", "expired_valid", "cursor_before", "cursor_after"),
)
"""What is read of `block_measures`."""

SERVED_COLUMNS: Final = ("publisher", "complete", "unchanged")
"""What is read of `publisher_measures`, once its rows are at their block."""

_SLOT_WINDOW: Final = 1024  # slots behind the newest one within which two headers of one slot are noticed
_MILLION: Final = 1_000_000


Headers = Callable[[int, int], bytes | None]
"""Reads a candidate's encoded header by segment and position, none when it cannot be read."""

PublisherRows = Callable[[int, int], list[Row]]
"""Reads a block's measures by publisher, by segment and position; none for a block that met no publisher."""


class _Place(NamedTuple):
    """The fields of a row that name a block and its author."""

    segment: int
    position: int
    number: int
    block: bytes
    collator: bytes | None

    @staticmethod
    def of(row: Row) -> "_Place":
        return _Place(row["segment"], row["position"], row["number"], row["block"], row["collator"])

    def to_json(self) -> list[object]:
        return [*self[:3], self.block.hex(), hexed(self.collator)]

    @staticmethod
    def from_json(data: list[Any]) -> "_Place":
        segment, position, number, block, collator = data
        return _Place(segment, position, number, bytes.fromhex(block), collator and bytes.fromhex(collator))


@dataclass(slots=True)
class _Run:
    """Consecutive blocks with the same habit."""

    first: _Place
    last: _Place
    length: int = 0
    most: int = 0

    def add(self, row: Row, figure: int) -> None:
        self.last = _Place.of(row)
        self.length += 1
        self.most = max(self.most, figure)


class HabitMemory:
    """The state that is kept between a chain's blocks."""

    def __init__(self, limits: Thresholds) -> None:
        self.limits = limits
        self.least = {
            findings.RELAY_LAG: 1,
            findings.STALLING: limits.stalled_blocks,
            findings.AT_BUDGET: limits.at_budget_blocks,
            findings.STARVATION: limits.starved_blocks,
        }
        """How long a run is told of."""
        self.chain: tuple[str, int] = ("", 0)
        self.runs: dict[tuple[str, str], _Run] = {}
        self.slots: dict[tuple[int, bytes], _Place] = {}
        self.reported: set[tuple[int, bytes]] = set()
        self.newest_slot = 0
        self.last: tuple[int, bytes | None] | None = None  # relay parent and cursor of the last valid included block
        self.known: dict[int, None] = {}

    def add(self, blocks: Iterable[Row], publishers: PublisherRows, headers: Headers) -> Iterator[Row]:
        """Go on through more rows of the chain; gives the findings that they settle."""
        for row in blocks:
            self.chain = (row["network"], row["chain"])
            if not row["judged"] or row["status"] == "imported":
                continue
            yield from self.equivocation(row, headers)
            if row["status"] == "included" and row["verdict"] is None:
                yield from self.included(row, publishers(row["segment"], row["position"]))

    def to_json(self) -> dict[str, object]:
        """JSON that is kept between folds."""
        return {
            "chain": list(self.chain),
            "runs": [
                [*key, run.first.to_json(), run.last.to_json(), run.length, run.most] for key, run in self.runs.items()
            ],
            "slots": [[slot, author.hex(), place.to_json()] for (slot, author), place in self.slots.items()],
            "reported": sorted([slot, author.hex()] for slot, author in self.reported),
            "newest_slot": self.newest_slot,
            "last": None if self.last is None else [self.last[0], hexed(self.last[1])],
            "known": list(self.known),
        }

    @staticmethod
    def from_json(data: Kept, limits: Thresholds) -> "HabitMemory":
        """The inverse of `to_json`."""
        out = HabitMemory(limits)
        network, chain = data["chain"]
        out.chain = (network, chain)
        for code, who, first, last, length, most in data["runs"]:
            out.runs[code, who] = _Run(_Place.from_json(first), _Place.from_json(last), length, most)
        out.slots = {(slot, bytes.fromhex(author)): _Place.from_json(at) for slot, author, at in data["slots"]}
        out.reported = {(slot, bytes.fromhex(author)) for slot, author in data["reported"]}
        out.newest_slot = data["newest_slot"]
        if data["last"] is not None:
            relay_parent, cursor = data["last"]
            out.last = relay_parent, None if cursor is None else bytes.fromhex(cursor)
        out.known = dict.fromkeys(data["known"])
        return out

    def equivocation(self, row: Row, headers: Headers) -> Iterator[Row]:
        """Two different headers, both sealed by the author whose turn it is, for one slot."""
        slot, author = row["slot"], row["collator"]
        if slot is None or author is None or not row["sealed"]:
            return
        if slot > self.newest_slot:
            self.newest_slot = slot
            for old in [key for key in self.slots if key[0] < slot - _SLOT_WINDOW]:
                del self.slots[old]
                self.reported.discard(old)
        place = (slot, author)
        first = self.slots.setdefault(place, _Place.of(row))
        if first.block == row["block"] or place in self.reported:
            return
        pair = [headers(at.segment, at.position) for at in (first, _Place.of(row))]
        if pair[0] is None or pair[1] is None:
            return
        self.reported.add(place)
        detail = f"blocks {first.block.hex()} and {row['block'].hex()} for slot {slot}"
        subject = slot.to_bytes(8, "little") + author
        evidence = equivocation_evidence(author, pair[0], pair[1])
        yield self.finding(_Place.of(row), findings.EQUIVOCATION, subject, evidence, detail)

    def included(self, row: Row, publishers: list[Row]) -> Iterator[Row]:
        """All habits of included blocks."""
        limits = self.limits
        author = row["collator"].hex()
        lag = row["relay_lag"]
        yield from self.run(findings.RELAY_LAG, author, row, lag, holds=lag >= limits.relay_lag)
        stalled = self.last is not None and self.last[0] == row["relay_parent"]
        yield from self.run(findings.STALLING, "", row, lag, holds=stalled)
        share = row["used"] * _MILLION // row["budget"]
        full = row["stopped"] or share >= limits.budget_ppm
        yield from self.run(findings.AT_BUDGET, author, row, share, holds=full)
        if self.last is not None and self.last[1] != row["cursor_before"]:
            evidence = figures_evidence({"after": hexed(self.last[1]), "before": hexed(row["cursor_before"])})
            said = "the cursor is not where the block before left it"
            yield self.finding(_Place.of(row), findings.CURSOR_JUMP, row["block"], evidence, said)
        if row["expired_valid"]:
            evidence = figures_evidence({"deliveries": row["expired_valid"], "relay_lag": lag})
            said = f"{row['expired_valid']} entries had expired when the block was judged, {lag} after its relay parent"
            yield self.finding(_Place.of(row), findings.EXPIRED_AS_VALID, row["block"], evidence, said)
        served = {each["publisher"] for each in publishers if each["complete"] or each["unchanged"]}
        self.known.update(dict.fromkeys(each["publisher"] for each in publishers))
        for publisher in sorted(self.known):
            waits = row["stopped"] and publisher not in served
            yield from self.run(findings.STARVATION, str(publisher), row, share, holds=waits)
        self.last = row["relay_parent"], row["cursor_after"]

    def run(self, code: str, who: str, row: Row, figure: int, *, holds: bool) -> Iterator[Row]:
        """Lengthen, or end and report, a run of blocks with one habit."""
        key = (code, who)
        if holds:
            run = self.runs.get(key)
            if run is None:
                run = self.runs[key] = _Run(_Place.of(row), _Place.of(row))
            run.add(row, figure)
            return
        run = self.runs.pop(key, None)
        if run is not None and run.length >= self.least[code]:
            yield self.report(code, who, run)

    def open_runs(self) -> Iterator[Row]:
        """The findings about runs that last to the end; more rows may lengthen them."""
        for (code, who), run in sorted(self.runs.items(), key=lambda entry: entry[0]):
            if run.length >= self.least[code]:
                yield self.report(code, who, run)

    def report(self, code: str, who: str, run: _Run) -> Row:
        """The finding about a run."""
        ends = {name: [at.number, at.block.hex()] for name, at in (("first", run.first), ("last", run.last))}
        figures = {"subject": who, "blocks": run.length, "most": run.most, **ends}
        detail = _WORDS[code].format(length=run.length, most=run.most, who=who)
        return self.finding(run.first, code, who.encode() + run.first.block, figures_evidence(figures), detail)

    def finding(self, at: _Place, code: str, subject: bytes, evidence: bytes, detail: str) -> Row:
        """A finding of severity `info` about a block."""
        return finding_row(self.chain, code, Severity.INFO, subject, evidence, detail, at._asdict())


_WORDS: Final = {
    findings.RELAY_LAG: "{length} blocks on relay parents up to {most} relay blocks old",
    findings.STALLING: "{length} blocks in a row on the relay parent of the block before",
    findings.AT_BUDGET: "{length} blocks in a row at the budget, up to {most} millionths of it",
    findings.STARVATION: "publisher {who} was not served for {length} blocks in a row while the budget ran out",
}
