"""`pubsub prism`: its commands, their arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli import options
from pubsub_emulator.cli.result import Result, with_json_option

_NODE = click.option(
    "--node", default="127.0.0.1:50052", show_default=True, metavar="HOST:PORT", help="The PRISM node."
)


@click.group("prism")
def command() -> None:
    """DIDs and credentials on a chain: a PRISM node, and what its clients do."""


@command.command(
    "serve",
    epilog="\b\nExamples:\n  pubsub serve --prism --build interval:6000\n"
    "  pubsub prism serve --chain ws://127.0.0.1:9944 --db prism.db\n",
)
@click.option("--chain", "url", required=True, metavar="URL", help="Node of the chain, whose RPC this follows.")
@click.option(
    "--db", "place", required=True, metavar="PLACE", help="Log and tables: a file (SQLite) or a postgresql:// URL."
)
@click.option("--network", default="prism", show_default=True, help="Name of the log, if it is made now.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=50052, show_default=True, help="For gRPC; 0 takes a free one."
)
@click.option(
    "--depth", type=click.IntRange(0), default=2, show_default=True, help="Blocks above one that is processed."
)
@click.option("--from", "first", type=click.IntRange(0), default=1, show_default=True, help="First block of a new log.")
@click.option("--event", default="Prism.ObjectAnchored", show_default=True, help="The events that carry objects.")
@click.option(
    "--path", default="object", show_default=True, help="Where in the event the bytes are: names and indices."
)
@click.option("--seed-env", metavar="NAME", help="Environment variable with the anchoring account's Ed25519 seed.")
@click.option(
    "--pending-blocks", type=click.IntRange(1), default=64, show_default=True, help="Best blocks an operation waits."
)
@click.option(
    "--streams-per-client", type=click.IntRange(1), default=8, show_default=True, help="Open streams of one address."
)
@click.option(
    "--subscriptions-per-client", type=click.IntRange(1), default=100, show_default=True, help="Of one address."
)
@click.option(
    "--heartbeat", type=click.FloatRange(0.1), default=15.0, show_default=True, help="Seconds to a heartbeat."
)
@click.option("--deliveries", type=options.OUT, help="Folder for tables of every delivery, which can be audited.")
def serve(**given: object) -> None:
    """Follow a chain that anchors PRISM objects, and serve subscriptions over gRPC, until Ctrl-C.

    Who anchors is the development account //Alice, unless a seed is named. docs/prism.md says what clients can do.
    """
    from pubsub_emulator.cli.prism import Serve, serve_node

    serve_node(Serve(**given))  # type: ignore[arg-type]  # click has made each of its type


@command.command("submit", epilog="\b\nExample:\n  pubsub prism submit operations.hex\n")
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@_NODE
def submit(files: tuple[Path, ...], node: str) -> None:
    """Have signed operations anchored together; prints their ids, and a token to cancel them, as JSON.

    Each line of FILES is one SignedAtalaOperation in hex; `-` is standard input.
    """
    from pubsub_emulator.cli.prism import submit_operations

    submit_operations(files, node)


@command.command(
    "subscribe",
    epilog="\b\nFilters:\n  any, create-did\n  did=SUFFIX, update-did=SUFFIX, issuance=SUFFIX, revocation=SUFFIX\n"
    "  credential=HASH, credential=HASH@BATCH\n"
    "\n\b\nExamples:\n  pubsub prism subscribe --filter create-did --state wallet.json\n"
    "  pubsub prism subscribe --filter did=9b51… --status APPLIED --everything --until-live\n",
)
@click.option("--filter", "filters", multiple=True, metavar="FILTER", help="What to get; may be repeated.")
@click.option("--status", type=click.Choice(["APPLIED", "REJECTED"]), help="Only operations that came to this.")
@click.option("--batches", is_flag=True, help="Take up to 100 events in a message.")
@click.option("--everything", is_flag=True, help="From the first operation on, not from now on.")
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File with token and cursor: made now, or gone on from.",
)
@click.option("--until-live", is_flag=True, help="End once everything there is was printed.")
@_NODE
def subscribe(
    filters: tuple[str, ...],
    status: str | None,
    state: Path | None,
    node: str,
    *,
    batches: bool,
    everything: bool,
    until_live: bool,
) -> None:
    """Print operations as they are processed, one JSON object each, in order, each once.

    With --state a later call goes on where this one ended, and needs no filters.
    """
    from pubsub_emulator.cli.prism import Subscribe, subscribe_to

    subscribe_to(Subscribe(filters, status, state, node, batches, everything, until_live))


@command.command("status", epilog="\b\nExample:\n  pubsub prism status 8084a125b869c10f…\n")
@click.argument("operation_id", metavar="OPERATION")
@_NODE
def status(operation_id: str, node: str) -> None:
    """Print the status of an operation and its changes, one JSON object each, until a final one."""
    from pubsub_emulator.cli.prism import watch_status

    watch_status(operation_id, node)


@command.command(
    "audit",
    epilog="\b\nExample:\n  pubsub prism audit out/deliveries --db prism.db\n"
    "\n\b\nExit codes:\n  0 nothing wrong, 1 findings, 2 no such tables, 4 Spark or the database failed\n",
)
@click.argument("deliveries", type=options.FOLDER)
@click.option("--db", "place", required=True, metavar="PLACE", help="The node's log and tables.")
@options.master
@with_json_option
def audit(deliveries: Path, place: str, master: str | None) -> Result:
    """Compare what `pubsub prism serve --deliveries` wrote down with the operations, by subscription and day.

    What is missing, doubled, out of order, not asked for, altered or invented is a finding. The tables are only read.
    """
    from pubsub_emulator.cli.event_audit import run_prism_audit

    return run_prism_audit(deliveries, place, master)
