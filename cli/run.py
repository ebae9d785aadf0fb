"""`pubsub run`: a scenario from its file to a history, a summary and a digest."""

import json
from dataclasses import dataclass
from pathlib import Path

import click

from cli.output import MARKER, new_folder
from cli.screen import files, size, stage, table
from emulator.digest import RunDigest
from emulator.scenario import Scenario
from emulator.scenario_file import bundled_scenarios, load_bundled, load_scenario
from emulator.simulation import Simulation
from emulator.summary import Summary
from primitives.types import Hash

HISTORY = "history"


@dataclass(frozen=True, slots=True)
class Run:
    """What a finished run came to."""

    scenario: Scenario
    summary: Summary
    digest: Hash


def find_scenario(name: str) -> Scenario:
    """The scenario of that file, or of that name among those that come with the project. Raises `ScenarioError`."""
    if not name.endswith(".toml") and name in bundled_scenarios():
        return load_bundled(name)
    return load_scenario(Path(name))


def simulate(scenario: Scenario, folder: Path) -> Run:
    """Run a scenario and write its history and summary into `folder`."""
    from spark_audit.store import HistoryWriter

    summary, digest = Summary(), RunDigest()
    with (
        stage(f"running {scenario.name}: {scenario.relay_blocks} relay blocks", scenario.relay_blocks) as advance,
        HistoryWriter(folder / HISTORY, scenario.name) as writer,
    ):
        Simulation(scenario, (summary, digest, writer)).run(advance)
    (folder / MARKER).write_text(
        json.dumps({"scenario": scenario.name, "digest": "0x" + digest.value.hex(), **summary.json()}, indent=2) + "\n",
        encoding="utf-8",
    )
    return Run(scenario, summary, digest.value)


def run_scenario(name: str, out: Path) -> None:
    """The command."""
    scenario = find_scenario(name)
    with new_folder(out) as folder:
        run = simulate(scenario, folder)
    show_run(run)
    files(
        "written:",
        ((out / HISTORY, "every block, for `pubsub audit`"), (out / MARKER, "the figures above")),
    )
    click.echo(f"digest: 0x{run.digest.hex()}")


def show_run(run: Run) -> None:
    """Tables of what happened on the chains and of who was caught."""
    scenario, summary = run.scenario, run.summary
    rows = []
    for subscriber in scenario.subscribers:
        chain = summary.chains.get(subscriber.para)
        if chain is None:
            continue
        rows.append(
            (
                f"{subscriber.para} {subscriber.name}",
                subscriber.cache,
                chain.blocks,
                chain.refused,
                chain.delivered,
                chain.removed,
                chain.stops,
                size(chain.proof_bytes),
                size(chain.unpruned_bytes),
                size(chain.budget_bytes),
                size(chain.own_state_bytes),
            )
        )
    header = (
        "subscriber",
        "cache",
        "blocks",
        "refused",
        "delivered",
        "removed",
        "stops",
        "proofs",
        "unpruned",
        "budget",
        "own state",
    )
    table(f"{scenario.name}: {summary.relay_blocks} relay blocks", header, rows)
    if summary.verdicts:
        caught = ((strategy, verdict, count) for (strategy, verdict), count in sorted(summary.cheats.items()))
        table("cheats caught", ("strategy", "verdict", "blocks"), caught)
    if summary.undetected:
        click.echo(f"NOT caught: {summary.undetected} blocks")
