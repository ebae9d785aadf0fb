"""The rounds of an audit, which judge new segments, add them up and write them to tables.

A round has a few hundred segments. While the segments of one round are judged, those of the
previous round are folded, that is, added to the totals of their chains (patterns, sizes), and
written to the tables and the ledger. So memory does not grow with the history, and a run that was
killed continues after the last round that it finished.

`folds` plans the folds of a round, and `work` runs the tasks and folds.

`Rounds` is used in this order: `prepare`, perhaps `head`, `run`, `keep`, `tidy`, `close`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain as chained
from itertools import groupby
from typing import Final, NamedTuple

import pyarrow as pa

from pubsub_emulator.spark_audit.audit.folds import plan_folds
from pubsub_emulator.spark_audit.audit.ledger import (
    LEDGER,
    PAGES,
    AuditLedger,
    Known,
    NetworkLedger,
    basis_of,
)
from pubsub_emulator.spark_audit.audit.work import AuditProgress, Work
from pubsub_emulator.spark_audit.engine.memory import give_back
from pubsub_emulator.spark_audit.engine.rules import SHIPPED_RULES, RulesFile
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.address import is_remote
from pubsub_emulator.spark_audit.history.listing import Listing, place_of, place_of_manifest
from pubsub_emulator.spark_audit.history.manifest import (
    COMMITS,
    Commit,
    CommitError,
    head_of,
    read_manifest,
)
from pubsub_emulator.spark_audit.history.reader import (
    Fault,
    check_file,
    manifest_names,
    read_commits,
)
from pubsub_emulator.spark_audit.history.row import Row
from pubsub_emulator.spark_audit.history.storage import Store
from pubsub_emulator.spark_audit.judge import results
from pubsub_emulator.spark_audit.judge.account import NetworkAccount
from pubsub_emulator.spark_audit.judge.findings import Thresholds
from pubsub_emulator.spark_audit.judge.task import CHECK_VERSION, Task, make_tasks
from pubsub_emulator.spark_audit.judge.units import Fold
from pubsub_emulator.spark_audit.tables.pack import SOURCES
from pubsub_emulator.spark_audit.tables.parts import RETAIN, Tables

ROUND: Final = 512
"""The approximate minimum number of segments in a round."""
ROUND_OF_CORE: Final = 4
"""The minimum number of segments per core in a round. With fewer segments, most cores would be idle
while the last long task of a round runs."""
REPLACED: Final = {"open": schema.FINDINGS.name, "summaries": schema.SUMMARIES.name}
"""Files of a fold that replace those of the previous fold, with the tables that they belong to.

They describe a chain up to its last segment, so each run makes them anew.
"""

_GATHERED: Final = tuple(table.name for table in schema.OF_SEGMENT if table != schema.READ_ERRORS)
"""Tables whose rows go from the results of segments into the output's tables. Rows of
`read_errors` are in the accounts instead."""


class _Judged(NamedTuple):
    """A round whose segments are judged but not folded yet."""

    commits: Sequence[Commit]
    receipts: Sequence[results.SegmentReceipt]
    claimed: set[str]
    """The files that the round's tasks have read or checked."""


