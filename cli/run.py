"""`pubsub run`: a scenario from its file to a history, a summary and a digest."""

import json
from dataclasses import dataclass
from pathlib import Path

import click

from cli.output import MARKER, new_folder
from cli.screen import files, stage, table
from emulator.digest import RunDigest
from emulator.scenario import Scenario
from emulator.scenario_file import bundled_scenarios, load_bundled, load_scenario
from emulator.simulation import Simulation
from emulator.summary import Summary
from primitives.types import Hash
from spark_audit.report.words import size

HISTORY = "history"


@dataclass(frozen=True, slots=True)
class Run:
    """What a finished run came to."""

    scenario: Scenario
    summary: Summary
    digest: Hash


def find_scenario(name: str) -> Scenario:
    """The scenario of that file, or of that name among those that come with the project. Raises `ScenarioError`."""
    if not name.endswith(".toml") and (name in bundled_scenarios() or not Path(name).exists()):
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
    subscribers = [(each, summary.chains[each.para]) for each in scenario.subscribers if each.para in summary.chains]
    rows = (
        (
            f"{each.para} {each.name}",
            each.cache,
            chain.blocks,
            chain.refused,
            chain.delivered,
            chain.removed,
            chain.stops,
            size(chain.messages_bytes),
        )
        for each, chain in subscribers
    )
    header = ("subscriber", "cache", "blocks", "refused", "delivered", "removed", "stops", "messages")
    table(f"{scenario.name}: {summary.relay_blocks} relay blocks", header, rows)
    shares = (
        (
            f"{each.para} {each.name}",
            size(chain.budget_bytes // max(chain.blocks, 1)),
            size(chain.used_bytes // max(chain.blocks, 1)),
            size(chain.largest_proof),
            size(chain.proof_bytes),
            size(chain.unpruned_bytes),
            percent(chain.unpruned_bytes - chain.proof_bytes, chain.unpruned_bytes),
            size(chain.own_state_bytes),
            size(chain.cache_state_bytes),
        )
        for each, chain in subscribers
    )
    columns = (
        "bytes",
        "budget/block",
        "used/block",
        "largest proof",
        "all proofs",
        "unpruned",
        "saved",
        "own state read",
        "of it cache",
    )
    table("where the bytes went", columns, shares)
    if summary.verdicts:
        caught = ((strategy, verdict, count) for (strategy, verdict), count in sorted(summary.cheats.items()))
        table(f"cheats caught: {summary.verdicts.total()}", ("strategy", "verdict", "blocks"), caught)
    if summary.undetected:
        click.echo(f"NOT caught: {summary.undetected} blocks")


def percent(part: int, whole: int) -> str:
    """A share, rounded."""
    return f"{100 * part / whole:.0f} %" if whole else "-"
