"""`pubsub audit`: a history verified again, and what came of it in a few tables."""

from collections import Counter
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import click

from cli.report import make_report
from cli.result import Result
from cli.run import show_digest
from cli.screen import files, say, stage, table
from spark_audit.audit import AuditFailed, AuditResult, Progress, audit
from spark_audit.report.words import size

MOST_CHAINS = 12
DIGEST_MEANS: Final = "one hash over the rows of all tables: equal histories have equal digests, whichever engine ran"
PHASES = {"verify": "segments", "chains": "chains", "summary": "summary"}


def judge(history: Path, out: Path, master: str | None, engine: str) -> AuditResult:
    """Audit, with a bar for the segments. Raises `AuditFailed`."""
    with stage(f"auditing {history} with {engine}") as advance:

        def watch(progress: Progress) -> None:
            advance(progress.done, progress.total, f"auditing: {PHASES.get(progress.phase, progress.phase)}")

        return audit(history, out, master, engine, watch)


def run_audit(history: Path, out: Path, master: str | None, engine: str, *, report: bool = False) -> Result:
    """The command; its exit code is the audit's (AU-7)."""
    if report:
        import_module("spark_audit.report.page")  # a missing extra is told before the work
    try:
        result = judge(history, out, master, engine)
    except AuditFailed as failure:
        click.echo(f"pubsub: {failure}", err=True)
        return Result({"error": str(failure), "exit_code": failure.exit_code}, failure.exit_code)
    show_audit(result)
    files("written:", (*written(out), *(make_report(out) if report else ())))
    show_digest(result.digest, DIGEST_MEANS)
    return Result(document(result, out), result.exit_code)


def document(result: AuditResult, out: Path) -> dict[str, Any]:
    """The audit's summary, for scripts."""
    return {
        "digest": f"0x{result.digest}",
        "exit_code": result.exit_code,
        "engine": result.engine,
        "out": out,
        "candidates": result.candidates,
        "proof_bytes": result.proof_bytes,
        "segments": {"judged": result.units_judged, "known": result.units_skipped},
        "quarantined": result.quarantined,
        "findings": result.findings,
        "codes": result.codes,
        "chains": [dict(row) for row in result.chains],
    }


def written(out: Path) -> Iterable[tuple[Path, str]]:
    """What an audit leaves behind."""
    return (
        (out / "run_report.json", "what was done, found and quarantined, and which files hold the tables"),
        (out / "items", "measures, deliveries and findings by chain and segment (Parquet)"),
        (out / "chains", "what only a whole chain shows, and sizes (Parquet)"),
        (out / "summary", "chains, findings about chains, quarantine (Parquet)"),
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
        say("and " + ", ".join(f"{count} more {status}" for status, count in sorted(left.items())) + "\n")
    if result.codes:
        table("audit: findings", ("code", "count"), sorted(result.codes.items()))
    if result.quarantined:
        say(f"{result.quarantined} units could not be read: see the table quarantine")
    again = f", {result.units_skipped} known from the last run" if result.units_skipped else ""
    say(f"{result.candidates:,} candidates, {result.units_judged} segments judged now{again}")
