"""The audit of a history: what changed since the last run is judged, the rest is taken from its output.

tasks      one per segment and group of chains; those whose result is there are not judged again
folds      one per network: patterns and sizes, from where the last fold ended
summary    whether chains are verified, findings about them, quarantine
report     `run_report.json`, written last
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.version import VERSION
from pubsub_emulator.spark_audit.audit.completeness import chain_segments, judge_chain
from pubsub_emulator.spark_audit.audit.findings import Severity, Thresholds
from pubsub_emulator.spark_audit.audit.results import (
    RECEIPT,
    Receipt,
    ResultError,
    Results,
    files_are_whole,
    read_ledger,
    read_receipt,
    read_rows,
    sweep,
    write_ledger,
    write_report,
    write_result,
)
from pubsub_emulator.spark_audit.engine.choice import choose_engine, open_mapper
from pubsub_emulator.spark_audit.engine.engine import (
    ENGINES,
    EngineLost,
    Mapper,
    Unit,
    WrongMaster,
    check_form,
)
from pubsub_emulator.spark_audit.engine.segment_task import CHECK_VERSION, Task, make_tasks
from pubsub_emulator.spark_audit.engine.units import Fold, fold_fingerprint, fold_network, judge_segment
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.address import Address, StorageError
from pubsub_emulator.spark_audit.history.canonical import digest_rows, encode_row
from pubsub_emulator.spark_audit.history.manifest import (
    HISTORY_TABLES,
    CommitError,
    FileEntry,
    canonical_json,
    digest_of,
)
from pubsub_emulator.spark_audit.history.reader import History, check_file, count_uncommitted
from pubsub_emulator.spark_audit.history.rows import Row
from pubsub_emulator.spark_audit.history.storage import LocalStore, Stamp, Store, open_store

CLEAN: Final = 0
FINDINGS: Final = 1
USAGE: Final = 2
INCOMPLETE: Final = 3
INFRASTRUCTURE: Final = 4
BOTH: Final = 5
"""Findings, and not everything could be read or verified: neither hides the other."""

_MOST_FOLDS: Final = 24
"""Folds of a network that are kept apart; beyond them it is folded anew, so that follow-up runs leave few files."""


class AuditFailed(PubsubError):
    """The audit could not be carried out; `exit_code` is 2 when it was asked wrongly, 4 when the machine failed it.

    It is 3 when the history has another head than was demanded.
    """

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a phase (`verify`, `chains`, `summary`) is; counted in units of work."""

    phase: str
    done: int
    total: int


Watcher = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What an audit found. `digest` is over all canonical rows: equal for equal histories, whoever computed it."""

    exit_code: int
    digest: str
    chains: tuple[Row, ...]
    candidates: int
    judged: int
    proof_bytes: int
    store: Store
    head: str | None = None
    """The history's head, `None` where its manifests are damaged or missing."""
    findings: dict[str, int] = field(default_factory=dict)
    """Number of findings by severity."""
    codes: dict[str, int] = field(default_factory=dict)
    """Number of findings by code."""
    quarantined: int = 0
    units_judged: int = 0
    units_skipped: int = 0
    engine: str | None = None
    """Which engine ran; `None` when nothing had changed."""
    seconds: float = 0.0
    report: dict[str, Any] = field(default_factory=dict)
    """As written to `run_report.json`."""

    @property
    def out(self) -> Path | str:
        """Where they were written to: a folder, or the URI of a place elsewhere."""
        return self.store.folder if isinstance(self.store, LocalStore) else self.store.uri

    @property
    def results(self) -> Results:
        """The tables that were written."""
        return Results(self.store, self.report)


