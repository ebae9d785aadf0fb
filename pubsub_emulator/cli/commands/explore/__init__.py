"""`pubsub explore`: its arguments and help."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.options import option
from pubsub_emulator.primitives.words import counted

if TYPE_CHECKING:
    from pubsub_emulator.runtime.rules import Rules


def _is_recorded(source: str | None) -> bool:
    """Return whether a source is a folder, or a file that is not a scenario."""
    path = Path(source or "")
    return source is not None and (path.is_dir() or (path.is_file() and path.suffix != ".toml"))


@click.command(
    "explore",
    cls=Command,
    needs=(Need("audit", "source", _is_recorded), Need("client", "url")),
    epilog=(
        "\b\nExamples:\n  pubsub explore demo --out demo.html\n  pubsub explore mine.toml --out"
        " out/mine.html\n  pubsub explore out/demo/history --out history.html --blocks 50\n  pubsub"
        " explore attack.json --out attack.html\n  pubsub explore out/surprises/omit-node-0f3c.json"
        " --out case.html\n  pubsub explore --connect ws://127.0.0.1:9944 --blocks 100 --out"
        " node.html\n"
    ),
)
@click.argument("source", shell_complete=options.complete_scenario, required=False)
@option(
    "--connect",
    "url",
    metavar="URL",
    help="Draw the newest blocks of the node at URL instead of a SOURCE.",
)
@options.own_cheats
@options.rules
@option(
    "--out",
    type=options.NEW_FILE_AND_FOLDER,
    required=True,
    help="The page to write; an existing one is replaced.",
)
@option("--network", metavar="NAME", help="The network, if a history has several.")
@option(
    "--blocks",
    type=options.POSITIVE,
    default=500,
    help="Relay blocks to draw: a history's first ones, a node's newest ones.",
)
def command(
    source: str | None,
    url: str | None,
    out: Path,
    *,
    rules: "Rules",
    network: str | None,
    blocks: int,
) -> None:
    """Write a page about SOURCE: every block, its proof drawn as a trie, and what used its bytes.

    SOURCE is a scenario to run (a TOML file or a bundled name), the folder of a history or of a
    run, a session file that `write` made, or a single block: a fixture, a case of `pubsub fuzz`, a
    finding of `pubsub evidence`. Blocks read from files or from nodes are executed again. The page
    is one HTML file that opens offline.
    """
    if (source is None) == (url is None):
        raise click.UsageError("give a SOURCE or --connect URL")
    from pubsub_emulator.cli.screen import files, stage
    from pubsub_emulator.files.atomic import write_whole

    out.parent.mkdir(parents=True, exist_ok=True)
    path = Path(source or "")
    if url is not None:
        from pubsub_emulator.explorer.remote import page_of_node

        with stage(f"reading blocks of {url}") as advance:
            page, drawn = page_of_node(url, blocks, advance, rules)
        subject = f"the newest {counted(drawn, 'relay block')}"
    elif _is_recorded(source):
        from pubsub_emulator.inspection.drawing import page_from

        page = page_from(path, network, blocks, rules, stage)
        subject = str(path)
    else:
        from pubsub_emulator.emulator.scenario.file import find_scenario
        from pubsub_emulator.explorer.page import explore

        scenario = find_scenario(source or "", rules)
        with stage(
            f"running {scenario.name}: {counted(scenario.relay_blocks, 'relay block')}",
            scenario.relay_blocks,
        ) as advance:
            page = explore(scenario, advance, rules)
            subject = "this run"
    write_whole(out, page)
    files("written:", ((out, f"the page of {subject}, for a browser"),))
