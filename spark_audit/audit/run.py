"""The audit of a history: what changed since the last run is judged, the rest is taken from its output.

tasks      one a segment and chain; those whose receipt is there are not judged again
chains     one a chain: habits and sizes
summary    whether chains are verified, findings about them, quarantine
report     `run_report.json`, written last
"""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.version import VERSION
from pubsub_emulator.spark_audit.audit import findings
from pubsub_emulator.spark_audit.audit.evidence import figures_evidence
from pubsub_emulator.spark_audit.audit.findings import Severity, Thresholds, finding_row
from pubsub_emulator.spark_audit.audit.results import (
    ResultError,
    Results,
    read_receipt,
    read_rows,
    write_report,
    write_result,
)
from pubsub_emulator.spark_audit.engine.engine import EngineLost, Mapper, Report, open_mapper
from pubsub_emulator.spark_audit.engine.segment_task import CHECK_VERSION, Task, make_tasks
from pubsub_emulator.spark_audit.engine.units import ChainTask, judge_segment, look_through_chain, make_chain_task
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.canonical import encode_row
from pubsub_emulator.spark_audit.history.commit import CommitError, FileEntry, canonical_json, digest_of
from pubsub_emulator.spark_audit.history.reader import History, check_file, count_uncommitted
from pubsub_emulator.spark_audit.history.rows import Row

CLEAN: Final = 0
FINDINGS: Final = 1
USAGE: Final = 2
INCOMPLETE: Final = 3
INFRASTRUCTURE: Final = 4

Receipt = dict[str, Any]


class AuditFailed(PubsubError):
    """The audit could not be carried out; `exit_code` is 2 when it was asked wrongly, 4 when the machine failed it."""

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
    findings: dict[str, int] = field(default_factory=dict)
    """Number of findings by severity."""
    codes: dict[str, int] = field(default_factory=dict)
    """Number of findings by code."""
    quarantined: int = 0
    units_judged: int = 0
    units_skipped: int = 0
    engine: str | None = None
    """Which engine ran; none when nothing had changed."""
    seconds: float = 0.0
    out: Path = Path()
    report: dict[str, Any] = field(default_factory=dict)
    """As written to `run_report.json`."""

    @property
    def results(self) -> Results:
        """The tables that were written."""
        return Results(self.out, self.report)


def audit(
    history: Path,
    out: Path,
    master: str | None = None,
    engine: str = "spark",
    progress: Watcher | None = None,
    *,
    thresholds: Thresholds | None = None,
    trusted: Iterable[str] = (),
    fail_on: Severity | None = Severity.WARNING,
    opener: Callable[[str, str | None], Mapper] = open_mapper,
) -> AuditResult:
    """Audit the history at `history` into `out`, by `engine` `spark` (on `master`) or `python`.

    `trusted` are hashes, in hex, of headers whose checkpoints may start a chain beside genesis. Exit codes (AU-7): 0
    clean; 1 findings of severity `fail_on` or worse (none: never); 3 something was quarantined or a chain is not
    verified. `opener` starts the engine, when and if there is work. Raises `AuditFailed` with 2 or 4.
    """
    started = time.monotonic()
    if engine not in {"spark", "python"}:
        raise AuditFailed(f"there is no engine {engine!r}, only spark and python", USAGE)
    try:
        opened = History.open(history)
    except CommitError as error:
        raise AuditFailed(str(error), USAGE) from None
    watch = progress or (lambda _progress: None)
    run = _Run(opened, out, lambda: opener(engine, master), watch, thresholds or Thresholds())
    try:
        out.mkdir(parents=True, exist_ok=True)
        return run.run(frozenset(trusted), fail_on, started)
    except OSError as error:
        raise AuditFailed(f"{error.filename or out}: {error.strerror or error}", INFRASTRUCTURE) from error
    except EngineLost as error:
        raise AuditFailed(str(error), INFRASTRUCTURE) from error
    except ResultError as error:
        raise AuditFailed(f"{error}; remove the output and run again", INFRASTRUCTURE) from error
    finally:
        run.close()


