"""The proof sizes of a run, in a `.proof-snapshot` file: TOML whose differences are easy to read.

    format = 1
    scenario = "price feed"
    scenario_hash = "0x…"           # blake2-256 of the scenario without comments and defaults
    relay_blocks = 60

    [3000]                          # a parachain
    blocks = 58                     # counts: if one differs, the work was different, and sizes are
    …                               # not comparable
    proof_bytes = 58_231            # sizes: may grow within a tolerance
    …

    [3000.publishers.1000]
    child_node_bytes = 9_120

A run is deterministic, so that equal code gives an equal file on every machine. A tolerance allows
small intended changes.
"""

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Final
from urllib.parse import quote

from pubsub_emulator.emulator.network.records import (
    BlockRecord,
    Observer,
    RelayRecord,
    SubscriptionRecord,
)
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.files.atomic import write_whole
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import ParaId

FORMAT: Final = 1
SUFFIX: Final = ".proof-snapshot"
"""The end of the names of snapshot files."""

COUNTS: Final = ("blocks", "refused", "delivered", "removed", "relay_blocks")
"""The names of counts, which must not change."""
SIZES: Final = (
    "proof_bytes",
    "proof_nodes",
    "largest_proof_bytes",
    "static_bytes",
    "own_state_bytes",
)
"""The names of sizes of a parachain."""
PUBLISHER_SIZES: Final = ("top_path_bytes", "child_node_bytes", "value_bytes")
"""The names of sizes of a publisher."""


class BadSnapshot(PubsubError):
    """A snapshot file that cannot be read. The message names file and field."""


class BadTolerance(PubsubError):
    """A text that is not a share such as `2%`."""


