"""`pubsub audit`: a history verified again, and what came of it in a few tables."""

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import click

from cli.screen import files, stage, table
from spark_audit.audit import AuditFailed, AuditResult, Progress, audit
from spark_audit.report.words import size

MOST_CHAINS = 12
PHASES = {"verify": "segments", "habits": "chains", "summary": "summary"}


def judge(history: Path, out: Path, master: str | None, engine: str) -> AuditResult:
    """Audit, with a bar for the segments. Raises `AuditFailed`."""
    with stage(f"auditing {history} with {engine}") as advance:

        def watch(progress: Progress) -> None:
            advance(progress.done, progress.total, f"auditing: {PHASES.get(progress.phase, progress.phase)}")

        return audit(history, out, master, engine, watch)


def run_audit(history: Path, out: Path, master: str | None, engine: str, *, report: bool = False) -> int:
    """The command; returns the exit code (AU-7)."""
    reports = _reporter() if report else None  # a missing extra is told before the work
    try:
        result = judge(history, out, master, engine)
    except AuditFailed as failure:
        click.echo(f"pubsub: {failure}", err=True)
        return failure.exit_code
    show_audit(result)
    files("written:", (*written(out), *(reports(out) if reports else ())))
    click.echo(f"digest: 0x{result.digest}")
    return result.exit_code


def _reporter() -> Callable[[Path], Iterable[tuple[Path, str]]]:
    from cli.report import make_report

    return make_report


def written(out: Path) -> Iterable[tuple[Path, str]]:
    """What an audit leaves behind."""
    return (
        (out / "run_report.json", "what was done, found and quarantined, and which files hold the tables"),
        (out / "items", "measures, deliveries and findings by chain and segment (Parquet)"),
        (out / "habits", "what only a whole chain shows (Parquet)"),
        (out / "summary", "sizes, chains, findings about chains, quarantine (Parquet)"),
    )


def show_audit(result: AuditResult) -> None:
    """Tables of chains and findings; what is in order and small is only counted."""
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
        click.echo("and " + ", ".join(f"{count} more {status}" for status, count in sorted(left.items())) + "\n")
    if result.codes:
        table("audit: findings", ("code", "count"), sorted(result.codes.items()))
    if result.quarantined:
        click.echo(f"{result.quarantined} units could not be read: see the table quarantine")
    again = f", {result.units_skipped} known from the last run" if result.units_skipped else ""
    click.echo(f"{result.candidates:,} candidates, {result.units_judged} segments judged now{again}")
