"""Runs a scenario: builds its network, applies its acts and traffic, and steps to its end."""

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace

from pubsub_emulator.emulator.fork import NO_FORKS, Forks
from pubsub_emulator.emulator.network import Network, Step
from pubsub_emulator.emulator.network.acting import act
from pubsub_emulator.emulator.network.actions import Act
from pubsub_emulator.emulator.network.config import with_forks
from pubsub_emulator.emulator.network.records import Observer
from pubsub_emulator.emulator.relay.runtime import GENESIS_SLOT, AddedPallet
from pubsub_emulator.emulator.scenario.check import check
from pubsub_emulator.emulator.scenario.model import PublisherGroup, Scenario, published_key
from pubsub_emulator.emulator.scenario.network import network_config, subscriber_spec, with_accounts
from pubsub_emulator.files.settings import Problem, SettingsError
from pubsub_emulator.primitives.draws import MILLION, Draws
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.types import ParaId, PubsubKey, RelayBlockNumber
from pubsub_emulator.runtime.framework.origin import Root
from pubsub_emulator.runtime.parachain.governance import subscriber_call, transact
from pubsub_emulator.runtime.rules import SHIPPED, Rules


class Simulation:
    """The network of a scenario, with its acts and traffic.

    Each step applies the acts and traffic of a relay block and then builds it.
    """

    def __init__(
        self,
        scenario: Scenario,
        observers: Iterable[Observer] = (),
        *,
        genesis_slot: int = GENESIS_SLOT,
        accounts: bool = False,
        added: tuple[AddedPallet, ...] = (),
        forks: Forks = NO_FORKS,
        rules: Rules = SHIPPED,
    ) -> None:
        """Build the network at genesis.

        `accounts` adds the profile of that name, and `added` adds pallets to the relay chain.
        Chains continue from the states in `forks`, and the scenario's first block is then the one
        after the fork. `rules` are those of all chains. Raises `SettingsError`.
        """
        self.scenario = scenario
        self.rules = rules
        faults = check(scenario, rules)
        if faults:
            raise SettingsError(
                scenario.name, *(Problem(None, fault.field(), fault.reason) for fault in faults)
            )
        self._acts: dict[int, list[tuple[str, Act]]] = {}
        """The actions before each block, with their fields in the file."""
        for index, acts in enumerate(scenario.acts, start=1):
            placed = (
                (f"acts.{index}.do.{number}", action)
                for number, action in enumerate(acts.do, start=1)
            )
            self._acts.setdefault(acts.at_block, []).extend(placed)
        self.accounts = accounts or scenario.accounts
        self.forks = forks
        self._specs = {
            subscriber.para: subscriber_spec(scenario, subscriber, rules=rules)
            for subscriber in scenario.subscribers
        }
        try:
            config = network_config(scenario, self._specs, rules)
            relay = replace(config.relay, genesis_slot=genesis_slot, added=added)
            config = with_forks(replace(config, relay=relay), forks)
            self.network = Network(with_accounts(config) if self.accounts else config)
        except PubsubError as error:
            raise SettingsError(scenario.name, Problem(None, "", str(error))) from error
        for observer in observers:
            self.network.observe(observer)

    def run(self, progress: Callable[[int], None] | None = None) -> None:
        """Step to the scenario's end, then finish the network's observers.

        `progress` receives the height after each step.
        """
        while self.network.number - self.network.relay.first < self.scenario.relay_blocks:
            self.step()
            if progress is not None:
                progress(self.network.number)
        self.network.finish()

    def step(self) -> Step:
        """Apply the next block's acts and traffic, and build the block.

        Raises `SettingsError` if an act is refused.
        """
        # The blocks of a scenario count from the chain's first one, which is not block 0 on a fork.
        block = RelayBlockNumber(self.network.number + 1 - self.network.relay.first)
        self._act(block)
        self._publish(block)
        self._load(block)
        self._govern(block)
        missed = self.scenario.relay.missed_slots
        if missed and Draws(self.scenario.seed.encode(), f"slot/{block}").below(MILLION) < missed:
            self.network.travel(1)
        return self.network.step()[0]

    def fork(self) -> "Simulation":
        """Return an independent copy without observers, like `Network.fork`."""
        fork = copy(self)
        fork.network = self.network.fork()
        return fork

    def _act(self, block: RelayBlockNumber) -> None:
        """Apply the acts before a block."""
        for place, action in self._acts.get(block, ()):
            try:
                act(self.network, action)
            except PubsubError as error:
                raise SettingsError(self.scenario.name, Problem(None, place, str(error))) from error

    def _publish(self, block: RelayBlockNumber) -> None:
        """Send publications, deletions and offboardings of a block."""
        network = self.network
        scenario = self.scenario
        for group in scenario.publishers:
            for para in group.paras:
                for key, value, ttl in _publications(scenario, group, para, block):
                    network.publish(para, key, value, ttl)
                keys = _deletions(scenario, group, para, block)
                if keys:
                    network.delete(para, keys)
                if group.offboard_at == block:
                    network.call(Root(), "Registrar", "deregister", para)

    def _load(self, block: RelayBlockNumber) -> None:
        """Send the messages of loads in a block."""
        for subscriber in self.scenario.subscribers:
            for load in subscriber.load:
                if not load.first_block <= block <= load.last_block:
                    continue
                for index in range(load.downward_messages):
                    label = f"downward/{subscriber.para}/{block}/{index}"
                    body = _message(self.scenario, label, load.downward_size)
                    self.network.send_downward(subscriber.para, body)
                for sender in load.senders:
                    label = f"horizontal/{sender}/{subscriber.para}/{block}"
                    body = _message(self.scenario, label, load.horizontal_size)
                    self.network.send(sender, subscriber.para, body)

    def _govern(self, block: RelayBlockNumber) -> None:
        """Send governance's calls and new subscriptions in a block."""
        for subscriber in self.scenario.subscribers:
            for order in subscriber.orders:
                if order.at_block == block:
                    call = subscriber_call(order.call, order.publisher)
                    self.network.send_downward(subscriber.para, transact(call))
            for number, change in enumerate(subscriber.changes):
                if change.at_block == block:
                    items = self.scenario.items(change.subscribe)
                    spec = subscriber_spec(
                        self.scenario, subscriber, items, version=number + 2, rules=self.rules
                    )
                    self.network.upgrade(replace(spec, accounts=self.accounts))


