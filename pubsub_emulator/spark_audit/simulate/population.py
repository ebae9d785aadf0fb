"""A generated network: twelve parachains that publish to and read from one another, drawn from a seed and a number.

Usual proofs are more than 10 KiB. The chains differ in what cheats need to have something to cheat with:

    nodes, none   cache policies other than `slots`: cached nodes, and nothing remembered
    tight         a budget that runs out, so that there is a cursor and a stop
    ordered       downward messages, two at a time
    called        horizontal messages of two senders

What happens in a relay block is a function of seed, network and block number alone (PS-90).
"""

from dataclasses import dataclass, replace
from typing import Final

from pubsub_emulator.collator.cheats import BUILT_IN
from pubsub_emulator.collator.draws import Draws
from pubsub_emulator.emulator.network import CollatorConfig, Network, NetworkConfig, ParachainConfig
from pubsub_emulator.emulator.network.parachain import HONEST
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.types import ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.runtime.pallet_subscriber.config import MIN_BUDGET, CachePolicy, RuntimeSpec, merge_subscriptions

CHAINS: Final = 12
PUBLISHERS: Final = 8
"""How many of the chains publish."""
LEAST_READ: Final = 5
"""Publishers that a chain reads at least."""
KEYS: Final = 6
COLLATORS: Final = 4
CHEATS: Final = 2
"""Of a chain's collators, how many cheat at times."""
SEGMENT: Final = 200
"""Relay blocks of a segment: some 200 blocks of each chain are one unit of an audit."""

_FIRST: Final = 1000
_TIGHT_ROOM: Final = 16_000
_NODES, _NONE, _TIGHT, _ORDERED, _CALLED = range(5)
_FAVOURITES: Final = {
    _NODES: ("add-cached-node", "as-if-cached", "as-if-not-cached"),
    _TIGHT: ("as-if-cursor", "over-budget", "reorder-items"),
    _ORDERED: ("alter-message", "drop-message", "reorder-messages"),
    _CALLED: ("alter-message", "drop-message", "empty-sender"),
}
"""Cheats that only these chains give an opportunity to, or the best one: tried more often there."""

_FAVOURED: Final = 6
_NAMES: Final = {
    _NODES: "caches nodes",
    _NONE: "caches nothing",
    _TIGHT: "tight budget",
    _ORDERED: "downward messages",
    _CALLED: "horizontal messages",
}


@dataclass(frozen=True, slots=True)
class Population:
    """Network `number` of the simulation with this seed; collators cheat in `cheat_rate` millionths of all turns."""

    seed: str
    number: int
    cheat_rate: int

    @property
    def name(self) -> str:
        """The network's name in a history."""
        return f"n{self.number:05d}"

    def names(self) -> dict[ParaId, str]:
        """The names of chains that differ from the others."""
        return {ParaId(_FIRST + at): name for at, name in _NAMES.items()}

    def stream(self, purpose: str) -> Draws:
        """Draws of this network for one purpose."""
        return Draws(self.seed.encode(), f"{self.name}/{purpose}")

    def network(self, *, unjudged: bool = False) -> Network:
        """The network at genesis."""
        paras = [ParaId(_FIRST + at) for at in range(CHAINS)]
        channels = tuple((paras[sender], paras[_CALLED]) for sender in (0, 1))
        chains = tuple(
            ParachainConfig(self._spec(at, para, paras[:PUBLISHERS]), self._collators(at))
            for at, para in enumerate(paras)
        )
        seed = self.stream("network").take(32)
        config = NetworkConfig(chains, channels=channels, seed=seed, segment_length=SEGMENT, unjudged=unjudged)
        return Network(config)

    def feed(self, network: Network) -> None:
        """Let happen what happens before the network's next relay block."""
        block = RelayBlockNumber(network.number + 1)
        for at in range(PUBLISHERS):
            self._publish(network, ParaId(_FIRST + at), block)
        stream = self.stream(f"messages/{block}")
        if stream.one_in(2):
            for _ in range(2):
                network.send_downward(_FIRST + _ORDERED, stream.take(stream.between(0, 60)))
        if stream.one_in(2):
            for sender in (0, 1):
                network.send(_FIRST + sender, _FIRST + _CALLED, stream.take(stream.between(1, 60)))

    def _spec(self, at: int, para: ParaId, publishers: list[ParaId]) -> RuntimeSpec:
        stream = self.stream(f"chain/{para}")
        others = [other for other in publishers if other != para]
        read = others if at == _TIGHT else stream.sample(others, stream.between(LEAST_READ, len(others)))
        items = merge_subscriptions([(other, self._read_keys(stream, other)) for other in read])
        if at == _TIGHT:
            # The largest value that it reckons with leaves this much of its budget before the stop rule fires.
            least = MIN_BUDGET - _TIGHT_ROOM
            spec = RuntimeSpec(para, items, max_pov_size=1_300_000, reserve_minimum=True, max_trie_depth=5)
            return replace(spec, max_stored_keys=8, max_value_length=least)
        policies = {_NODES: CachePolicy.NODES, _NONE: CachePolicy.NONE}
        return RuntimeSpec(para, items, cache=policies.get(at, CachePolicy.SLOTS))

    def _read_keys(self, stream: Draws, publisher: ParaId) -> list[PubsubKey]:
        """Most keys of a publisher, and now and then one that it never writes."""
        keys = [published_key(publisher, index) for index in range(KEYS)]
        keys = stream.sample(keys, stream.between(KEYS - 1, KEYS))
        return [*keys, published_key(publisher, KEYS)] if stream.one_in(4) else keys

    def _collators(self, at: int) -> tuple[CollatorConfig, ...]:
        """Honest and dishonest ones in turn, the latter with every cheat that comes with the project."""
        rate = self.cheat_rate * COLLATORS // CHEATS
        bad = CollatorConfig(BUILT_IN + _FAVOURED * _FAVOURITES.get(at, ()), rate)
        return tuple(bad if at % (COLLATORS // CHEATS) else HONEST for at in range(COLLATORS))

    def _publish(self, network: Network, para: ParaId, block: RelayBlockNumber) -> None:
        stream = self.stream(f"publisher/{para}/{block}")
        if block == 1:
            indexes = list(range(KEYS))
        elif stream.one_in(8):
            return
        else:
            indexes = stream.places(KEYS, 1 + stream.one_in(6))
        if stream.one_in(100):
            network.delete(para, [published_key(para, stream.below(KEYS))])
        for index in indexes:
            value = stream.take(stream.between(1152, 2048))
            network.publish(para, published_key(para, index), value, stream.choice((0, 0, 0, 40, 400)))


def published_key(para: ParaId, index: int) -> PubsubKey:
    """Key `index` of a publisher."""
    return key_from_data(b"%d/%d" % (para, index))
