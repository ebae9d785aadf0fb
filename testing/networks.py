"""Networks that are built once and forked for each test: nothing that one test does can be seen by another.

What is shared is only ever `Frozen`: it can be forked, and neither stepped nor written to. A fork has states of its own
and costs some references, whatever the network holds, so a session may build what a hundred tests start from.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

from pubsub_emulator.emulator.network import Network, NetworkConfig
from pubsub_emulator.emulator.scenario import Scenario
from pubsub_emulator.emulator.scenario.file import load_bundled, load_scenario
from pubsub_emulator.emulator.scenario.seeded import MILLION
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey
from pubsub_emulator.testing.failure import Watch

N = TypeVar("N", Network, Simulation)


class Frozen(Generic[N]):
    """A network, or a scenario in motion, at one moment."""

    __slots__ = ("_kept", "_watch", "name")

    def __init__(self, kept: N, watch: Watch, name: str) -> None:
        """Of what `kept` is now; what becomes of it later is not seen here."""
        self._kept: N = kept.fork()
        self._watch = watch
        self.name = name

    def fork(self) -> N:
        """One that goes on from this moment by itself. The test that takes it is shown its last blocks if it fails."""
        fork = self._kept.fork()
        self._watch.hand_out(self.name, _network(fork))
        return fork

    @property
    def number(self) -> int:
        """The newest relay block's height."""
        return _network(self._kept).number

    def __repr__(self) -> str:
        return f"Frozen({self.name}, relay block {self.number})"


def _network(kept: Network | Simulation) -> Network:
    return kept if isinstance(kept, Network) else kept.network


@dataclass(slots=True)
class Networks:
    """Builds what tests start from. One a session and process: workers of pytest-xdist each have their own."""

    watch: Watch = field(default_factory=Watch)
    _runs: dict[Hash, dict[int, Frozen[Simulation]]] = field(default_factory=dict)

    def of(
        self,
        publishers: Iterable[int],
        subscribers: Mapping[int, Mapping[int, Iterable[PubsubKey]]],
        collators: Mapping[int, Iterable[Iterable[str]]] | None = None,
        seed: str = "network",
    ) -> Frozen[Network]:
        """A small network at genesis: as `Network.of`, and for some parachains their collators.

        Each collator is the strategies that it cheats by at every turn, none for an honest one:
        `collators={2000: [(), ("omit-node", "stale-root")]}`.
        """
        config = Network.of(publishers, subscribers, seed).config
        wanted = {
            ParaId(para): tuple((tuple(names), MILLION) for names in chosen)
            for para, chosen in (collators or {}).items()
        }
        chains = tuple(
            replace(chain, collators=wanted.get(chain.spec.para_id, chain.collators)) for chain in config.parachains
        )
        return self.build(replace(config, parachains=chains))

    def build(self, config: NetworkConfig, name: str = "network") -> Frozen[Network]:
        """A network at genesis, as it is configured. Raises `PubsubError` for what cannot work."""
        return self.freeze(Network(config), name)

    def freeze(self, kept: N, name: str = "network") -> Frozen[N]:
        """A network as it stands now, for others to start from."""
        self.watch.take_back(_network(kept))
        return Frozen(kept, self.watch, name)

    def scenario(self, scenario: Scenario, blocks: int | None = None) -> Frozen[Simulation]:
        """A scenario after `blocks` relay blocks, or at its end; what another test had run of it is not run again.

        Raises `ScenarioError`.
        """
        wanted = scenario.relay_blocks if blocks is None else blocks
        runs = self._runs.setdefault(blake2_256(scenario.model_dump_json().encode()), {})
        if wanted not in runs:
            earlier = max((number for number in runs if number < wanted), default=None)
            simulation = Simulation(scenario) if earlier is None else runs[earlier].fork()
            while simulation.network.number < wanted:
                simulation.step()
            runs[wanted] = self.freeze(simulation, scenario.name)
        return runs[wanted]


def find_scenario(name: str, folders: Iterable[Path]) -> Scenario:
    """The scenario in the first of `folders` that has this file, or the one of that name that comes with the project.

    Raises `ScenarioError`.
    """
    if not name.endswith(".toml"):
        return load_bundled(name)
    places = [folder / name for folder in folders]
    return load_scenario(next((place for place in places if place.is_file()), places[0]))
