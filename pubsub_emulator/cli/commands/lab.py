"""`pubsub lab`: its arguments and help."""

from typing import TYPE_CHECKING

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.options import option

if TYPE_CHECKING:
    from pubsub_emulator.runtime.rules import Rules


@click.command(
    "lab",
    cls=Command,
    needs=(Need("node"),),
    epilog=(
        "\b\nExamples:\n  pubsub lab\n  pubsub lab demo\n  pubsub lab my-network.toml --no-open"
        " --port 8000\n"
    ),
)
@click.argument("scenario", shell_complete=options.complete_scenario, required=False)
@options.own_cheats
@options.rules
@option("--port", type=options.PORT, default=0, help="0 selects a free one.")
@option("--no-open", is_flag=True, help="Print the page's address and open no browser.")
@option(
    "--history", type=options.POSITIVE, default=16384, help="Relay blocks that are kept to look at."
)
def command(
    scenario: str | None, *, rules: "Rules", port: int, no_open: bool, history: int
) -> None:
    """See, step and attack the network of SCENARIO in a browser, until Ctrl-C.

    SCENARIO is a TOML file or a bundled name, by default `node`. A development node is started on
    this machine, as `pubsub serve --dev --build manual` does, and its page is opened.
    docs/howto/see-a-cheat-caught.md shows the first steps.
    """
    import webbrowser

    from pubsub_emulator.cli.commands.serve.run import Serve, serve
    from pubsub_emulator.node.server.options import Build, Options

    options_ = Options(port=port, build=Build.MANUAL, history=history, dev=True)
    request = Serve(options_, rules=rules)
    serve(scenario, request, None if no_open else webbrowser.open)
