"""`pubsub evidence`: lists findings, writes one to a file, checks one from such a file alone."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.exits import INCOMPLETE
from pubsub_emulator.cli.screen import files, say
from pubsub_emulator.files.untrusted import Unreadable, parse_json
from pubsub_emulator.runtime.rules import Rules
from pubsub_emulator.spark_audit.judge.evidence import Judgement
from pubsub_emulator.spark_audit.judge.finding_file import FindingError, check_finding, finding_text
from pubsub_emulator.spark_audit.judge.named_keys import named_keys

SHORT = 16
"""Hex digits of an id in the list."""


def check(path: Path, rules: Rules) -> Result:
    """Check a finding's file by `rules`. Raises `FindingError`."""
    checked = check_finding(path, rules)
    finding = checked.finding
    judgement = checked.judgement
    size = len(finding["evidence"])
    collator = "nobody" if finding["collator"] is None else _plain(finding["collator"])
    say(
        f"{finding['code']} ({finding['severity']}) in {finding['network']}, chain"
        f" {finding['chain']}"
    )
    lines = [
        ("block", finding["number"]),
        ("hash", _plain(finding["block"])),
        ("collator", collator),
    ]
    lines += [("shown", line) for line in _shown(finding, judgement)]
    lines += [("key", line) for line in _named(finding["evidence"], judgement.detail)]
    lines += [("rests on", line) for line in judgement.rests_on]
    say(*(f"  {name:9}{value}" for name, value in lines))
    if checked.proven:
        say(f"confirmed by its evidence ({size:,} bytes)")
    else:
        say("not provable from the file alone: it depends on the history's data")
    columns = {name: value for name, value in finding.items() if name != "evidence"}
    shown = {
        "proven": checked.proven,
        "shows": judgement.detail,
        "rests_on": list(judgement.rests_on),
    }
    return Result({**columns, **shown, "evidence_bytes": size}, 0 if checked.proven else INCOMPLETE)


def write(audit: str, finding: str, out: Path) -> Result:
    """Write one finding of an audit. Raises `FindingError`, `ResultError`, `OSError`."""
    from pubsub_emulator.files.atomic import write_whole

    start = finding.removeprefix("0x").lower()
    matching = [row for row in _findings(audit) if row["id"].hex().startswith(start)]
    ids = dict.fromkeys(row["id"] for row in matching)
    if len(ids) != 1:
        findings = "no finding" if not ids else f"{len(ids)} findings"
        raise FindingError(f"{audit}: {findings} with an id that begins with {start}")
    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, finding_text(matching[0]))
    files("written:", ((out, f"{matching[0]['code']}, for `pubsub evidence`"),))
    return Result({"id": matching[0]["id"], "code": matching[0]["code"], "file": out})


def list_findings(audit: str) -> Result:
    """List every finding of an audit, one per line. Raises `ResultError`."""
    names = ("id", "severity", "code", "network", "chain", "number", "block", "collator", "detail")
    findings = []
    for row in _findings(audit):
        findings.append({name: row[name] for name in names})
        place = f"{row['network']} {row['chain']}" + (
            "" if row["number"] is None else f" block {row['number']}"
        )
        say(f"{row['id'].hex()[:SHORT]}  {row['severity']:8} {row['code']:24} {place}")
    return Result({"findings": findings})


def _shown(finding: Mapping[str, object], judgement: Judgement) -> Iterator[str]:
    """Yield the lines of a judgement.

    A judgement with the figures of a whole proof is JSON. Its lines are the finding's detail and
    the hashes of the nodes that the proof did not need.
    """
    figures = None
    if judgement.kind == "figures":
        with suppress(Unreadable):
            figures = parse_json(judgement.detail.encode(), "figures")
    if not isinstance(figures, dict) or "proof" not in figures:
        yield judgement.detail
        return
    yield str(finding["detail"])
    for name in ("unread", "unplaced"):
        hashes = figures.get(name)
        if isinstance(hashes, list):
            for node_hash in hashes:
                yield f"{name} node 0x{node_hash}"


def _named(evidence: bytes, detail: str) -> Iterator[str]:
    """Yield a line for each subscribed key that a judgement mentions, with its publishers."""
    for key, publishers, name in named_keys(evidence, detail):
        owner = f"publisher {publishers[0]}"
        if len(publishers) > 1:
            owner = f"publishers {', '.join(map(str, publishers))}"
        called = f", {name} in scenarios" if name else ""
        yield f"0x{key.hex()[:SHORT]}… is of {owner}{called}"


def _findings(audit: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of an audit's findings. Raises `ResultError`."""
    from pubsub_emulator.spark_audit.history import schema
    from pubsub_emulator.spark_audit.judge.results import Results

    yield from Results.open(audit).rows(schema.FINDINGS)


def _plain(value: object) -> object:
    return f"0x{value.hex()}" if isinstance(value, bytes) else value
