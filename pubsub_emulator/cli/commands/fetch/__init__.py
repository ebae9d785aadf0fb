"""`pubsub fetch`: its arguments and help."""

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.options import option, repeatable
from pubsub_emulator.cli.base.result import Result, with_json_option


@click.command(
    "fetch",
    cls=Command,
    needs=(Need("audit"),),
    epilog=(
        "\b\nExamples:\n  pubsub fetch --node wss://a.example --node wss://b.example --network"
        " polkadot --chain 1000 --from 9000000 --out out/asset-hub\n  pubsub fetch --chunks"
        " s3://archive/asset-hub --network polkadot --chain 1000 --from 1 --out out/asset-hub\n "
        " pubsub fetch --export exported/ --network kusama --chain 1000 --from 1800000 --out"
        " out/exported\n  pubsub audit out/asset-hub --out out/asset-hub-audit\n"
    ),
)
@repeatable("--node", "nodes", metavar="URL", says="Node of the parachain")
@repeatable(
    "--relay-node",
    "relay_nodes",
    metavar="URL",
    says="Node of its relay chain, whose headers prove relay roots",
)
@option(
    "--chunks",
    type=options.HISTORY,
    metavar="ADDRESS",
    help="Folder or URI of chunks, as SQD's substrate-dump writes.",
)
@option(
    "--export",
    "export",
    type=options.HISTORY,
    metavar="ADDRESS",
    help=(
        "Folder or URI of exported tables with substrate-etl's columns: Parquet, CSV or JSON lines."
    ),
)
@option("--network", required=True, help="Name of the relay chain, such as polkadot.")
@option("--chain", type=click.IntRange(0, 2**32 - 1), required=True, help="ParaId.")
@option("--from", "first", type=options.POSITIVE, required=True, help="First block.")
@option("--to", "last", type=options.POSITIVE, help="Last block; by default the newest final one.")
@option(
    "--out", type=options.AUDIT_OUT, required=True, help="History to add to; created if missing."
)
@option(
    "--unit",
    type=click.IntRange(1, 10_000),
    default=1000,
    help="Blocks per segment. A segment is stored when it is complete, and audited by one worker.",
)
@option(
    "--rate", type=click.FloatRange(0, min_open=True), help="Most requests per second per node."
)
@option(
    "--connections", type=click.IntRange(1, 256), default=8, help="Concurrent requests per node."
)
@option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    help="Seconds to wait for an answer.",
)
@with_json_option
def command(**given: object) -> Result:
    """Fetch blocks of a real parachain into a history for `pubsub audit`.

    The history gets headers, relay proofs and messages. Give exactly one of --node, --chunks and
    --export. Every block is checked against its hash, its extrinsics root and its neighbours.
    Complete units are stored at once, so the same command continues an interrupted one.
    """
    from pubsub_emulator.cli.commands.fetch.run import FetchOptions, run_fetch

    return run_fetch(options.filled(FetchOptions, given))
