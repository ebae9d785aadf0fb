"""The segments of a history that the last run did not know, judged and folded round by round.

A round is some hundred segments: their manifests are read, their tasks judged, each network folded on, and all of it is
in tables and ledger before the next one. So a run takes as much memory at a million segments as at a thousand, and one
that was killed goes on behind its last round.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Final, cast

import pyarrow as pa

from pubsub_emulator.spark_audit.audit.ledger import LEDGER, PAGES, AuditLedger, NetworkLedger, basis_of
from pubsub_emulator.spark_audit.engine.engine import Answer, Mapper, Unit
from pubsub_emulator.spark_audit.engine.memory import give_back
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.listing import Listing, place_of, place_of_manifest
from pubsub_emulator.spark_audit.history.manifest import COMMITS, Commit, CommitError, head_of, read_manifest
from pubsub_emulator.spark_audit.history.reader import Fault, check_file, manifest_names, read_commits
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.storage import Stamp, Store
from pubsub_emulator.spark_audit.judge.account import NetworkAccount
from pubsub_emulator.spark_audit.judge.findings import Thresholds
from pubsub_emulator.spark_audit.judge.results import (
    FOLDERS,
    ITEMS,
    RECEIPT,
    REPORT,
    FoldReceipt,
    ResultError,
    Rows,
    SegmentReceipt,
    Written,
    files_are_whole,
    read_receipt,
    read_rows,
)
from pubsub_emulator.spark_audit.judge.task import CHECK_VERSION, Task, make_tasks
from pubsub_emulator.spark_audit.judge.units import Fold, fold_fingerprint, fold_network, judge_segment
from pubsub_emulator.spark_audit.tables.pack import SOURCES, pack, pack_here
from pubsub_emulator.spark_audit.tables.parts import RETAIN, Tables

ROUND: Final = 512
"""Segments of a round, about."""

BEFORE: Final = "summary"
"""Where earlier versions kept what is about whole chains."""

REPLACED: Final = {"open": schema.FINDINGS.name, "summaries": schema.SUMMARIES.name}
"""What each fold of a network puts in the place of what the fold before gave: its files, and their tables."""

_GATHERED: Final = (
    schema.BLOCK_MEASURES.name,
    schema.PUBLISHER_MEASURES.name,
    schema.WASTE.name,
    schema.PROOF_PARTS.name,
    schema.FINDINGS.name,
)


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a phase in units of work: `start` of the engine, `verify`, `chains`, `summary`, `tables`.

    `done` has the shares of the units under way, where the engine knows them.
    """

    phase: str
    done: float
    total: int


Watcher = Callable[[Progress], None]


