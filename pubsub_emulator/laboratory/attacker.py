"""Measures the gains of cheating collators (PS-53, PS-79).

There are two measurements: the gain from an invalid block if it were accepted, and the delay of
deliveries by lost slots.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from pubsub_emulator.collator.cheats import STRATEGIES, Situation, attempt, for_any_chain
from pubsub_emulator.emulator.network import CollatorConfig, Network, NetworkConfig, ParachainConfig
from pubsub_emulator.emulator.relay.runtime import RelayConfig
from pubsub_emulator.laboratory.cases import JudgingContext
from pubsub_emulator.laboratory.worlds import World
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.pubsub import key_from_data, node_cost
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.runtime.pallet_pubsub import Config as PubsubConfig
from pubsub_emulator.runtime.pallet_pubsub.events import DataPublished
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec
from pubsub_emulator.runtime.parachain.block import Candidate
from pubsub_emulator.runtime.rules import SHIPPED, Rules

PUBLISHER: Final = ParaId(1000)
SUBSCRIBER: Final = ParaId(3000)
COLLATORS: Final = 10
"""The number of collators in the second measurement."""
WITHHOLD: Final = "withheld-delivery"
"""The strategy in the second measurement: a block without its deliveries."""
WORLDS: Final = 30
"""The number of generated worlds in the first measurement."""
_SEED: Final = b"attacker"

OnStep = Callable[[str], None]
"""Called with a description of the next measurement."""


@dataclass(slots=True)
class Gain:
    """The maximum that a strategy would gain over many blocks."""

    strategy: str
    blocks: int = 0
    """Blocks on which the strategy was tried."""
    refused: int = 0
    """Blocks that were invalid."""
    believed: int = 0
    """Blocks that are not cheats, because their proof is the canonical set all the same (PS-52)."""
    wrongly_accepted: int = 0
    """Blocks that were accepted although they should have been invalid."""
    bytes_left_out: int = 0
    """The maximum cost of proof nodes that a block left out."""
    bytes_added: int = 0
    """The maximum cost of proof nodes that a block added."""
    withheld: int = 0
    """The maximum number of deliveries that a block withheld."""
    verdicts: Counter[str] = field(default_factory=Counter)
    """The first verdict of invalid blocks."""

    def row(self) -> dict[str, int | float | str]:
        """Return the figures as a row of a table."""
        return {
            "strategy": self.strategy,
            "blocks": self.blocks,
            "refused": self.refused,
            "canonical after all": self.believed,
            "wrongly accepted": self.wrongly_accepted,
            "most bytes left out": self.bytes_left_out,
            "most bytes added": self.bytes_added,
            "most callbacks withheld": self.withheld,
            "verdicts": ", ".join(name for name, _ in self.verdicts.most_common()),
        }


def cheat_gains(on_step: OnStep | None = None, rules: Rules = SHIPPED) -> list[Gain]:
    """Try every strategy on several blocks of generated worlds and return the gains."""
    gains = {name: Gain(name) for name in for_any_chain()}
    for number in range(WORLDS):
        if on_step is not None:
            on_step(f"world {number + 1} of {WORLDS}")
        seed = Draws(_SEED, f"world/{number}").take(32)
        world = World(seed, proofs_only=False, rules=rules)
        for block in range(3):
            _try_all(world.situation(), gains, Draws(_SEED, f"cheats/{number}/{block}"))
            world.advance()
    return list(gains.values())


def _try_all(now: Situation, gains: dict[str, Gain], draws: Draws) -> None:
    """Try every strategy on one block."""
    judging = JudgingContext.of(now)
    honest = _weights(now.honest)
    for name, gain in gains.items():
        attempted = attempt(now, (STRATEGIES[name],), draws.take(16))
        if attempted is None:
            continue
        gain.blocks += 1
        verdicts = judging.judge(attempted.candidate)
        if not verdicts:
            if attempted.expected:
                gain.wrongly_accepted += 1
            else:
                gain.believed += 1
            continue
        gain.refused += 1
        gain.verdicts[verdicts[0]] += 1
        attempt_weights = _weights(attempted.candidate)
        gain.bytes_left_out = max(gain.bytes_left_out, (honest - attempt_weights).total())
        gain.bytes_added = max(gain.bytes_added, (attempt_weights - honest).total())
        gain.withheld = max(gain.withheld, len(now.walked.changes))


def _weights(candidate: Candidate) -> Counter[bytes]:
    """Return the cost of each node in a proof. Repeated nodes count each time."""
    weights: Counter[bytes] = Counter()
    for node in candidate.inherent.proof:
        weights[node] += node_cost(len(node))
    return weights


@dataclass(frozen=True, slots=True)
class Delay:
    """The effect of cheating collators on deliveries."""

    cheating: int
    """The number of cheating collators, of ten."""
    placement: str
    """Whether they are neighbours in the order of turns."""
    delivered: int
    """Delivered updates."""
    undelivered: int
    """Published keys that were not delivered by the end."""
    lost_slots: int
    """Invalid blocks."""
    median: float
    """The median of relay blocks from publication to delivery."""
    most: int
    """The maximum of relay blocks from publication to delivery."""

    def row(self) -> dict[str, int | float | str]:
        """Return the figures as a row of a table."""
        return {
            "cheating %": 100 * self.cheating // COLLATORS,
            "placement": self.placement,
            "delivered": self.delivered,
            "undelivered": self.undelivered,
            "lost slots": self.lost_slots,
            "median delay": self.median,
            "longest delay": self.most,
        }


def delays(
    blocks: int = 60, on_step: OnStep | None = None, rules: Rules = SHIPPED
) -> Iterator[Delay]:
    """Yield the delays for zero to nine cheating collators of ten.

    The cheating ones are neighbours in the order of turns, or as far apart as possible.
    """
    for cheating in range(COLLATORS):
        for placement in ("side by side", "spread"):
            if on_step is not None:
                on_step(f"{cheating} of {COLLATORS} collators cheat, {placement}")
            if placement == "spread":
                cheaters = {index * COLLATORS // max(cheating, 1) for index in range(cheating)}
            else:
                cheaters = set(range(cheating))
            yield _delay(cheating, placement, cheaters, blocks=blocks, rules=rules)


def _delay(cheating: int, placement: str, cheaters: set[int], blocks: int, rules: Rules) -> Delay:
    """Measure the delays. `cheaters` has the positions of the cheating collators."""
    keys = tuple(sorted(key_from_data(f"{index}".encode()) for index in range(8)))
    collators = tuple(
        CollatorConfig((WITHHOLD,) if index in cheaters else ()) for index in range(COLLATORS)
    )
    subscriber = ParachainConfig(
        RuntimeSpec(SUBSCRIBER, {PUBLISHER: keys}, rules=rules.digest), collators
    )
    publisher = ParachainConfig.publisher(RuntimeSpec(PUBLISHER, {}, rules=rules.digest))
    relay = RelayConfig(pubsub=PubsubConfig(rules=rules))
    network = Network(NetworkConfig((subscriber, publisher), relay, seed=b"delays"))
    waiting: dict[PubsubKey, int] = {}
    blocks_waited: list[int] = []
    lost = 0
    for index in range(blocks + 2 * COLLATORS):
        if index < blocks:
            network.publish(PUBLISHER, keys[index % len(keys)], index.to_bytes(40, "little"))
        step = network.step()[0]
        lost += len(step.refused)
        blocks_waited += [
            step.number - waiting.pop(delivery.key) for delivery in step.deliveries(SUBSCRIBER)
        ]
        for event in step.events:
            if isinstance(event, DataPublished):
                waiting.setdefault(event.key, step.number)
    middle = median(blocks_waited) if blocks_waited else 0
    return Delay(
        cheating,
        placement,
        len(blocks_waited),
        undelivered=len(waiting),
        lost_slots=lost,
        median=middle,
        most=max(blocks_waited, default=0),
    )
