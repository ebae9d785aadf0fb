"""`pubsub events`: its commands, their arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli import options
from pubsub_emulator.cli.result import Result, with_json_option


@click.group("events")
def command() -> None:
    """Filtered, resumable, gap-free events of a chain for any number of clients."""


@command.command(
    "serve",
    epilog="\b\nExamples:\n  pubsub events serve --log events.db\n"
    "  pubsub events serve --log postgresql://host/db --port 8080 --grpc-port 50051 --deliveries out/deliveries\n",
)
@click.option(
    "--log", "place", required=True, metavar="PLACE", help="Where the log is: a file (SQLite) or a postgresql:// URL."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="For HTTP; 0 takes a free one."
)
@click.option("--grpc-port", type=click.IntRange(0, 65535), help="For gRPC; 0 takes a free one. Without it, none.")
@click.option("--streams", type=click.IntRange(1), default=1_000, show_default=True, help="Open streams in all.")
@click.option(
    "--streams-per-client", type=click.IntRange(1), default=16, show_default=True, help="Open streams of one address."
)
@click.option(
    "--subscriptions-per-client",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Subscriptions of one address.",
)
@click.option(
    "--heartbeat", type=click.FloatRange(0.1), default=15.0, show_default=True, help="Seconds between two heartbeats."
)
@click.option("--deliveries", type=options.OUT, help="Folder for tables of every delivery, which can be audited.")
def serve(  # noqa: PLR0917  # click passes each option by name
    place: str,
    host: str,
    port: int,
    grpc_port: int | None,
    streams: int,
    streams_per_client: int,
    subscriptions_per_client: int,
    heartbeat: float,
    deliveries: Path | None,
) -> None:
    """Serve a log that `pubsub log follow` writes, over HTTP with server-sent events and over gRPC, until Ctrl-C.

    The log is one that exists. Subscriptions are kept beside it. docs/events.md has the requests.
    """
    from pubsub_emulator.cli.event_serve import Serve, serve_events

    limits = (streams, streams_per_client, subscriptions_per_client)
    serve_events(Serve(place, host, port, grpc_port, *limits, heartbeat, deliveries))


@command.command(
    "audit",
    epilog="\b\nExample:\n  pubsub events audit out/deliveries --log events.db\n"
    "\n\b\nExit codes:\n  0 nothing wrong, 1 findings, 2 no such tables, 4 Spark or the database failed\n",
)
@click.argument("deliveries", type=options.FOLDER)
@click.option(
    "--log", "place", required=True, metavar="PLACE", help="The log that was served: a file or a postgresql:// URL."
)
@options.master
@with_json_option
def audit(deliveries: Path, place: str, master: str | None) -> Result:
    """Compare what `pubsub events serve --deliveries` wrote down with the log, by subscription and day.

    What is missing, doubled, out of order, not asked for, altered or invented is a finding. The tables are only read.
    """
    from pubsub_emulator.cli.event_audit import run_audit

    return run_audit(deliveries, place, master)
