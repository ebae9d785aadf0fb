"""`pubsub demo`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.options import option


@click.command(
    "demo", epilog="\b\nExamples:\n  pubsub demo\n  pubsub demo --engine python\n  pubsub demo --out out/again\n"
)
@option("--out", type=options.OUT, default=Path("out/demo"), help="Folder for history and audit.")
@options.master
@options.engine
def command(out: Path, master: str | None, engine: str) -> None:
    """Run the demonstration network, then audit its history and real relay proofs.

    Twenty-five publishers, five subscribers, cheating collators, two hundred relay blocks. The last line printed is one
    digest over state roots, proofs and the audit's rows: the same on every machine. With several cores the audit
    follows the network.
    """
    from pubsub_emulator.cli.commands.demo.run import demonstrate

    demonstrate(out, master, engine)
