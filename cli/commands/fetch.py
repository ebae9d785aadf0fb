"""`pubsub fetch`: its arguments and help."""

import click

from pubsub_emulator.cli import options
from pubsub_emulator.cli.result import Result, with_json_option


@click.command(
    "fetch",
    epilog="\b\nExamples:\n"
    "  pubsub fetch --node wss://a.example --node wss://b.example --network polkadot --chain 1000 --from 9000000 "
    "--out out/asset-hub\n"
    "  pubsub fetch --chunks s3://archive/asset-hub --network polkadot --chain 1000 --from 1 --out out/asset-hub\n"
    "  pubsub fetch --export exported/ --network kusama --chain 1000 --from 1800000 --out out/exported\n"
    "  pubsub audit out/asset-hub --out out/asset-hub-audit\n",
)
@click.option("--node", "nodes", multiple=True, metavar="URL", help="Node of the parachain; may be given repeatedly.")
@click.option(
    "--relay-node",
    "relay_nodes",
    multiple=True,
    metavar="URL",
    help="Node of its relay chain, whose headers vouch for relay roots; may be given repeatedly.",
)
@click.option(
    "--chunks", type=options.HISTORY, metavar="ADDRESS", help="Folder or URI of chunks, as SQD's substrate-dump writes."
)
@click.option(
    "--export",
    "export",
    type=options.HISTORY,
    metavar="ADDRESS",
    help="Folder or URI of exported tables with substrate-etl's columns: Parquet, CSV or JSON lines.",
)
@click.option("--network", required=True, help="Name of the relay chain, such as polkadot.")
@click.option("--chain", type=click.IntRange(0, 2**32 - 1), required=True, help="ParaId.")
@click.option("--from", "first", type=click.IntRange(min=1), required=True, help="First block.")
@click.option("--to", "last", type=click.IntRange(min=1), default=None, help="Last block; else the newest final one.")
@click.option("--out", type=options.AUDIT_OUT, required=True, help="History to add to; made when it is not there.")
@click.option(
    "--unit",
    type=click.IntRange(1, 10_000),
    default=1000,
    show_default=True,
    help="Blocks in a segment: what is kept when it is whole, and what a worker of the audit is given.",
)
@click.option(
    "--rate", type=click.FloatRange(0, min_open=True), default=None, help="Most requests per second per node."
)
@click.option(
    "--connections", type=click.IntRange(1, 256), default=8, show_default=True, help="Requests at once per node."
)
@click.option(
    "--timeout", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True, help="Seconds for an answer."
)
@with_json_option
def command(  # noqa: PLR0917  # click passes each option by name
    nodes: tuple[str, ...],
    relay_nodes: tuple[str, ...],
    chunks: str | None,
    export: str | None,
    network: str,
    chain: int,
    first: int,
    last: int | None,
    out: str,
    unit: int,
    rate: float | None,
    connections: int,
    timeout: float,
) -> Result:
    """Bring blocks of a real parachain into a history: headers, relay proofs, messages; to be audited like any other.

    Exactly one of --node, --chunks and --export says where from. Every block is held against its hash, its extrinsics
    root and its neighbours. Whole units are kept as they come; the same command goes on where one ended.
    """
    from pubsub_emulator.cli.fetch import Asked, run_fetch

    asked = Asked(
        nodes, relay_nodes, chunks, export, network, chain, first, last, out, unit, rate, connections, timeout
    )
    return run_fetch(asked)