# Traffic depends only on the scenario and the block. A network that was restored from a snapshot
# therefore receives the same traffic again.


def _publications(
    scenario: Scenario, group: PublisherGroup, para: ParaId, block: RelayBlockNumber
) -> list[tuple[PubsubKey, bytes, int]]:
    """Return the keys that a publisher publishes before `block`, with values and lifetimes.

    New keys come first, then updates of random keys.
    """
    if not _active(group, block):
        return []
    stream = Draws(scenario.seed.encode(), f"publisher/{para}/block/{block}")
    filled = _filled(group, block)
    first = range(filled, min(filled + group.fill_per_block, group.keys))
    updated = stream.places(filled, stream.share(filled, group.update_rate))
    sizes = group.sizes()
    lifetimes = group.ttls()
    return [
        (
            published_key(para, index),
            stream.take(stream.between(sizes.min, sizes.max)),
            stream.choice(lifetimes),
        )
        for index in (*first, *updated)
    ]


def _deletions(
    scenario: Scenario, group: PublisherGroup, para: ParaId, block: RelayBlockNumber
) -> list[PubsubKey]:
    """Return the keys that a publisher deletes in `block`."""
    filled = _filled(group, block)
    if not _active(group, block) or not group.delete_rate:
        return []
    stream = Draws(scenario.seed.encode(), f"publisher/{para}/deletes/{block}")
    return [
        published_key(para, index)
        for index in stream.places(filled, stream.share(filled, group.delete_rate))
    ]


def _message(scenario: Scenario, label: str, size: int) -> bytes:
    """Return a message of `size` bytes without a meaning. It repeats one hash."""
    word = Draws(scenario.seed.encode(), label).take(32)
    return (word * (size // 32 + 1))[:size]


def _active(group: PublisherGroup, block: RelayBlockNumber) -> bool:
    return group.first_block <= block and (group.last_block is None or block <= group.last_block)


def _filled(group: PublisherGroup, block: RelayBlockNumber) -> int:
    """Return the number of keys published before `block`."""
    return min(max(block - group.first_block, 0) * group.fill_per_block, group.keys)
