"""`pubsub events`: its commands, their arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Need, is_postgres
from pubsub_emulator.cli.base.groups import Group
from pubsub_emulator.cli.base.options import option
from pubsub_emulator.cli.base.result import Result, with_json_option


@click.group("events", cls=Group)
def command() -> None:
    """Filtered, resumable, gap-free events of a chain for any number of clients."""


@command.command(
    "serve",
    needs=(Need("events"), Need("audit", "deliveries")),
    epilog=(
        "\b\nExamples:\n  pubsub events serve --log events.db\n  pubsub events serve --log"
        " postgresql://host/db --port 8080 --grpc-port 50051 --deliveries out/deliveries\n"
    ),
)
@option(
    "--log",
    "place",
    required=True,
    metavar="PLACE",
    help="The log: a file (SQLite) or a postgresql:// URL.",
)
@option("--host", default="127.0.0.1", help="Address to listen on.")
@options.names
@options.page_origins
@options.tokens
@option("--port", type=options.PORT, default=8080, help="For HTTP; 0 selects a free one.")
@option(
    "--grpc-port",
    type=options.PORT,
    help="For gRPC; 0 selects a free one. Without it, there is no gRPC.",
)
@option("--streams", type=options.POSITIVE, default=1_000, help="Most open streams.")
@option(
    "--streams-per-client", type=options.POSITIVE, default=16, help="Most open streams per caller."
)
@option(
    "--subscriptions-per-client",
    type=options.POSITIVE,
    default=100,
    help="Most subscriptions per caller.",
)
@option(
    "--keep-days",
    type=click.FloatRange(0.01),
    default=7.0,
    help="Days after which a subscription that nobody uses is forgotten.",
)
@option("--heartbeat", type=click.FloatRange(0.1), default=15.0, help="Seconds between heartbeats.")
@option(
    "--deliveries",
    type=options.OUT,
    help="Folder for tables of all deliveries, for `pubsub events audit`.",
)
def _serve(**given: object) -> None:
    """Serve a log of `pubsub log follow` by server-sent events and gRPC, until Ctrl-C.

    The log must exist. Subscriptions are stored beside it. docs/events.md documents the requests.
    """
    from interchain_events.cli.commands.events.serve import EventsOptions, serve_events

    serve_events(options.filled(EventsOptions, given))


@command.command(
    "audit",
    needs=(Need("spark"), Need("events", "place", is_postgres)),
    epilog=(
        "\b\nExample:\n  pubsub events audit out/deliveries --log events.db\n\n\b\nExit codes:\n  0"
        " nothing wrong, 1 findings, 2 no such tables, 4 Spark or the database failed\n"
    ),
)
@click.argument("deliveries", type=options.FOLDER)
@option(
    "--log",
    "place",
    required=True,
    metavar="PLACE",
    help="The served log: a file or a postgresql:// URL.",
)
@options.master
@with_json_option
def _audit(deliveries: Path, place: str, master: str | None) -> Result:
    """Compare the deliveries that `pubsub events serve --deliveries` recorded with the log.

    They are compared by subscription and day. Missing, duplicate, reordered, unrequested, altered
    and invented events are findings. The tables are only read.
    """
    from interchain_events.cli.commands.events.audit import run_audit

    return run_audit(deliveries, place, master)
