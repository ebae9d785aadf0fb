"""`pubsub audit`: verifies a history again and shows the results in tables."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, Final

import click

from pubsub_emulator.cli.program import program
from pubsub_emulator.cli.report import make_report
from pubsub_emulator.cli.result import Result
from pubsub_emulator.cli.run import show_digest
from pubsub_emulator.cli.screen import Advance, bar, files, say, stage, table
from pubsub_emulator.spark_audit.audit.findings import Severity
from pubsub_emulator.spark_audit.audit.follow import follow
from pubsub_emulator.spark_audit.audit.results import TABLES
from pubsub_emulator.spark_audit.audit.rounds import Progress
from pubsub_emulator.spark_audit.audit.run import AuditFailed, AuditResult, audit
from pubsub_emulator.spark_audit.report.words import counted, size

MOST_CHAINS = 12
DIGEST_MEANS: Final = "one hash over the rows of all tables: equal histories have equal digests, whichever engine ran"
PHASES = {"start": "starting the engine", "verify": "segments", "chains": "chains", "summary": "summary"}


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments of an audit."""

    history: str | Path
    out: str | Path
    master: str | None = None
    engine: str = "auto"
    fail_on: str = "warning"
    trusted: tuple[str, ...] = ()
    head: str | None = None
    name: str | Path | None = None
    """The history's name in messages, by default its place."""

    def options(self) -> dict[str, Any]:
        """The keyword arguments of `audit`."""
        severity = None if self.fail_on == "never" else Severity(self.fail_on)
        return {"fail_on": severity, "trusted": [each.removeprefix("0x") for each in self.trusted], "head": self.head}


def judge(asked: Asked) -> AuditResult:
    """Audit, with a progress bar of segments. Raises `AuditFailed`."""
    with stage(f"auditing {asked.name or asked.history}") as advance:
        watch = _watcher(advance)
        return audit(asked.history, asked.out, asked.master, asked.engine, watch, **asked.options())


def _watcher(advance: Advance) -> Callable[[Progress], None]:
    began = monotonic()

    def watch(progress: Progress) -> None:
        rate = progress.done / max(monotonic() - began, 1e-3)
        pace = f", {rate:.1f} a second" if progress.done else ""
        advance(progress.done, progress.total, f"auditing: {PHASES.get(progress.phase, progress.phase)}{pace}")

    return watch


def run_audit(asked: Asked, *, growing: bool = False, report: bool = False) -> Result:
    """Run the command. Its exit code is the audit's (AU-7)."""
    if report:
        import_module("pubsub_emulator.spark_audit.report.page")  # a missing extra is told before the work
    try:
        result = _follow(asked) if growing else judge(asked)
    except AuditFailed as failure:
        click.echo(f"pubsub: {failure}", err=True)
        return Result({"error": str(failure), "exit_code": failure.exit_code}, failure.exit_code)
    show_audit(result)
    files("written:", (*written(asked.out), *(make_report(asked.out) if report else ())))
    if result.codes:
        say(f"`{program()} evidence {asked.out}` lists the findings, `{program()} report {asked.out}` draws all of it")
    show_head(result)
    show_digest(result.digest, DIGEST_MEANS)
    return Result(document(result, asked.out), result.exit_code)


def _follow(asked: Asked) -> AuditResult:
    """Audit a growing history until an interrupt; returns the last result. Raises `AuditFailed`, `Abort`."""
    result: AuditResult | None = None
    say(f"following {asked.history}; interrupt to end")
    with bar() as advance:
        options = {**asked.options(), "progress": _watcher(advance)}
        turns = follow(asked.history, asked.out, Event(), asked.master, asked.engine, **options)
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
    found = sum(result.findings.values())
    return (
        f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {result.units_judged} units judged, "
        f"{result.candidates:,} candidates in all, {found} findings, "
        f"{result.quarantined} quarantined, digest 0x{result.digest[:16]}…"
    )


def show_head(result: AuditResult) -> None:
    """Show the end of the history, and whether it is verified."""
    if result.head is None:
        say("the history has no head: manifests are damaged or missing, and it may have held more")
    else:
        say(f"complete up to this head, as the history itself says; `--head` demands it\nhead: 0x{result.head}")


def document(result: AuditResult, out: str | Path) -> dict[str, Any]:
    """The audit's summary as JSON."""
    return {
        "digest": f"0x{result.digest}",
        "exit_code": result.exit_code,
        "head": None if result.head is None else f"0x{result.head}",
        "engine": result.engine,
        "out": out,
        "candidates": result.candidates,
        "proof_bytes": result.proof_bytes,
        "units": {"judged": result.units_judged, "known": result.units_skipped},
        "quarantined": result.quarantined,
        "findings": result.findings,
        "codes": result.codes,
        "chains": [dict(row) for row in result.chains],
    }


def written(out: str | Path) -> Iterable[tuple[str | Path, str]]:
    """The files of an audit."""
    return (
        (_below(out, "run_report.json"), "what was done, found and quarantined, and which files hold the tables"),
        (_below(out, TABLES), "the tables: a folder each, Parquet with a Delta log; see `pubsub sql`"),
    )


def _below(out: str | Path, name: str) -> str | Path:
    return out / name if isinstance(out, Path) else f"{out}/{name}"


def show_audit(result: AuditResult) -> None:
    """Show tables of chains and findings; verified small chains are only counted."""
    ranked = sorted(result.chains, key=lambda row: (row["status"] != "not verified", -row["proof_bytes"]))
    shown = [row for at, row in enumerate(ranked) if row["status"] == "not verified" or at < MOST_CHAINS]
    rows = (
        (
            f"{row['network']} {row['chain']}",
            row["status"],
            row["segments"],
            row["candidates"],
            size(row["proof_bytes"]),
            "; ".join(row["reasons"]),
        )
        for row in shown
    )
    table("audit: chains", ("chain", "status", "segments", "candidates", "proofs", "reasons"), rows)
    left = Counter(row["status"] for row in ranked[len(shown) :])
    if left:
        say("and " + ", ".join(f"{count} more {status}" for status, count in sorted(left.items())) + "\n")
    if result.codes:
        table("audit: findings", ("code", "count"), sorted(result.codes.items()))
    if result.quarantined:
        say(f"{result.quarantined} units could not be read: see the table quarantine")
    again = f", {result.units_skipped} known from the last run" if result.units_skipped else ""
    say(f"{result.candidates:,} candidates, {counted(result.units_judged, 'unit')} of work judged now{again}")
