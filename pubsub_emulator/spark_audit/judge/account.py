"""Totals of a network's judged segments, added up so that no run looks at all of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from pubsub_emulator.spark_audit.history.manifest import Commit, canonical_json, digest_of
from pubsub_emulator.spark_audit.history.row import Kept, Row
from pubsub_emulator.spark_audit.judge.findings import Severity
from pubsub_emulator.spark_audit.judge.results import ChainReceipt, Counts, FoldReceipt, SegmentReceipt


@dataclass(slots=True)
class ChainAccount:
    """One chain up to some segment of its network; lists are of segments."""

    first: int
    """The first segment that speaks of the chain, and the last one."""
    last: int
    segments: int = 0
    complete: int = 0
    candidates: int = 0
    judged: int = 0
    proof_bytes: int = 0
    errors: int = 0
    """Findings of severity `error` about its blocks."""
    imported: bool = True
    """Whether it has nothing but imported proofs."""
    genesis: bool = False
    """Whether the first segment of it starts at genesis."""
    start: str | None = None
    started_in: int | None = None
    end: str | None = None
    end_number: int | None = None
    incomplete: list[int] = field(default_factory=list)
    mismatched: list[int] = field(default_factory=list)
    untied: list[int] = field(default_factory=list)
    """Those whose end is not in the history."""
    absent: list[int] = field(default_factory=list)
    """Those between the first and the last one that hold nothing of it."""
    since: list[int] = field(default_factory=list)
    """The network's segments after the last one that speaks of it."""

    def meet(self, segment: int) -> None:
        """Note that a segment has rows of the chain."""
        self.absent += self.since
        self.since = []
        self.last = segment

    def add(self, receipt: ChainReceipt) -> None:
        """Add the result of a segment of the chain."""
        if self.started_in is None:
            self.genesis, self.start, self.started_in = receipt["genesis"], receipt["start"], receipt["segment"]
        for name in ("complete", "candidates", "judged", "proof_bytes"):
            setattr(self, name, getattr(self, name) + receipt[name])
        self.segments += 1
        self.imported = self.imported and receipt["kind"] == "imported"
        segment = [receipt["segment"]]
        self.incomplete += segment if not receipt["complete"] else []
        self.mismatched += segment if receipt["seam"] == "mismatch" else []
        self.untied += segment if receipt["seam"] == "open" else []
        if receipt["end"] is not None:
            self.end, self.end_number = receipt["end"], receipt["end_number"]
        self.errors += sum(count for severity, _, count in receipt["findings"] if severity == Severity.ERROR.value)


@dataclass(slots=True)
class NetworkAccount:
    """A network up to its segment `last`, and what the next one goes on from."""

    network: str
    last: int = -1
    manifest: str | None = None
    """The name of the last segment's manifest, and its digest."""
    head: str | None = None
    segments: int = 0
    tasks: int = 0
    surplus: int = 0
    """Data files of its segments that no manifest names."""
    odd: int = 0
    """Files that manifests name, and whose path does not say which segment they are of."""
    rows: str = ""
    """A running digest over the canonical rows of its segments."""
    counts: Counts = field(default_factory=list)
    """Findings of segments and settled ones of folds: severity, code, number."""
    quarantine: list[Row] = field(default_factory=list)
    chains: dict[int, ChainAccount] = field(default_factory=dict)
    folds: list[FoldReceipt] = field(default_factory=list)
    """Receipts of the folds that end with the last segment; each chain is in one of them."""
    settled_in: list[str] = field(default_factory=list)
    """The folds in which findings were settled."""

    def add(self, commit: Commit, receipts: Sequence[SegmentReceipt]) -> None:
        """The next segment, and what its tasks came to."""
        judged = {chain["chain"]: chain for receipt in receipts for chain in receipt["chains"]}
        for chain in sorted(judged.keys() | commit.next_positions.keys()):
            self.chains.setdefault(chain, ChainAccount(commit.segment, commit.segment)).meet(commit.segment)
        for number, account in self.chains.items():
            if number in judged:
                account.add(judged[number])
            elif account.last == commit.segment:
                account.absent.append(commit.segment)
            else:
                account.since.append(commit.segment)
        for each in judged.values():
            self.count(each["findings"])
        for receipt in receipts:
            self.quarantine += receipt["unread"]
        digests = [[chain, judged[chain]["digests"]] for chain in sorted(judged)]
        self.rows = digest_of(canonical_json([self.rows, commit.segment, digests]))
        self.last, self.manifest, self.head = commit.segment, commit.name, commit.digest
        self.segments += 1
        self.tasks += len(receipts)

    def close_folds(self, receipts: Sequence[FoldReceipt]) -> None:
        """The folds up to the last segment were made."""
        for receipt in receipts:
            self.count(receipt["settled"])
            if receipt["settled"]:
                self.settled_in.append(receipt["folder"])
            self.quarantine += receipt["unread"]
        self.folds = list(receipts)

    def count(self, found: Counts) -> None:
        """Add findings."""
        totals: Counter[tuple[str, str]] = Counter()
        for severity, code, count in (*self.counts, *found):
            totals[severity, code] += count
        self.counts = [[*name, count] for name, count in sorted(totals.items())]

    def to_json(self) -> dict[str, object]:
        """JSON that is kept between runs."""
        return {**asdict(self), "chains": {str(chain): asdict(self.chains[chain]) for chain in self.chains}}

    @staticmethod
    def from_json(data: Kept) -> "NetworkAccount":
        """The inverse of `to_json`."""
        chains = {int(chain): ChainAccount(**each) for chain, each in data["chains"].items()}
        return NetworkAccount(**{**data, "chains": chains})
