"""Applies actions to a network. They take effect with the next step."""

from dataclasses import replace
from typing import Any, Final

from pubsub_emulator.collator.cheats import STRATEGIES, no_strategy
from pubsub_emulator.emulator.network import actions
from pubsub_emulator.emulator.network.arguments import refuse
from pubsub_emulator.emulator.network.network import Network
from pubsub_emulator.emulator.network.parachain import Parachain
from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.draws import MILLION
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.runtime.framework.origin import Root
from pubsub_emulator.runtime.pallet_subscriber.config import (
    RuntimeSpec,
    decode_spec,
    merge_subscriptions,
    rules_for,
)
from pubsub_emulator.runtime.parachain.governance import check_runtime, transact

# The indices of pallet System and of its calls `set_storage` and `kill_storage` on a parachain.
_SET_STORAGE: Final = b"\x00\x04"
_KILL_STORAGE: Final = b"\x00\x05"
_entries = scale.vec(scale.pair(scale.bytes_, scale.bytes_))
_keys = scale.vec(scale.bytes_)


def newest_runtime(network: Network, para: int) -> RuntimeSpec:
    """Return a parachain's newest runtime, including one that is not yet in force.

    Raises `UnknownParachain`.
    """
    chain = network.parachain(para)
    current = chain.spec()
    ordered = network.ordered.get(chain.para)
    if ordered is None or ordered.spec_version <= current.spec_version:
        return current
    return ordered


def act(network: Network, action: actions.Action) -> int | None:
    """Apply an action, or raise `PubsubError`.

    Returns the new spec version if the action changes a runtime, the number of the chosen collator
    for `Cheat`, the number of collators for `Honest`, and otherwise `None`.
    """
    match action:
        case actions.Publish():
            network.publish(action.para, PubsubKey(action.key), action.value, action.ttl)
        case actions.Delete():
            network.delete(ParaId(action.para), [PubsubKey(key) for key in action.keys])
        case actions.Subscribe():
            return _subscribe(network, action)
        case actions.Upgrade():
            return _upgrade(network, action)
        case actions.AddKeys() | actions.DropKeys():
            return _resubscribe(network, action)
        case actions.RequestKeys():
            if network.parachain(action.para).pace.on_demand:
                refuse(f"{action.para} only publishes and requests no keys")
            return _change(network, action.para, extra_keys=tuple(dict.fromkeys(action.keys)))
        case actions.Limit():
            # In a runtime, a depth without a limit is `None`.
            no_limit = action.name == "max_trie_depth" and action.value == 0
            return _change(
                network, action.para, **{action.name: None if no_limit else action.value}
            )
        case actions.Cheat():
            return _cheat(network, action)
        case actions.Honest():
            chain = network.parachain(action.para)
            chain.collators = tuple(
                replace(collator, strategies=()) for collator in chain.collators
            )
            return len(chain.collators)
        case actions.Register():
            usual = network.config.relay.pubsub.publisher_deposit
            deposit = usual if action.deposit is None else action.deposit
            manager = network.manager(action.para)
            network.call(
                Root(), "Broadcaster", "force_register_publisher", manager, deposit, action.para
            )
        case actions.Deregister():
            network.call(Root(), "Broadcaster", "force_deregister_publisher", action.para)
        case actions.Offline():
            network.parachain(action.para).offline = action.offline
        case actions.Upward():
            network.parachain(action.para).send_upward(action.message)
        case actions.Downward():
            network.send_downward(action.para, action.message)
        case actions.Horizontal():
            network.send(action.sender, action.recipient, action.message)
        case actions.SetStorage():
            _set_storage(network, action)
        case actions.Travel():
            _travel(network, action.slot)
        case actions.Turn():
            network.give_turn(action.para)
        case actions.Offer():
            network.offer(action.chain, action.extrinsics)
        case actions.Rewind():
            refuse("a rewind is not an action of a step")
    return None


def _cheat(network: Network, cheat: actions.Cheat) -> int:
    """Replace a collator by a cheating one and return its number, which counts from 1."""
    chain = network.parachain(cheat.para)
    if not cheat.strategies:
        refuse("no strategy is given")
    for name in cheat.strategies:
        if name not in STRATEGIES:
            refuse(no_strategy(name))
    count = len(chain.collators)
    chosen = _next_collator(network, chain) if cheat.collator is None else cheat.collator - 1
    if not 0 <= chosen < count:
        refuse(
            f"{chain.para} has {count} collators; a collator is a number from 1 to {count}, not"
            f" {cheat.collator}"
        )
    if not 0 <= cheat.rate <= MILLION:
        refuse(f"a rate is a share from 0 to 1, not {cheat.rate / MILLION}")
    cheating = replace(chain.collators[chosen], strategies=cheat.strategies, rate=cheat.rate)
    chain.collators = (*chain.collators[:chosen], cheating, *chain.collators[chosen + 1 :])
    return chosen + 1


