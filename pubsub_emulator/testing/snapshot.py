"""The fixture `proof_snapshot`: compares proof sizes of a test's network with a kept file."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.testing.proof_sizes import SUFFIX, ProofSizes, parse_tolerance, read_sizes, verdict

FOLDER = "__proof_snapshots__"


class ProofsGrew(AssertionError):
    """The figures differ from the kept ones by more than the tolerance, or none are kept yet."""


@dataclass(frozen=True, slots=True)
class ProofSnapshot:
    """Call it with the measured figures; with `--proof-snapshot-update` it writes them instead of checking them."""

    folder: Path
    test: str
    update: bool

    def __call__(self, measured: Simulation | ProofSizes, tolerance: str = "0%", name: str = "") -> None:
        """Check proof sizes: of a scenario, which is run to its end, or of what a `ProofSizes` observed.

        `name` tells several of one test apart. Raises `ProofsGrew`, `BadTolerance`, `BadSnapshot`.
        """
        share = parse_tolerance(tolerance)
        now = ProofSizes.of(measured) if isinstance(measured, Simulation) else measured
        path = self.path(name)
        if self.update:
            now.write(path)
            return
        if not path.exists():
            raise ProofsGrew(f"{path} is not there yet: --proof-snapshot-update writes it")
        found = verdict(read_sizes(path), now, share)
        if found:
            lines = "\n".join(f"  {line}" for line in found)
            raise ProofsGrew(f"{path}, tolerance {tolerance}; --proof-snapshot-update keeps what is now:\n{lines}")

    def path(self, name: str = "") -> Path:
        """The file of this test's snapshot of that name."""
        stem = quote(f"{self.test}-{name}" if name else self.test, safe="[]- ")
        return self.folder / FOLDER / f"{stem}{SUFFIX}"
