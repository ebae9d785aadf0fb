"""`pubsub audit`: verifies a history again and shows the results in tables."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, Final

import click

from pubsub_emulator.cli.base.own_process import spare_memory
from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.commands.report import make_report
from pubsub_emulator.cli.commands.run.run import show_digest
from pubsub_emulator.cli.screen import bar, files, say, stage, table
from pubsub_emulator.files.program import program
from pubsub_emulator.files.progress import ProgressCallback
from pubsub_emulator.pages.words import size
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.spark_audit.audit.follow import follow
from pubsub_emulator.spark_audit.audit.run import AuditFailed, AuditResult, audit
from pubsub_emulator.spark_audit.audit.work import AuditProgress
from pubsub_emulator.spark_audit.choice import may_be_spark
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.judge.findings import Severity
from pubsub_emulator.spark_audit.judge.results import TABLES

MOST_CHAINS = 12
MOST_FAULTS = 8
SLOWEST_SHOWN = 0.1
"""The slowest pace that is shown, in units per second."""
DIGEST_MEANS: Final = (
    "one hash over the rows of all tables: equal histories have equal digests, whichever engine ran"
)
PHASES = {"start": "starting the engine", "verify": "units of work", "chains": "networks"}


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """The arguments of an audit."""

    history: str | Path
    out: str | Path
    master: str | None = None
    """The URL of a Spark master, `None` to run Spark inside of this program."""
    engine: str = "auto"
    fail_on: str = "warning"
    """The lowest severity at which a finding makes the exit code 1, or `never`."""
    trusted: tuple[str, ...] = ()
    """The hashes in hex of headers at which a chain may start instead of genesis."""
    head: str | None = None
    """The head that the history must have, as an earlier audit printed it."""
    retain: float = 24.0
    """Hours for which replaced files of tables stay."""
    rules: Rules = SHIPPED
    name: str | Path | None = None
    """The history's name in messages, by default its place."""


def _keywords(request: AuditOptions) -> dict[str, Any]:
    """Return the keyword arguments of `audit`."""
    severity = None if request.fail_on == "never" else Severity(request.fail_on)
    trusted = [start.removeprefix("0x") for start in request.trusted]
    return {
        "fail_on": severity,
        "trusted": trusted,
        "head": request.head,
        "retain": timedelta(hours=request.retain),
        "rules": request.rules,
    }


def judge(request: AuditOptions) -> AuditResult:
    """Run the audit with a progress bar, which counts units of work.

    Raises `AuditFailed`.
    """
    with stage(f"auditing {request.name or request.history}") as advance:
        watch = _watcher(advance)
        return audit(
            request.history,
            request.out,
            request.master,
            request.engine,
            watch,
            **_keywords(request),
        )


def _watcher(advance: ProgressCallback) -> Callable[[AuditProgress], None]:
    """Return the function that shows an audit's progress, with the pace of the present phase."""
    phase = ""
    began = monotonic()
    done_at_begin = 0.0

    def watch(progress: AuditProgress) -> None:
        """Show a report. Each phase has a pace of its own."""
        nonlocal phase, began, done_at_begin
        if progress.phase != phase or progress.done < done_at_begin:
            phase = progress.phase
            began = monotonic()
            done_at_begin = progress.done
        # The first report of a phase may come at once. It must not divide by zero.
        seconds = max(monotonic() - began, 1e-3)
        rate = (progress.done - done_at_begin) / seconds
        pace = f", {rate:.1f} a second" if rate >= SLOWEST_SHOWN else ""
        advance(
            progress.done,
            progress.total,
            f"auditing: {PHASES.get(progress.phase, progress.phase)}{pace}",
        )

    return watch


def run_audit(request: AuditOptions, *, growing: bool = False, report: bool = False) -> Result:
    """Audit a history, print the findings, and return the audit's exit code (AU-7).

    With `growing`, a history that is still being written is audited again and again until Ctrl-C.
    With `report`, the charts are drawn as well.
    """
    if report:
        # If the extra is missing, this fails before the audit and not after it.
        import_module("pubsub_emulator.spark_audit.report.page")
    if not may_be_spark(request.engine, request.master):
        spare_memory()
    try:
        result = _follow(request) if growing else judge(request)
    except KeyboardInterrupt:
        say("interrupted: finished work is kept, and the same command continues")
        raise
    except AuditFailed as failure:
        say(f"pubsub: {failure}", aside=True)
        return Result({"error": str(failure), "exit_code": failure.exit_code}, failure.exit_code)
    show_audit(result)
    if result.read_errors:
        show_faults(result, request)
    if result.uncommitted:
        say("", uncommitted(result.uncommitted))
    files("written:", (*written(request.out), *(make_report(request.out) if report else ())))
    if result.codes:
        pubsub = program()
        out = request.out
        say(
            f"`{pubsub} evidence {out}` lists the findings, `{pubsub} report {out}` draws"
            " everything"
        )
    if result.head is None:
        say(
            "the history has no head: manifests are damaged or missing, and it may have been longer"
        )
    else:
        say(
            "complete up to this head, according to the history itself; `--head` requires it",
            f"head: 0x{result.head}",
        )
    show_digest(result.digest, DIGEST_MEANS)
    return Result(document(result, request.out), result.exit_code)


