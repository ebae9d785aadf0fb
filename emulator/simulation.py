"""A scenario as a network in motion: built from it, fed with its traffic, stepped to its end."""

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from typing import Final

from emulator.network import Network, NetworkConfig, ParachainConfig, Step
from emulator.parachain import Pace
from emulator.records import Observer
from emulator.relay_runtime import CHANNEL_CAPACITY, RelayConfig
from emulator.scenario import RelaySettings, Scenario, Subscriber
from emulator.scenario_file import Problem, ScenarioError
from emulator.traffic import deletions, loads, message, publications
from primitives.errors import PubsubError
from primitives.types import ParaId, RelayBlockNumber
from runtime.host_configuration import HostConfiguration
from runtime.hrmp import channel_weight
from runtime.messages import MessageBounds
from runtime.origin import Root
from runtime.pallet_pubsub import Config as PubsubConfig
from runtime.pallet_pubsub import TtlPolicy
from runtime.pallet_subscriber.config import CachePolicy, RuntimeSpec, Subscriptions
from runtime.parachain_system.governance import subscriber_call, transact

_MEBIBYTE: Final = 1_048_576


class Simulation:
    """A scenario's network. Each step first does what the scenario says happens in that relay block."""

    def __init__(self, scenario: Scenario, observers: Iterable[Observer] = ()) -> None:
        """The network at genesis. Raises `ScenarioError` when it cannot work."""
        self.scenario = scenario
        self._specs = {subscriber.para: subscriber_spec(scenario, subscriber) for subscriber in scenario.subscribers}
        try:
            self.network = Network(network_config(scenario, self._specs))
        except PubsubError as error:
            raise ScenarioError(scenario.name, (Problem(None, "", str(error)),)) from error
        for observer in observers:
            self.network.observe(observer)

    def run(self, progress: Callable[[int], None] | None = None) -> None:
        """Step to the scenario's end and tell observers that it is over."""
        while self.network.number < self.scenario.relay_blocks:
            self.step()
            if progress is not None:
                progress(self.network.number)
        self.network.finish()

    def step(self) -> Step:
        """One relay block with its traffic."""
        block = RelayBlockNumber(self.network.number + 1)
        self._publish(block)
        self._load(block)
        self._govern(block)
        return self.network.step()[0]

    def fork(self) -> "Simulation":
        """A simulation that goes on from here by itself, with no observers; as `Network.fork`."""
        fork = copy(self)
        fork.network = self.network.fork()
        return fork

    def _publish(self, block: RelayBlockNumber) -> None:
        network, scenario = self.network, self.scenario
        for group in scenario.publishers:
            for para in group.paras:
                for publication in publications(scenario, group, para, block):
                    network.publish(para, publication.key, publication.value, publication.ttl)
                keys = deletions(scenario, group, para, block)
                if keys:
                    network.delete(para, keys)
                if group.offboard_at == block:
                    network.call(Root(), "Registrar", "deregister", para)

    def _load(self, block: RelayBlockNumber) -> None:
        for subscriber in self.scenario.subscribers:
            for load in loads(subscriber.load, block):
                for at in range(load.downward_messages):
                    body = message(self.scenario, f"downward/{subscriber.para}/{block}/{at}", load.downward_size)
                    self.network.send_downward(subscriber.para, body)
                for sender in load.senders:
                    label = f"horizontal/{sender}/{subscriber.para}/{block}"
                    body = message(self.scenario, label, load.horizontal_size)
                    self.network.send(sender, subscriber.para, body)

    def _govern(self, block: RelayBlockNumber) -> None:
        for subscriber in self.scenario.subscribers:
            for order in subscriber.orders:
                if order.at_block == block:
                    call = subscriber_call(order.call, order.publisher)
                    self.network.send_downward(subscriber.para, transact(call))
            for number, change in enumerate(subscriber.changes):
                if change.at_block == block:
                    items = self.scenario.items(change.subscribe)
                    self.network.upgrade(subscriber_spec(self.scenario, subscriber, items, version=number + 2))