def audit(
    history: Address | Store,
    out: Address | Store,
    master: str | None = None,
    engine: str = "auto",
    progress: Watcher | None = None,
    *,
    thresholds: Thresholds | None = None,
    trusted: Iterable[str] = (),
    head: str | None = None,
    fail_on: Severity | None = Severity.WARNING,
    opener: Callable[[str, str | None], Mapper] = open_mapper,
) -> AuditResult:
    """Audit the history at `history` into `out`; `engine` is `auto`, `python`, `pool`, or `spark` on `master`.

    `trusted` are hashes, in hex, of headers whose checkpoints may start a chain beside genesis; `head` is the one that
    the history must have. Exit codes (AU-7): 0 clean; 1 findings of severity `fail_on` or worse (`None`: never);
    3 something was quarantined or a chain is not verified; 5 both. `opener` starts the engine, when and if there is
    work. Raises `AuditFailed` with 2, 3 or 4.
    """
    started = time.monotonic()
    if engine not in ENGINES:
        raise AuditFailed(f"there is no engine {engine!r}, only {', '.join(ENGINES)}", USAGE)
    try:
        if master is not None:
            check_form(master)
        opened = History.open(history)
        store = open_store(out)
    except (CommitError, StorageError, WrongMaster) as error:
        raise AuditFailed(str(error), USAGE) from None
    except OSError as error:
        raise AuditFailed(f"{history}: {error.strerror or error}", INFRASTRUCTURE) from None
    if head is not None and opened.head != head.removeprefix("0x").lower():
        is_ = f"0x{opened.head}" if opened.head else "none: manifests are damaged or missing"
        raise AuditFailed(f"{opened.root}: its head is {is_}, not {head}; nothing was audited", INCOMPLETE)
    watch = progress or (lambda _progress: None)

    def start(units: int) -> Mapper:
        return opener(choose_engine(engine, master, units), master)

    run = _Run(opened, store, start, watch, thresholds or Thresholds())
    try:
        return run.run(frozenset(trusted), fail_on, started)
    except OSError as error:
        raise AuditFailed(f"{error.filename or store}: {error.strerror or error}", INFRASTRUCTURE) from error
    except (EngineLost, ResultError) as error:
        raise AuditFailed(str(error), INFRASTRUCTURE) from error
    finally:
        run.close()