@dataclass(slots=True)
class Rounds:
    """One run over a history: the networks known so far, and the results of new segments."""

    history: Store
    work: Work
    """The engine and the output."""
    limits: Thresholds
    retain: int = RETAIN
    """Milliseconds for which files stay after the last table stopped naming them."""
    rules: RulesFile = SHIPPED_RULES
    ledger: AuditLedger = field(init=False)
    tables: Tables = field(init=False)
    listing: Listing = field(init=False)
    """The history's files, with sizes and times."""
    networks: dict[str, NetworkLedger] = field(default_factory=dict)
    """Networks with their totals so far. Unchanged networks continue from the totals of the last
    run, all others from zero."""
    faults: list[Fault] = field(default_factory=list)
    """Faults of manifests."""
    lost: list[Fault] = field(default_factory=list)
    """Faults of networks whose last manifest of an earlier run is not there any more."""
    _names: list[str] = field(default_factory=list)
    """Names of the manifests of new segments, in order of network and segment."""
    _present: dict[str, Known] = field(default_factory=dict)
    """By network, the manifests that the history has now."""
    _previous: dict[str, Commit] = field(default_factory=dict)
    """By network, the last commit read. The next one must follow it, and tasks of the next segment
    need its files."""
    _receipts: dict[str, results.SegmentReceipt] = field(default_factory=dict)
    """Receipts of the last run by folder, for networks that are read from their start again."""
    _stale: set[str] = field(default_factory=set)
    """Results of the last run whose rows are in the tables but may not belong there any more."""
    _unsure: set[str | None] = field(default_factory=set)
    """Networks with data that could not be read reliably. The next run looks at all their segments
    again. `None` means all networks."""
    _gathered: list[str] = field(default_factory=list)
    """Result files that can be removed once the tables are written, because their rows are there.
    """

    @property
    def out(self) -> Store:
        """The audit's output."""
        return self.work.out

    def prepare(self) -> None:
        """Read the ledger, list the history, and find out which segments are new.

        Raises `CommitError` if there is no history, and `OSError`.
        """
        names = manifest_names(self.history)
        self.ledger = AuditLedger.read(self.out, basis_of(CHECK_VERSION, asdict(self.limits)))
        self.work.list_results()
        try:
            self.tables = Tables.open(self.out, self.ledger.tables, self.retain)
            self._take_known()
        except results.ResultError:
            # The tables have other columns now, or the list of a part's sources is damaged. So it
            # is not known which rows the tables have, and everything starts anew.
            known = self.ledger.known
            self.ledger = AuditLedger(self.ledger.basis, known=known)
            self.tables = Tables(self.out, self.retain)
            self.networks = {}
            self._receipts = {}
            self._stale = set()
            self.listing = Listing.of(self.history, {})
        self._names = [name for name in names if not _is_known(name, self.listing.known)]
        self._names.sort(key=lambda name: (place_of(f"{COMMITS}/{name}") or ("", 0, 0), name))
        self._compare_with_known(names)

    def _compare_with_known(self, names: Iterable[str]) -> None:
        """Record each network as lost whose last manifest of an earlier run is gone.

        The ledger then keeps that manifest in `known`, so that later runs miss it, too. If every
        network's first manifest is gone, this is another history at the same place, and no network
        counts as lost.
        """
        present = set(names)
        if not any(known.first in present for known in self.ledger.known.values()):
            self.ledger.known = {}
        for network, known in sorted(self.ledger.known.items()):
            if known.last not in present:
                error = (
                    f"an earlier audit has read this manifest of segment {known.segment}, and it is"
                    " gone: what was committed up to there is not all in the history"
                )
                path = f"{COMMITS}/{known.last}"
                self.lost.append(Fault(path, error, network=network, segment=known.segment))
        lost = {fault.network for fault in self.lost}
        by_network: dict[str, list[tuple[int, str]]] = {}
        for name in present:
            owner, segment = place_of_manifest(name)
            if owner is not None and segment is not None:
                by_network.setdefault(owner, []).append((segment, name))
        for network, manifests in by_network.items():
            _, first_name = min(manifests)
            last_segment, last_name = max(manifests)
            self._present[network] = Known(first_name, last_name, last_segment)
            if network not in lost:
                self.ledger.known[network] = self._present[network]

    def accept(self) -> None:
        """Treat the history as complete, although an earlier run has read more of it."""
        self.lost.clear()
        self.ledger.known = dict(self._present)

    def head(self) -> str | None:
        """Return the history's head in hex. This reads all manifests, but does not judge segments.

        Returns `None` if manifests are damaged or missing.
        """
        heads = {name: ledger.account.head or "" for name, ledger in self.networks.items()}
        remaining = list(self._names)
        while names := _take(remaining, ROUND):
            commits, faults = read_commits(self.history, names, self._preceding_commits(names))
            if faults:
                return None
            heads |= {commit.network: commit.digest for commit in commits}
            self._previous |= {commit.network: commit for commit in commits}
        # `run` reads the manifests again, from the first new segment.
        self._previous.clear()
        return head_of(heads) if heads else None

    def run(self) -> None:
        """Judge and fold all new segments, round by round.

        Each iteration judges one round and folds the one before, so the loop runs once more after
        the last names are taken. Raises `OSError`, `ResultError`, `EngineLost`.
        """
        names = list(self._names)
        judged: _Judged | None = None
        while names or judged is not None:
            taken = _take(names, max(ROUND, ROUND_OF_CORE * self.work.cores))
            previous = judged
            judged = self._round(taken, len(names), previous)
            # The last round is not written here but by `keep`, with `whole` set.
            if previous is not None and judged is not None:
                self._keep(whole=False)
        if not self._names:
            # A progress display shows the phase even if there is nothing to judge.
            self.work.watch(AuditProgress("verify", 0, 0))
        self.tables.flush(self.work.pack)
        if not is_remote(self.out.uri):
            # The remaining work is done in this process and needs the memory. In a remote store,
            # workers help to write and remove files, so the engine stays.
            self.work.close()

    def keep(
        self, replaced: Mapping[str, Iterable[tuple[str, results.RowRange | pa.Table]]]
    ) -> None:
        """Replace the rows about whole chains, and write the tables and the ledger.

        `replaced` has, by table, the names of sources with their rows. A source that the tables
        have already is not written again. Raises `OSError`, `ResultError`, `DeltaError`.
        """
        wanted: set[str] = set()
        for rows in replaced.values():
            wanted.update(source for source, _ in rows)
        stored = self.tables.sources(replaced=True)
        self.tables.drop(stored - wanted, replaced=True)
        for name, rows in replaced.items():
            for source, source_rows in rows:
                if source not in stored:
                    self.tables.add(name, source, source_rows, replaced=True)
        self.tables.drop(self._stale)
        self._stale = set()
        self._keep(whole=True)

    def tidy(self) -> None:
        """Remove the files of the output that are not referenced any more. Raises `OSError`."""
        self.tables.sweep()
        # Temporary files of a run that was killed.
        half_written = (f".{LEDGER}.", f".{results.REPORT}.")
        self.work.remove(name for name in self.out.names("") if name.startswith(half_written))
        folds = chained.from_iterable(ledger.account.folds for ledger in self.networks.values())
        states = {fold["files"]["state.json"][0] for fold in folds}
        for folder in results.FOLDERS:
            self.work.remove(path for path in self.out.walk(folder) if path not in states)
        pages = set(chained.from_iterable(ledger.pages for ledger in self.networks.values()))
        self.work.remove(
            path
            for path in self.out.walk(PAGES)
            if path not in pages and not path.startswith(SOURCES)
        )

    def _keep(self, *, whole: bool) -> None:
        """Write the tables, and then the ledger that refers to them.

        If the run is not at its end (`whole` is false), networks that were not reached keep their
        old ledgers, and the Delta logs are not written: readers see the tables of the last complete
        run.
        """
        self.tables.flush(self.work.pack)
        give_back()
        if whole:
            self.tables.log()
        sums = self.listing.sums(
            {name: ledger.account.last for name, ledger in self.networks.items()}
        )
        for name, ledger in self.networks.items():
            ledger.listing = "" if self._unsure & {None, name} else sums[name]
        networks = dict(self.networks)
        # A complete run drops networks that are not in the history any more.
        if not whole:
            networks = self.ledger.networks | networks
        AuditLedger(
            self.ledger.basis,
            networks,
            self.tables.to_json(),
            whole=whole,
            known=self.ledger.known,
        ).write(self.out)
        self.work.remove_gathered(self._gathered)
        self._gathered = []

    def close(self) -> None:
        """Stop the engine if it was started."""
        self.work.close()

    def read_errors(self) -> list[Row]:
        """Return rows about everything that could not be read or judged. Rows may be repeated."""
        rows: list[Row] = []
        for ledger in self.networks.values():
            rows += ledger.account.read_errors
        return rows + [fault.row() for fault in (*self.faults, *self.lost)]

    def uncommitted(self) -> int:
        """Return the number of data files that no manifest names.

        There are three kinds: files of segments after the last one, surplus files of judged
        segments, and files whose path does not say where they belong. A manifest may name files of
        the last kind, which are subtracted.
        """
        lasts = {name: ledger.account.last for name, ledger in self.networks.items()}
        accounts = [ledger.account for ledger in self.networks.values()]
        surplus = sum(account.surplus for account in accounts)
        odd = sum(path.endswith(".parquet") for path in self.listing.odd)
        named_odd = sum(account.odd for account in accounts)
        return self.listing.beyond(lasts) + surplus + max(odd - named_odd, 0)

    # The results of the last run

    def _take_known(self) -> None:
        """Take over the totals of networks whose files are unchanged, and the receipts of others.

        Such a network is still read from its start if files of its last folds are missing, or if it
        had rows in a damaged file of a table. Raises `ResultError`.
        """
        # A source is the folder of a result, such as `items/network=NAME/…`.
        lost_sources = self.tables.lost()
        damaged = {source.partition("/network=")[2].partition("/")[0] for source in lost_sources}
        replaced = self.tables.sources(replaced=True)
        for name, ledger in self.ledger.networks.items():
            if ledger.listing and name not in damaged and self._has_fold(ledger.account, replaced):
                self.networks[name] = ledger
        self._list()
        for name, ledger in self.ledger.networks.items():
            if name not in self.networks:
                receipts = [
                    receipt
                    for receipt in ledger.receipts(self.out)
                    if receipt["folder"] not in lost_sources
                ]
                self._receipts.update((receipt["folder"], receipt) for receipt in receipts)
        if self.ledger.whole and len(self.networks) == len(self.ledger.networks):
            return
        # The last run was interrupted, or some network is read from its start again. So all rows in
        # the tables are stale, except for those of networks that are taken over. Rows stop being
        # stale when their receipt is used again.
        self._stale = self.tables.sources(replaced=False)
        for ledger in self.networks.values():
            self._stale -= {
                *(receipt["folder"] for receipt in ledger.receipts(self.out)),
                *ledger.account.settled_in,
            }

    def _list(self) -> None:
        """List the history, and drop known networks whose files have changed.

        A listing has only one checksum for all files of a known network. So after a network is
        dropped, the history is listed again to get a checksum for each of its segments.
        """
        while True:
            lasts = {name: ledger.account.last for name, ledger in self.networks.items()}
            self.listing = Listing.of(self.history, lasts)
            changed = [
                name
                for name, checksum in self.listing.sums(lasts).items()
                if checksum != self.networks[name].listing
            ]
            if not changed:
                return
            for name in changed:
                del self.networks[name]

    def _has_fold(self, account: NetworkAccount, replaced: set[str]) -> bool:
        """Return whether the files of a network's last folds are in the output.

        They are the states from which the next segments continue, and the rows about whole chains.
        These rows may also be in the tables already. `replaced` has their sources.
        """
        for fold in account.folds:
            path, size = fold["files"]["state.json"]
            state = self.work.result_files.get(path)
            if state is None or state.size != size:
                return False
            ends = [fold["files"][name][0] for name in REPLACED if name in fold["files"]]
            if not all(end in replaced or end in self.work.result_files for end in ends):
                return False
        return bool(account.folds) or account.tasks == 0

    # A round

    def _round(self, names: Sequence[str], left: int, previous: _Judged | None) -> _Judged | None:
        """Judge the segments of these manifests, and fold and add up those of the previous round.

        `left` is the number of manifests after these, for the progress display. Returns `None` if
        `names` is empty.
        """
        preceding = self._preceding_commits(names)
        history = self.work.read_manifests(self.history, names)
        commits, faults = read_commits(history, names, preceding)
        self.faults += faults
        self._unsure |= {fault.network for fault in faults}
        tasks = make_tasks(
            self.history.uri,
            commits,
            self.listing,
            previous=self._previous,
            rules=self.rules,
        )
        folds: list[Fold] = []
        if previous is not None:
            folds = plan_folds(
                self.history.uri, previous.receipts, self.networks, self.tables, limits=self.limits
            )
        known = [self._known(task) for task in tasks]
        fold_receipts, receipts = self.work.run(folds, tasks, known, left=left)
        if previous is not None:
            self._account(previous, fold_receipts)
        # Names are in order of networks, so only the last network can have segments in the next
        # round.
        self._previous = {commit.network: commit for commit in commits[-1:]}
        files = chained.from_iterable(task.files() for task in tasks)
        claimed = {entry.path for entry in files}
        return _Judged(commits, receipts, claimed) if names else None

    def _preceding_commits(self, names: Sequence[str]) -> Mapping[str, Commit]:
        """Return the last commit before the segments of these manifests, by network.

        If it cannot be read, a fault is recorded, and the next run looks at all segments of the
        network again.
        """
        for name in names:
            network = (place_of(f"{COMMITS}/{name}") or ("",))[0]
            ledger = self.networks.get(network)
            if network in self._previous or ledger is None or ledger.account.manifest is None:
                continue
            try:
                self._previous[network] = read_manifest(self.history, ledger.account.manifest)
            except (CommitError, OSError) as error:
                self.faults.append(
                    Fault(f"{COMMITS}/{ledger.account.manifest}", str(error), network=network)
                )
                self._unsure.add(network)
        return self._previous

    def _known(self, task: Task) -> results.SegmentReceipt | None:
        """Return the receipt of a task if an earlier run left a complete result, or `None`."""
        receipt = self._receipts.get(task.name)
        if receipt is not None and receipt["kept"]:
            self._stale.discard(task.name)
            return receipt
        return self.work.whole_task(task)

    def _account(self, judged: _Judged, folds: Sequence[results.FoldReceipt]) -> None:
        """Add the round's segments and folds to the totals of their networks."""
        for name, group in groupby(judged.commits, lambda commit: commit.network):
            self._account_network(name, group, judged)
            network_folds = [fold for fold in folds if fold["network"] == name]
            for fold in network_folds:
                self._gather(fold, (schema.FINDINGS.name,))
            if network_folds:
                self.networks[name].account.close_folds(network_folds)

    def _account_network(self, network: str, commits: Iterable[Commit], judged: _Judged) -> None:
        """Add a network's segments to its totals and their rows to the tables.

        Also check the files that manifests name but no task has read. Add the network to `_unsure`
        if the next run must look at its segments again.
        """
        ledger = self.networks.setdefault(network, NetworkLedger(NetworkAccount(network)))
        page: list[results.SegmentReceipt] = []
        receipts: dict[int, list[results.SegmentReceipt]] = {}
        for receipt in judged.receipts:
            if receipt["network"] == network:
                receipts.setdefault(receipt["segment"], []).append(receipt)
        for commit in commits:
            segment_receipts = receipts.get(commit.segment, [])
            for receipt in segment_receipts:
                # The receipt is from the ledger of the last run, so the tables have its rows.
                if "unread" in receipt:
                    self._stale.discard(receipt["folder"])
                    continue
                self._gather(receipt, _GATHERED)
                self._gathered += [
                    f"{receipt['folder']}/{results.RECEIPT}",
                    *(path for path, _ in receipt["files"].values()),
                ]
            ledger.account.add(commit, segment_receipts)
            ledger.account.surplus += self.listing.surplus(commit)
            ledger.account.odd += sum(
                place_of(path) is None for path in {entry.path for entry in commit.files}
            )
            faults: list[Fault] = []
            for entry in commit.files:
                if entry.path not in judged.claimed:
                    faults += check_file(self.history, entry)
            ledger.account.read_errors += [fault.row() for fault in faults]
            # A manifest may name files in another segment's folder. A change of such a file would
            # not show in this segment's part of the listing.
            in_own_folder = all(
                (place_of(entry.path) or ())[:2] == (network, commit.segment)
                for entry in commit.files
            )
            if (
                not in_own_folder
                or any(fault.transient for fault in faults)
                or not all(receipt["kept"] for receipt in segment_receipts)
            ):
                self._unsure.add(network)
            page += segment_receipts
        ledger.close_page(self.out, page)

    def _gather(self, receipt: results.CommonReceipt, names: Sequence[str]) -> None:
        """Add the rows of a result to the tables `names`.

        Rows of `read_errors` do not go into a table but into the receipt, as `unread`. Stale rows
        of the same result are dropped first.
        """
        folder = receipt["folder"]
        files = receipt["files"]
        receipt["unread"] = []
        if schema.READ_ERRORS.name in files:
            path, _ = files[schema.READ_ERRORS.name]
            receipt["unread"] += results.read_rows(self.out, path, schema.READ_ERRORS)
        if folder in self._stale:
            self._stale.remove(folder)
            self.tables.drop([folder])
        for name in names:
            if name in files:
                self.tables.add(name, folder, results.RowRange(files[name][0]))


def _is_known(name: str, lasts: Mapping[str, int]) -> bool:
    """Return whether a manifest's segment is not after the last known one of its network."""
    network, segment = place_of_manifest(name)
    return network is not None and segment is not None and segment <= lasts.get(network, -1)


def _take(names: list[str], count: int) -> list[str]:
    """Remove about `count` names from the front of a list and return them.

    Names of the same segment stay together, because two manifests for the same segment must be
    compared: only one of them counts.
    """
    taken: list[str] = []
    for _, group in groupby(list(names), lambda name: place_of(f"{COMMITS}/{name}")):
        if len(taken) >= count:
            break
        taken += group
    del names[: len(taken)]
    return taken
