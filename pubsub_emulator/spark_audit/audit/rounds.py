"""The segments of a history that the last run did not know, judged and folded round by round.

A round is some hundred segments: they are folded while those of the next round are judged, then they are in tables and
ledger. So memory does not grow with the history, and a run that was killed goes on behind its last round.
"""

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby, starmap
from typing import Any, Final, NamedTuple, cast

import pyarrow as pa

from pubsub_emulator.spark_audit.audit.ledger import LEDGER, PAGES, AuditLedger, NetworkLedger, basis_of
from pubsub_emulator.spark_audit.engine.engine import Answer, Mapper, Unit
from pubsub_emulator.spark_audit.engine.memory import give_back
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.address import is_remote
from pubsub_emulator.spark_audit.history.listing import Listing, place_of, place_of_manifest
from pubsub_emulator.spark_audit.history.manifest import (
    COMMITS,
    MOST_BYTES,
    Commit,
    CommitError,
    head_of,
    read_manifest,
)
from pubsub_emulator.spark_audit.history.reader import Fault, check_file, manifest_names, read_commits
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.storage import Stamp, Store, open_store
from pubsub_emulator.spark_audit.judge import results
from pubsub_emulator.spark_audit.judge.account import NetworkAccount
from pubsub_emulator.spark_audit.judge.findings import Thresholds
from pubsub_emulator.spark_audit.judge.task import CHECK_VERSION, Task, make_tasks
from pubsub_emulator.spark_audit.judge.units import BLOCK_WEIGHT, Fold, fold_fingerprint, judge_or_fold
from pubsub_emulator.spark_audit.tables.pack import SOURCES, UNIT, pack, pack_here
from pubsub_emulator.spark_audit.tables.parts import RETAIN, Tables

ROUND: Final = 512
"""Segments of a round, about, at least."""
ROUND_OF_CORE: Final = 4
"""Segments of a round for each core, at least: the last task of a round leaves few cores without work for long."""
FOLDED: Final = 256
"""Segments of a chain that one fold adds, about: it has more chains where a round has fewer segments of a network."""

REPLACED: Final = {"open": schema.FINDINGS.name, "summaries": schema.SUMMARIES.name}
"""What each fold of a network puts in the place of what the fold before gave: its files, and their tables."""

_GATHERED: Final = tuple(table.name for table in schema.OF_SEGMENT if table != schema.QUARANTINE)


@dataclass(frozen=True, slots=True)
class Progress:
    """Units done, with the shares of those under way, of a phase: `start`, `verify`, `chains`, `summary`, `tables`."""

    phase: str
    done: float
    total: int


Watcher = Callable[[Progress], None]


class _Judged(NamedTuple):
    """A round whose segments are judged and not folded yet."""

    commits: Sequence[Commit]
    receipts: Sequence[results.SegmentReceipt]
    claimed: set[str]  # the files that its tasks have read


