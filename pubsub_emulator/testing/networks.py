"""Networks that are built once and forked for each test, so that tests do not affect each other.

Shared networks are `Frozen`: they can be forked, but neither stepped nor changed. A fork is cheap
for a network of any size.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

from pubsub_emulator.emulator.network import CollatorConfig, Network, NetworkConfig
from pubsub_emulator.emulator.scenario.file import load_bundled, load_scenario
from pubsub_emulator.emulator.scenario.model import Scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import Hash, PubsubKey
from pubsub_emulator.testing.failure import RunningNetworks

N = TypeVar("N", Network, Simulation)


class Frozen(Generic[N]):
    """A network, or a running scenario, at one moment."""

    __slots__ = ("_kept", "_watch", "name")

    def __init__(self, kept: N, watch: RunningNetworks, name: str) -> None:
        """Freeze a copy of `kept`. Later changes of `kept` have no effect."""
        self._kept: N = kept.fork()
        self._watch = watch
        self.name = name

    def fork(self) -> N:
        """Return an independent copy.

        The report shows its last blocks if the test fails.
        """
        fork = self._kept.fork()
        self._watch.hand_out(self.name, _network(fork))
        return fork

    @property
    def number(self) -> int:
        """Return the newest relay block's height."""
        return _network(self._kept).number

    def __repr__(self) -> str:
        return f"Frozen({self.name}, relay block {self.number})"


def _network(source: Network | Simulation) -> Network:
    return source if isinstance(source, Network) else source.network


@dataclass(slots=True)
class Networks:
    """Builds the networks of tests. There is one object per session and process."""

    watch: RunningNetworks = field(default_factory=RunningNetworks)
    _runs: dict[Hash, dict[int, Frozen[Simulation]]] = field(default_factory=dict)
    """Frozen simulations by the scenario's hash and the number of blocks."""

    def of(
        self,
        publishers: Iterable[int],
        subscribers: Mapping[int, Mapping[int, Iterable[PubsubKey]]],
        collators: Mapping[int, Iterable[Iterable[str]]] | None = None,
        seed: str = "network",
    ) -> Frozen[Network]:
        """Return a small network at genesis, as `Network.of` does.

        `collators` has, by parachain, the strategies of each collator, with which it cheats at
        every turn. An honest collator has an empty tuple: `collators={2000: [(), ("omit-node",
        "stale-root")]}`.
        """
        config = Network.of(publishers, subscribers, seed).config
        chains = []
        for chain in config.parachains:
            chosen = (collators or {}).get(chain.spec.para_id)
            changed = (
                chain.collators
                if chosen is None
                else tuple(CollatorConfig(tuple(names)) for names in chosen)
            )
            chains.append(replace(chain, collators=changed))
        return self.build(replace(config, parachains=tuple(chains)))

    def build(self, config: NetworkConfig, name: str = "network") -> Frozen[Network]:
        """Return a network at genesis. Raises `PubsubError` if the configuration cannot work."""
        return self.freeze(Network(config), name)

    def freeze(self, kept: N, name: str = "network") -> Frozen[N]:
        """Return the present state of a network, to be forked."""
        self.watch.take_back(_network(kept))
        return Frozen(kept, self.watch, name)

    def scenario(self, scenario: Scenario, blocks: int | None = None) -> Frozen[Simulation]:
        """Return a scenario after `blocks` relay blocks, or at its end.

        Longer runs continue from shorter ones, so that each block is only run once per session.
        Raises `SettingsError`.
        """
        height = scenario.relay_blocks if blocks is None else blocks
        runs = self._runs.setdefault(blake2_256(scenario.model_dump_json().encode()), {})
        if height not in runs:
            earlier = max((number for number in runs if number < height), default=None)
            simulation = Simulation(scenario) if earlier is None else runs[earlier].fork()
            while simulation.network.number < height:
                simulation.step()
            runs[height] = self.freeze(simulation, scenario.name)
        return runs[height]


def find_scenario(name: str, folders: Iterable[Path]) -> Scenario:
    """Return the scenario in a file, or the bundled one.

    A name that ends in `.toml` is looked for in `folders`, in order. Raises `SettingsError`.
    """
    if not name.endswith(".toml"):
        return load_bundled(name)
    places = [folder / name for folder in folders]
    return load_scenario(next((place for place in places if place.is_file()), places[0]))