def network_config(scenario: Scenario, specs: dict[ParaId, RuntimeSpec]) -> NetworkConfig:
    """The network that a scenario describes, `specs` being its subscribers' runtimes."""
    relay = relay_config(scenario, specs)
    chains = [
        ParachainConfig(
            specs[subscriber.para],
            tuple((collator.strategies, collator.rate) for collator in subscriber.collators),
            Pace(subscriber.blocks_per_relay_block, subscriber.every, subscriber.relay_parent_lag),
        )
        for subscriber in scenario.subscribers
    ]
    publishers = scenario.publisher_ids()
    chains += [
        ParachainConfig(_runtime(scenario.relay, RuntimeSpec(para, {})), (((), 0),), Pace(on_demand=True))
        for para in publishers
        if para not in specs
    ]
    return NetworkConfig(
        tuple(chains),
        relay,
        tuple(para for para in publishers if para >= scenario.relay.system_para_threshold),
        channels(scenario),
        scenario.seed.encode(),
        scenario.segment_length,
    )


def channels(scenario: Scenario) -> tuple[tuple[ParaId, ParaId], ...]:
    """Every channel that the scenario's loads need, as (sender, recipient)."""
    wanted = {
        (sender, subscriber.para)
        for subscriber in scenario.subscribers
        for load in subscriber.load
        for sender in load.senders
    }
    return tuple(sorted(wanted))


def relay_config(scenario: Scenario, specs: dict[ParaId, RuntimeSpec]) -> RelayConfig:
    """The relay chain of a scenario: what waits for a parachain at most must fit the smallest of its blocks (PS-50)."""
    settings = scenario.relay
    limits = {
        name: value
        for name in (
            "max_value_length",
            "max_stored_keys",
            "max_total_storage_size",
            "max_publishers",
            "publisher_deposit",
            "max_ttl_scans_per_idle",
        )
        if (value := getattr(settings, name)) is not None
    }
    pubsub = PubsubConfig(
        system_para_threshold=ParaId(settings.system_para_threshold),
        ttl_policy=TtlPolicy(settings.ttl_policy),
        **limits,
    )
    host = HostConfiguration(max_downward_message_size=256 * 1024)
    smallest = min((spec.allowed_pov for spec in specs.values()), default=host.max_pov_size)
    channel = channel_weight(CHANNEL_CAPACITY, host.hrmp_channel_max_total_size)
    recipients = [recipient for _, recipient in channels(scenario)]
    horizontal = channel * max((recipients.count(recipient) for recipient in recipients), default=0)
    downward = min(_MEBIBYTE, max(smallest - horizontal - 8, 1))
    return RelayConfig(
        session_length=settings.session_length,
        pubsub=pubsub,
        host=host,
        bounds=MessageBounds(downward, horizontal),
    )


def subscriber_spec(
    scenario: Scenario,
    subscriber: Subscriber,
    items: Subscriptions | None = None,
    version: int = 1,
) -> RuntimeSpec:
    """A subscriber's runtime; `items` are its subscriptions, those it starts with unless given."""
    spec = RuntimeSpec(
        subscriber.para,
        scenario.items(subscriber.subscribe) if items is None else items,
        version,
        subscriber.max_pov_size,
        subscriber.reserve_minimum,
        CachePolicy(subscriber.cache),
        meter_cache_reads=subscriber.meter_cache_reads,
        max_trie_depth=subscriber.max_trie_depth or None,
        handler=subscriber.handler,
    )
    return _runtime(scenario.relay, spec, subscriber.max_cache_bytes)


def _runtime(settings: RelaySettings, spec: RuntimeSpec, max_cache_bytes: int | None = None) -> RuntimeSpec:
    """The runtime with the relay chain's limits, which it has to know."""
    return replace(
        spec,
        max_value_length=settings.max_value_length or spec.max_value_length,
        max_stored_keys=settings.max_stored_keys or spec.max_stored_keys,
        max_cache_bytes=max_cache_bytes or spec.max_cache_bytes,
    )