class _Run:
    """One run over one history."""

    def __init__(
        self, history: History, out: Path, opener: Callable[[], Mapper], watch: Watcher, limits: Thresholds
    ) -> None:
        self.history = history
        self.out = out
        self.opener = opener
        self.watch = watch
        self.limits = limits
        self.opened: Mapper | None = None
        self.rate: float | None = None
        """Candidates judged in a second of this run, the engine's start included; none when there were none."""

    def run(self, trusted: frozenset[str], fail_on: Severity | None, started: float) -> AuditResult:
        """All phases, then the report."""
        tasks = make_tasks(self.history)
        receipts, judged_now = self.verify(tasks)
        chain_tasks = [
            make_chain_task(self.out, [task for task, _ in group], [receipt for _, receipt in group], self.limits)
            for group in _chains(tasks, receipts)
        ]
        looked_through = self.chains(chain_tasks)
        summary_folder, summary = self.summary(tasks, receipts, trusted)
        folders = [
            *(f"items/{task.name}" for task in tasks),
            *(f"chains/{task.name}" for task in chain_tasks),
            summary_folder,
        ]
        all_receipts = [*receipts, *looked_through, summary]
        tables: dict[str, list[str]] = {}
        for folder, receipt in zip(folders, all_receipts, strict=True):
            for name in receipt["rows"]:
                tables.setdefault(name, []).append(f"{folder}/{name}.parquet")
        # The quarantine of the summary is that of all segments, each row once.
        tables["quarantine"] = [path for path in tables.get("quarantine", []) if path.startswith("summary/")]
        body = [[r.get("network"), r.get("chain"), r.get("segment"), r["digests"]] for r in all_receipts]
        digest = digest_of(canonical_json(body))
        return self.finish(
            receipts,
            all_receipts,
            tables=tables,
            folders=folders,
            digest=digest,
            judged_now=judged_now,
            fail_on=fail_on,
            started=started,
        )

    # Phases

    def engine(self) -> Mapper:
        """The engine, started when first needed: a run with nothing to do starts no JVM (AU-6)."""
        if self.opened is None:
            self.opened = self.opener()
        return self.opened

    def close(self) -> None:
        """Stop what was started."""
        if self.opened is not None:
            self.opened.close()

    def verify(self, tasks: Sequence[Task]) -> tuple[list[Receipt], int]:
        """The receipts of all tasks, and how many of them were judged now."""
        known = [read_receipt(self.out / "items" / task.name) for task in tasks]
        fresh = [at for at, receipt in enumerate(known) if receipt is None]
        total = len(fresh)
        self.watch(Progress("verify", 0, total))
        made: dict[int, Receipt] = {}
        began = time.monotonic()
        if fresh:
            todo = [tasks[at].to_json() for at in fresh]
            tell = self.teller("verify", total)
            done = self.engine().map(judge_segment, todo, self.out, tell)
            made = dict(zip(fresh, done, strict=True))
            self.rate = sum(receipt["candidates"] for receipt in done) / max(time.monotonic() - began, 1e-3)
        receipts = [made[at] if receipt is None else receipt for at, receipt in enumerate(known)]
        return receipts, total

    def chains(self, tasks: Sequence[ChainTask]) -> list[Receipt]:
        """The receipts of all chains."""
        known = [read_receipt(self.out / "chains" / task.name) for task in tasks]
        fresh = [task.to_json() for task, receipt in zip(tasks, known, strict=True) if receipt is None]
        tell = self.teller("chains", len(fresh))
        tell(0)
        made = iter(self.engine().map(look_through_chain, fresh, self.out, tell) if fresh else [])
        return [next(made) if receipt is None else receipt for receipt in known]

    def teller(self, phase: str, total: int) -> Report:
        """What passes on how many units of a phase are done."""
        return lambda count: self.watch(Progress(phase, count, total))

    def summary(
        self, tasks: Sequence[Task], receipts: Sequence[Receipt], trusted: frozenset[str]
    ) -> tuple[str, Receipt]:
        """Folder and receipt of the summary."""
        unclaimed = _unclaimed(self.history, tasks)
        faults = [*self.history.faults, *(fault for entry in unclaimed for fault in check_file(self.history, entry))]
        body = [
            CHECK_VERSION,
            VERSION,
            [receipt["digests"] for receipt in receipts],
            [task.fingerprint for task in tasks],
            sorted(trusted),
            sorted(fault.path + fault.error for fault in faults),
        ]
        folder = f"summary/{digest_of(canonical_json(body))[:16]}"
        known = read_receipt(self.out / folder)
        self.watch(Progress("summary", 0, int(known is None)))
        if known is not None:
            return folder, known
        tables = {
            schema.CHAINS: [],
            schema.FINDINGS: [],
            schema.QUARANTINE: _distinct(
                [*(fault.row() for fault in faults), *self.item_rows(tasks, receipts, schema.QUARANTINE)],
                schema.QUARANTINE,
            ),
        }
        errors: dict[tuple[str, int], int] = {}
        for receipt in receipts:
            place = (receipt["network"], receipt["chain"])
            found = sum(count for severity, _, count in receipt["findings"] if severity == Severity.ERROR.value)
            errors[place] = errors.get(place, 0) + found
        for group in _chains(tasks, receipts):
            task = group[0][0]
            lost = [each.path for each in self.history.faults if each.network in {None, task.network}]
            row, notes = judge_chain(group, trusted, errors.get((task.network, task.chain), 0), lost)
            tables[schema.CHAINS].append(row)
            tables[schema.FINDINGS] += notes
        made = write_result(self.out / folder, tables, {})
        self.watch(Progress("summary", 1, 1))
        return folder, made

    def item_files(self, tasks: Sequence[Task], receipts: Sequence[Receipt], table: schema.Table) -> list[Path]:
        """The files of a table among the judged segments."""
        return [
            self.out / "items" / task.name / f"{table.name}.parquet"
            for task, receipt in zip(tasks, receipts, strict=True)
            if table.name in receipt["rows"]
        ]

    def item_rows(self, tasks: Sequence[Task], receipts: Sequence[Receipt], table: schema.Table) -> Iterable[Row]:
        """The rows of a table among the judged segments."""
        for path in self.item_files(tasks, receipts, table):
            yield from read_rows(path, table)

    def finish(
        self,
        receipts: list[Receipt],
        all_receipts: list[Receipt],
        *,
        tables: dict[str, list[str]],
        folders: list[str],
        digest: str,
        judged_now: int,
        fail_on: Severity | None,
        started: float,
    ) -> AuditResult:
        """Count, write the report, and decide the exit code."""
        results = Results(self.out, {"tables": tables})
        severities = {severity.value: 0 for severity in Severity}
        codes: dict[str, int] = {}
        for receipt in all_receipts:
            for severity, code, count in receipt["findings"]:
                severities[severity] += count
                codes[code] = codes.get(code, 0) + count
        quarantined = sum(1 for _ in results.rows(schema.QUARANTINE))
        chains = tuple(results.rows(schema.CHAINS))
        bad = any(severities[each.value] for each in Severity if fail_on is not None and each.at_least(fail_on))
        whole = not quarantined and all(row["status"] != "not verified" for row in chains)
        exit_code = FINDINGS if bad else CLEAN if whole else INCOMPLETE
        seconds = time.monotonic() - started
        candidates = sum(receipt["candidates"] for receipt in receipts)
        judged = sum(receipt["judged"] for receipt in receipts)
        proof_bytes = sum(receipt["proof_bytes"] for receipt in receipts)
        engine = None if self.opened is None else self.opened.name
        report = {
            "verifier": VERSION,
            "history": str(self.history.root),
            "exit_code": exit_code,
            "digest": digest,
            "engine": engine,
            "seconds": round(seconds, 3),
            "candidates": candidates,
            "judged": judged,
            "proof_bytes": proof_bytes,
            "units": {"judged": judged_now, "skipped": len(receipts) - judged_now},
            "candidates_per_second": None if self.rate is None else round(self.rate, 1),
            "findings": severities,
            "codes": dict(sorted(codes.items())),
            "quarantined": quarantined,
            "uncommitted_files": count_uncommitted(self.history.root, self.history),
            "chains": [{**row, "end": None if row["end"] is None else row["end"].hex()} for row in chains],
            "thresholds": asdict(self.limits),
            "tables": tables,
            "folders": folders,
        }
        write_report(self.out, report)
        return AuditResult(
            exit_code=exit_code,
            digest=digest,
            chains=chains,
            candidates=candidates,
            judged=judged,
            proof_bytes=proof_bytes,
            findings=severities,
            codes=dict(sorted(codes.items())),
            quarantined=quarantined,
            units_judged=judged_now,
            units_skipped=len(receipts) - judged_now,
            engine=engine,
            seconds=seconds,
            out=self.out,
            report=report,
        )


