"""`pubsub explore`: the page of a run, a history, a session or a single block."""

from pathlib import Path
from typing import Final

from pubsub_emulator.cli.commands.run.run import find_scenario
from pubsub_emulator.cli.screen import files, stage
from pubsub_emulator.emulator.files import write_whole
from pubsub_emulator.explorer.run import explore

MOST_BLOCKS: Final = 500
"""Relay blocks of a history that are drawn unless told otherwise."""


def write_explorer(name: str, out: Path, network: str | None = None, blocks: int = MOST_BLOCKS) -> None:
    """Run the command: runs a scenario, reads anything else."""
    path = Path(name)
    out.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() or (path.is_file() and path.suffix != ".toml"):
        from pubsub_emulator.cli.commands.explore.sources import page_from

        write_whole(out, page_from(path, network, blocks))
        files("written:", ((out, f"the page of {path}, for a browser"),))
        return
    scenario = find_scenario(name)
    with stage(f"running {scenario.name}: {scenario.relay_blocks} relay blocks", scenario.relay_blocks) as advance:
        page = explore(scenario, advance)
    write_whole(out, page)
    files("written:", ((out, "the page of this run, for a browser"),))


def write_node(url: str, out: Path, blocks: int) -> None:
    """Run the command with `--connect`: reads the newest blocks of a node and executes them again."""
    from pubsub_emulator.cli.commands.explore.node import page_of_node

    out.parent.mkdir(parents=True, exist_ok=True)
    with stage(f"reading blocks of {url}") as advance:
        page, drawn = page_of_node(url, blocks, advance)
    write_whole(out, page)
    files("written:", ((out, f"the page of the newest {drawn} relay blocks, for a browser"),))
