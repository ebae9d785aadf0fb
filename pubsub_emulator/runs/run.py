"""A run: from a scenario or a session to a history, a summary, a page and a digest."""

import json
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pubsub_emulator.emulator.network.records import Observer
from pubsub_emulator.emulator.observers.digest import RunDigest
from pubsub_emulator.emulator.observers.summary import Summary
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.files.output import MARKER
from pubsub_emulator.files.progress import Stage, unwatched
from pubsub_emulator.files.untrusted import Unreadable, read_json
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.rules import SHIPPED, Rules

HISTORY: Final = "history"
EXPLORER: Final = "explorer.html"
ARROW: Final = "pyarrow"


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run with its summary."""

    scenario: Scenario
    summary: Summary
    digest: Hash
    deposits: int = 0
    """Plancks held for publishers in the end."""
    rules: bytes = b""
    """The digest of the rules, empty for the shipped ones."""

    def document(self) -> dict[str, object]:
        """Return the content of `summary.json`."""
        rules = {"rules": hexed(self.rules)} if self.rules else {}
        identity = {"scenario": self.scenario.name, "digest": hexed(self.digest), **rules}
        return {**identity, **self.summary.json(), "deposits": self.deposits}


def simulate(
    scenario: Scenario,
    folder: Path,
    *,
    explorer: bool = False,
    history: bool = True,
    history_out: str | Path | None = None,
    session: Path | None = None,
    rules: Rules = SHIPPED,
    stage: Stage = unwatched,
) -> Run:
    """Run a scenario and write its summary, and optionally its history and page, into `folder`.

    `explorer` asks for the page. `history_out` is another place for the history. `session` is the
    file of a session on the scenario: its commands decide how many blocks are built. `stage` shows
    the progress of the work.
    """
    from pubsub_emulator.explorer.page import page_of, record
    from pubsub_emulator.explorer.recorder import Recorder
    from pubsub_emulator.session import saved

    summary = Summary()
    digest = RunDigest()
    observers: list[Observer] = [summary, digest]
    if session is None:
        blocks = counted(scenario.relay_blocks, "relay block")
        progress = stage(f"running {scenario.name}: {blocks}", scenario.relay_blocks)
    else:
        progress = stage(f"playing {session.name}")
    with progress as advance, ExitStack() as open_writer:
        if history:
            from pubsub_emulator.spark_audit.history.store import HistoryWriter

            writer = HistoryWriter(
                history_out or folder / HISTORY, scenario.name, names=scenario.names()
            )
            observers.append(open_writer.enter_context(writer))
        recorders: list[Recorder] = []

        def begin(simulation: Simulation) -> None:
            """Attach all observers to a network before its first block."""
            for observer in observers:
                simulation.network.observe(observer)
            if explorer:
                recorders.append(record(simulation))

        if session is None:
            simulation = Simulation(scenario, rules=rules)
            begin(simulation)
            simulation.run(advance)
        else:
            simulation = saved.play(session, begin, advance, rules).simulation
            simulation.network.finish()
    for recorder in recorders:
        (folder / EXPLORER).write_text(page_of(recorder, scenario), encoding="utf-8")
    run = Run(scenario, summary, digest.value, simulation.network.relay.deposits(), rules.digest)
    (folder / MARKER).write_text(json.dumps(run.document(), indent=2) + "\n", encoding="utf-8")
    return run


def is_a_run(folder: Path) -> bool:
    """Return whether a folder has the files of a run and no others."""
    try:
        summary = read_json(folder / MARKER)
    except Unreadable:
        return False
    is_marker = isinstance(summary, dict) and {"scenario", "digest", "chains"} <= summary.keys()
    return is_marker and {entry.name for entry in folder.iterdir()} <= {MARKER, HISTORY, EXPLORER}