def _follow(request: AuditOptions) -> AuditResult:
    """Audit a growing history until an interrupt, and return the last result.

    Raises `AuditFailed`, `Abort`.
    """
    result = None
    say(f"following {request.history}; Ctrl-C ends it")
    with bar() as advance:
        options = {**_keywords(request), "progress": _watcher(advance)}
        turns = follow(
            request.history, request.out, Event(), request.master, request.engine, **options
        )
        try:
            for result in turns:
                say(_turn(result))
        except KeyboardInterrupt:
            if result is None:
                raise
        finally:
            turns.close()
    if result is None:
        raise click.Abort
    return result


def _turn(result: AuditResult) -> str:
    """Return the line about one audit of a history that is followed."""
    findings = sum(result.findings.values())
    return (
        f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {result.units_judged} units judged, "
        f"{_judged(result.judged, result.candidates)} candidates judged in all, "
        f"{findings} findings, {result.read_errors} read errors, {result.uncommitted} uncommitted"
        f" files, digest 0x{result.digest[:16]}…"
    )


def document(result: AuditResult, out: str | Path) -> dict[str, object]:
    """Return the audit's summary as a JSON document."""
    head = None if result.head is None else f"0x{result.head}"
    outcome = {"digest": f"0x{result.digest}", "exit_code": result.exit_code, "head": head}
    sums = {
        "candidates": result.candidates,
        "judged": result.judged,
        "proof_bytes": result.proof_bytes,
    }
    units = {"judged": result.units_judged, "known": result.units_skipped}
    problems = {
        "read_errors": result.read_errors,
        "uncommitted_files": result.uncommitted,
        "findings": result.findings,
        "codes": result.codes,
    }
    chains = [dict(row) for row in result.chains]
    return {
        **outcome,
        "engine": result.engine,
        "out": out,
        **sums,
        "units": units,
        **problems,
        "chains": chains,
    }


def written(out: str | Path) -> Iterable[tuple[str, str]]:
    """Return the paths of an audit's files, each with a description."""
    return (
        (
            f"{out}/run_report.json",
            "work done, findings, read errors, and the files of the tables",
        ),
        (
            f"{out}/{TABLES}",
            "the tables, one folder each: Parquet with a Delta log; see `pubsub sql`",
        ),
    )


def show_audit(result: AuditResult) -> None:
    """Print the tables of chains and findings.

    Verified chains after the first `MOST_CHAINS` are only counted.
    """
    ranked = sorted(
        result.chains, key=lambda row: (row["status"] != "not verified", -row["proof_bytes"])
    )
    shown = [
        row
        for rank, row in enumerate(ranked)
        if row["status"] == "not verified" or rank < MOST_CHAINS
    ]
    rows = []
    for row in shown:
        name = " ".join(filter(None, (row["network"], str(row["chain"]), row["name"])))
        figures = (
            row["segments"],
            _judged(row["judged"], row["candidates"]),
            size(row["proof_bytes"]),
        )
        rows.append((name, row["status"], *figures, "; ".join(row["reasons"])))
    table("audit: chains", ("chain", "status", "segments", "judged", "proofs", "reasons"), rows)
    others = Counter(row["status"] for row in ranked[len(shown) :])
    if others:
        say(
            "and "
            + ", ".join(f"{count} more {status}" for status, count in sorted(others.items())),
            "",
        )
    if result.codes:
        table("audit: findings", ("code", "count"), sorted(result.codes.items()))
    again = f", {result.units_skipped} known from the last run" if result.units_skipped else ""
    total = _judged(result.judged, result.candidates)
    say(f"{total} candidates judged, {counted(result.units_judged, 'unit')} of work now{again}")


def uncommitted(files: int) -> str:
    """Return the warning that a history has data files that no manifest names."""
    return (
        f"no manifest names {counted(files, 'data file')} of the history, and"
        f" {'it was' if files == 1 else 'they were'} not judged: a writer is still at work or was"
        " interrupted, or manifests were lost"
    )


def _judged(judged: int, candidates: int) -> str | int:
    """Return the number of judged candidates.

    If some were not judged, the text also has the number of all candidates.
    """
    return f"{judged:,} of {candidates:,}" if judged != candidates else f"{candidates:,}"


def show_faults(result: AuditResult, request: AuditOptions) -> None:
    """Print the faults of reading and judging, damaged files first, and how to repair them."""
    rows = sorted(
        result.results.rows(schema.READ_ERRORS), key=lambda row: row["position"] is not None
    )
    say("", f"{counted(len(rows), 'place')} of the history could not be read or judged:")
    for row in rows[:MOST_FAULTS]:
        where = "" if row["row_group"] is None else f", row group {row['row_group']}"
        where += "" if row["position"] is None else f", position {row['position']}"
        say(f"  {row['path']}{where}: {row['error']}")
    if len(rows) > MOST_FAULTS:
        say(
            f"  and {len(rows) - MOST_FAULTS:,} more: `{program()} inspect {request.out} --json`"
            " lists all"
        )
    say(
        f"Replace each damaged file by an intact copy, and run `{program()} audit"
        f" {request.history} --out {request.out}` again: it judges only what depends on"
        " these files."
    )
