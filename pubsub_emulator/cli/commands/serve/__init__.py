"""`pubsub serve`: its arguments and help."""

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.options import option


@click.command(
    "serve",
    cls=Command,
    needs=(Need("node"), Need("audit", "out")),
    epilog=(
        "\b\nExamples:\n  pubsub serve\n  pubsub serve my-network.toml --build interval:6000"
        " --dev\n  pubsub serve demo --build manual --dev --journal out/session.jsonl\n  pubsub"
        " serve --replay out/session.jsonl --port 9955\n"
    ),
)
@click.argument("scenario", shell_complete=options.complete_scenario, required=False)
@options.own_cheats
@options.rules
@option("--port", type=options.PORT, default=9944, help="0 selects a free one.")
@option("--host", default="127.0.0.1", help="Address to listen on.")
@option(
    "--port-per-chain",
    is_flag=True,
    help="Also serve each parachain on its own port, the ones after --port.",
)
@option(
    "--build",
    default="instant",
    metavar="MODE",
    help=(
        "`instant`: when something waits for a block; `interval:MS`: by the clock; `manual`: on"
        " request."
    ),
)
@option(
    "--settle",
    type=click.IntRange(0, 1000),
    default=0,
    help="Further blocks after each one built on demand.",
)
@option(
    "--finality",
    type=click.IntRange(0),
    default=0,
    help="Relay blocks between the best and the final block.",
)
@option(
    "--history", type=options.POSITIVE, default=4096, help="Relay blocks that are kept for queries."
)
@option(
    "--genesis-time",
    metavar="TIME",
    help="Time of block 0: `now`, or milliseconds since 1970; by default slot 1,000,000.",
)
@options.with_pallets
@option("--journal", type=options.NEW_FILE, help="File to record all inputs in.")
@option(
    "--replay",
    type=options.FILE,
    help="Replay a journal, then serve; the journal names the scenario.",
)
@option("--out", type=options.OUT, help="New folder for the history of all blocks.")
@option(
    "--dev",
    is_flag=True,
    help="Allow methods that change the network: dev_*, pubsub_publish and others.",
)
@option("--unsafe-external", is_flag=True, help="Allow --dev on an address that others can reach.")
@options.fork
@options.fork_para
@options.origins("--rpc-cors", says="A further web origin whose pages may call")
def command(
    scenario: str | None, *, build: str, rpc_cors: tuple[str, ...], **given: object
) -> None:
    """Serve the chains of SCENARIO as JSON-RPC nodes, by WebSocket and HTTP, until Ctrl-C.

    SCENARIO is a TOML file or a bundled name, by default `node`. `/` is the relay chain and `/2000`
    parachain 2000. docs/node.md documents the methods. With --fork the network continues from a
    real state, and storage and proofs are those of the merged state.
    """
    from dataclasses import fields

    from pubsub_emulator.cli.commands.serve.run import Serve, serve
    from pubsub_emulator.node.server.options import Options, parse_build

    mode, interval = parse_build(build)
    of_server = {
        field.name: given.pop(field.name) for field in fields(Options) if field.name in given
    }
    server = options.filled(
        Options, {"build": mode, "interval": interval, "origins": rpc_cors, **of_server}
    )
    pallets = options.take_pallets(given)
    serve(scenario, options.filled(Serve, given | {"options": server, "pallets": pallets}))
