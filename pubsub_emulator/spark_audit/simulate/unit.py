"""The unit that makes one network of a simulation, from its first block to its receipt.

The receipt is written last and shows that the network is complete. A network whose making was
interrupted is made again, with the same result.
"""

import gc
import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from pubsub_emulator.emulator.network.records import BlockRecord, Observer, RelayRecord
from pubsub_emulator.emulator.observers.digest import RunDigest
from pubsub_emulator.primitives.pubsub import node_cost
from pubsub_emulator.spark_audit.engine.engine import Answer, UnitTask
from pubsub_emulator.spark_audit.engine.pace import report_progress
from pubsub_emulator.spark_audit.engine.rules import SHIPPED_RULES, RulesFile
from pubsub_emulator.spark_audit.history.manifest import canonical_json
from pubsub_emulator.spark_audit.history.row import fields_of
from pubsub_emulator.spark_audit.history.storage import open_store
from pubsub_emulator.spark_audit.history.store import HistoryWriter
from pubsub_emulator.spark_audit.simulate.population import Population

RECEIPTS: Final = "_simulation"
"""The folder beside a history's tables with the simulation's plan and the receipts of complete
networks."""

_ALLOCATIONS: Final = 200_000
"""Allocations between two garbage collections, about as many as a relay block with its candidates
needs."""


@dataclass(frozen=True, slots=True)
class NetworkTask(UnitTask):
    """The task of making one network."""

    seed: str
    """The seed of the simulation."""
    number: int
    """The number of the network in the simulation."""
    blocks: int
    """The network ends with the relay block that judges this many candidates."""
    cheat_rate: int
    """Cheats in a million turns of all collators."""
    unjudged: bool = False
    """Whether blocks of honest collators are not judged while they are made."""
    rules: RulesFile = SHIPPED_RULES

    @property
    def population(self) -> Population:
        """The network of this task."""
        return Population(self.seed, self.number, self.cheat_rate)

    @staticmethod
    def from_json(text: str) -> "NetworkTask":
        """Return the task that `to_json` wrote."""
        data = json.loads(text)
        return NetworkTask(**{**data, "rules": RulesFile(**data["rules"])})


@dataclass(slots=True)
class Tally(Observer):
    """An observer that counts blocks and cheats and collects the sizes of proofs."""

    candidates: int = 0
    rejected: int = 0
    relay_blocks: int = 0
    strategies: Counter[str] = field(default_factory=Counter)
    """Planted cheats by strategy."""
    proofs: list[int] = field(default_factory=list)
    """Cost in bytes of each candidate's proof."""
    pubsub: list[int] = field(default_factory=list)
    """For each valid block, the cost of the nodes in its proof that static keys do not need."""

    def relay_block(self, record: RelayRecord) -> None:
        """Store the number of a relay block, which is the number of relay blocks after genesis."""
        self.relay_blocks = record.number

    def candidate(self, record: BlockRecord) -> None:
        """Count a candidate, accepted or refused."""
        self.candidates += 1
        self.rejected += record.refusal is not None
        if record.due:
            self.strategies[record.strategy or ""] += 1
        self.proofs.append(sum(node_cost(len(node)) for node in record.candidate.inherent.proof))
        if record.outcome is not None:
            ledger = record.outcome.ledger
            self.pubsub.append(ledger.proof_bytes - ledger.static_bytes)


def simulate_unit(text: str, history: str) -> Answer:
    """Make one network, add it to the history, and return the receipt. This is a unit.

    Raises `CommitError`, `RulesError`, `OSError`.
    """
    task = NetworkTask.from_json(text)
    started = time.process_time()
    population = task.population
    store = open_store(history)
    tally = Tally()
    digest = RunDigest()
    network = population.network(unjudged=task.unjudged, rules=task.rules.read())
    with (
        _rare_collection(),
        HistoryWriter(store, population.name, resume=True, names=population.names()) as writer,
    ):
        for observer in (tally, digest, writer):
            network.observe(observer)
        while tally.candidates < task.blocks:
            population.feed(network)
            network.step()
            report_progress(tally.candidates, task.blocks)
        network.finish()
    receipt = {
        **fields_of(task, ("seed", "number", "blocks", "cheat_rate", "unjudged")),
        "network": population.name,
        **fields_of(tally, ("relay_blocks", "candidates", "rejected")),
        "cheats": dict(sorted(tally.strategies.items())),
        "proof_bytes": sum(tally.proofs),
        "median_proof": _median(tally.proofs),
        "median_pubsub_proof": _median(tally.pubsub),
        "digest": digest.value.hex(),
        "cpu_seconds": round(time.process_time() - started, 3),
    }
    store.put(receipt_path(task), canonical_json(receipt))
    return receipt


@contextmanager
def _rare_collection() -> Iterator[None]:
    """Make garbage collections rarer inside the `with` block.

    States share millions of trie nodes. They are not in reference cycles, but a collection visits
    all of them.
    """
    before = gc.get_threshold()
    gc.set_threshold(_ALLOCATIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def receipt_path(task: NetworkTask) -> str:
    """Return the path of a network's receipt, relative to the history."""
    return f"{RECEIPTS}/{task.population.name}.json"


def _median(figures: list[int]) -> int:
    """Return the lower median, 0 if there are no values."""
    return sorted(figures)[(len(figures) - 1) // 2] if figures else 0
