"""A run of a simulation, which makes the networks that do not exist yet, on any engine."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pubsub_emulator.primitives.draws import MILLION
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.spark_audit.engine.engine import Answer, Mapper
from pubsub_emulator.spark_audit.engine.rules import RulesFile
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.manifest import COMMITS, canonical_json
from pubsub_emulator.spark_audit.history.storage import Store, open_store
from pubsub_emulator.spark_audit.simulate.population import SEGMENT
from pubsub_emulator.spark_audit.simulate.unit import (
    RECEIPTS,
    NetworkTask,
    receipt_path,
    simulate_unit,
)
from pubsub_emulator.version import VERSION

PLAN: Final = "plan.json"
"""The file with the settings of the simulation in a folder."""
_FORMAT: Final = 1

OnProgress = Callable[[float, int], None]
"""Called with the number of finished networks, including shares of unfinished ones, and the number
of all networks."""


class SimulationRefused(PubsubError):
    """A simulation with wrong settings, or one that cannot be made in this folder."""


@dataclass(frozen=True, slots=True)
class SimulationSettings:
    """The settings of a simulation."""

    networks: int
    """Number of networks. A network depends only on the seed and its number."""
    blocks: int
    """Parachain candidates in a network, which ends with the relay block that judges the last one.
    """
    seed: str
    cheat_rate: int = 40_000
    """Cheats in a million turns."""
    unjudged: bool = False
    """Whether blocks of honest collators are not judged while they are made. The history is the
    same, but made in less time."""
    rules: Rules = SHIPPED
    """The rules of all networks."""

    def plan(self) -> Answer:
        """Return the settings that must be equal when a simulation is continued."""
        settings = {"seed": self.seed, "blocks": self.blocks, "cheat_rate": self.cheat_rate}
        return {"format": _FORMAT, "version": VERSION, **settings, "segment": SEGMENT}

    def tasks(self) -> list[NetworkTask]:
        """Return a task for each network."""
        rules = RulesFile.of(self.rules)
        return [
            NetworkTask(
                self.seed,
                number,
                self.blocks,
                cheat_rate=self.cheat_rate,
                unjudged=self.unjudged,
                rules=rules,
            )
            for number in range(self.networks)
        ]


@dataclass(frozen=True, slots=True)
class Simulated:
    """The result of a simulation, including networks that existed before."""

    receipts: tuple[Answer, ...]
    """The receipts of all networks in order."""
    made: int
    """Networks that this run made."""

    @property
    def digest(self) -> str:
        """blake2b-256, in hex, of the networks' digests in order.

        A network's digest covers everything that the network decided.
        """
        return blake2_256(
            b"".join(bytes.fromhex(receipt["digest"]) for receipt in self.receipts)
        ).hex()

    @property
    def candidates(self) -> int:
        """Parachain blocks that were judged."""
        return sum(receipt["candidates"] for receipt in self.receipts)

    @property
    def cheats(self) -> Counter[str]:
        """Planted cheats by strategy."""
        return sum((Counter(receipt["cheats"]) for receipt in self.receipts), Counter())


def simulate(
    simulation: SimulationSettings,
    address: Address | Store,
    engine: Callable[[], Mapper],
    progress: OnProgress | None = None,
) -> Simulated:
    """Make the networks that are not complete at `address` yet.

    `engine` starts an engine, and is called only if there are such networks. The engine is closed
    afterwards. Only one simulation may write to a folder at a time. Raises `SimulationRefused`, and
    everything that the engine raises.
    """
    for name in ("networks", "blocks"):
        if getattr(simulation, name) < 1:
            raise SimulationRefused(f"{name} must be 1 or more")
    if not 0 <= simulation.cheat_rate <= MILLION // 2:
        raise SimulationRefused(
            "at most half of the turns can be cheats: half of the collators are honest"
        )
    out = open_store(address)
    _prepare(simulation, out)
    tasks = simulation.tasks()
    known = [_receipt(out, task) for task in tasks]
    missing = [task for task, receipt in zip(tasks, known, strict=True) if receipt is None]
    existing = len(tasks) - len(missing)
    report = progress or (lambda _done, _total: None)
    report(existing, len(tasks))
    new: list[Answer] = []
    if missing:
        runner = engine()
        try:
            units = [task.to_json() for task in missing]
            new = runner.map(
                simulate_unit, units, out.uri, lambda done: report(existing + done, len(tasks))
            )
        finally:
            runner.close()
    made_receipts = iter(new)
    receipts = tuple(next(made_receipts) if receipt is None else receipt for receipt in known)
    return Simulated(receipts, len(missing))


def _prepare(simulation: SimulationSettings, out: Store) -> None:
    """Write the plan of this simulation, or check that the one in the folder is the same.

    Raises `SimulationRefused` if the folder has another simulation or a history.
    """
    path = f"{RECEIPTS}/{PLAN}"
    plan = simulation.plan()
    if out.stamp(path) is not None:
        try:
            stored = json.loads(out.read(path))
        except (ValueError, RecursionError):
            raise SimulationRefused(
                f"{out}/{path}: not JSON; remove {out} and begin again"
            ) from None
        differing = [
            name for name in plan if not isinstance(stored, dict) or stored.get(name) != plan[name]
        ]
        if differing:
            raise SimulationRefused(
                f"{out} holds a simulation with another {', '.join(differing)}; name another folder"
                " or remove it"
            )
        return
    if out.exists(COMMITS):
        raise SimulationRefused(
            f"{out} holds a history that was not simulated; name another folder"
        )
    out.put(path, canonical_json(plan))


def _receipt(out: Store, task: NetworkTask) -> Answer | None:
    """Return the receipt of a network, `None` if the network is not complete."""
    try:
        receipt = json.loads(out.read(receipt_path(task)))
    except (OSError, ValueError):
        return None
    return receipt if isinstance(receipt, dict) and "digest" in receipt else None
