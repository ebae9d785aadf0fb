"""A generated network of twelve parachains that publish to and read from one another.

Most proofs are larger than 10 KiB. Some chains differ, so that every kind of cheat is possible:

    nodes, none   other cache policies than `slots`: cached nodes, and no cache
    tight         a budget that runs out, so that there is a cursor and a stop
    ordered       downward messages, two at a time, and now and then more than a block's share
    called        horizontal messages of two senders
    asking        relay keys besides the subscriptions, some of them absent

The inputs of a relay block depend only on the seed, the network's number and the block's number
(PS-90). So any machine can make the same network again.
"""

from dataclasses import dataclass, replace
from typing import Final

from pubsub_emulator.collator.cheats import BUILT_IN
from pubsub_emulator.emulator.network import CollatorConfig, Network, NetworkConfig, ParachainConfig
from pubsub_emulator.emulator.network.parachain import HONEST
from pubsub_emulator.emulator.relay.runtime import RelayConfig
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.pubsub import derive_child_key, key_from_data
from pubsub_emulator.primitives.storage_keys import item_prefix, para_head
from pubsub_emulator.primitives.types import ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.runtime.framework.relay_request import ChildKey, RelayStorageKey, TopKey
from pubsub_emulator.runtime.pallet_pubsub import Config as PubsubConfig
from pubsub_emulator.runtime.pallet_subscriber.config import (
    MIN_BUDGET,
    CachePolicy,
    RuntimeSpec,
    merge_subscriptions,
)
from pubsub_emulator.runtime.rules import SHIPPED, Rules

CHAINS: Final = 12
"""Parachains of a network."""
PUBLISHERS: Final = 8
"""The number of chains that publish, which are the first ones."""
LEAST_READ: Final = 5
"""The minimum number of publishers that a chain reads."""
KEYS: Final = 6
"""Keys of a publisher."""
COLLATORS: Final = 4
"""Collators of a chain."""
CHEATS: Final = 2
"""Collators of a chain that cheat occasionally."""
SEGMENT: Final = 200
"""Relay blocks in a segment. So a unit of an audit has about 200 blocks of each chain."""

_FIRST: Final = 1000
"""ParaId of the first chain."""
_TIGHT_ROOM: Final = 16_000
"""Bytes that the chain with the tight budget can use before the stop rule ends its walk."""
_SHARE: Final = 2_000
"""The approximate bytes of messages that fit into a block of the chain with downward messages."""
# Indexes of the chains that differ from the others. The module's docstring describes them.
_NODES, _NONE, _TIGHT, _ORDERED, _CALLED, _ASKING = range(6)
_FAVOURITES: Final = {
    _NODES: ("add-cached-node", "as-if-cached", "as-if-not-cached"),
    _TIGHT: ("as-if-cursor", "over-budget", "reorder-items"),
    _ORDERED: (
        "beyond-the-share",
        "hash-before-full",
        "hold-back-downward",
        "alter-message",
        "drop-message",
        "reorder-messages",
    ),
    _CALLED: ("alter-message", "drop-message", "hold-back-horizontal", "wrong-mark"),
    _ASKING: ("omit-requested-key", "omit-requested-absence", "omit-requested-trie"),
}
"""Cheats that are only possible, or most effective, on these chains. They are tried more often
there."""

_FAVOURED: Final = 6
"""How often a favourite is added to the list from which cheats are drawn."""
_NAMES: Final = {
    _NODES: "caches nodes",
    _NONE: "caches nothing",
    _TIGHT: "tight budget",
    _ORDERED: "downward messages",
    _CALLED: "horizontal messages",
    _ASKING: "requested keys",
}


