"""`pubsub inspect`: its arguments and help."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.options import option
from pubsub_emulator.cli.base.result import Result, with_json_option
from pubsub_emulator.cli.exits import INCOMPLETE

if TYPE_CHECKING:
    from pubsub_emulator.runtime.rules import Rules


def _is_recorded(path: Path) -> bool:
    """Return whether a path is a folder or a Parquet file, and not a scenario or JSON."""
    return path.is_dir() or path.suffix == ".parquet"


@click.command(
    "inspect",
    cls=Command,
    needs=(Need("audit", "path", _is_recorded),),
    epilog=(
        "\b\nExamples:\n  pubsub inspect my-network.toml\n  pubsub inspect out/demo/history\n "
        " pubsub inspect out/demo/history --block 3000:17\n  pubsub inspect out/demo/audit --json\n"
    ),
)
@click.argument("path", type=options.ANY)
@option(
    "--block",
    metavar="CHAIN:NUMBER",
    help=(
        "Show this block of a history: ledger, proof nodes, verdict and deliveries. Write"
        " NETWORK/CHAIN:NUMBER if several networks have the chain."
    ),
)
@options.rules
@with_json_option
def command(path: Path, block: str | None, *, rules: "Rules") -> Result:
    """Show what a scenario, history, audit, fixture, fuzz case, session, proof or finding contains.

    For a Parquet file of a history or an audit, show its columns with their meaning and its first
    rows. A block of a history is executed again from the checkpoint before it, by the rules of its
    chain.
    """
    from pubsub_emulator.cli.screen import show_all
    from pubsub_emulator.inspection.kinds import look

    view = look(path, block, rules)
    show_all(view.pages)
    return Result(view.document, INCOMPLETE if view.document.get("unreadable") else 0)
