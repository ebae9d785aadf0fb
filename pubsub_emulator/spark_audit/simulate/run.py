"""A whole simulation: the networks that are not there yet, made by either engine, and what all of them came to."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pubsub_emulator.collator.draws import MILLION
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.version import VERSION
from pubsub_emulator.spark_audit.engine.engine import Answer, Mapper
from pubsub_emulator.spark_audit.history.address import Address
from pubsub_emulator.spark_audit.history.manifest import COMMITS, canonical_json
from pubsub_emulator.spark_audit.history.storage import Store, open_store
from pubsub_emulator.spark_audit.simulate.population import SEGMENT
from pubsub_emulator.spark_audit.simulate.unit import RECEIPTS, NetworkTask, receipt_path, simulate_unit

PLAN: Final = "plan.json"
_FORMAT: Final = 1

OnProgress = Callable[[float, int], None]
"""Called with networks done, shares of unfinished ones included, and networks in all."""


class SimulationRefused(PubsubError):
    """A simulation that cannot be made where it was asked for."""


@dataclass(frozen=True, slots=True)
class Simulation:
    """A simulation: `networks` of `blocks` parachain candidates each, cheats in `cheat_rate` millionths of turns.

    A network ends with the relay block that judges its candidate number `blocks`. It follows from `seed` and number.
    """

    networks: int
    blocks: int
    seed: str
    cheat_rate: int = 40_000
    unjudged: bool = False
    """The blocks of honest collators are not judged while they are made: the same history in less time."""

    def plan(self) -> Answer:
        """The settings that must be equal for a simulation to go on."""
        mine = {"seed": self.seed, "blocks": self.blocks, "cheat_rate": self.cheat_rate}
        return {"format": _FORMAT, "version": VERSION, **mine, "segment": SEGMENT}

    def tasks(self) -> list[NetworkTask]:
        """One task per network."""
        settings = self.blocks, self.cheat_rate, self.unjudged
        return [NetworkTask(self.seed, number, *settings) for number in range(self.networks)]


@dataclass(frozen=True, slots=True)
class Simulated:
    """The result of a simulation, earlier networks included. `digest` covers all decisions of the networks."""

    receipts: tuple[Answer, ...]
    made: int
    """Networks made by this run; the others existed."""

    @property
    def digest(self) -> str:
        """In hex: blake2b-256 of the networks' digests, in their order."""
        return blake2_256(b"".join(bytes.fromhex(each["digest"]) for each in self.receipts)).hex()

    @property
    def candidates(self) -> int:
        """Parachain blocks that were judged."""
        return sum(each["candidates"] for each in self.receipts)

    @property
    def cheats(self) -> Counter[str]:
        """Planted cheats by strategy."""
        return sum((Counter(each["cheats"]) for each in self.receipts), Counter())


def simulate(
    simulation: Simulation, address: Address | Store, engine: Callable[[], Mapper], progress: OnProgress | None = None
) -> Simulated:
    """Make the networks that are not whole at `address` yet; `engine` is opened for these, and closed.

    One simulation at a time may write to a folder. Raises `SimulationRefused`, and what the engine raises.
    """
    for name in ("networks", "blocks"):
        if getattr(simulation, name) < 1:
            raise SimulationRefused(f"{name} must be 1 or more")
    if not 0 <= simulation.cheat_rate <= MILLION // 2:
        raise SimulationRefused("at most half of the turns can be cheats: half of the collators are honest")
    out = open_store(address)
    _prepare(simulation, out)
    tasks = simulation.tasks()
    known = [_receipt(out, task) for task in tasks]
    fresh = [task for task, receipt in zip(tasks, known, strict=True) if receipt is None]
    there = len(tasks) - len(fresh)
    report = progress or (lambda _done, _total: None)
    report(there, len(tasks))
    made: list[Answer] = []
    if fresh:
        runner = engine()
        try:
            units = [task.to_json() for task in fresh]
            made = runner.map(simulate_unit, units, out.uri, lambda done: report(there + done, len(tasks)))
        finally:
            runner.close()
    new = iter(made)
    receipts = tuple(next(new) if receipt is None else receipt for receipt in known)
    return Simulated(receipts, len(fresh))


def _prepare(simulation: Simulation, out: Store) -> None:
    """Claim the folder for this simulation, and clear away what a killed one was about to write."""
    path = f"{RECEIPTS}/{PLAN}"
    plan = simulation.plan()
    if out.stamp(path) is not None:
        try:
            found = json.loads(out.read(path))
        except (ValueError, RecursionError):
            raise SimulationRefused(f"{out}/{path}: not JSON; remove {out} and begin again") from None
        other = [name for name in plan if not isinstance(found, dict) or found.get(name) != plan[name]]
        if other:
            said = f"holds a simulation with another {', '.join(other)}; name another folder or remove it"
            raise SimulationRefused(f"{out} {said}")
        return
    if out.exists(COMMITS):
        raise SimulationRefused(f"{out} holds a history that was not simulated; name another folder")
    out.put(path, canonical_json(plan))


def _receipt(out: Store, task: NetworkTask) -> Answer | None:
    try:
        receipt = json.loads(out.read(receipt_path(task)))
    except (OSError, ValueError):
        return None
    return receipt if isinstance(receipt, dict) and "digest" in receipt else None
