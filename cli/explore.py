"""`pubsub explore`: a scenario to the page of its run."""

from pathlib import Path

from pubsub_emulator.cli.output import write_whole
from pubsub_emulator.cli.run import find_scenario
from pubsub_emulator.cli.screen import files, stage
from pubsub_emulator.explorer.run import explore


def write_explorer(name: str, out: Path) -> None:
    """The command."""
    scenario = find_scenario(name)
    out.parent.mkdir(parents=True, exist_ok=True)
    with stage(f"running {scenario.name}: {scenario.relay_blocks} relay blocks", scenario.relay_blocks) as advance:
        page = explore(scenario, advance)
    write_whole(out, page)
    files("written:", ((out, "the page of this run, for a browser"),))