class _Run:
    """One run: the phases, and what passes between them."""

    def __init__(
        self, history: History, out: Store, opener: Callable[[int], Mapper], watch: Watcher, limits: Thresholds
    ) -> None:
        self.history = history
        self.out = out
        self.opener = opener
        self.watch = watch
        self.limits = limits
        self.opened: Mapper | None = None
        self.rate: float | None = None
        self.there: dict[str, Stamp] = {}
        """The output's files as this run found them."""
        self.known: dict[str, Stamp] = {}
        """As the last run left them."""
        self.ledger: dict[str, Receipt] = {}

    def run(self, trusted: frozenset[str], fail_on: Severity | None, started: float) -> AuditResult:
        """All phases."""
        found: dict[str, Stamp] = {}
        for table in HISTORY_TABLES:
            found.update(self.history.root.walk(table))
        self.there = self.out.walk()
        self.ledger, self.known = read_ledger(self.out)
        tasks = make_tasks(self.history, found)
        receipts, judged_now = self.verify(tasks)
        folds = self.fold(tasks, receipts)
        summary = self.summary(tasks, receipts, folds, trusted)
        return self.finish(
            receipts,
            folds,
            summary,
            judged_now=judged_now,
            fail_on=fail_on,
            started=started,
            uncommitted=count_uncommitted(found, self.history),
        )

    # Phases

    def engine(self, units: int) -> Mapper:
        """The engine, started when first needed: a run with nothing to do starts none (AU-6)."""
        if self.opened is None:
            self.opened = self.opener(units)
        return self.opened

    def close(self) -> None:
        """Stop what was started."""
        if self.opened is not None:
            self.opened.close()

    def result(self, folder: str) -> Receipt | None:
        """The receipt of a result that is there and whole."""
        receipt = self.ledger.get(folder)
        if receipt is None and f"{folder}/{RECEIPT}" in self.there:
            receipt = read_receipt(self.out, folder)
        if receipt is None or not receipt["kept"]:
            return None
        return receipt if files_are_whole(self.out, receipt, self.there, self.known) else None

    def map(self, unit: Unit, tasks: Sequence[Task] | Sequence[Fold], phase: str) -> list[Receipt]:
        """Have an engine do tasks. Raises `ResultError` when what a worker wrote is not to be seen from here."""
        total = len(tasks)
        self.watch(Progress(phase, 0, total))
        if not tasks:
            return []
        texts = [task.to_json() for task in tasks]
        weights = [task.weight for task in tasks]
        done = self.engine(total).map(
            unit, texts, self.out.uri, lambda count: self.watch(Progress(phase, count, total)), weights
        )
        for receipt in done:
            for path, size in receipt["files"].values():
                stamp = self.out.stamp(path)
                if stamp is None or stamp.size != size:
                    raise ResultError(
                        f"{self.out}/{path} is not there, though a worker wrote it: "
                        "the output must be a place that driver and workers share, such as an s3:// address"
                    )
                self.there[path] = stamp
        return done

    def verify(self, tasks: Sequence[Task]) -> tuple[list[Receipt], int]:
        """The receipts of all tasks, and how many of them were judged now."""
        known = [self.result(task.name) for task in tasks]
        fresh = [at for at, receipt in enumerate(known) if receipt is None]
        began = time.monotonic()
        self.forget([tasks[at] for at in fresh])
        done = self.map(judge_segment, [tasks[at] for at in fresh], "verify")
        if fresh:
            candidates = sum(chain["candidates"] for receipt in done for chain in receipt["chains"])
            self.rate = candidates / max(time.monotonic() - began, 1e-3)
        made = dict(zip(fresh, done, strict=True))
        return [made[at] if receipt is None else receipt for at, receipt in enumerate(known)], len(fresh)

    def forget(self, tasks: Sequence[Task] | Sequence[Fold]) -> None:
        """Remove the receipts of results that are to be made anew, because they are damaged."""
        for task in tasks:
            if f"{task.name}/{RECEIPT}" in self.there:
                self.out.remove(f"{task.name}/{RECEIPT}")

    def fold(self, tasks: Sequence[Task], receipts: Sequence[Receipt]) -> list[Receipt]:
        """The receipts of all folds, by network and order."""
        plans = [self.plan_fold(*group) for group in _networks(tasks, receipts)]
        todo = [plan.todo for plan in plans if plan.todo is not None]
        self.forget(todo)
        made = iter(self.map(fold_network, todo, "chains"))
        return [receipt for plan in plans for receipt in (*plan.done, *((next(made),) if plan.todo else ()))]

    def plan_fold(self, network: str, receipts: list[Receipt]) -> "_Plan":
        """What of a network's folds is there, and the one that is missing.

        Folds follow each other; one counts if what it and all before it rest on is as it was.
        """
        done: list[Receipt] = []
        before, at = "", 0
        mine = f"chains/network={network}/"
        kept = {each["first"]: each for folder, each in self.ledger.items() if folder.startswith(mine)}
        while at < len(receipts) and (found := kept.get(receipts[at]["segment"])) is not None:
            ends = [n for n in range(at + 1, len(receipts) + 1) if receipts[n - 1]["segment"] == found["last"]]
            part = receipts[at : ends[-1]] if ends else []
            if not part or not all(receipt["kept"] for receipt in part):
                break
            if found["fingerprint"] != fold_fingerprint(before, network, part, self.limits):
                break
            if self.result(found["folder"]) is None:
                break
            done.append(found)
            before, at = found["fingerprint"], ends[-1]
        if at == len(receipts):
            return _Plan(done, None)
        if len(done) >= _MOST_FOLDS:
            done, before, at = [], "", 0
        rest = receipts[at:]
        fold = Fold(
            root=self.history.root.uri,
            network=network,
            first=rest[0]["segment"],
            last=rest[-1]["segment"],
            segments=tuple(
                (_file(receipt, schema.BLOCK_MEASURES), _file(receipt, schema.PUBLISHER_MEASURES)) for receipt in rest
            ),
            before=done[-1]["files"]["state.json"][0] if done else None,
            limits=self.limits,
            keep=all(receipt["kept"] for receipt in receipts),
            fingerprint=fold_fingerprint(before, network, rest, self.limits),
        )
        return _Plan(done, fold)

    def summary(
        self, tasks: Sequence[Task], receipts: Sequence[Receipt], folds: Sequence[Receipt], trusted: frozenset[str]
    ) -> Receipt:
        """The receipt of the summary."""
        unclaimed = _unclaimed(self.history, tasks)
        faults = [*self.history.faults, *(fault for entry in unclaimed for fault in check_file(self.history, entry))]
        chains = chain_segments(self.history, receipts)
        keep = all(receipt["kept"] for receipt in receipts) and not any(fault.passing for fault in faults)
        body = [
            CHECK_VERSION,
            [[receipt["fingerprint"], receipt["quarantined"]] for receipt in (*receipts, *folds)],
            sorted(trusted),
            sorted(fault.path + fault.error for fault in faults),
            [commit.digest for commit in self.history.commits],
        ]
        folder = f"summary/{digest_of(canonical_json(body))[:16]}"
        known = self.result(folder) if keep else None
        self.watch(Progress("summary", 0, int(known is None)))
        if known is not None:
            return known
        quarantined = [row for receipt in (*receipts, *folds) for row in self.rows(receipt, schema.QUARANTINE)]
        quarantined += [fault.row() for fault in faults]
        rows: dict[schema.Table, list[Row]] = {
            schema.CHAINS: [],
            schema.FINDINGS: [],
            schema.QUARANTINE: list({encode_row(schema.QUARANTINE, row): row for row in quarantined}.values()),
        }
        incomplete = 0
        for chain in chains:
            row, notes, misses = judge_chain(chain, trusted, faults)
            incomplete += misses
            rows[schema.CHAINS].append(row)
            rows[schema.FINDINGS] += notes
        receipt = {
            "fingerprint": folder,
            "quarantined": len(rows[schema.QUARANTINE]),
            "incomplete": incomplete,
            "findings": _count(rows[schema.FINDINGS]),
            "digests": {table.name: digest_rows(table, found).hex() for table, found in rows.items()},
        }
        tables = {table.name: (table, found) for table, found in rows.items()}
        made = write_result(self.out, folder, tables, receipt, keep=keep)
        for path, _ in made["files"].values():
            stamp = self.out.stamp(path)
            if stamp is not None:
                self.there[path] = stamp
        self.watch(Progress("summary", 1, 1))
        return made

    def rows(self, receipt: Receipt, table: schema.Table) -> Iterable[Row]:
        """The rows of a table of one result."""
        path = _file(receipt, table)
        return () if path is None else read_rows(self.out, path, table)

    def finish(
        self,
        receipts: list[Receipt],
        folds: list[Receipt],
        summary: Receipt,
        *,
        judged_now: int,
        fail_on: Severity | None,
        started: float,
        uncommitted: int,
    ) -> AuditResult:
        """Count, write the report, and decide the exit code."""
        tables = _tables(receipts, folds, summary)
        results = Results(self.out, {"tables": tables})
        severities = {severity.value: 0 for severity in Severity}
        codes: dict[str, int] = {}
        for severity, code, count in _findings(receipts, folds, summary):
            severities[severity] += count
            codes[code] = codes.get(code, 0) + count
        chains = tuple(results.rows(schema.CHAINS))
        bad = any(severities[each.value] for each in Severity if fail_on is not None and each.at_least(fail_on))
        whole = not summary["quarantined"] and all(row["status"] != "not verified" for row in chains)
        lost = summary["quarantined"] or summary["incomplete"]
        exit_code = (BOTH if lost else FINDINGS) if bad else CLEAN if whole else INCOMPLETE
        by_chain = [chain for receipt in receipts for chain in receipt["chains"]]
        digest = _digest(by_chain, folds, summary)
        engine = None if self.opened is None else self.opened.name
        figures = {
            "candidates": sum(chain["candidates"] for chain in by_chain),
            "judged": sum(chain["judged"] for chain in by_chain),
            "proof_bytes": sum(chain["proof_bytes"] for chain in by_chain),
            "quarantined": summary["quarantined"],
            "exit_code": exit_code,
            "digest": digest,
            "engine": engine,
            "findings": severities,
            "codes": dict(sorted(codes.items())),
            "head": self.history.head,
        }
        seconds = time.monotonic() - started
        folders = [each["folder"] for each in (*receipts, *folds, summary)]
        report = {
            **figures,
            "verifier": VERSION,
            "history": self.history.root.uri,
            "complete_up_to": _reach(self.history.head),
            "segments": len(self.history.commits),
            "seconds": round(seconds, 3),
            "units": {"judged": judged_now, "skipped": len(receipts) - judged_now},
            "candidates_per_second": None if self.rate is None else round(self.rate, 1),
            "uncommitted_files": uncommitted,
            "chains": [{**row, "end": None if row["end"] is None else row["end"].hex()} for row in chains],
            "thresholds": asdict(self.limits),
            "tables": tables,
            "folders": folders,
        }
        kept = {each["folder"]: each for each in (*receipts, *folds, summary) if each["kept"]}
        named = [path for each in kept.values() for path, _ in each["files"].values()]
        write_ledger(self.out, kept, {path: self.there[path] for path in named if path in self.there})
        write_report(self.out, report)
        sweep(self.out, self.there, folders)
        return AuditResult(
            **figures,
            chains=chains,
            store=self.out,
            units_judged=judged_now,
            units_skipped=len(receipts) - judged_now,
            seconds=seconds,
            report=report,
        )


