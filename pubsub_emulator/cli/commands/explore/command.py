"""`pubsub explore`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base import options


@click.command(
    "explore",
    epilog="\b\nExamples:\n  pubsub explore demo --out demo.html\n  pubsub explore mine.toml --out out/mine.html\n"
    "  pubsub explore out/demo/history --out history.html --blocks 50\n  pubsub explore attack.json --out attack.html\n"
    "  pubsub explore out/surprises/omit-node-0f3c.json --out case.html\n"
    "  pubsub explore --connect ws://127.0.0.1:9944 --blocks 100 --out node.html\n",
)
@click.argument("source", shell_complete=options.complete_scenario, required=False)
@click.option("--connect", "url", metavar="URL", help="Draw the newest blocks of the node at URL instead of a SOURCE.")
@options.own_cheats
@click.option("--out", type=options.NEW_FILE, required=True, help="The page to write; an existing one is replaced.")
@click.option("--network", metavar="NAME", default=None, help="The network, if a history has several.")
@click.option(
    "--blocks",
    type=click.IntRange(min=1),
    default=500,
    show_default=True,
    help="Relay blocks to draw: a history's first ones, a node's newest ones.",
)
def command(source: str | None, url: str | None, out: Path, network: str | None, blocks: int) -> None:
    """Write a page about SOURCE: every block, its proof drawn as a trie, and what used its bytes.

    SOURCE is a scenario to run (a TOML file or a bundled name), the folder of a history or of a run, a session file
    that `write` made, or a single block: a fixture, a case of `pubsub fuzz`, a finding of `pubsub evidence`. Blocks
    of files and of nodes are executed again. The page is one HTML file that opens offline.
    """
    if (source is None) == (url is None):
        raise click.UsageError("give a SOURCE or --connect URL")
    if url is not None:
        from pubsub_emulator.cli.commands.explore.run import write_node

        write_node(url, out, blocks)
        return
    from pubsub_emulator.cli.commands.explore.run import write_explorer

    write_explorer(str(source), out, network, blocks)
