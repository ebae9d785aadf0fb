"""Checks between the fields of a scenario.

All faults are reported at once. Settings without an effect are faults, too.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from pubsub_emulator.emulator.network.actions import Deregister, Register
from pubsub_emulator.emulator.network.parachain import MESSAGE_BYTES
from pubsub_emulator.emulator.network.step import unknown_parachain
from pubsub_emulator.emulator.relay.chain import KEPT_BLOCKS
from pubsub_emulator.emulator.relay.runtime import RelayConfig, RelayRuntime
from pubsub_emulator.emulator.scenario import model, network
from pubsub_emulator.files.settings import Location, Misplaced
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.framework.message_chains import message_allowance
from pubsub_emulator.runtime.framework.relay_keys import relay_key_name
from pubsub_emulator.runtime.pallet_subscriber.config import ImpossibleConfig, RuntimeSpec
from pubsub_emulator.runtime.parachain.governance import check_runtime
from pubsub_emulator.runtime.rules import SHIPPED, Rules

_PUBLISH_OVERHEAD: Final = 64
"""An upper bound on the bytes that a message with one publish has besides the value."""
MOST_CHAINS: Final = 4096
"""The maximum number of parachains of a scenario."""
MOST_KEYS: Final = 1_000_000
"""The maximum number of keys of all publishers together, and of one subscriber."""
MOST_MESSAGES: Final = 10_000
"""The maximum number of downward messages of a load per relay block."""
MOST_ACTS: Final = 100_000
"""The maximum number of acts of a scenario."""
MOST_BLOCKS: Final = 64
"""The maximum number of blocks of a parachain per turn."""
_SPEC_FIELDS: Final = ("max_pov_size", "max_cache_bytes", "relay_parent_offset")
"""Fields of a subscriber that errors of runtimes can name."""


def check(scenario: model.Scenario, rules: Rules = SHIPPED) -> list[Misplaced]:
    """Return all contradictions of a scenario in the order of the file.

    The list is empty if the scenario can run under `rules`.
    """
    faults = list(_sizes(scenario))
    # The other checks build lists and runtimes, which would need too much memory with such numbers.
    if faults:
        return faults
    faults = [*_listed_once(scenario), *_publishers(scenario)]
    for index, subscriber in enumerate(scenario.subscribers):
        faults += _subscriber(scenario, ("subscribers", index), subscriber)
    for index, acts in enumerate(scenario.acts):
        faults += _acts(scenario, ("acts", index), acts)
    # Runtimes can only be built from valid subscriptions.
    return faults or list(_runtimes(scenario, rules))


def _sizes(scenario: model.Scenario) -> Iterator[Misplaced]:
    """Yield too large numbers, with which even a short file would need much memory."""
    chains = len(scenario.publisher_ids()) + len(scenario.subscribers)
    if chains > MOST_CHAINS:
        yield Misplaced(
            ("publishers",), f"{chains:,} parachains, but a scenario has at most {MOST_CHAINS:,}"
        )
    if sum(len(acts.do) for acts in scenario.acts) > MOST_ACTS:
        yield Misplaced(("acts",), f"a scenario has at most {MOST_ACTS:,} acts")
    keys = 0
    for index, group in enumerate(scenario.publishers):
        keys += group.keys * len(group.paras)
        if keys > MOST_KEYS:
            reason = (
                f"{keys:,} keys up to here, and the publishers of a scenario hold at most"
                f" {MOST_KEYS:,}"
            )
            yield Misplaced(("publishers", index, "keys"), reason)
            return
    for index, subscriber in enumerate(scenario.subscribers):
        place = ("subscribers", index)
        lists = (
            ("subscribe", subscriber.subscribe),
            *(("changes", change.subscribe) for change in subscriber.changes),
        )
        for name, subscriptions in lists:
            items = sum(_most_items(scenario, wanted) for wanted in subscriptions)
            if items > MOST_KEYS:
                yield Misplaced(
                    (*place, name),
                    f"{items:,} keys, but a subscriber subscribes to at most {MOST_KEYS:,}",
                )
        for number, load in enumerate(subscriber.load):
            if load.downward_messages > MOST_MESSAGES:
                reason = (
                    f"{load.downward_messages:,} messages in a block exceed the limit of"
                    f" {MOST_MESSAGES:,}"
                )
                yield Misplaced((*place, "load", number, "downward_messages"), reason)
        if subscriber.blocks_per_relay_block > MOST_BLOCKS:
            reason = (
                f"{subscriber.blocks_per_relay_block:,} blocks per turn exceed the limit of"
                f" {MOST_BLOCKS}"
            )
            yield Misplaced((*place, "blocks_per_relay_block"), reason)


def _most_items(scenario: model.Scenario, wanted: model.SubscriptionSettings) -> int:
    """Return an upper bound on the number of keys of a subscription."""
    groups = (scenario.group_of(para) for para in scenario.select(wanted.publishers))
    return sum(wanted.missing_keys + (0 if group is None else group.keys) for group in groups)


def _listed_once(scenario: model.Scenario) -> Iterator[Misplaced]:
    """Yield parachains and names that occur more than once."""
    seen: set[ParaId] = set()
    for index, group in enumerate(scenario.publishers):
        for para in group.paras:
            if para in seen:
                yield Misplaced(
                    ("publishers", index, "paras"), f"para {para} is listed more than once"
                )
            seen.add(para)
    known: set[ParaId] = set()
    names = Counter(
        subscriber.name
        for subscriber in scenario.subscribers
        if "name" in subscriber.model_fields_set
    )
    for index, subscriber in enumerate(scenario.subscribers):
        if subscriber.para in known:
            yield Misplaced(
                ("subscribers", index, "para"), f"para {subscriber.para} is listed more than once"
            )
        known.add(subscriber.para)
        if names[subscriber.name] > 1:
            yield Misplaced(
                ("subscribers", index, "name"),
                f"{names[subscriber.name]} subscribers have this name",
            )


def _publishers(scenario: model.Scenario) -> Iterator[Misplaced]:
    """Yield faults of the publishers."""
    limit = network.pubsub_config(scenario.relay).max_value_length
    for index, group in enumerate(scenario.publishers):
        place = ("publishers", index)
        yield from _in_time(scenario, (*place, "first_block"), group.first_block)
        yield from _in_time(scenario, (*place, "offboard_at"), group.offboard_at)
        if group.last_block is not None and group.last_block < group.first_block:
            yield Misplaced((*place, "last_block"), f"comes before first_block {group.first_block}")
        largest = group.sizes().max
        most = MESSAGE_BYTES - _PUBLISH_OVERHEAD
        if largest > min(limit, most):
            takes = f"the relay chain takes up to {limit:,} (relay.max_value_length)"
            why = takes if largest > limit else f"a message carries up to {most:,}"
            yield Misplaced(
                (*place, "value_size"), f"values of {largest:,} bytes are too large: {why}"
            )
    registered = sum(
        para >= scenario.relay.system_para_threshold for para in scenario.publisher_ids()
    )
    most = network.pubsub_config(scenario.relay).max_publishers
    if registered > most:
        yield Misplaced(
            ("relay", "max_publishers"),
            f"{registered} publishers would be registered, but the limit is {most}",
        )


def _in_time(scenario: model.Scenario, place: Location, block: int | None) -> Iterator[Misplaced]:
    """Yield a fault if `block` is after the end of the scenario."""
    if block is not None and block > scenario.relay_blocks:
        last = scenario.relay_blocks
        yield Misplaced(
            place, f"relay block {block} never comes: the scenario ends with {last} (relay_blocks)"
        )


def _subscriber(
    scenario: model.Scenario, place: Location, subscriber: model.Subscriber
) -> Iterator[Misplaced]:
    """Yield faults of a subscriber."""
    yield from _subscriptions(scenario, (*place, "subscribe"), subscriber.subscribe)
    for number, key in enumerate(subscriber.extra_keys):
        if key in subscriber.extra_keys[:number]:
            yield Misplaced(
                (*place, "extra_keys", number), f"{relay_key_name(key)} is listed more than once"
            )
    if subscriber.charge_extra_keys and not subscriber.extra_keys:
        yield Misplaced((*place, "charge_extra_keys"), "there are no extra_keys to charge")
    for number, change in enumerate(subscriber.changes):
        here = (*place, "changes", number)
        yield from _in_time(scenario, (*here, "at_block"), change.at_block)
        yield from _subscriptions(scenario, (*here, "subscribe"), change.subscribe)
    host = network.host_configuration(scenario.relay)
    for number, load in enumerate(subscriber.load):
        here = (*place, "load", number)
        yield from _in_time(scenario, (*here, "first_block"), load.first_block)
        yield from _known(scenario, (*here, "senders"), load.senders)
        limits = (
            ("downward_size", load.downward_size, host.max_downward_message_size),
            ("horizontal_size", load.horizontal_size, host.hrmp_channel_max_message_size),
        )
        for name, size, most in limits:
            if size > most:
                yield Misplaced(
                    (*here, name),
                    f"messages of {size:,} bytes exceed the relay chain's limit of {most:,}",
                )
    for number, order in enumerate(subscriber.orders):
        here = (*place, "orders", number)
        yield from _in_time(scenario, (*here, "at_block"), order.at_block)
        yield from _known(scenario, (*here, "publisher"), (order.publisher,))
    yield from _in_time(scenario, (*place, "every"), subscriber.every)
    if subscriber.relay_parent_lag >= KEPT_BLOCKS:
        reason = f"the relay chain keeps {KEPT_BLOCKS} blocks, so the lag must be less"
        yield Misplaced((*place, "relay_parent_lag"), reason)
    elif subscriber.relay_parent_lag + subscriber.relay_parent_offset >= KEPT_BLOCKS:
        reason = (
            f"the relay chain keeps {KEPT_BLOCKS} blocks, so lag and offset together must be less"
        )
        yield Misplaced((*place, "relay_parent_offset"), reason)


def _acts(scenario: model.Scenario, place: Location, acts: model.Acts) -> Iterator[Misplaced]:
    """Yield acts after the end of the scenario or on unknown parachains."""
    yield from _in_time(scenario, (*place, "at_block"), acts.at_block)
    known = {
        *scenario.publisher_ids(),
        *(subscriber.para for subscriber in scenario.subscribers),
    }
    for index, action in enumerate(acts.do):
        for name in ("para", "publisher", "sender", "recipient", "chain"):
            para = getattr(action, name, None)
            # Parachains outside the scenario can be registered as publishers, too.
            if (
                para is not None
                and para not in known
                and not isinstance(action, Register | Deregister)
            ):
                yield Misplaced(
                    (*place, "do", index, name), str(unknown_parachain(para, sorted(known)))
                )


def _known(
    scenario: model.Scenario, place: Location, paras: Iterable[ParaId]
) -> Iterator[Misplaced]:
    """Yield a fault for each parachain that is not a publisher of the scenario."""
    known = scenario.publisher_ids()
    for para in paras:
        if para not in known:
            there = ", ".join(map(str, known)) or "none"
            yield Misplaced(
                place, f"{para} is not a publisher in this scenario. Publishers: {there}"
            )


def _subscriptions(
    scenario: model.Scenario, place: Location, subscriptions: tuple[model.SubscriptionSettings, ...]
) -> Iterator[Misplaced]:
    """Yield subscriptions to publishers or keys that do not exist."""
    for number, wanted in enumerate(subscriptions):
        here = (*place, number)
        if isinstance(wanted.publishers, tuple):
            unknown = list(_known(scenario, (*here, "publishers"), wanted.publishers))
            yield from unknown
            if unknown:
                continue
        groups = {
            para: group
            for para in scenario.select(wanted.publishers)
            if (group := scenario.group_of(para))
        }
        if not groups:
            yield Misplaced(
                (*here, "publishers"),
                f"the scenario has no publishers that are {wanted.publishers!r}",
            )
        else:
            yield from _keys(here, wanted, groups)


def _keys(
    place: Location, wanted: model.SubscriptionSettings, groups: dict[ParaId, model.PublisherGroup]
) -> Iterator[Misplaced]:
    """Yield a fault if a subscription selects keys that do not exist.

    With `all`, `system` and `public`, publishers with fewer keys are allowed, as long as one has
    enough.
    """
    is_by_id = isinstance(wanted.publishers, tuple)
    last = wanted.first_key + (1 if wanted.keys == "all" else wanted.keys)
    short = {para: group.keys for para, group in groups.items() if group.keys < last}
    if short and (is_by_id or len(short) == len(groups)):
        name = (
            "first_key"
            if wanted.keys == "all" or wanted.first_key >= min(short.values())
            else "keys"
        )
        held = ", ".join(f"{para} holds {keys}" for para, keys in short.items())
        yield Misplaced((*place, name), f"reaches to key {last} (counted from 1), but {held}")


def _runtimes(scenario: model.Scenario, rules: Rules) -> Iterator[Misplaced]:
    """Yield configurations that the runtimes themselves refuse."""
    try:
        check_runtime(network.with_relay_limits(scenario.relay, RuntimeSpec(ParaId(0), {})))
    except ImpossibleConfig as error:
        yield Misplaced(_relay_field(str(error)), str(error))
        return
    specs = {}
    for index, subscriber in enumerate(scenario.subscribers):
        specs[subscriber.para] = network.subscriber_spec(scenario, subscriber, rules=rules)
        wanted = (subscriber.subscribe, *(change.subscribe for change in subscriber.changes))
        for subscriptions in wanted:
            try:
                check_runtime(
                    network.subscriber_spec(
                        scenario, subscriber, scenario.items(subscriptions), rules=rules
                    )
                )
            except ImpossibleConfig as error:
                place: Location = ("subscribers", index)
                named = [field for field in _SPEC_FIELDS if field in str(error)]
                yield Misplaced((*place, *named[:1]), str(error))
                break
    config = network.relay_config(scenario, specs, rules)
    faults = list(_messages(scenario.relay, config))
    if faults:
        yield from faults
        return
    try:
        RelayRuntime(config)
    except PubsubError as error:
        yield Misplaced(_relay_field(str(error)), str(error))


def _messages(settings: model.RelaySettings, config: RelayConfig) -> Iterator[Misplaced]:
    """Yield a fault if more bytes may wait for a parachain than the largest block holds (PS-50)."""
    host = config.host
    if host.hrmp_channel_max_message_size > host.hrmp_channel_max_total_size:
        reason = (
            f"messages of up to {host.hrmp_channel_max_message_size:,} bytes, but a channel holds"
            f" {host.hrmp_channel_max_total_size:,} (max_channel_bytes)"
        )
        yield Misplaced(("relay", "max_horizontal_message_size"), reason)
    most = message_allowance(host.max_pov_size)
    bounds = config.bounds
    if bounds.total() > most:
        name = "max_channel_bytes" if settings.max_downward_bytes is None else "max_downward_bytes"
        downward = counted(bounds.downward, "byte")
        reason = (
            f"{downward} of downward and {bounds.horizontal:,} of horizontal messages may wait for"
            f" a parachain, but the largest block holds {most:,}"
        )
        yield Misplaced(("relay", name), reason)


def _relay_field(message: str) -> Location:
    """Return the field of the relay chain that an error message of a runtime names first.

    The message can spell it as in Rust (`MaxValueLength`) or as in Python.
    """
    for word in re.findall(r"[A-Za-z_]+", message):
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", word).lower()
        if name in model.RelaySettings.model_fields:
            return ("relay", name)
    return ("relay",)