@dataclass(slots=True)
class Rounds:
    """One run over a history: what is known of its networks, and what is made new."""

    history: Store
    out: Store
    opener: Callable[[int], Mapper]
    watch: Watcher
    limits: Thresholds
    retain: int = RETAIN
    """Milliseconds for which files of tables stay that are no part any more."""
    ledger: AuditLedger = field(init=False)
    tables: Tables = field(init=False)
    listing: Listing = field(init=False)
    opened: Mapper | None = None
    engine: str | None = None
    """Which engine ran, once it has."""
    networks: dict[str, NetworkLedger] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    """Those of manifests."""
    judged: int = 0
    candidates: int = 0
    seconds: float = 0.0
    """Of judging."""
    _names: list[str] = field(default_factory=list)
    """Manifests of segments that the last run did not know, in order."""
    _after: dict[str, Commit] = field(default_factory=dict)
    _receipts: dict[str, SegmentReceipt] = field(default_factory=dict)
    """Of the last run, by folder, of networks that are gone through again."""
    _stale: set[str] = field(default_factory=set)
    """Results of the last run whose rows are in the tables and may not belong there any more."""
    _unsure: set[str | None] = field(default_factory=set)
    """Networks of which not all is sure: the next run goes through them again. `None` means all."""
    _there: dict[str, Stamp] = field(default_factory=dict)
    """Files of results."""
    _gathered: list[str] = field(default_factory=list)
    """Files whose rows are about to be in the tables."""

    def prepare(self) -> None:
        """Find out what is known and what is new. Raises `CommitError`, `OSError`."""
        names = manifest_names(self.history)
        self.ledger = AuditLedger.read(self.out, basis_of(CHECK_VERSION, asdict(self.limits)))
        for folder in FOLDERS:
            self._there.update(self.out.walk(folder))
        try:
            self.tables = Tables.open(self.out, self.ledger.tables, self.retain)
            self._take_known()
        except ResultError:  # tables of other columns, or a note on them is damaged: nothing is known of their rows
            self.ledger, self.tables = AuditLedger(self.ledger.basis), Tables(self.out, self.retain)
            self.networks, self._receipts, self._stale = {}, {}, set()
            self.listing = Listing.of(self.history, {})
        self._names = [name for name in names if not _is_known(name, self.listing.known)]
        self._names.sort(key=lambda name: (place_of(f"{COMMITS}/{name}") or ("", 0, 0), name))

    def head(self) -> str | None:
        """The head of the whole history, without judging any of it; `None` where manifests are damaged or missing."""
        heads = {name: kept.account.head or "" for name, kept in self.networks.items()}
        for names in _rounds(self._names):
            commits, faults = read_commits(self.history, names, self._befores(names))
            if faults:
                return None
            heads |= {commit.network: commit.digest for commit in commits}
            self._after |= {commit.network: commit for commit in commits}
        self._after.clear()
        return head_of(heads) if heads else None

    def run(self) -> None:
        """All rounds. Raises `OSError`, `ResultError`, `EngineLost`."""
        rounds = list(_rounds(self._names))
        for at, names in enumerate(rounds):
            self._round(names, sum(map(len, rounds[at + 1 :])))
            if at + 1 < len(rounds):
                self._keep(whole=False)
        if not rounds:
            self.watch(Progress("verify", 0, 0))
        self.tables.flush(self._pack)
        self.close()  # what is left is done here, and takes memory itself

    def keep(self, replaced: Mapping[str, Iterable[tuple[str, Rows | pa.Table]]]) -> None:
        """Have everything in tables and ledger, with these rows by table and result in the place of the last run's.

        Raises `OSError`, `ResultError`, `DeltaError`.
        """
        wanted = {source for rows in replaced.values() for source, _ in rows}
        there = self.tables.replaced_sources()
        self.tables.drop(there - wanted, replaced=True)
        for name, rows in replaced.items():
            for source, held in rows:
                if source not in there:
                    self.tables.add(name, source, held, replaced=True)
        self.tables.drop(self._stale)
        self._stale = set()
        self._keep(whole=True)

    def tidy(self) -> None:
        """Remove what nothing names any more. Raises `OSError`."""
        self.tables.sweep()
        half_written = (f".{LEDGER}.", f".{REPORT}.")  # by a run that was killed
        self._remove(name for name in self.out.names("") if name.startswith(half_written))
        states = {kept.account.fold["files"]["state.json"][0] for kept in self.networks.values() if kept.account.fold}
        for folder in (*FOLDERS, BEFORE):
            self._remove(path for path in self.out.walk(folder) if path not in states)
        pages = {path for kept in self.networks.values() for path in kept.pages}
        self._remove(path for path in self.out.walk(PAGES) if path not in pages and not path.startswith(SOURCES))

    def _keep(self, *, whole: bool) -> None:
        self.tables.flush(self._pack)
        give_back()
        if whole:
            self.tables.log()
        sums = self.listing.sums({name: kept.account.last for name, kept in self.networks.items()})
        for name, kept in self.networks.items():
            kept.listing = "" if self._unsure & {None, name} else sums[name]
        waiting = {} if whole else {n: each for n, each in self.ledger.networks.items() if n not in self.networks}
        AuditLedger(self.ledger.basis, {**waiting, **self.networks}, self.tables.to_json(), whole).write(self.out)
        self._remove_gathered()

    def _pack(self, tasks: Sequence[str], store: Store) -> Sequence[Answer]:
        """Have an engine that runs write parts."""
        if self.opened is None or not tasks:
            return pack_here(tasks, store)
        return self.opened.map(pack, tasks, store.uri, lambda _done: None)

    def _remove_gathered(self) -> None:
        """Remove the files of results whose rows are in the tables: all at once where there are no others."""
        gathered, self._gathered = self._gathered, []
        others = {path for path in self._there if path.startswith(f"{ITEMS}/")} - set(gathered)
        if others or not gathered:
            self._remove(gathered)
            return
        self.out.clear(ITEMS)
        for path in gathered:
            self._there.pop(path, None)

    def _remove(self, paths: Iterable[str]) -> None:
        for path in list(paths):
            self._there.pop(path, None)
            with contextlib.suppress(OSError):
                self.out.remove(path)

    def close(self) -> None:
        """Stop the engine, if one was started."""
        if self.opened is not None:
            self.engine = self.opened.name
            self.opened.close()
            self.opened = None

    def quarantine(self) -> list[Row]:
        """Add what could not be read or judged; the same may be added more than once."""
        return [
            *(row for kept in self.networks.values() for row in kept.account.quarantine),
            *(fault.row() for fault in self.faults),
        ]

    def uncommitted(self) -> int:
        """Data files that no manifest names."""
        lasts = {name: kept.account.last for name, kept in self.networks.items()}
        accounts = [kept.account for kept in self.networks.values()]
        odd = sum(path.endswith(".parquet") for path in self.listing.odd) - sum(each.odd for each in accounts)
        return self.listing.beyond(lasts) + sum(each.surplus for each in accounts) + max(odd, 0)

    # What is known

    def _take_known(self) -> None:
        """Take the networks whose files look as they did; of the others, the receipts. Raises `ResultError`."""
        lost = self.tables.lost()
        gone = {_network_of(source) for source in lost}
        replaced = self.tables.replaced_sources()
        for name, kept in self.ledger.networks.items():
            if kept.listing and name not in gone and self._has_fold(kept.account, replaced):
                self.networks[name] = kept
        self._list()
        for name, kept in self.ledger.networks.items():
            if name not in self.networks:
                receipts = [receipt for receipt in kept.receipts(self.out) if receipt["folder"] not in lost]
                self._receipts.update((receipt["folder"], receipt) for receipt in receipts)
        if self.ledger.whole and len(self.networks) == len(self.ledger.networks):
            return
        spoken_for = {
            source
            for kept in self.networks.values()
            for source in (*(receipt["folder"] for receipt in kept.receipts(self.out)), *kept.account.settled_in)
        }
        self._stale = self.tables.all_sources() - spoken_for

    def _list(self) -> None:
        """List the history. A network whose files changed is listed segment by segment."""
        while True:
            lasts = {name: kept.account.last for name, kept in self.networks.items()}
            self.listing = Listing.of(self.history, lasts)
            changed = [name for name, seen in self.listing.sums(lasts).items() if seen != self.networks[name].listing]
            if not changed:
                return
            for name in changed:
                del self.networks[name]

    def _has_fold(self, account: NetworkAccount, replaced: set[str]) -> bool:
        """Whether what the next segments go on from is there, and the rows that the last ones ended with."""
        fold = account.fold
        if fold is None:
            return account.tasks == 0
        path, size = fold["files"]["state.json"]
        state = self._there.get(path)
        if state is None or state.size != size:
            return False
        ends = [fold["files"][name][0] for name in REPLACED if name in fold["files"]]
        return all(each in replaced or each in self._there for each in ends)

    # A round

    def _round(self, names: Sequence[str], left: int) -> None:
        commits, faults = read_commits(self.history, names, self._befores(names))
        self.faults += faults
        self._unsure |= {fault.network for fault in faults}
        tasks = make_tasks(self.history.uri, commits, self.listing, self._after)
        receipts = self._verify(tasks, left)
        by_segment: dict[tuple[str, int], list[SegmentReceipt]] = {}
        for task, receipt in zip(tasks, receipts, strict=True):
            by_segment.setdefault((task.network, task.segment), []).append(receipt)
        folds = self._fold({name: list(group) for name, group in groupby(receipts, lambda each: each["network"])})
        claimed = {entry.path for task in tasks for entry in task.files()}
        for name, group in groupby(commits, lambda commit: commit.network):
            self._account(name, list(group), by_segment, claimed)
            if name in folds:
                self._gather_fold(folds[name])
        self._after = {commit.network: commit for commit in commits[-1:]}

    def _befores(self, names: Sequence[str]) -> Mapping[str, Commit]:
        """The last commits before those of these names, by network."""
        for name in names:
            network = (place_of(f"{COMMITS}/{name}") or ("",))[0]
            kept = self.networks.get(network)
            if network in self._after or kept is None or kept.account.manifest is None:
                continue
            try:
                self._after[network] = read_manifest(self.history, kept.account.manifest)
            except (CommitError, OSError) as error:
                self.faults.append(Fault(f"{COMMITS}/{kept.account.manifest}", str(error), network=network))
                self._unsure.add(network)
        return self._after

    def _verify(self, tasks: Sequence[Task], left: int) -> list[SegmentReceipt]:
        """The receipts of all tasks."""
        known = [self._known(task) for task in tasks]
        fresh = [task for task, receipt in zip(tasks, known, strict=True) if receipt is None]
        began = time.monotonic()
        self._forget(fresh)
        done = cast("list[SegmentReceipt]", self._map(judge_segment, fresh, "verify", left))
        self.judged += len(fresh)
        self.seconds += time.monotonic() - began if fresh else 0.0
        self.candidates += sum(chain["candidates"] for receipt in done for chain in receipt["chains"])
        made = iter(done)
        return [next(made) if receipt is None else receipt for receipt in known]

    def _known(self, task: Task) -> SegmentReceipt | None:
        """The receipt of a task's result that is there and whole."""
        receipt = self._receipts.get(task.name)
        if receipt is not None and receipt["kept"]:
            self._stale.discard(task.name)
            return receipt
        if f"{task.name}/{RECEIPT}" not in self._there:
            return None
        receipt = cast("SegmentReceipt | None", read_receipt(self.out, task.name))
        return receipt if receipt and receipt["kept"] and files_are_whole(self.out, receipt, self._there) else None

    def _forget(self, tasks: Iterable[Task | Fold]) -> None:
        """Remove the receipts of results that are to be made anew, because they are damaged."""
        for task in tasks:
            if f"{task.name}/{RECEIPT}" in self._there:
                self.out.remove(f"{task.name}/{RECEIPT}")

    def _map(self, unit: Unit, tasks: Sequence[Task] | Sequence[Fold], phase: str, left: int = 0) -> list[Answer]:
        """Have an engine do tasks. Raises `ResultError` when what a worker wrote is not to be seen from here."""
        before = self.judged if phase == "verify" else 0
        total = before + len(tasks) + left
        self.watch(Progress(phase, before, total))
        if not tasks:
            return []
        if self.opened is None:
            self.watch(Progress("start", 0, total))
            self.opened = self.opener(len(tasks) + left)
            self.watch(Progress(phase, before, total))
        texts = [task.to_json() for task in tasks]
        weights = [task.weight for task in tasks]
        done = self.opened.map(
            unit, texts, self.out.uri, lambda count: self.watch(Progress(phase, before + count, total)), weights
        )
        self._there.update(self.out.walk(tasks[0].name.partition("/")[0]))  # one listing for all files
        for receipt in done:
            for path, size in receipt["files"].values():
                stamp = self._there.get(path)
                if stamp is None or stamp.size != size:
                    raise ResultError(
                        f"{self.out}/{path} is missing although a worker wrote it: "
                        "driver and workers must share the output, for example an s3:// address"
                    )
        return done

    def _fold(self, receipts: Mapping[str, list[SegmentReceipt]]) -> dict[str, FoldReceipt]:
        """The fold of each network's segments of this round."""
        folds = {name: self._plan_fold(name, part) for name, part in receipts.items()}
        done: dict[str, FoldReceipt] = {}
        todo: list[Fold] = []
        for name, fold in folds.items():
            is_there = f"{fold.name}/{RECEIPT}" in self._there
            known = cast("FoldReceipt | None", read_receipt(self.out, fold.name)) if is_there else None
            if fold.keep and known is not None and files_are_whole(self.out, known, self._there):
                done[name] = known
            else:
                todo.append(fold)
        self._forget(todo)
        made = cast("list[FoldReceipt]", self._map(fold_network, todo, "chains"))
        return done | {fold.network: receipt for fold, receipt in zip(todo, made, strict=True)}

    def _plan_fold(self, network: str, receipts: list[SegmentReceipt]) -> Fold:
        kept = self.networks.get(network)
        before = None if kept is None else kept.account.fold
        names = (schema.BLOCK_MEASURES.name, schema.PUBLISHER_MEASURES.name)
        packed = [each["folder"] for each in receipts if "unread" in each]
        found = {name: self.tables.find(name, packed) if packed else {} for name in names}

        def rows(receipt: SegmentReceipt, name: str) -> Rows | None:
            if name not in receipt["files"]:
                return None
            return found[name].get(receipt["folder"]) or Rows(receipt["files"][name][0])

        return Fold(
            root=self.history.uri,
            network=network,
            first=receipts[0]["segment"],
            last=receipts[-1]["segment"],
            segments=tuple((rows(each, names[0]), rows(each, names[1])) for each in receipts),
            before=None if before is None else before["files"]["state.json"][0],
            limits=self.limits,
            keep=all(each["kept"] for each in receipts) and (before is None or before["kept"]),
            fingerprint=fold_fingerprint(
                "" if before is None else before["fingerprint"], network, receipts, self.limits
            ),
        )

    def _account(
        self,
        network: str,
        commits: Sequence[Commit],
        receipts: Mapping[tuple[str, int], list[SegmentReceipt]],
        claimed: set[str],
    ) -> None:
        """Add a network's segments of this round to its account, its pages and the tables."""
        kept = self.networks.setdefault(network, NetworkLedger(NetworkAccount(network)))
        page: list[SegmentReceipt] = []
        for commit in commits:
            mine = receipts.get((network, commit.segment), [])
            for receipt in mine:
                self._gather(receipt)
            kept.account.add(commit, mine)
            kept.account.surplus += self.listing.surplus(commit)
            kept.account.odd += sum(place_of(path) is None for path in {entry.path for entry in commit.files})
            faults = [
                fault
                for entry in commit.files
                if entry.path not in claimed
                for fault in check_file(self.history, entry)
            ]
            kept.account.quarantine += [fault.row() for fault in faults]
            usual = all((place_of(entry.path) or ())[:2] == (network, commit.segment) for entry in commit.files)
            if not usual or any(fault.passing for fault in faults) or not all(each["kept"] for each in mine):
                self._unsure.add(network)
            page += mine
        kept.close_page(self.out, page)

    def _gather(self, receipt: SegmentReceipt) -> None:
        """Add the rows of a result to the tables, unless they are there."""
        folder = receipt["folder"]
        if "unread" in receipt:  # it is from the last run's pages
            self._stale.discard(folder)
            return
        receipt["unread"] = self._unread(receipt)
        if folder in self._stale:
            self._stale.remove(folder)
            self.tables.drop([folder])
        for name in _GATHERED:
            if name in receipt["files"]:
                self.tables.add(name, folder, Rows(receipt["files"][name][0]))
        self._gathered += [f"{folder}/{RECEIPT}", *(path for path, _ in receipt["files"].values())]

    def _gather_fold(self, receipt: FoldReceipt) -> None:
        receipt["unread"] = self._unread(receipt)
        self.networks[receipt["network"]].account.close_fold(receipt)
        if schema.FINDINGS.name in receipt["files"]:
            if receipt["folder"] in self._stale:
                self._stale.remove(receipt["folder"])
                self.tables.drop([receipt["folder"]])
            self.tables.add(schema.FINDINGS.name, receipt["folder"], Rows(receipt["files"][schema.FINDINGS.name][0]))

    def _unread(self, receipt: Written) -> list[Row]:
        named = receipt["files"].get(schema.QUARANTINE.name)
        return [] if named is None else list(read_rows(self.out, named[0], schema.QUARANTINE))


def _is_known(name: str, lasts: Mapping[str, int]) -> bool:
    network, segment = place_of_manifest(name)
    return network is not None and segment is not None and segment <= lasts.get(network, -1)


def _rounds(names: Sequence[str]) -> Iterator[list[str]]:
    """Some names at a time; those of one segment stay together."""
    part: list[str] = []
    for _, group in groupby(names, lambda name: place_of(f"{COMMITS}/{name}")):
        if len(part) >= ROUND:
            yield part
            part = []
        part += group
    if part:
        yield part


def _network_of(source: str) -> str:
    return source.partition("/network=")[2].partition("/")[0]
