"""`pubsub distributor`: serving, simulating, demonstrating."""

import asyncio
import os
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pubsub_emulator.cli.exits import FINDINGS
from pubsub_emulator.cli.result import Result
from pubsub_emulator.cli.screen import say, table
from pubsub_emulator.eventplane.distributor.event import NETWORK
from pubsub_emulator.eventplane.distributor.simulation import demo
from pubsub_emulator.eventplane.distributor.simulation.file import read_scenario
from pubsub_emulator.eventplane.distributor.simulation.scenarios import SCENARIOS, play
from pubsub_emulator.eventplane.distributor.simulation.script import play_file
from pubsub_emulator.eventplane.distributor.simulation.stories import tell

if TYPE_CHECKING:
    from pubsub_emulator.eventplane.distributor.adapter.ledger import Ledger


PROGRESS = 1_000
"""After how many stories it is said how far a campaign is."""


def serve_distributor(path: Path) -> None:
    """Serve until told to end."""
    from pubsub_emulator.eventplane.distributor.service.config import read_config
    from pubsub_emulator.eventplane.distributor.service.logs import log_to
    from pubsub_emulator.eventplane.distributor.service.serve import running, tune_collector, until_told

    config = read_config(path)
    log_to()

    async def run() -> None:
        async with running(config, path.parent) as found:
            click.echo(f"distributor of {', '.join(config.adapters)} on {found.url}")
            await until_told()
            click.echo("ending: what is under way is finished first")

    tune_collector()
    asyncio.run(run())


@dataclass(frozen=True, slots=True)
class AdapterWish:
    """What adapter is wanted."""

    network: str
    host: str
    port: int
    store: str
    node: str | None
    seed_env: str | None
    unique: bool
    everyone: bool


def serve_adapter(wish: AdapterWish) -> None:
    """Serve until told to end."""
    from pubsub_emulator.eventplane.distributor.adapter.http import AdapterHttp
    from pubsub_emulator.eventplane.distributor.service.config import AccessConfig, make_access
    from pubsub_emulator.eventplane.distributor.service.logs import log_to
    from pubsub_emulator.eventplane.distributor.service.serve import served, tune_collector, until_told
    from pubsub_emulator.eventplane.once import open_store

    if not NETWORK.fullmatch(wish.network):
        raise click.BadParameter("1 to 32 of a-z, 0-9 and - are needed", param_hint="NETWORK")
    access = make_access(AccessConfig(open=wish.everyone), wish.host, Path())
    log_to()

    async def run() -> None:
        ledger = await _ledger(wish)
        http = AdapterHttp(wish.network, ledger, open_store(wish.store), access, node=wish.node or "")
        async with served(http.application(), wish.host, wish.port) as url:
            click.echo(f"adapter of {wish.network} on {url}")
            await until_told()

    tune_collector()
    asyncio.run(run())


async def _ledger(wish: AdapterWish) -> "Ledger":
    """The chain of an adapter."""
    from pubsub_emulator.client.extrinsics import development_seed
    from pubsub_emulator.client.rpc import connect
    from pubsub_emulator.eventplane.distributor.adapter.chain import ChainLedger
    from pubsub_emulator.eventplane.distributor.adapter.rpc import RpcLedger

    if wish.node is None:
        return ChainLedger(wish.network, unique=wish.unique)
    seed = development_seed("Alice") if wish.seed_env is None else _seed(wish.seed_env)
    return RpcLedger(wish.network, await connect(wish.node).__aenter__(), seed)


def _seed(name: str) -> bytes:
    """The seed in an environment variable."""
    text = os.environ.get(name, "").removeprefix("0x")
    if not re.fullmatch("[0-9a-fA-F]{64}", text):
        raise click.BadParameter(f"the environment has no 32 bytes in hex as {name}", param_hint="--seed-env")
    return bytes.fromhex(text)


def simulate(scenario: str, seed: int, count: int) -> Result:
    """Play scenarios or stories."""
    if scenario == "list":
        table("Scenarios", ("scenario", "what happens", "rules"), _listed())
        return Result({"scenarios": {str(number): title for number, (title, _, _) in SCENARIOS.items()}})
    if scenario == "stories":
        return _stories(seed, count)
    if scenario == "all":
        return _scenarios(tuple(SCENARIOS), seed)
    if scenario.endswith(".toml"):
        return _file(Path(scenario), seed)
    if not scenario.isdecimal() or int(scenario) not in SCENARIOS:
        raise click.BadParameter(
            f"{scenario!r} is none of list, all, stories, the numbers that `list` shows, and a file that ends in .toml",
            param_hint="SCENARIO",
        )
    return _scenarios((int(scenario),), seed)


def _listed() -> list[tuple[str, ...]]:
    return [(str(number), title, rules) for number, (title, rules, _) in sorted(SCENARIOS.items())]


def _scenarios(numbers: Iterable[int], seed: int) -> Result:
    found: dict[str, dict[str, object]] = {}
    surprising = False
    for number in sorted(numbers):
        stage = play(number, seed)
        failures = list(stage.failures)
        say(f"{number:>2}  {SCENARIOS[number][0]}: {'as the rules say' if not failures else '; '.join(failures)}")
        surprising |= bool(failures)
        found[str(number)] = {"surprises": failures, "digest": stage.world.digest()}
    if len(found) == 1:
        say(f"digest: {next(iter(found.values()))['digest']}")
    return Result({"scenarios": found}, FINDINGS if surprising else 0)


def _file(path: Path, seed: int) -> Result:
    scenario = read_scenario(path)
    stage = play_file(scenario, seed)
    for failure in stage.failures:
        say(failure)
    say(f"{scenario.title}: {'as expected, and every invariant holds' if not stage.failures else 'not as expected'}")
    say(f"digest: {stage.world.digest()}")
    document = {"title": scenario.title, "surprises": stage.failures, "digest": stage.world.digest()}
    return Result(document, FINDINGS if stage.failures else 0)


def _stories(seed: int, count: int) -> Result:
    begun, steps, events = time.monotonic(), 0, 0
    surprising: dict[str, list[str]] = {}
    for number in range(seed, seed + count):
        outcome = tell(number)
        steps, events = steps + outcome.steps, events + outcome.events
        if outcome.surprises:
            surprising[str(number)] = outcome.surprises
            say(f"story {number}: {'; '.join(outcome.surprises)}")
        told = number + 1 - seed
        if told % PROGRESS == 0 and told < count:
            say(
                f"{told:,} of {count:,} stories told, {len(surprising)} with a surprise; go on with --seed {number + 1}"
            )
    seconds = time.monotonic() - begun
    say(f"{count:,} stories, {events:,} events, {steps:,} steps in {seconds:,.0f} s; {len(surprising)} with a surprise")
    document = {"stories": count, "events": events, "steps": steps, "surprises": surprising}
    return Result(document, FINDINGS if surprising else 0)


def demonstrate(seed: int) -> Result:
    """The demonstration."""
    found = demo.demonstrate(seed)
    say(f"{found.events} events, published through two distributors and by strangers")
    table("Networks", ("network", "events in its log"), found.on_networks.items())
    table("Faults", ("what went wrong", "times"), found.happened.items())
    table(
        "Subscribers",
        ("subscriber", "acknowledged"),
        found.acknowledged.items(),
    )
    for each in found.surprises:
        say(f"surprise: {each}")
    if not found.surprises:
        say("every event is on every network, once; each subscriber got what matches; every invariant holds")
    say(f"digest: {found.digest}")
    surprising = bool(found.surprises) or not found.settled
    return Result({**found._asdict()}, FINDINGS if surprising else 0)
