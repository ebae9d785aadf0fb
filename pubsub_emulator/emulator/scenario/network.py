"""The network of a scenario: the configurations of the relay chain and of all parachains."""

from dataclasses import replace
from typing import Final

from pubsub_emulator.emulator.network import CollatorConfig, NetworkConfig, Pace, ParachainConfig
from pubsub_emulator.emulator.relay.runtime import CHANNEL_CAPACITY, RelayConfig
from pubsub_emulator.emulator.scenario.model import RelaySettings, Scenario, Subscriber
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.message_chains import LISTS_BYTES, MessageBounds
from pubsub_emulator.runtime.pallet_pubsub import Config as PubsubConfig
from pubsub_emulator.runtime.pallet_pubsub import TtlPolicy
from pubsub_emulator.runtime.pallet_subscriber.config import CachePolicy, RuntimeSpec, Subscriptions
from pubsub_emulator.runtime.relay.host_configuration import HostConfiguration
from pubsub_emulator.runtime.relay.hrmp import channel_weight
from pubsub_emulator.runtime.rules import SHIPPED, Rules

_MEBIBYTE: Final = 1_048_576
MORE_CHANNELS: Final = 8
"""The number of channels to one parachain that can be opened in addition to the scenario's, if
blocks have room for their messages.
"""
HOST: Final = HostConfiguration(max_downward_message_size=256 * 1024)
"""The host configuration of a scenario's relay chain that does not set limits of messages."""
_MESSAGE_LIMITS: Final = {
    "max_downward_message_size": "max_downward_message_size",
    "max_horizontal_message_size": "hrmp_channel_max_message_size",
    "max_channel_bytes": "hrmp_channel_max_total_size",
}
"""The settings that are fields of the host configuration, with their names there."""


def network_config(
    scenario: Scenario, specs: dict[ParaId, RuntimeSpec], rules: Rules = SHIPPED
) -> NetworkConfig:
    """Return the network of a scenario. `specs` are the runtimes of its subscribers."""
    relay = relay_config(scenario, specs, rules)
    publisher = RuntimeSpec(ParaId(0), {}, rules=rules.digest)
    chains = []
    for subscriber in scenario.subscribers:
        collators = tuple(
            CollatorConfig(collator.strategies, collator.rate) for collator in subscriber.collators
        )
        pace = Pace(
            subscriber.blocks_per_relay_block, subscriber.every, subscriber.relay_parent_lag
        )
        chains.append(ParachainConfig(specs[subscriber.para], collators, pace))
    publishers = scenario.publisher_ids()
    chains += [
        ParachainConfig.publisher(
            with_relay_limits(scenario.relay, replace(publisher, para_id=para))
        )
        for para in publishers
        if para not in specs
    ]
    return NetworkConfig(
        tuple(chains),
        relay,
        tuple(para for para in publishers if para >= scenario.relay.system_para_threshold),
        channels=channels(scenario),
        seed=scenario.seed.encode(),
        segment_length=scenario.segment_length,
    )