@dataclass(slots=True)
class ProofSizes(Observer):
    """An observer that adds up the costs of blocks.

    Sizes of nodes are costs, which include the SCALE length prefix.
    """

    scenario: str = ""
    scenario_hash: str = ""
    """The result of `scenario_hash`. Snapshots of different scenarios are not compared."""
    figures: dict[str, int] = field(default_factory=dict)
    """The figures by name, such as `3000.publishers.1000.value_bytes`."""
    _subscribers: set[ParaId] = field(default_factory=set)

    @staticmethod
    def of(simulation: Simulation, progress: Callable[[int], None] | None = None) -> "ProofSizes":
        """Run a scenario to its end and return its figures."""
        sizes = ProofSizes(simulation.scenario.name, scenario_hash(simulation.scenario))
        simulation.network.observe(sizes)
        simulation.run(progress)
        return sizes

    # An observer

    def relay_block(self, record: RelayRecord) -> None:
        """Count a relay block."""
        self.figures["relay_blocks"] = record.number

    def subscriptions(self, record: SubscriptionRecord) -> None:
        """Store that a parachain subscribes.

        Parachains without subscriptions are left out, because their proofs have no nodes for
        publishers.
        """
        if record.items:
            self._subscribers.add(record.chain)

    def candidate(self, record: BlockRecord) -> None:
        """Add the costs of a valid block, or count an invalid one."""
        if record.chain not in self._subscribers:
            return
        chain = str(record.chain)
        if record.outcome is None:
            self._add(f"{chain}.refused", 1)
            return
        ledger = record.outcome.ledger
        deliveries = record.outcome.deliveries
        removed = sum(delivery.value is None for delivery in deliveries)
        self._add(f"{chain}.blocks", 1)
        self._add(f"{chain}.delivered", len(deliveries) - removed)
        self._add(f"{chain}.removed", removed)
        for name in ("proof_bytes", "proof_nodes", "static_bytes", "own_state_bytes"):
            self._add(f"{chain}.{name}", getattr(ledger, name))
        largest = f"{chain}.largest_proof_bytes"
        self.figures[largest] = max(self.figures.get(largest, 0), ledger.proof_bytes)
        for publisher in ledger.publishers:
            for name in PUBLISHER_SIZES:
                self._add(f"{chain}.publishers.{publisher.para}.{name}", getattr(publisher, name))

    def _add(self, name: str, count: int) -> None:
        self.figures[name] = self.figures.get(name, 0) + count

    # A file

    def text(self) -> str:
        """Return the content of the file."""
        writers = "`pubsub proof-snapshot` or the fixture `proof_snapshot`"
        lines = [f"# What proofs weigh; written by {writers}.", f"format = {FORMAT}"]
        if self.scenario:
            # A basic string of TOML is one of JSON, except that U+007F must be escaped.
            quoted = json.dumps(self.scenario, ensure_ascii=False).replace("\x7f", "\\u007f")
            lines += [f"scenario = {quoted}", f'scenario_hash = "{self.scenario_hash}"']
        tables: dict[str, dict[str, int]] = {}
        for name, figure in self.figures.items():
            table, _, last = name.rpartition(".")
            tables.setdefault(table, {})[last] = figure
        for table in sorted(tables, key=_by_number):
            lines += ["", f"[{table}]"] if table else []
            order = (*COUNTS, *SIZES, *PUBLISHER_SIZES)
            lines += [
                f"{name} = {tables[table][name]:_}" for name in order if name in tables[table]
            ]
        return "\n".join(lines) + "\n"

    def write(self, path: Path) -> None:
        """Write the file atomically. Raises `OSError`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, self.text())


def read_sizes(path: Path) -> ProofSizes:
    """Return the figures in a file. Raises `BadSnapshot` or `OSError`."""
    try:
        data = tomllib.loads(path.read_bytes().decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSnapshot(f"{path}: not a proof snapshot: {error}") from None
    file_format = data.pop("format", None)
    if file_format != FORMAT:
        raise BadSnapshot(f"{path}: format is {file_format!r}, this program reads {FORMAT}")
    scenario = data.pop("scenario", "")
    digest = data.pop("scenario_hash", "")
    if not isinstance(scenario, str) or not isinstance(digest, str):
        raise BadSnapshot(f"{path}: scenario and scenario_hash must be strings")
    sizes = ProofSizes(scenario, digest)
    _flatten(path, "", data, into=sizes.figures)
    return sizes


def _flatten(path: Path, table: str, data: Mapping[str, object], into: dict[str, int]) -> None:
    """Add the figures of a table and of the tables in it to `into`."""
    for name, value in data.items():
        full = f"{table}.{name}" if table else name
        if isinstance(value, dict):
            _flatten(path, full, value, into=into)
        elif isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise BadSnapshot(f"{path}: {full} is {value!r}, not a count or a size")
        elif name not in (*COUNTS, *SIZES, *PUBLISHER_SIZES):
            raise BadSnapshot(f"{path}: {full} is not a field of a proof snapshot")
        else:
            into[full] = value


def scenario_hash(scenario: Scenario) -> str:
    """Return a hash of the scenario's content without its description."""
    content = scenario.model_dump_json(exclude_defaults=True, exclude={"description"})
    return hexed(blake2_256(content.encode()))


@dataclass(frozen=True, slots=True)
class ChangedFigure:
    """A changed figure."""

    name: str
    kept: int | None
    """The stored figure, `None` for a new one."""
    now: int | None
    """The measured figure, `None` if it is gone."""
    exceeds: bool
    """Whether the change is beyond the tolerance."""

    @property
    def share(self) -> str:
        """Return the change in per cent of the stored figure."""
        if not self.kept or self.now is None:
            return "new" if self.now else "gone"
        return f"{100 * (self.now - self.kept) / self.kept:+.1f} %"

    def __str__(self) -> str:
        kept, now = ("-" if figure is None else f"{figure:,}" for figure in (self.kept, self.now))
        return f"{self.name}: {kept} → {now} ({self.share})"