@dataclass(frozen=True, slots=True)
class _Plan:
    """The folds of a network that are there, and the one to make."""

    done: list[Receipt]
    todo: Fold | None


def _networks(tasks: Sequence[Task], receipts: Sequence[Receipt]) -> list[tuple[str, list[Receipt]]]:
    out: dict[str, list[Receipt]] = {}
    for task, receipt in zip(tasks, receipts, strict=True):
        out.setdefault(task.network, []).append(receipt)
    return list(out.items())


def _unclaimed(history: History, tasks: Sequence[Task]) -> list[FileEntry]:
    """The files that judging reads nothing from: they are part of the history all the same, and checked."""
    claimed = {entry.path for task in tasks for entry in task.files()}
    return [entry for commit in history.commits for entry in commit.files if entry.path not in claimed]


def _file(receipt: Receipt, table: schema.Table) -> str | None:
    """The path of a table's file in a result, `None` when it has no rows."""
    named = receipt["files"].get(table.name)
    return None if named is None else named[0]


def _tables(receipts: Sequence[Receipt], folds: Sequence[Receipt], summary: Receipt) -> dict[str, list[str]]:
    """The files of every table. Of folds, runs that still last and sizes are those of the last one of a network."""
    out: dict[str, list[str]] = {}

    def add(name: str, files: Mapping[str, Any], stem: str | None = None) -> None:
        if (stem or name) in files:
            out.setdefault(name, []).append(files[stem or name][0])

    for receipt in receipts:
        for name in ("block_measures", "publisher_measures", "waste", "proof_parts", "findings"):
            add(name, receipt["files"])
    for fold in folds:
        add("findings", fold["files"])
    for fold in _last(folds):
        add("findings", fold["files"], "open")
        add("summaries", fold["files"])
    for name in ("chains", "findings", "quarantine"):
        add(name, summary["files"])
    return out