@dataclass(frozen=True, slots=True)
class Population:
    """One network of a simulation."""

    seed: str
    number: int
    """The number of the network in the simulation."""
    cheat_rate: int
    """Cheats in a million turns of all collators."""

    @property
    def name(self) -> str:
        """The network's name in a history."""
        return f"n{self.number:05d}"

    def names(self) -> dict[ParaId, str]:
        """Return names for the chains that differ from the others."""
        return {ParaId(_FIRST + index): name for index, name in _NAMES.items()}

    def stream(self, purpose: str) -> Draws:
        """Return the network's random draws for one purpose."""
        return Draws(self.seed.encode(), f"{self.name}/{purpose}")

    def network(self, *, unjudged: bool = False, rules: Rules = SHIPPED) -> Network:
        """Return the network at genesis."""
        paras = [ParaId(_FIRST + index) for index in range(CHAINS)]
        channels = tuple((paras[sender], paras[_CALLED]) for sender in (0, 1))
        chains = tuple(
            ParachainConfig(
                replace(self._spec(index, para, paras[:PUBLISHERS]), rules=rules.digest),
                self._collators(index),
            )
            for index, para in enumerate(paras)
        )
        seed = self.stream("network").take(32)
        config = NetworkConfig(
            chains,
            RelayConfig(pubsub=PubsubConfig(rules=rules)),
            channels=channels,
            seed=seed,
            segment_length=SEGMENT,
            unjudged=unjudged,
        )
        return Network(config)

    def feed(self, network: Network) -> None:
        """Send the messages and make the writes that precede the network's next relay block."""
        block = RelayBlockNumber(network.number + 1)
        for index in range(PUBLISHERS):
            self._publish(network, ParaId(_FIRST + index), block)
        stream = self.stream(f"messages/{block}")
        if stream.one_in(2):
            for _ in range(2):
                network.send_downward(_FIRST + _ORDERED, stream.take(stream.between(0, 60)))
        if stream.one_in(4):
            for _ in range(3):
                network.send_downward(_FIRST + _ORDERED, stream.take(_SHARE // 2))
        if stream.one_in(2):
            for sender in (0, 1):
                network.send(_FIRST + sender, _FIRST + _CALLED, stream.take(stream.between(1, 60)))

    def _spec(self, index: int, para: ParaId, publishers: list[ParaId]) -> RuntimeSpec:
        """Return the runtime of chain number `index`."""
        stream = self.stream(f"chain/{para}")
        others = [other for other in publishers if other != para]
        read = others
        if index != _TIGHT:
            read = stream.sample(others, stream.between(LEAST_READ, len(others)))
        items = merge_subscriptions([(other, self._read_keys(stream, other)) for other in read])
        if index == _TIGHT:
            # The budget's reserve must cover the largest value, so a large value length leaves
            # little room.
            value_length = MIN_BUDGET - _TIGHT_ROOM
            spec = RuntimeSpec(
                para, items, max_pov_size=1_300_000, reserve_minimum=True, max_trie_depth=5
            )
            return replace(spec, max_stored_keys=8, max_value_length=value_length)
        if index == _ORDERED:
            size = (MIN_BUDGET + 2 * _SHARE) * 100 // 85
            return RuntimeSpec(para, items, max_pov_size=size, reserve_minimum=True)
        if index == _ASKING:
            return RuntimeSpec(para, items, extra_keys=self._asked(publishers))
        policies = {_NODES: CachePolicy.NODES, _NONE: CachePolicy.NONE}
        return RuntimeSpec(para, items, cache=policies.get(index, CachePolicy.SLOTS))

    @staticmethod
    def _asked(publishers: list[ParaId]) -> tuple[RelayStorageKey, ...]:
        """Return relay keys that a chain requests: present and absent ones of every kind."""
        child = derive_child_key(publishers[0])
        return (
            TopKey(para_head(publishers[1])),
            TopKey(item_prefix("Mmr", "RootHash")),
            ChildKey(child, published_key(publishers[0], 0)),
            ChildKey(child, published_key(publishers[0], KEYS + 1)),
        )

    def _read_keys(self, stream: Draws, publisher: ParaId) -> list[PubsubKey]:
        """Return the keys of a publisher that a chain reads.

        These are most of its keys, and sometimes a key that it never writes, whose absence must be
        proven.
        """
        keys = [published_key(publisher, index) for index in range(KEYS)]
        keys = stream.sample(keys, stream.between(KEYS - 1, KEYS))
        return [*keys, published_key(publisher, KEYS)] if stream.one_in(4) else keys

    def _collators(self, index: int) -> tuple[CollatorConfig, ...]:
        """Return honest and cheating collators in turn.

        A cheating collator draws from all built-in cheats. Its rate is higher than `cheat_rate`,
        because honest collators have turns as well.
        """
        rate = self.cheat_rate * COLLATORS // CHEATS
        cheater = CollatorConfig(BUILT_IN + _FAVOURED * _FAVOURITES.get(index, ()), rate)
        return tuple(
            cheater if index % (COLLATORS // CHEATS) else HONEST for index in range(COLLATORS)
        )

    def _publish(self, network: Network, para: ParaId, block: RelayBlockNumber) -> None:
        """Let a publisher write all keys before block 1, and later usually a few."""
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
            network.publish(
                para, published_key(para, index), value, stream.choice((0, 0, 0, 40, 400))
            )


def published_key(para: ParaId, index: int) -> PubsubKey:
    """Return key number `index` of a publisher."""
    return key_from_data(b"%d/%d" % (para, index))
