"""`pubsub distributor simulate` and `demo`."""

import time
from collections.abc import Iterable
from pathlib import Path

import click

from interchain_events.distributor.simulation import demo
from interchain_events.distributor.simulation.file import read_scenario
from interchain_events.distributor.simulation.losses import losses, steps_of, tell_with_loss
from interchain_events.distributor.simulation.scenarios import SCENARIOS, play
from interchain_events.distributor.simulation.script import play_file
from interchain_events.distributor.simulation.stories import tell
from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.exits import FINDINGS
from pubsub_emulator.cli.screen import say, table
from pubsub_emulator.primitives.words import counted

PROGRESS = 1_000
"""The number of stories between two lines of progress."""


def simulate(scenario: str, seed: int, count: int) -> Result:
    """Play scenarios or stories, and print their surprises.

    Raises `click.BadParameter` if there is no such scenario.
    """
    if scenario == "list":
        rows = (
            (str(number), title, rules) for number, (title, rules, _) in sorted(SCENARIOS.items())
        )
        table("Scenarios", ("scenario", "description", "rules"), rows)
        return Result(
            {"scenarios": {str(number): title for number, (title, _, _) in SCENARIOS.items()}}
        )
    if scenario == "stories":
        return _stories(seed, count)
    if scenario == "losses":
        return _losses(seed, count)
    if scenario == "all":
        return _scenarios(tuple(SCENARIOS), seed)
    if scenario.endswith(".toml"):
        return _file(Path(scenario), seed)
    if not scenario.isdecimal() or int(scenario) not in SCENARIOS:
        raise click.BadParameter(
            f"{scenario!r} is not one of list, all, stories, losses, a number that `list` shows, or"
            " a file that ends in .toml",
            param_hint="SCENARIO",
        )
    return _scenarios((int(scenario),), seed)


def _scenarios(numbers: Iterable[int], seed: int) -> Result:
    """Play scenarios by their numbers in the rules, and print the result of each."""
    results: dict[str, dict[str, object]] = {}
    for number in sorted(numbers):
        stage = play(number, seed)
        say(
            f"{number:>2}  {SCENARIOS[number][0]}:"
            f" {'; '.join(stage.failures) or 'as the rules say'}"
        )
        results[str(number)] = {"surprises": stage.failures, "digest": stage.world.digest()}
    if len(results) == 1:
        say(f"digest: {next(iter(results.values()))['digest']}")
    surprising = any(result["surprises"] for result in results.values())
    return Result({"scenarios": results}, FINDINGS if surprising else 0)


def _file(path: Path, seed: int) -> Result:
    """Play the scenario of a file, and print its failures, verdict and digest."""
    scenario = read_scenario(path)
    stage = play_file(scenario, seed)
    for failure in stage.failures:
        say(failure)
    verdict = "not as expected" if stage.failures else "as expected, and every invariant holds"
    say(f"{scenario.title}: {verdict}")
    digest = stage.world.digest()
    say(f"digest: {digest}")
    document = {"title": scenario.title, "surprises": stage.failures, "digest": digest}
    return Result(document, FINDINGS if stage.failures else 0)


def _stories(seed: int, count: int) -> Result:
    """Play `count` stories from the seed `seed` on, and print each surprise and the totals."""
    started = time.monotonic()
    steps = 0
    events = 0
    surprising: dict[str, list[str]] = {}
    for number in range(seed, seed + count):
        outcome = tell(number)
        steps += outcome.steps
        events += outcome.events
        if outcome.surprises:
            surprising[str(number)] = outcome.surprises
            say(f"story {number}: {'; '.join(outcome.surprises)}")
        played = number + 1 - seed
        if played % PROGRESS == 0 and played < count:
            say(
                f"{played:,} of {counted(count, 'story', 'stories')},"
                f" {len(surprising)} with a surprise; continue with --seed {number + 1}"
            )
    seconds = time.monotonic() - started
    say(
        f"{counted(count, 'story', 'stories')}, {counted(events, 'event')},"
        f" {counted(steps, 'step')} in {seconds:,.0f} s;"
        f" {len(surprising)} with a surprise"
    )
    document = {"stories": count, "events": events, "steps": steps, "surprises": surprising}
    return Result(document, FINDINGS if surprising else 0)


def _losses(seed: int, count: int) -> Result:
    """Play `count` stories with losses of rows, and print each surprise and the totals.

    Each story is played once for each of its `losses`: several before each transaction.
    """
    started = time.monotonic()
    played = 0
    noticed = 0
    surprising: dict[str, list[str]] = {}
    for number in range(seed, seed + count):
        for loss in losses(steps_of(number)):
            ending = tell_with_loss(number, loss)
            played += 1
            if ending.noticed:
                noticed += 1
            if ending.surprises:
                place = f"{number}, {loss}"
                surprising[place] = ending.surprises
                say(f"story {place}: {'; '.join(ending.surprises)}")
    seconds = time.monotonic() - started
    say(
        f"{counted(count, 'story', 'stories')}, told {counted(played, 'time')} with a loss,"
        f" of which a process noticed {noticed:,}, in {seconds:,.0f} s;"
        f" {len(surprising)} with a surprise"
    )
    document = {"stories": count, "told": played, "noticed": noticed, "surprises": surprising}
    return Result(document, FINDINGS if surprising else 0)


def demonstrate(seed: int) -> Result:
    """Play the demonstration, and print its messages and figures."""
    result = demo.demonstrate(seed)
    say(f"{counted(result.events, 'event')}, published through two distributors and by strangers")
    table("Networks", ("network", "events in its log"), result.on_networks.items())
    table("Faults", ("faults", "times"), result.happened.items())
    table("Subscribers", ("subscriber", "acknowledged"), result.acknowledged.items())
    for surprise in result.surprises:
        say(f"surprise: {surprise}")
    if not result.surprises:
        say(
            "every event is on every network, once; each subscriber got what matches; every"
            " invariant holds"
        )
    say(f"digest: {result.digest}")
    return Result(result._asdict(), FINDINGS if result.surprises or not result.settled else 0)