@dataclass(slots=True)
class Rounds:
    """One run over a history: what is known of its networks, and what is made new."""

    history: Store
    out: Store
    opener: Callable[[int], Mapper]
    watch: Watcher
    limits: Thresholds
    retain: int = RETAIN
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
    _names: list[str] = field(default_factory=list)  # manifests of segments that the last run did not know, in order
    _after: dict[str, Commit] = field(default_factory=dict)
    _receipts: dict[str, results.SegmentReceipt] = field(default_factory=dict)
    """Of the last run, by folder, of networks that are gone through again."""
    _stale: set[str] = field(default_factory=set)
    """Results of the last run whose rows are in the tables and may not belong there any more."""
    _unsure: set[str | None] = field(default_factory=set)
    """Networks of which not all is sure: the next run goes through them again. `None` means all."""
    _there: dict[str, Stamp] = field(default_factory=dict)  # files of results
    _gathered: list[str] = field(default_factory=list)  # files whose rows are about to be in the tables

    def prepare(self) -> None:
        """Find out what is known and what is new. Raises `CommitError`, `OSError`."""
        names = manifest_names(self.history)
        self.ledger = AuditLedger.read(self.out, basis_of(CHECK_VERSION, asdict(self.limits)))
        for folder in results.FOLDERS:
            self._there.update(self.out.walk(folder))
        try:
            self.tables = Tables.open(self.out, self.ledger.tables, self.retain)
            self._take_known()
        except (
            results.ResultError
        ):  # tables of other columns, or a note on them is damaged: nothing is known of their rows
            self.ledger, self.tables = AuditLedger(self.ledger.basis), Tables(self.out, self.retain)
            self.networks, self._receipts, self._stale = {}, {}, set()
            self.listing = Listing.of(self.history, {})
        self._names = [name for name in names if not _is_known(name, self.listing.known)]
        self._names.sort(key=lambda name: (place_of(f"{COMMITS}/{name}") or ("", 0, 0), name))

    def head(self) -> str | None:
        """The head of the whole history, without judging any of it; `None` where manifests are damaged or missing."""
        heads = {name: kept.account.head or "" for name, kept in self.networks.items()}
        left = list(self._names)
        while names := _take(left, ROUND):
            commits, faults = read_commits(self.history, names, self._befores(names))
            if faults:
                return None
            heads |= {commit.network: commit.digest for commit in commits}
            self._after |= {commit.network: commit for commit in commits}
        self._after.clear()
        return head_of(heads) if heads else None

    def run(self) -> None:
        """All rounds. Raises `OSError`, `ResultError`, `EngineLost`."""
        names = list(self._names)
        judged: _Judged | None = None
        while names or judged is not None:
            cores = 0 if self.opened is None else self.opened.cores
            folded, judged = judged, self._round(_take(names, max(ROUND, ROUND_OF_CORE * cores)), len(names), judged)
            if folded is not None and judged is not None:
                self._keep(whole=False)
        if not self._names:
            self.watch(Progress("verify", 0, 0))
        self.tables.flush(self._pack)
        if not is_remote(self.out.uri):
            self.close()  # what is left is done here, and takes memory itself

    def keep(self, replaced: Mapping[str, Iterable[tuple[str, results.Rows | pa.Table]]]) -> None:
        """Keep everything, these rows instead of the last run's. Raises `OSError`, `ResultError`, `DeltaError`."""
        wanted = {source for rows in replaced.values() for source, _ in rows}
        there = self.tables.sources(replaced=True)
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
        half_written = (f".{LEDGER}.", f".{results.REPORT}.")  # by a run that was killed
        self._remove(name for name in self.out.names("") if name.startswith(half_written))
        folds = [fold for kept in self.networks.values() for fold in kept.account.folds]
        states = {fold["files"]["state.json"][0] for fold in folds}
        for folder in results.FOLDERS:
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
        others = {path for path in self._there if path.startswith(f"{results.ITEMS}/")} - set(gathered)
        if others or not gathered:
            self._remove(gathered)
            return
        self.out.clear(results.ITEMS)
        for path in gathered:
            self._there.pop(path, None)

    def _remove(self, paths: Iterable[str]) -> None:
        gone = list(paths)
        for path in gone:
            self._there.pop(path, None)
        self._give(remove_files, gone, self.out)

    def close(self) -> None:
        """Stop the engine, if one was started."""
        if self.opened is not None:
            self.opened.close()
            self.opened = None

    def quarantine(self) -> list[Row]:
        """Add what could not be read or judged; the same may be added more than once."""
        rows = [row for kept in self.networks.values() for row in kept.account.quarantine]
        return rows + [fault.row() for fault in self.faults]

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
        gone = {source.partition("/network=")[2].partition("/")[0] for source in lost}
        replaced = self.tables.sources(replaced=True)
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
        self._stale = self.tables.sources(replaced=False)
        for kept in self.networks.values():
            self._stale -= {*(receipt["folder"] for receipt in kept.receipts(self.out)), *kept.account.settled_in}

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
        for fold in account.folds:
            path, size = fold["files"]["state.json"]
            state = self._there.get(path)
            if state is None or state.size != size:
                return False
            ends = [fold["files"][name][0] for name in REPLACED if name in fold["files"]]
            if not all(each in replaced or each in self._there for each in ends):
                return False
        return bool(account.folds) or account.tasks == 0

    # A round

    def _round(self, names: Sequence[str], left: int, before: _Judged | None) -> _Judged | None:
        """Judge the segments of these manifests and fold those of the round before, which is accounted for then."""
        commits, faults = read_commits(self._with_manifests(names), names, self._befores(names))
        self.faults += faults
        self._unsure |= {fault.network for fault in faults}
        tasks = make_tasks(self.history.uri, commits, self.listing, self._after)
        receipts, folds = self._work(tasks, [] if before is None else self._plan_folds(before.receipts), left)
        if before is not None:
            self._account(before, folds)
        self._after = {commit.network: commit for commit in commits[-1:]}
        claimed = {entry.path for task in tasks for entry in task.files()}
        return _Judged(commits, receipts, claimed) if names else None

    def _with_manifests(self, names: Sequence[str]) -> Store:
        """The history, with the manifests that an engine's workers have read: the driver asks a store for few."""
        if self.opened is None or not is_remote(self.history.uri):
            return self.history
        texts: dict[str, bytes] = {}
        for answer in self._give(read_manifests, names, self.history):
            texts |= {path: text.encode() for path, text in answer.items()}
        return self.history.holding(texts)

    def _give(self, unit: Unit, items: Iterable[str], store: Store) -> list[Answer]:
        """Have a unit of many small things done by an engine that runs, else here."""
        every = list(items)
        tasks = [json.dumps(every[at : at + UNIT]) for at in range(0, len(every), UNIT)]
        if not tasks or self.opened is None or not is_remote(store.uri):
            return [unit(task, store.uri) for task in tasks]
        return self.opened.map(unit, tasks, store.uri, lambda _done: None)

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

    def _work(
        self, tasks: Sequence[Task], folds: Sequence[Fold], left: int
    ) -> tuple[list[results.SegmentReceipt], list[results.FoldReceipt]]:
        known = [*map(self._known_fold, folds), *map(self._known, tasks)]
        every: list[Task | Fold] = [*folds, *tasks]
        todo = [each for each, receipt in zip(every, known, strict=True) if receipt is None]
        fresh = sum(receipt is None for receipt in known[len(folds) :])
        began = time.monotonic()
        self._forget(todo)
        made = iter(self._map(todo, left, fresh))
        receipts: list[Any] = [next(made) if receipt is None else receipt for receipt in known]
        judged = receipts[len(folds) :]
        self.seconds += time.monotonic() - began if fresh else 0.0
        new = (receipt for receipt, before in zip(judged, known[len(folds) :], strict=True) if before is None)
        self.candidates += sum(chain["candidates"] for receipt in new for chain in receipt["chains"])
        return judged, receipts[: len(folds)]

    def _known(self, task: Task) -> results.SegmentReceipt | None:
        """The receipt of a task's result that is there and whole."""
        receipt = self._receipts.get(task.name)
        if receipt is not None and receipt["kept"]:
            self._stale.discard(task.name)
            return receipt
        return cast("results.SegmentReceipt | None", self._whole(task.name))

    def _known_fold(self, fold: Fold) -> results.FoldReceipt | None:
        return cast("results.FoldReceipt | None", self._whole(fold.name)) if fold.keep else None

    def _whole(self, folder: str) -> results.Written | None:
        """The receipt in a folder of results, if all is there."""
        found = results.read_receipt(self.out, folder) if f"{folder}/{results.RECEIPT}" in self._there else None
        receipt = cast("results.Written | None", found)
        is_whole = receipt and receipt["kept"] and results.files_are_whole(self.out, receipt, self._there)
        return receipt if is_whole else None

    def _forget(self, tasks: Iterable[Task | Fold]) -> None:
        """Remove the receipts of results that are to be made anew, because they are damaged."""
        for task in tasks:
            if f"{task.name}/{results.RECEIPT}" in self._there:
                self.out.remove(f"{task.name}/{results.RECEIPT}")

    def _map(self, tasks: Sequence[Task | Fold], left: int, fresh: int) -> list[Answer]:
        """Have tasks done, of which `fresh` judge; `left` segments come later. Raises `ResultError` for lost output."""
        phase, before = ("verify", self.judged) if fresh or left else ("chains", 0)
        total = before + len(tasks) + left
        self.watch(Progress(phase, before, total))
        if not tasks:
            return []
        if self.opened is None:
            self.watch(Progress("start", 0, total))
            self.opened = self.opener(len(tasks) + left)
            self.engine = self.opened.name
            self.watch(Progress(phase, before, total))
        texts = [task.to_json() for task in tasks]
        weights = [task.weight for task in tasks]

        def tell(count: float) -> None:
            self.watch(Progress(phase, before + count, total))

        done = self.opened.map(judge_or_fold, texts, self.out.uri, tell, weights)
        self.judged += fresh
        for folder in {task.name.partition("/")[0] for task in tasks}:
            self._there.update(self.out.walk(folder))  # one listing for all files
        for receipt in done:
            for path, size in receipt["files"].values():
                stamp = self._there.get(path)
                if stamp is None or stamp.size != size:
                    said = "driver and workers must share the output, for example an s3:// address"
                    raise results.ResultError(f"{self.out}/{path} is missing although a worker wrote it: {said}")
        return done

    def _plan_folds(self, receipts: Sequence[results.SegmentReceipt]) -> list[Fold]:
        """The folds of a round: of each network some chains in one, so that cores have work whatever it has most of."""
        groups = ((network, list(group)) for network, group in groupby(receipts, lambda each: each["network"]))
        planned = ((network, mine, chains) for network, mine in groups for chains in self._fold_groups(network, mine))
        return list(starmap(self._plan_fold, planned))

    def _fold_groups(self, network: str, receipts: Sequence[results.SegmentReceipt]) -> Iterator[tuple[int, ...]]:
        before = [int(chain) for fold in self._folds_of(network) for chain in fold["chains"]]
        chains = sorted({*before, *(chain["chain"] for receipt in receipts for chain in receipt["chains"])})
        segments = len({receipt["segment"] for receipt in receipts})
        size = max(FOLDED // segments, 1)
        yield from (tuple(chains[at : at + size]) for at in range(0, max(len(chains), 1), size))

    def _folds_of(self, network: str) -> list[results.FoldReceipt]:
        kept = self.networks.get(network)
        return [] if kept is None else kept.account.folds

    def _plan_fold(self, network: str, receipts: Sequence[results.SegmentReceipt], chains: tuple[int, ...]) -> Fold:
        befores = [fold for fold in self._folds_of(network) if not {*chains}.isdisjoint(map(int, fold["chains"]))]
        names = (schema.BLOCK_MEASURES.name, schema.PUBLISHER_MEASURES.name)
        packed = [each["folder"] for each in receipts if "unread" in each]
        found = {name: self.tables.find(name, packed) if packed else {} for name in names}

        def rows(receipt: results.SegmentReceipt, name: str) -> results.Rows | None:
            if name not in receipt["files"]:
                return None
            return found[name].get(receipt["folder"]) or results.Rows(receipt["files"][name][0])

        mine = [each for each in receipts if any(chain["chain"] in chains for chain in each["chains"])]
        blocks = sum(chain["candidates"] for each in mine for chain in each["chains"] if chain["chain"] in chains)
        seals = [fold["fingerprint"] for fold in befores]
        place = self.history.uri, network, chains, receipts[0]["segment"], receipts[-1]["segment"]
        segments = tuple((rows(each, names[0]), rows(each, names[1])) for each in mine)
        states = tuple(fold["files"]["state.json"][0] for fold in befores)
        keep = all(each["kept"] for each in (*receipts, *befores))
        fingerprint = fold_fingerprint(seals, network, chains, receipts, self.limits)
        return Fold(*place, segments, states, self.limits, keep, blocks * BLOCK_WEIGHT, fingerprint)

    def _account(self, judged: _Judged, folds: Sequence[results.FoldReceipt]) -> None:
        for name, group in groupby(judged.commits, lambda commit: commit.network):
            self._account_network(name, group, judged)
            mine = [fold for fold in folds if fold["network"] == name]
            for fold in mine:
                self._gather(fold, (schema.FINDINGS.name,))
            if mine:
                self.networks[name].account.close_folds(mine)

    def _account_network(self, network: str, commits: Iterable[Commit], judged: _Judged) -> None:
        kept = self.networks.setdefault(network, NetworkLedger(NetworkAccount(network)))
        page: list[results.SegmentReceipt] = []
        receipts: dict[int, list[results.SegmentReceipt]] = {}
        for receipt in judged.receipts:
            if receipt["network"] == network:
                receipts.setdefault(receipt["segment"], []).append(receipt)
        for commit in commits:
            mine = receipts.get(commit.segment, [])
            for receipt in mine:
                if "unread" in receipt:  # it is from the last run's pages
                    self._stale.discard(receipt["folder"])
                    continue
                self._gather(receipt, _GATHERED)
                self._gathered += [
                    f"{receipt['folder']}/{results.RECEIPT}",
                    *(path for path, _ in receipt["files"].values()),
                ]
            kept.account.add(commit, mine)
            kept.account.surplus += self.listing.surplus(commit)
            kept.account.odd += sum(place_of(path) is None for path in {entry.path for entry in commit.files})
            left = [entry for entry in commit.files if entry.path not in judged.claimed]
            faults = [fault for entry in left for fault in check_file(self.history, entry)]
            kept.account.quarantine += [fault.row() for fault in faults]
            usual = all((place_of(entry.path) or ())[:2] == (network, commit.segment) for entry in commit.files)
            if not usual or any(fault.passing for fault in faults) or not all(each["kept"] for each in mine):
                self._unsure.add(network)
            page += mine
        kept.close_page(self.out, page)

    def _gather(self, receipt: results.Written, names: Sequence[str]) -> None:
        """Add the rows of a result to these tables, in the place of any that are stale."""
        folder, files = receipt["folder"], receipt["files"]
        named = files.get(schema.QUARANTINE.name)
        receipt["unread"] = [] if named is None else list(results.read_rows(self.out, named[0], schema.QUARANTINE))
        if folder in self._stale:
            self._stale.remove(folder)
            self.tables.drop([folder])
        for name in names:
            if name in files:
                self.tables.add(name, folder, results.Rows(files[name][0]))


def read_manifests(text: str, history: str) -> Answer:
    """The unit that reads manifests: their texts by path. One that cannot be read is left out."""
    store = open_store(history)

    def read(name: str) -> tuple[str, str] | None:
        with contextlib.suppress(OSError, UnicodeDecodeError):  # the driver tries again, and tells of it
            return f"{COMMITS}/{name}", store.read(f"{COMMITS}/{name}", MOST_BYTES).decode()
        return None

    return dict(found for found in store.each(read, json.loads(text)) if found is not None)


def remove_files(text: str, out: str) -> Answer:
    """The unit that removes files; one that cannot be removed is left to a later run."""
    store = open_store(out)

    def remove(path: str) -> None:
        with contextlib.suppress(OSError):
            store.remove(path)

    for _ in store.each(remove, json.loads(text)):
        pass
    return {}


def _is_known(name: str, lasts: Mapping[str, int]) -> bool:
    network, segment = place_of_manifest(name)
    return network is not None and segment is not None and segment <= lasts.get(network, -1)


def _take(names: list[str], count: int) -> list[str]:
    """Take the first names, so many, from a list; those of one segment stay together."""
    taken: list[str] = []
    for _, group in groupby(list(names), lambda name: place_of(f"{COMMITS}/{name}")):
        if len(taken) >= count:
            break
        taken += group
    del names[: len(taken)]
    return taken