def _last(folds: Sequence[Receipt]) -> list[Receipt]:
    return list({fold["network"]: fold for fold in folds}.values())


def _findings(
    receipts: Sequence[Receipt], folds: Sequence[Receipt], summary: Receipt
) -> Iterable[tuple[str, str, int]]:
    for receipt in receipts:
        for chain in receipt["chains"]:
            yield from map(tuple, chain["findings"])
    for fold in folds:
        yield from map(tuple, fold["settled"])
    for fold in _last(folds):
        yield from map(tuple, fold["open"])
    yield from map(tuple, summary["findings"])


def _digest(chains: Sequence[Receipt], folds: Sequence[Receipt], summary: Receipt) -> str:
    """One digest over the canonical rows of all tables, however they were cut."""
    judged = sorted([each["network"], each["chain"], each["segment"], each["digests"]] for each in chains)
    folded = [[fold["network"], sorted(fold["chains"].items())] for fold in _last(folds)]
    return digest_of(canonical_json([judged, folded, summary["digests"]]))


def _count(rows: Iterable[Row]) -> list[list[Any]]:
    found: dict[tuple[str, str], int] = {}
    for row in rows:
        found[row["severity"], row["code"]] = found.get((row["severity"], row["code"]), 0) + 1
    return [[severity, code, count] for (severity, code), count in sorted(found.items())]


def _reach(head: str | None) -> str:
    """What is known of completeness, in words."""
    if head is None:
        return "not known: manifests are damaged or missing"
    return f"head 0x{head}, as the history itself says"
