"""`pubsub distributor`: its commands, their arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Need
from pubsub_emulator.cli.base.groups import Group
from pubsub_emulator.cli.base.options import option
from pubsub_emulator.cli.base.result import Result, with_json_option

_seed = option(
    "--seed", type=click.IntRange(min=0), default=0, help="The same seed gives the same digest."
)


@click.group("distributor", cls=Group)
def command() -> None:
    """Publish each event of a network once on all others (the Interchain Event Distributor)."""


@command.command(
    "serve",
    needs=(Need("distributor"),),
    epilog="\b\nExamples:\n  pubsub distributor serve distributor.toml\n",
)
@click.argument("config", type=options.FILE)
def _serve(config: Path) -> None:
    """Serve the distributor that the file CONFIG describes.

    docs/distributor.md explains the fields of CONFIG.

    SIGTERM and Ctrl-C end it: it refuses new requests and finishes running work for up to `grace`
    seconds. Remaining work is done after the next start, or by a replica.
    """
    from interchain_events.cli.commands.distributor.serve import serve_distributor

    serve_distributor(config)


@command.command(
    "adapter",
    needs=(Need("distributor"), Need("evm", "url")),
    epilog=(
        "\b\nExamples:\n  pubsub distributor adapter alastria --port 8081\n  pubsub distributor"
        " adapter hashnet --port 8082 --store sqlite:hashnet.db\n  pubsub distributor adapter"
        " alastria --node ws://127.0.0.1:9944\n  pubsub distributor adapter besu --evm"
        " http://127.0.0.1:8545 --keystore key.json --gas-price 0 --finality 0\n"
    ),
)
@click.argument("network")
@option("--host", default="127.0.0.1", help="Address to listen on.")
@options.names
@options.page_origins
@option("--port", type=options.PORT, default=8081, help="0 selects a free one.")
@option(
    "--store", default="memory:", help="Where to store subscriptions, and with --evm transactions."
)
@option(
    "--node",
    metavar="URL",
    help="Node of a chain with pallet DomeEvents; by default a chain in this process.",
)
@option(
    "--seed-env",
    metavar="NAME",
    help="Environment variable with the publisher's Ed25519 seed in hex.",
)
@option(
    "--evm",
    "url",
    metavar="URL",
    help="Node of an EVM chain, http:// or ws://; see --contract and --keystore.",
)
@option(
    "--contract",
    metavar="0x…",
    help="The contract; by default the store's, or else one that is made now.",
)
@option(
    "--from-block",
    "first",
    type=click.IntRange(min=0),
    default=0,
    help="A block before its events.",
)
@option("--chain-id", type=options.POSITIVE, help="Refuse a node of another chain than this.")
@option(
    "--finality",
    metavar="N|safe|finalized",
    default="finalized",
    help="Blocks on top of a final block, at most 100, or the name under which the node has it.",
)
@option(
    "--gas-price",
    "price",
    type=click.IntRange(min=0),
    help="Legacy transactions at this price in wei; 0: free of gas.",
)
@option("--stuck", type=options.POSITIVE, default=30, help="Seconds to a higher fee.")
@option("--keystore", type=options.FILE, help="Keystore file of the account that publishes.")
@option(
    "--password-env",
    metavar="NAME",
    help="Environment variable with its password; else it is asked for.",
)
@option(
    "--key-env",
    metavar="NAME",
    help="Environment variable with the account's key, 32 bytes in hex.",
)
@option(
    "--not-unique",
    is_flag=True,
    help="Let the network accept an id repeatedly, as public contracts do.",
)
@option(
    "--open",
    "everyone",
    is_flag=True,
    help="Serve everyone, even on an address that others can reach.",
)
def adapter(**given: object) -> None:
    """Serve an adapter named NETWORK for a chain with pallet DomeEvents, until SIGTERM or Ctrl-C.

    The chain runs in this process, or behind the JSON-RPC of a node (`pubsub serve --dome-events`).
    The development account //Alice publishes, unless --seed-env names another seed.

    With --evm it is an EVM chain with a contract of these events;
    docs/howto/distributor-on-an-evm-chain.md shows how.
    """
    from interchain_events.cli.commands.distributor.serve import AdapterOptions, serve_adapter

    serve_adapter(options.filled(AdapterOptions, given))


@command.command(
    "simulate",
    epilog=(
        "\b\nExamples:\n  pubsub distributor simulate list\n  pubsub distributor simulate 17\n "
        " pubsub distributor simulate all\n  pubsub distributor simulate stories --cases 1000"
        " --seed 7\n  pubsub distributor simulate outage.toml\n\n\b\nExit codes:\n  0 every"
        " invariant held, 1 surprises\n"
    ),
)
@click.argument("scenario")
@_seed
@option("--cases", type=options.POSITIVE, default=100, help="Number of stories.")
@with_json_option
def simulate(scenario: str, seed: int, cases: int) -> Result:
    """Play a SCENARIO of the rules in virtual time and check every invariant.

    `list` lists the scenarios, `all` plays all of them. A name that ends in `.toml` is a file with
    your own scenario; docs/distributor-scenarios.md explains its fields.

    `stories` plays stories instead: networks, traffic and faults drawn from a seed. Story 7 is the
    same in every campaign, so `--seed` continues an interrupted campaign, and several processes can
    share one.

    `losses` plays each story many times. Each time the store loses rows before another transaction:
    it is emptied, becomes an older copy, or is swapped for another one.
    """
    from interchain_events.cli.commands.distributor.stories import simulate as run

    return run(scenario, seed, cases)


@command.command(
    "demo", epilog="\b\nExamples:\n  pubsub distributor demo\n  pubsub distributor demo --seed 7\n"
)
@_seed
@with_json_option
def demo(seed: int) -> Result:
    """Run three networks and two distributors through faults of every kind.

    Each distributor serves some of the networks. At the end every invariant is checked on the
    content of the networks. The digest printed last is one hash over the whole run.
    """
    from interchain_events.cli.commands.distributor.stories import demonstrate

    return demonstrate(seed)
