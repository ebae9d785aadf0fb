"""`pubsub export-state`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.options import NEW_FILE
from pubsub_emulator.cli.base.result import Result, with_json_option
from pubsub_emulator.primitives.words import counted


@click.command(
    "export-state",
    cls=Command,
    needs=(Need("client"),),
    epilog=(
        "\b\nExamples:\n  pubsub export-state ws://127.0.0.1:9944 state.json\n  pubsub export-state"
        " wss://a.example@12345678 state.json\n  pubsub step node --fork state.json\n"
    ),
)
@click.argument("source", metavar="URL")
@click.argument("file", type=NEW_FILE)
@with_json_option
def command(source: str, file: Path) -> Result:
    """Write the full state of the chain at URL to FILE and check it against the block's state root.

    URL is a node's, optionally with @ and a block's number or hash; the default is the newest final
    block. FILE is the raw genesis of a chain specification, as `polkadot export-state` writes it,
    and can be given to --fork. The state of a large chain takes hours; --fork also accepts the URL
    and then reads on demand.
    """
    from pubsub_emulator.cli.screen import say
    from pubsub_emulator.client.fork import open_fork
    from pubsub_emulator.client.state_file import write_state
    from pubsub_emulator.primitives.hexadecimal import hexed

    with open_fork(source) as fork:
        count = write_state(fork, file)
        document = {
            "file": str(file),
            "block": fork.number,
            "state_root": hexed(fork.root),
            "entries": count,
        }
    say(
        f"{file}: {counted(count, 'entry', 'entries')} of block {document['block']}, state root"
        f" {document['state_root']}"
    )
    return Result(document)
