"""`pubsub conform`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.result import Result, with_json_option


@click.command(
    "conform",
    epilog="\b\nExamples:\n  pubsub conform ws://127.0.0.1:9944\n"
    "  pubsub conform ws://127.0.0.1:9944 --mapping chain.toml --rule PS-1 --rule PS-2\n"
    "  pubsub conform ws://127.0.0.1:9944 --para 2000=ws://127.0.0.1:9988\n"
    "\n\b\nExit codes:\n  0 every rule that can be tested holds, 1 a rule is broken, 2 wrong usage or mapping,\n"
    "  4 the node does not answer, or not as its metadata says\n",
)
@click.argument("url")
@click.option(
    "--mapping", "file", type=options.FILE, help="TOML file with the chain's names and encodings, where they differ."
)
@click.option("--para", "paras", multiple=True, metavar="ID=URL", help="A parachain's node; by default URL/ID.")
@click.option("--rule", "rules", multiple=True, metavar="NAME", help="Test this rule only; may be given repeatedly.")
@with_json_option
def command(url: str, file: Path | None, paras: tuple[str, ...], rules: tuple[str, ...]) -> Result:
    """Hold the relay chain at URL and its parachains to the rules of publishing, one by one.

    Signs with development accounts: a parachain is registered, publishes, and is deregistered, so this is for test
    networks. Calls nothing that a Substrate node does not have.
    """
    from pubsub_emulator.cli.commands.conform.run import run_conform

    return run_conform(url, file, paras, rules)
