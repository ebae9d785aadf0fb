"""`pubsub prism`: its commands, their arguments and help."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Need, is_postgres
from pubsub_emulator.cli.base.groups import Group
from pubsub_emulator.cli.base.options import NEW_FILE, POSITIVE, option, repeatable
from pubsub_emulator.cli.base.result import Result, with_json_option

FC = TypeVar("FC", bound=Callable[..., object])


def _node(command: FC) -> FC:
    """Add the options of a client to a command: node, token and certificates."""
    for add in (
        option("--tls-ca", type=options.FILE, help="Certificates, in PEM, of a node with TLS."),
        option(
            "--token-env", metavar="NAME", help="Environment variable with this caller's token."
        ),
        option("--node", default="127.0.0.1:50052", metavar="HOST:PORT", help="The PRISM node."),
    ):
        command = add(command)
    return command


@click.group("prism", cls=Group)
def command() -> None:
    """DIDs and credentials on a chain: a PRISM node and its clients."""


@command.command(
    "serve",
    needs=(Need("prism"), Need("audit", "deliveries")),
    epilog=(
        "\b\nExamples:\n  pubsub serve --prism --build interval:6000\n  pubsub prism serve --chain"
        " ws://127.0.0.1:9944 --db prism.db\n  pubsub prism serve --db-sync"
        " postgresql://reader@127.0.0.1/cexplorer --db prism.db --network mainnet\n"
    ),
)
@option("--chain", "url", metavar="URL", help="Node of the chain to follow.")
@option(
    "--db-sync",
    metavar="URL",
    help=(
        "Database of cardano-db-sync in place of a node: postgresql://…, which is only read."
        " Nothing is anchored."
    ),
)
@option(
    "--db",
    "place",
    required=True,
    metavar="PLACE",
    help="Database for log and tables: a file (SQLite) or a postgresql:// URL.",
)
@option("--network", default="prism", help="Name of a new log.")
@option("--host", default="127.0.0.1", help="Address to listen on.")
@option("--tls-certificate", type=options.FILE, help="Certificate, in PEM, to serve with TLS.")
@option("--tls-key", type=options.FILE, help="Its key, in PEM.")
@options.tokens
@option(
    "--open",
    "is_open",
    is_flag=True,
    help="Serve everyone, even on an address that others can reach.",
)
@option("--port", type=options.PORT, default=50052, help="For gRPC; 0 selects a free one.")
@option(
    "--resolver-port",
    type=options.PORT,
    help="Resolve DIDs over HTTP at this port, as a driver of the Universal Resolver.",
)
@options.page_origins
@option(
    "--depth",
    type=click.IntRange(0),
    show_default="2, with --db-sync 112",
    help="Confirmations: blocks above a processed block.",
)
@option("--from", "first", type=click.IntRange(0), default=1, help="First block of a new log.")
@option(
    "--event", default="Prism.ObjectAnchored", help="The kind of event that contains PRISM objects."
)
@option("--path", default="object", help="Path of the bytes in the event: names and indices.")
@option(
    "--seed-env",
    metavar="NAME",
    help="Environment variable with the anchoring account's Ed25519 seed.",
)
@option(
    "--pending-blocks",
    type=POSITIVE,
    default=64,
    help="Best blocks after which a waiting operation is cancelled.",
)
@option("--streams-per-client", type=POSITIVE, default=8, help="Most open streams per caller.")
@option(
    "--subscriptions-per-client", type=POSITIVE, default=100, help="Most subscriptions per caller."
)
@option(
    "--schedules-per-minute",
    type=POSITIVE,
    default=100,
    help="Most operations that a caller may have anchored in a minute.",
)
@option("--heartbeat", type=click.FloatRange(0.1), default=15.0, help="Seconds between heartbeats.")
@option(
    "--deliveries",
    type=options.OUT,
    help="Folder for tables of all deliveries, for `pubsub prism audit`.",
)
def serve(**given: object) -> None:
    """Follow a chain that anchors PRISM objects, and serve subscriptions over gRPC, until Ctrl-C.

    The development account //Alice anchors, unless --seed-env names another seed. docs/prism.md
    shows its use. With --db-sync the chain is Cardano, and operations are the metadata of label
    21325.
    """
    from interchain_events.cli.commands.prism.run import NodeOptions, serve_node

    serve_node(options.filled(NodeOptions, given))


@command.command(
    "submit", needs=(Need("prism"),), epilog="\b\nExample:\n  pubsub prism submit operations.hex\n"
)
@click.argument(
    "files",
    nargs=-1,
    required=True,
    type=click.Path(dir_okay=False, allow_dash=True, path_type=Path),
)
@_node
def submit(files: tuple[Path, ...], node: str, token_env: str | None, tls_ca: Path | None) -> None:
    """Anchor signed operations together. Prints their ids, and a token to cancel them, as JSON.

    Each line of FILES is one SignedAtalaOperation in hex; `-` is standard input.
    """
    from interchain_events.cli.commands.prism.run import Node, submit_operations

    submit_operations(files, Node(node, token_env, tls_ca))


@command.command(
    "subscribe",
    needs=(Need("prism"),),
    epilog=(
        "\b\nFilters:\n  any, create-did\n  did=SUFFIX, update-did=SUFFIX, issuance=SUFFIX,"
        " revocation=SUFFIX, storage=SUFFIX\n  credential=HASH, credential=HASH@BATCH\n  SUFFIX may"
        " also be a DID: did:prism:…\n\n\b\nExamples:\n  pubsub"
        " prism subscribe --filter create-did --state wallet.json\n  pubsub prism subscribe"
        " --filter did=9b51… --status APPLIED --everything --until-live\n"
    ),
)
@repeatable("--filter", "filters", metavar="FILTER", says="Which operations to receive")
@option(
    "--status", type=click.Choice(["APPLIED", "REJECTED"]), help="Only operations with this status."
)
@option("--batches", is_flag=True, help="Receive up to 100 events per message.")
@option("--everything", is_flag=True, help="Start at the first operation instead of now.")
@option(
    "--state",
    type=NEW_FILE,
    help="File for token and cursor. If it exists, the subscription continues from it.",
)
@option("--until-live", is_flag=True, help="End when all present operations are printed.")
@_node
def subscribe(node: str, token_env: str | None, tls_ca: Path | None, **given: object) -> None:
    """Print operations as they are processed, in order, each once, one JSON object per line.

    With --state, a later call continues where this one ended and needs no filters.
    """
    from interchain_events.cli.commands.prism.run import Node, SubscribeOptions, subscribe_to

    subscribe_to(options.filled(SubscribeOptions, given | {"node": Node(node, token_env, tls_ca)}))


@command.command(
    "status",
    needs=(Need("prism"),),
    epilog="\b\nExample:\n  pubsub prism status 8084a125b869c10f…\n",
)
@click.argument("operation_id", metavar="OPERATION")
@_node
def status(operation_id: str, node: str, token_env: str | None, tls_ca: Path | None) -> None:
    """Print an operation's status and its changes until it is final, one JSON object per line."""
    from interchain_events.cli.commands.prism.run import Node, watch_status

    watch_status(operation_id, Node(node, token_env, tls_ca))


@command.command(
    "audit",
    needs=(Need("spark"), Need("prism", "place", is_postgres)),
    epilog=(
        "\b\nExample:\n  pubsub prism audit out/deliveries --db prism.db\n\n\b\nExit codes:\n  0"
        " nothing wrong, 1 findings, 2 no such tables, 4 Spark or the database failed\n"
    ),
)
@click.argument("deliveries", type=options.FOLDER)
@option("--db", "place", required=True, metavar="PLACE", help="The node's database.")
@options.master
@with_json_option
def audit(deliveries: Path, place: str, master: str | None) -> Result:
    """Compare the deliveries that `pubsub prism serve --deliveries` recorded with the operations.

    They are compared by day. Missing, duplicate, reordered, unrequested, altered and invented
    events are findings, and so are statuses that were reported wrongly or withheld. The tables are
    only read.
    """
    from interchain_events.cli.commands.events.audit import run_audit

    return run_audit(deliveries, place, master, with_statuses=True)