def _next_collator(network: Network, chain: Parachain) -> int:
    """Return the index of the collator that authors first in the parachain's next turn.

    In relay block N, it is the collator with the index N mod n, of n collators.
    """
    block = network.number + 1
    while block % chain.pace.every:
        block += 1
    return block % len(chain.collators)


def _subscribe(network: Network, action: actions.Subscribe) -> int:
    """Replace a parachain's subscriptions and return its new spec version."""
    chain = network.parachain(action.para)
    declared = []
    for publisher, keys in action.items:
        network.parachain(publisher)
        declared.append((ParaId(publisher), [PubsubKey(key) for key in keys]))
    return _change(network, chain.para, subscriptions=merge_subscriptions(declared))


def _resubscribe(network: Network, action: actions.AddKeys | actions.DropKeys) -> int:
    """Add or remove keys of one publisher and return the subscriber's new spec version.

    Removing without keys removes all keys of the publisher.
    """
    chain = network.parachain(action.para)
    publisher = ParaId(action.publisher)
    if chain.pace.on_demand:
        refuse(f"{chain.para} only publishes and cannot subscribe")
    current = newest_runtime(network, chain.para)
    keys = [PubsubKey(key) for key in action.keys]
    subscribed = current.subscriptions.get(publisher, ())
    present = [(para, list(known)) for para, known in current.subscriptions.items()]
    if isinstance(action, actions.AddKeys):
        merged = merge_subscriptions([*present, (network.parachain(publisher).para, keys)])
    else:
        if not subscribed or not set(keys) <= set(subscribed):
            refuse(f"{chain.para} does not subscribe to these keys of {publisher}")
        remaining = [key for key in subscribed if keys and key not in keys]
        others = [(para, known) for para, known in present if para != publisher]
        merged = merge_subscriptions([*others, (publisher, remaining)])
    return _change(network, chain.para, subscriptions=merged)


def _upgrade(network: Network, action: actions.Upgrade) -> int:
    """Send a parachain a whole new runtime and return its spec version."""
    spec = decode_spec(action.code)
    current = newest_runtime(network, ParaId(action.para))
    if (spec.para_id, spec.accounts) != (current.para_id, current.accounts):
        refuse(
            f"a new runtime of {current.para_id} must have the same id, and cannot change whether"
            " the chain has accounts"
        )
    if spec.spec_version != current.spec_version + 1:
        newest = f"{current.spec_version}, the newest runtime of {current.para_id}"
        refuse(f"version {spec.spec_version} does not follow {newest}")
    return _order(network, spec)


def _change(network: Network, para: int, **changes: Any) -> int:
    """Send a parachain its newest runtime with some fields changed and return its spec version."""
    current = newest_runtime(network, para)
    return _order(network, replace(current, **changes, spec_version=current.spec_version + 1))


def _order(network: Network, spec: RuntimeSpec) -> int:
    """Check a runtime, send it to its parachain, and remember it as the newest one."""
    rules_for(spec, network.rules)
    check_runtime(spec)
    if spec.relay_parent_offset and not network.config.relay.validators:
        refuse(
            f"blocks with relay_parent_offset {spec.relay_parent_offset} show sealed relay headers;"
            " this relay chain does not seal headers, since no parachain had an offset when the"
            " network started"
        )
    network.upgrade(spec)
    network.ordered[spec.para_id] = spec
    return spec.spec_version


def _set_storage(network: Network, action: actions.SetStorage) -> None:
    """Let root write and remove keys of a chain.

    A parachain receives the calls as downward messages.
    """
    written: list[tuple[bytes, bytes]] = []
    removed: list[bytes] = []
    for key, *values in action.entries:
        # An entry is a key with a value or `None`, or only a key.
        value = values[0] if values else None
        if value is None:
            removed.append(key)
        else:
            written.append((key, value))
    if action.chain is None:
        if written:
            network.call(Root(), "System", "set_storage", written)
        if removed:
            network.call(Root(), "System", "kill_storage", removed)
        return
    if written:
        network.send_downward(action.chain, transact(_SET_STORAGE + _entries.encode(written)))
    if removed:
        network.send_downward(action.chain, transact(_KILL_STORAGE + _keys.encode(removed)))


def _travel(network: Network, slot: int) -> None:
    """Skip slots, so that the next relay block has the given one."""
    following = network.relay.slot(network.number + 1)
    if slot < following:
        refuse(f"the next block has slot {following} at least, because time only goes forward")
    if slot > actions.LAST_SLOT:
        refuse(f"a slot is at most {actions.LAST_SLOT}, so that blocks can follow")
    network.travel(slot - following)
