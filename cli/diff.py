"""`pubsub diff`: where two records of what happened part."""

from pathlib import Path

import click

from spark_audit.compare import compare

MOST = 12


def run_diff(a: Path, b: Path) -> bool:
    """The command; returns whether the two differ."""
    result = compare(a, b)
    click.echo(f"A: {a}\nB: {b}\n{result.compared:,} blocks compared")
    if result.first is not None:
        click.echo("the first block that differs:")
        for line in result.first.lines():
            click.echo(f"  {line}")
    _some("also different", result.others)
    _some("without a counterpart", result.unmatched)
    if result.equal:
        click.echo("equal: every block, verdict, proof, callback and state root")
    return not result.equal


def _some(title: str, names: list[str]) -> None:
    if not names:
        return
    click.echo(f"{title}: {len(names)}")
    for name in names[:MOST]:
        click.echo(f"  {name}")
    if len(names) > MOST:
        click.echo(f"  and {len(names) - MOST} more")
