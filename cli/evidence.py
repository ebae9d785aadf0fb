"""`pubsub evidence`: findings listed, written to files of their own, and checked from such a file alone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from cli.exits import INCOMPLETE
from spark_audit.finding_file import FindingError, check_finding, finding_text

SHORT = 16
"""Hex digits of an id in the list: enough to tell findings apart."""


def check(path: Path, *, as_json: bool) -> int:
    """Check a finding's file; returns the exit code. Raises `FindingError`."""
    checked = check_finding(path)
    finding, judgement = checked.finding, checked.judgement
    if as_json:
        shown = {name: _plain(value) for name, value in finding.items() if name != "evidence"}
        body = {"proven": checked.proven, "shows": judgement.detail, "rests_on": list(judgement.rests_on)}
        click.echo(json.dumps({**shown, **body, "evidence_bytes": len(finding["evidence"])}, indent=2))
        return 0 if checked.proven else INCOMPLETE
    collator = "nobody" if finding["collator"] is None else finding["collator"].hex()
    click.echo(f"{finding['code']} ({finding['severity']}) in {finding['network']}, chain {finding['chain']}")
    for name, value in (("block", finding["number"]), ("hash", _plain(finding["block"])), ("collator", collator)):
        click.echo(f"  {name:9}{value}")
    click.echo(f"  {'shown':9}{judgement.detail}")
    for line in judgement.rests_on:
        click.echo(f"  {'rests on':9}{line}")
    size = len(finding["evidence"])
    if checked.proven:
        click.echo(f"borne out by its evidence of {size:,} bytes")
        return 0
    click.echo("not provable from the file: what it rests on are figures of a whole history")
    return INCOMPLETE


def write(audit: Path, finding: str, out: Path) -> None:
    """Write one finding of an audit. Raises `FindingError`, `ResultError`, `OSError`."""
    from spark_audit.commit import write_atomically

    start = finding.removeprefix("0x").lower()
    found = [row for row in _findings(audit) if row["id"].hex().startswith(start)]
    ids = dict.fromkeys(row["id"] for row in found)
    if len(ids) != 1:
        many = "no finding" if not ids else f"{len(ids)} findings"
        raise FindingError(f"{audit}: {many} with an id that starts with {start}")
    out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(out, finding_text(found[0]).encode())
    click.echo(f"written:\n  {out}  {found[0]['code']}, for `pubsub evidence`")


def list_findings(audit: Path, *, as_json: bool) -> None:
    """Every finding of an audit, one a line. Raises `ResultError`."""
    names = ("id", "severity", "code", "network", "chain", "number", "block", "collator", "detail")
    for row in _findings(audit):
        if as_json:
            click.echo(json.dumps({name: _plain(row[name]) for name in names}))
            continue
        place = f"{row['network']} {row['chain']}" + ("" if row["number"] is None else f" block {row['number']}")
        click.echo(f"{row['id'].hex()[:SHORT]}  {row['severity']:8} {row['code']:24} {place}")


def _findings(audit: Path) -> Iterator[dict[str, Any]]:
    from spark_audit import schema
    from spark_audit.results import Results

    yield from Results.open(audit).rows(schema.FINDINGS)


def _plain(value: object) -> object:
    return f"0x{value.hex()}" if isinstance(value, bytes) else value