def judge_chain(
    group: Sequence[tuple[Task, Receipt]], trusted: frozenset[str], errors: int, lost: Sequence[str]
) -> tuple[Row, list[Row]]:
    """A chain's row of `chains`, and findings about the chain as a whole (AU-1).

    `lost` are manifests that cannot be read: they may name segments that nothing else speaks of.
    """
    task = group[0][0]
    receipts = [receipt for _, receipt in group]
    notes: list[Row] = []
    reasons = [
        f"segment {receipt['segment']} was not judged to its end" for receipt in receipts if not receipt["complete"]
    ]
    reasons += [
        f"segment {receipt['segment']} does not end where the next one starts"
        for receipt in receipts
        if receipt["seam"] == "mismatch"
    ]
    imported = all(receipt["kind"] == "imported" for receipt in receipts)
    first = receipts[0]
    if not imported and not first["genesis"] and first["start"] not in trusted:
        detail = f"segment {first['segment']} starts at {first['start']}, which is neither genesis nor named as trusted"
        reasons.append(detail)
        notes.append(
            finding_row(
                network=task.network,
                chain=task.chain,
                code=findings.UNTRUSTED_START,
                severity=Severity.INFO,
                subject=str(first["start"]).encode(),
                evidence=figures_evidence({"start": first["start"]}),
                detail=detail,
                place={"segment": first["segment"]},
            )
        )
    reasons += [f"{path} cannot be read, and may name more of this chain" for path in lost]
    if errors:
        reasons.append(f"{errors} findings of severity error")
    end = next((receipt for receipt in reversed(receipts) if receipt["end"] is not None), None)
    row = {
        "network": task.network,
        "chain": task.chain,
        "status": "not verified" if reasons else "opened" if imported else "verified",
        "reasons": reasons,
        "segments": len(receipts),
        "complete": sum(receipt["complete"] for receipt in receipts),
        "candidates": sum(receipt["candidates"] for receipt in receipts),
        "judged": sum(receipt["judged"] for receipt in receipts),
        "proof_bytes": sum(receipt["proof_bytes"] for receipt in receipts),
        "end_number": None if end is None else end["end_number"],
        "end": None if end is None else bytes.fromhex(end["end"]),
    }
    return row, notes


def _chains(tasks: Sequence[Task], receipts: Sequence[Receipt]) -> list[list[tuple[Task, Receipt]]]:
    pairs = zip(tasks, receipts, strict=True)
    return [list(group) for _, group in groupby(pairs, key=lambda pair: (pair[0].network, pair[0].chain))]


def _unclaimed(history: History, tasks: Sequence[Task]) -> list[FileEntry]:
    """The files that judging reads nothing from: they are part of the history all the same, and checked."""
    claimed = {
        entry.path
        for task in tasks
        for entries in (task.checkpoints, task.blocks, task.deliveries, task.nodes, task.relay)
        for entry in entries
    }
    return [entry for commit in history.commits for entry in commit.files if entry.path not in claimed]


def _distinct(rows: Iterable[Row], table: schema.Table) -> list[Row]:
    return list({encode_row(table, row): row for row in rows}.values())
