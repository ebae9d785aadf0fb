"""`pubsub explore`: its arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli import options


@click.command(
    "explore",
    epilog="\b\nExamples:\n  pubsub explore demo --out demo.html\n  pubsub explore mine.toml --out out/mine.html\n"
    "  pubsub explore out/demo/history --out history.html --blocks 50\n  pubsub explore attack.json --out attack.html\n"
    "  pubsub explore out/surprises/omit-node-0f3c.json --out case.html\n",
)
@click.argument("source", shell_complete=options.complete_scenario)
@options.own_cheats
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="The page to write; an older one there is replaced.",
)
@click.option("--network", metavar="NAME", default=None, help="Of a history with several networks: which one.")
@click.option(
    "--blocks",
    type=click.IntRange(min=1),
    default=500,
    show_default=True,
    help="Of a history: relay blocks to draw, from its first one on.",
)
def command(source: str, out: Path, network: str | None, blocks: int) -> None:
    """Write the page of SOURCE: every block, its proof drawn as a trie, and where its bytes went.

    SOURCE is a scenario (a TOML file, or the name of one that comes with the project), which is run; the folder of a
    history or of a run; a file that `write` made in a session; or a single block: a fixture, a case of `pubsub fuzz`, a
    finding of `pubsub evidence`. Blocks of files are executed again. The page is one HTML file that opens offline.
    """
    from pubsub_emulator.cli.explore import write_explorer

    write_explorer(source, out, network, blocks)