def compare(kept: ProofSizes, now: ProofSizes, tolerance: Fraction) -> list[ChangedFigure]:
    """Return the changed figures in the order of the file.

    A size may grow by `tolerance`. A count must not change.
    """
    changes = []
    for name in dict.fromkeys([*kept.figures, *now.figures]):
        stored = kept.figures.get(name)
        measured = now.figures.get(name)
        if stored == measured:
            continue
        if name.rpartition(".")[2] in COUNTS or stored is None or measured is None:
            exceeds = (stored or 0) != (measured or 0)
        else:
            exceeds = measured > stored * (1 + tolerance)
        changes.append(ChangedFigure(name, stored, measured, exceeds=exceeds))
    return sorted(changes, key=lambda change: _by_number(change.name))


def verdict(kept: ProofSizes, now: ProofSizes, tolerance: Fraction) -> list[str]:
    """Return the figures that exceed the tolerance, or that the scenario is another one."""
    if kept.scenario_hash != now.scenario_hash:
        return [
            (
                f"the snapshot is of another scenario than {now.scenario or 'this'}, or of an"
                " earlier version of it"
            )
        ]
    return [str(change) for change in compare(kept, now, tolerance) if change.exceeds]


def parse_tolerance(text: str) -> Fraction:
    """Return the share in a text such as `2%`, `0.5 %` or `0`. Raises `BadTolerance`."""
    try:
        share = Fraction(text.strip().removesuffix("%").strip()) / 100
    except (ValueError, ZeroDivisionError):
        share = Fraction(-1)
    if share < 0 or ("%" not in text and share):
        raise BadTolerance(f"{text!r} is not a tolerance; write a share such as 2%")
    return share


def _by_number(name: str) -> tuple[tuple[int, str], ...]:
    """Return the sort key of a name: parachains by id, and counts before sizes."""
    rank = len(_RANKS)
    return tuple(
        (int(part), "") if part.isdecimal() else (_RANKS.get(part, rank), part)
        for part in name.split(".")
    )


_RANKS: Final = {
    part: rank for rank, part in enumerate(("", *COUNTS, *SIZES, "publishers", *PUBLISHER_SIZES))
}


# The fixture `proof_snapshot`

FOLDER = "__proof_snapshots__"
"""The folder of snapshots beside a test file."""


class ProofsGrew(AssertionError):
    """Figures that exceed the stored ones by more than the tolerance, or are not stored yet."""


@dataclass(frozen=True, slots=True)
class ProofSnapshot:
    """The fixture's object. Call it with the measured figures.

    With `--proof-snapshot-update`, it writes them instead of checking them.
    """

    folder: Path
    """The folder of the test file."""
    test: str
    """The name of the test."""
    update: bool

    def __call__(
        self, measured: Simulation | ProofSizes, tolerance: str = "0%", name: str = ""
    ) -> None:
        """Check the proof sizes of a scenario, which is run to its end, or of a `ProofSizes`.

        `name` distinguishes several snapshots of one test. Raises `ProofsGrew`, `BadTolerance` or
        `BadSnapshot`.
        """
        share = parse_tolerance(tolerance)
        now = ProofSizes.of(measured) if isinstance(measured, Simulation) else measured
        path = self.path(name)
        if self.update:
            now.write(path)
            return
        if not path.exists():
            raise ProofsGrew(f"{path} is not there yet: --proof-snapshot-update writes it")
        problems = verdict(read_sizes(path), now, share)
        if problems:
            lines = "\n".join(f"  {line}" for line in problems)
            raise ProofsGrew(
                f"{path}, tolerance {tolerance}; --proof-snapshot-update stores the present"
                f" figures:\n{lines}"
            )

    def path(self, name: str = "") -> Path:
        """Return the file of this test's snapshot with that name."""
        stem = quote(f"{self.test}-{name}" if name else self.test, safe="[]- ")
        return self.folder / FOLDER / f"{stem}{SUFFIX}"
