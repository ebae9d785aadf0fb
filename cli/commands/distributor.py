"""`pubsub distributor`: its commands, their arguments and help."""

from pathlib import Path

import click

from pubsub_emulator.cli import options
from pubsub_emulator.cli.result import Result, with_json_option

_seed = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The same seed has the same digest."
)


@click.group("distributor")
def command() -> None:
    """The Interchain Event Distributor: each event of one network published on all others, once."""


@command.command("serve", epilog="\b\nExamples:\n  pubsub distributor serve distributor.toml\n")
@click.argument("config", type=options.FILE)
def serve(config: Path) -> None:
    """Serve the distributor that CONFIG describes until it is told to end; docs/distributor.md says what is in it.

    It ends on SIGTERM and Ctrl-C: requests first, then what is under way, for as long as `grace` says. What is not done
    then is done by the next start, or by a replica.
    """
    from pubsub_emulator.cli.distributor_serve import serve_distributor

    serve_distributor(config)


@command.command(
    "adapter",
    epilog="\b\nExamples:\n  pubsub distributor adapter alastria --port 8081\n"
    "  pubsub distributor adapter hashnet --port 8082 --store sqlite:hashnet.db\n"
    "  pubsub distributor adapter alastria --node ws://127.0.0.1:9944\n",
)
@click.argument("network")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8081, show_default=True, help="0 takes a free one.")
@click.option("--store", default="memory:", show_default=True, help="Where subscriptions are kept.")
@click.option("--node", metavar="URL", help="Node whose chain has pallet DomeEvents; without one, a chain in here.")
@click.option("--seed-env", metavar="NAME", help="Environment variable with the publisher's Ed25519 seed in hex.")
@click.option("--not-unique", is_flag=True, help="The network takes an id more than once, like public contracts.")
@click.option("--open", "everyone", is_flag=True, help="Serve everybody, on an address that others can reach, too.")
def adapter(  # noqa: PLR0917  # click passes each option by name
    network: str,
    host: str,
    port: int,
    store: str,
    node: str | None,
    seed_env: str | None,
    *,
    not_unique: bool,
    everyone: bool,
) -> None:
    """Serve an adapter of a chain with pallet DomeEvents, called NETWORK, until it is told to end.

    The chain is in this process and ends with it, or behind the JSON-RPC of a node (`pubsub serve --dome-events`). Who
    publishes there is the development account //Alice, unless a seed is named.
    """
    from pubsub_emulator.cli.distributor_serve import AdapterWish, serve_adapter

    serve_adapter(AdapterWish(network, host, port, store, node, seed_env, unique=not not_unique, everyone=everyone))


@command.command(
    "simulate",
    epilog="\b\nExamples:\n  pubsub distributor simulate list\n  pubsub distributor simulate 17\n"
    "  pubsub distributor simulate all\n  pubsub distributor simulate stories --count 1000 --seed 7\n"
    "  pubsub distributor simulate outage.toml\n"
    "\n\b\nExit codes:\n  0 every invariant held, 1 surprises\n",
)
@click.argument("scenario")
@_seed
@click.option("--count", type=click.IntRange(min=1), default=100, show_default=True, help="How many stories.")
@with_json_option
def simulate(scenario: str, seed: int, count: int) -> Result:
    """Play a scenario of the rules in virtual time and check every invariant; `list` shows them, `all` plays all.

    A name that ends in `.toml` is a scenario of your own; docs/distributor-scenarios.md says what is in it.

    `stories` plays stories instead: networks, traffic and faults that follow from a seed. Story 7 is the same in every
    campaign, so a campaign that was ended goes on with `--seed` where it was, and several may share one.
    """
    from pubsub_emulator.cli.distributor import simulate as run

    return run(scenario, seed, count)


@command.command("demo", epilog="\b\nExamples:\n  pubsub distributor demo\n  pubsub distributor demo --seed 7\n")
@_seed
@with_json_option
def demo(seed: int) -> Result:
    """Run three networks and two distributors with different subsets of them through faults of every kind.

    Then check every invariant over what the networks hold. The digest printed last is one hash over all that happened.
    """
    from pubsub_emulator.cli.distributor import demonstrate

    return demonstrate(seed)