def with_accounts(config: NetworkConfig) -> NetworkConfig:
    """Return the same network with the profile `accounts`.

    It also has room for a few more channels to each parachain.
    """
    bounds = config.relay.bounds
    # All messages to a parachain must fit into the smallest block.
    host = config.relay.host
    smallest = min(
        (chain.spec.allowed_pov for chain in config.parachains), default=host.max_pov_size
    )
    channel = channel_weight(CHANNEL_CAPACITY, host.hrmp_channel_max_total_size)
    room = max(smallest - bounds.downward - bounds.horizontal - LISTS_BYTES, 0)
    more = min(MORE_CHANNELS, room // channel)
    wider = MessageBounds(bounds.downward, bounds.horizontal + more * channel)
    return replace(
        config,
        relay=replace(config.relay, accounts=True, bounds=wider),
        parachains=tuple(
            replace(chain, spec=replace(chain.spec, accounts=True)) for chain in config.parachains
        ),
    )


def channels(scenario: Scenario) -> tuple[tuple[ParaId, ParaId], ...]:
    """Return all channels that the scenario's loads need, as (sender, recipient)."""
    needed: set[tuple[ParaId, ParaId]] = set()
    for subscriber in scenario.subscribers:
        for load in subscriber.load:
            needed.update((sender, subscriber.para) for sender in load.senders)
    return tuple(sorted(needed))


def relay_config(
    scenario: Scenario, specs: dict[ParaId, RuntimeSpec], rules: Rules = SHIPPED
) -> RelayConfig:
    """Return the relay chain of a scenario.

    The bounds of messages are those of the scenario. If it sets none, all waiting messages of a
    parachain fit into the smallest parachain block (PS-50).
    """
    settings = scenario.relay
    host = host_configuration(settings)
    smallest = min((spec.allowed_pov for spec in specs.values()), default=host.max_pov_size)
    channel = channel_weight(CHANNEL_CAPACITY, host.hrmp_channel_max_total_size)
    recipients = [recipient for _, recipient in channels(scenario)]
    horizontal = channel * max((recipients.count(recipient) for recipient in recipients), default=0)
    downward = min(_MEBIBYTE, max(smallest - horizontal - LISTS_BYTES, 1))
    bounds = MessageBounds(settings.max_downward_bytes or downward, horizontal)
    return RelayConfig(
        session_length=settings.session_length,
        pubsub=pubsub_config(settings, rules),
        host=host,
        bounds=bounds,
    )


def host_configuration(settings: RelaySettings) -> HostConfiguration:
    """Return the host configuration of a scenario's relay chain."""
    limits = {
        field: getattr(settings, name)
        for name, field in _MESSAGE_LIMITS.items()
        if getattr(settings, name) is not None
    }
    return replace(HOST, **limits)


def pubsub_config(settings: RelaySettings, rules: Rules = SHIPPED) -> PubsubConfig:
    """Return the constants of `Broadcaster`, from the scenario or else the runtime's defaults."""
    others = {
        "session_length",
        "system_para_threshold",
        "ttl_policy",
        "missed_slots",
        "max_downward_bytes",
        *_MESSAGE_LIMITS,
    }
    limits = settings.model_dump(exclude=others, exclude_none=True)
    threshold = ParaId(settings.system_para_threshold)
    return PubsubConfig(
        system_para_threshold=threshold,
        ttl_policy=TtlPolicy(settings.ttl_policy),
        rules=rules,
        **limits,
    )


def subscriber_spec(
    scenario: Scenario,
    subscriber: Subscriber,
    items: Subscriptions | None = None,
    version: int = 1,
    *,
    rules: Rules = SHIPPED,
) -> RuntimeSpec:
    """Return a subscriber's runtime. `items` are its subscriptions, by default the first ones."""
    spec = RuntimeSpec(
        subscriber.para,
        scenario.items(subscriber.subscribe) if items is None else items,
        version,
        max_pov_size=subscriber.max_pov_size,
        reserve_minimum=subscriber.reserve_minimum,
        cache=CachePolicy(subscriber.cache),
        meter_cache_reads=subscriber.meter_cache_reads,
        max_trie_depth=subscriber.max_trie_depth or None,
        handler=subscriber.handler,
        extra_keys=subscriber.extra_keys,
        charge_extra_keys=subscriber.charge_extra_keys,
        relay_parent_offset=subscriber.relay_parent_offset,
    )
    return with_relay_limits(scenario.relay, spec, subscriber.max_cache_bytes).ruled(rules)


def with_relay_limits(
    settings: RelaySettings, spec: RuntimeSpec, max_cache_bytes: int | None = None
) -> RuntimeSpec:
    """Return `spec` with the scenario's limits of the relay chain and of the cache."""
    return replace(
        spec,
        max_value_length=settings.max_value_length or spec.max_value_length,
        max_stored_keys=settings.max_stored_keys or spec.max_stored_keys,
        max_cache_bytes=max_cache_bytes or spec.max_cache_bytes,
    )
