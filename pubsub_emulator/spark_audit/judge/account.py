"""Running totals of a network's judged segments.

Each new segment is added to them, so that a run never has to look at old segments again (AU-16).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain as chained

from pubsub_emulator.spark_audit.history.manifest import Commit, canonical_json, digest_of
from pubsub_emulator.spark_audit.history.row import JsonObject, Row
from pubsub_emulator.spark_audit.judge.findings import Severity
from pubsub_emulator.spark_audit.judge.results import (
    ChainReceipt,
    Counts,
    FoldReceipt,
    SegmentReceipt,
)


@dataclass(slots=True)
class ChainAccount:
    """The totals of one chain up to some segment of its network. The lists contain segments."""

    first: int
    """The first segment that has anything about the chain."""
    last: int
    """The last segment that has anything about the chain."""
    segments: int = 0
    """Segments that were judged, completely or not."""
    complete: int = 0
    """Segments that were judged to their end."""
    candidates: int = 0
    judged: int = 0
    proof_bytes: int = 0
    errors: int = 0
    """Findings of severity `error` about its blocks."""
    imported: bool = True
    """Whether all its segments have only imported proofs."""
    genesis: bool = False
    """Whether its first judged segment starts at genesis."""
    start: str | None = None
    """Hash, in hex, of the header at which its first judged segment starts."""
    started_in: int | None = None
    """Its first judged segment."""
    end: str | None = None
    """Hash, in hex, of the last header reached."""
    end_number: int | None = None
    incomplete: list[int] = field(default_factory=list)
    """Segments that were not judged to their end."""
    mismatched: list[int] = field(default_factory=list)
    """Segments that do not end where the next one starts."""
    untied: list[int] = field(default_factory=list)
    """Segments whose end could not be compared, because the next segment's checkpoint is not in the
    history."""
    absent: list[int] = field(default_factory=list)
    """Segments without data of the chain, although earlier and later ones have some."""
    since: list[int] = field(default_factory=list)
    """The network's segments after `last`. They become `absent` if a later segment has data of the
    chain."""

    def note_segment(self, segment: int) -> None:
        """Record that a segment has data of the chain."""
        # Earlier segments without data are now gaps between segments that have some.
        self.absent += self.since
        self.since = []
        self.last = segment

    def add(self, receipt: ChainReceipt) -> None:
        """Add the result of judging a segment of the chain."""
        if self.started_in is None:
            self.genesis = receipt["genesis"]
            self.start = receipt["start"]
            self.started_in = receipt["segment"]
        for name in ("complete", "candidates", "judged", "proof_bytes"):
            setattr(self, name, getattr(self, name) + receipt[name])
        self.segments += 1
        self.imported = self.imported and receipt["kind"] == "imported"
        segment = receipt["segment"]
        if not receipt["complete"]:
            self.incomplete.append(segment)
        if receipt["seam"] == "mismatch":
            self.mismatched.append(segment)
        elif receipt["seam"] == "open":
            self.untied.append(segment)
        if receipt["end"] is not None:
            self.end = receipt["end"]
            self.end_number = receipt["end_number"]
        self.errors += sum(
            count for severity, _, count in receipt["findings"] if severity == Severity.ERROR.value
        )


@dataclass(slots=True)
class NetworkAccount:
    """The totals of a network up to its segment `last`, from which the next segment continues."""

    network: str
    last: int = -1
    manifest: str | None = None
    """The name of the last segment's manifest."""
    head: str | None = None
    """The digest of the last segment's manifest."""
    segments: int = 0
    tasks: int = 0
    """Tasks of all segments."""
    surplus: int = 0
    """Data files in its segments' folders that no manifest names."""
    odd: int = 0
    """Files that manifests name although their paths do not say to which segment they belong."""
    rows: str = ""
    """A running digest over the canonical rows of its segments."""
    counts: Counts = field(default_factory=list)
    """Severity, code and number of final findings, which are those of segments and the settled ones
    of folds."""
    read_errors: list[Row] = field(default_factory=list)
    chains: dict[int, ChainAccount] = field(default_factory=dict)
    folds: list[FoldReceipt] = field(default_factory=list)
    """Receipts of the folds that end with the last segment. Each chain is in exactly one of them.
    """
    settled_in: list[str] = field(default_factory=list)
    """Folders of the folds that settled findings. The tables keep their rows."""

    def add(self, commit: Commit, receipts: Sequence[SegmentReceipt]) -> None:
        """Add the next segment with the results of its tasks."""
        chains = chained.from_iterable(receipt["chains"] for receipt in receipts)
        judged = {chain["chain"]: chain for chain in chains}
        for chain in sorted(judged.keys() | commit.next_positions.keys()):
            # A chain with a `next_positions` entry is in the segment even if no task judged it.
            account = self.chains.setdefault(chain, ChainAccount(commit.segment, commit.segment))
            account.note_segment(commit.segment)
        for number, account in self.chains.items():
            if number in judged:
                account.add(judged[number])
            elif account.last == commit.segment:
                # The manifest has a position of the chain, but no task judged it.
                account.absent.append(commit.segment)
            else:
                account.since.append(commit.segment)
        for chain_receipt in judged.values():
            self.count(chain_receipt["findings"])
        for receipt in receipts:
            self.read_errors += receipt["unread"]
        digests = [[chain, judged[chain]["digests"]] for chain in sorted(judged)]
        self.rows = digest_of(canonical_json([self.rows, commit.segment, digests]))
        self.last = commit.segment
        self.manifest = commit.name
        self.head = commit.digest
        self.segments += 1
        self.tasks += len(receipts)

    def close_folds(self, receipts: Sequence[FoldReceipt]) -> None:
        """Replace the folds by those up to the last segment, and add their settled findings."""
        for receipt in receipts:
            self.count(receipt["settled"])
            if receipt["settled"]:
                self.settled_in.append(receipt["folder"])
            self.read_errors += receipt["unread"]
        self.folds = list(receipts)

    def count(self, findings: Counts) -> None:
        """Add findings to `counts`."""
        totals: Counter[tuple[str, str]] = Counter()
        for severity, code, count in (*self.counts, *findings):
            totals[severity, code] += count
        self.counts = [[*name, count] for name, count in sorted(totals.items())]

    def to_json(self) -> dict[str, object]:
        """Return the account in a form for `ledger.json`."""
        return {
            **asdict(self),
            "chains": {str(chain): asdict(self.chains[chain]) for chain in self.chains},
        }

    @staticmethod
    def from_json(data: JsonObject) -> "NetworkAccount":
        """Return the account that `to_json` wrote."""
        chains = {int(chain): ChainAccount(**totals) for chain, totals in data["chains"].items()}
        return NetworkAccount(**{**data, "chains": chains})
