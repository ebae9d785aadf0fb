"""`pubsub log`: its commands, their arguments and help."""

from contextlib import closing
from pathlib import Path
from typing import Final

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Need, is_postgres
from pubsub_emulator.cli.base.groups import Group
from pubsub_emulator.cli.base.options import option, repeatable
from pubsub_emulator.client.places import is_url

ON_POSTGRES: Final = (Need("events", "place", is_postgres),)
"""The extra that a command needs if its log is in PostgreSQL."""


def _is_history(source: str) -> bool:
    """Return whether a source is the folder of a history. Others are scenarios or nodes."""
    return Path(source).is_dir()


log = option(
    "--log",
    "place",
    required=True,
    metavar="PLACE",
    help="The log: a file (SQLite) or a postgresql:// URL.",
)


@click.group("log", cls=Group)
def command() -> None:
    """Write and read an ordered, gap-free log of a chain's or network's events."""


@command.command(
    "follow",
    needs=(Need("events", "source", is_url), Need("audit", "source", _is_history), *ON_POSTGRES),
    epilog=(
        "\b\nExamples:\n  pubsub log follow wss://rpc.polkadot.io --log polkadot.db --network"
        " polkadot\n  pubsub log follow ws://127.0.0.1:9944 --para 2000=ws://127.0.0.1:9944/2000"
        " --log events.db\n  pubsub log follow out/demo/history --log events.db\n  pubsub log"
        " follow node --until 50 --log events.db\n\n\b\nExit codes:\n  0 --until is reached or the"
        " source ends, 2 the log is another network's, 4 no answer\n"
    ),
)
@click.argument("source", shell_complete=options.complete_scenario)
@log
@option("--network", default="network", help="Name of the network; a log holds one network.")
@repeatable("--para", "paras", metavar="ID=URL", says="A parachain's node")
@option(
    "--from",
    "first",
    type=click.IntRange(0),
    help="First leading block; by default the newest final one.",
)
@option(
    "--until", type=click.IntRange(0), help="Last leading block; by default continue until Ctrl-C."
)
def follow(**given: object) -> None:
    """Append the events of SOURCE to the log, starting where the log ends.

    SOURCE is a node's ws:// or http:// URL, the folder of a history, or a scenario to run. Only
    finalised blocks of a node are read. If a node reverted blocks, the log reverts them too. If the
    node's final block is below the log's end, this waits until the node has reached that height. If
    the node has methods dev_*, it has reverted blocks in this case, and the log does the same.
    """
    from interchain_events.cli.commands.log.run import follow_source

    options.filled(follow_source, given)


@command.command(
    "read",
    needs=ON_POSTGRES,
    epilog="\b\nExamples:\n  pubsub log read --log events.db --kind 'Broadcaster.*' --limit 20\n"
    "  pubsub log read --log events.db --chain 2000 --after 1000 --wait\n"
    """  pubsub log read --log events.db --filter '{"kind": "Balances.*"}'\n""",
)
@log
@option("--after", type=click.IntRange(0), default=0, help="Start after this seq.")
@option("--limit", type=options.POSITIVE, help="Most rows to print.")
@option(
    "--kind",
    "kinds",
    multiple=True,
    metavar="KIND",
    help="Pallet.Event or Pallet.*; any of those given.",
)
@option("--chain", metavar="ID", help="A para id, or `leading` for the leading chain.")
@option("--filter", "text", metavar="JSON", help="A filter, see docs/events.md.")
@option("--wait", is_flag=True, help="Keep printing new rows until Ctrl-C.")
def read(**given: object) -> None:
    """Print rows of a log, one JSON object per line."""
    from interchain_events.cli.commands.log.run import read_log

    options.filled(read_log, given)


@command.command(
    "rewind", needs=ON_POSTGRES, epilog="\b\nExample:\n  pubsub log rewind 1200 --log events.db\n"
)
@click.argument("block", type=click.IntRange(0))
@log
def rewind(block: int, place: str) -> None:
    """Remove every leading block after BLOCK from the log.

    Cursors of clients that have read beyond BLOCK are then refused. The refusal has the number of
    the last event that remains.
    """
    from interchain_events.events.log.sql_store import existing_store
    from pubsub_emulator.cli.screen import say

    with closing(existing_store(place)) as store:
        head = store.rewind(block)
        say(f"{store.database.place}: block {head.anchor}, seq {head.seq}, epoch {head.epoch}")
