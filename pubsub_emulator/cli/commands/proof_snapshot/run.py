"""`pubsub proof-snapshot`: writes a scenario's proof sizes to a file, or compares them with one."""

from pathlib import Path

from pubsub_emulator.cli.screen import say, stage, table
from pubsub_emulator.emulator.scenario.file import find_scenario
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.testing import proof_sizes


def write_snapshot(name: str, out: Path) -> None:
    """Measure a scenario and write its proof sizes."""
    sizes = _measure(find_scenario(name))
    sizes.write(out)
    say(f"written: {out}, {_total(sizes)}")


def check_snapshot(name: str, snapshot: Path, tolerance: str, *, diff: bool) -> bool:
    """Measure a scenario and compare its proof sizes with those in a snapshot.

    Returns whether a figure exceeds the tolerance, or the snapshot is of another version of the
    scenario. The figures that exceed the tolerance are printed, or with `diff` all that changed.
    """
    max_change = proof_sizes.parse_tolerance(tolerance)
    stored = proof_sizes.read_sizes(snapshot)
    scenario = find_scenario(name)
    if proof_sizes.scenario_hash(scenario) != stored.scenario_hash:
        say(
            f"{snapshot}: not a snapshot of this version of {scenario.name}; --out writes a new one"
        )
        return True
    measured = _measure(scenario)
    changes = proof_sizes.compare(stored, measured, max_change)
    shown = changes if diff else [change for change in changes if change.exceeds]
    if shown:
        table(
            f"{scenario.name}: in {snapshot} and now",
            ("", "kept", "now", "change", ""),
            map(_row, shown),
        )
    problems = proof_sizes.verdict(stored, measured, max_change)
    if problems:
        portion = f"{len(problems)} of {counted(len(measured.figures), 'figure')}"
        verb = "exceeds" if len(problems) == 1 else "exceed"
        say(f"{portion} {verb} the tolerance of {tolerance}; --out writes the present ones")
    else:
        say(f"{snapshot}: within {tolerance}, {_total(measured)}")
    return bool(problems)


def _measure(scenario: Scenario) -> proof_sizes.ProofSizes:
    """Run a scenario with a progress bar and return its proof sizes."""
    simulation = Simulation(scenario)
    blocks = counted(scenario.relay_blocks, "relay block")
    with stage(f"running {scenario.name}: {blocks}", scenario.relay_blocks) as advance:
        return proof_sizes.ProofSizes.of(simulation, advance)


def _row(change: proof_sizes.ChangedFigure) -> tuple[str, ...]:
    """Return a row of the table of changes. A dash stands for a figure that is missing."""
    before = "-" if change.kept is None else f"{change.kept:,}"
    now = "-" if change.now is None else f"{change.now:,}"
    return change.name, before, now, change.share, "exceeds" if change.exceeds else ""


def _total(sizes: proof_sizes.ProofSizes) -> str:
    """Return the proof bytes and the blocks of all parachains in words."""
    proof_bytes = 0
    blocks = 0
    for name, figure in sizes.figures.items():
        if name.endswith(".proof_bytes"):
            proof_bytes += figure
        elif name.endswith(".blocks"):
            blocks += figure
    return f"{proof_bytes:,} bytes of proof in {blocks:,} blocks"
