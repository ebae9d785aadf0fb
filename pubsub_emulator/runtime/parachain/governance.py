"""Governance of a parachain, by XCM messages of the relay chain that transact as superuser.

Only messages of this form have an effect. All others only change the head of the queue's hash
chain. The bytes of such a `VersionedXcm::V5` are:

    05 08                      V5, two instructions
    2f 00 00                   UnpaidExecution { weight_limit: Unlimited, check_origin: None }
    06 02 00 Vec<u8>           Transact { origin_kind: Superuser, fallback_max_weight: None, call }
"""

import contextlib
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import encode_bytes
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.runtime.framework import dispatch
from pubsub_emulator.runtime.framework.codecs import para_id
from pubsub_emulator.runtime.framework.dispatch import Call, DispatchOutcome
from pubsub_emulator.runtime.framework.message_chains import InboundMessages
from pubsub_emulator.runtime.framework.origin import Root
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.system import PALLET as SYSTEM
from pubsub_emulator.runtime.framework.system import note_new_code
from pubsub_emulator.runtime.pallet_subscriber import config, delivered
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.cache import drop_cache
from pubsub_emulator.runtime.pallet_subscriber.calls import SubscriberCalls, forget, look_up
from pubsub_emulator.runtime.pallet_subscriber.config import (
    ImpossibleConfig,
    RuntimeSpec,
    decode_spec,
    runtime_spec,
)
from pubsub_emulator.runtime.pallet_subscriber.delivered import carried_over, repack
from pubsub_emulator.runtime.pallet_subscriber.handler import HANDLERS, SubscriptionHandler
from pubsub_emulator.runtime.pallet_subscriber.outcome import RootCall

_SUPERUSER_TRANSACT: Final = bytes.fromhex("0508 2f0000 060200")
_SET_CODE: Final = bytes((SYSTEM.index, 2))
SUBSCRIBER_CALLS: Final = ("clear_publisher_cache", "redeliver", "enable_publisher")
"""The calls of the subscriber's pallet, each of which is about one publisher, by index."""
_SUBSCRIBER: Final = SubscriberCalls()
_SUBSCRIBER_CALL: Final = scale.triple(scale.u8, scale.u8, para_id)
"""The codec of the pallet's index, the call's index, and the publisher."""


def transact(call: bytes) -> bytes:
    """Return the downward message that runs `call` as root."""
    return _SUPERUSER_TRANSACT + encode_bytes(call)


def set_code(spec: RuntimeSpec) -> bytes:
    """Return the encoded call `System::set_code` with a runtime.

    The runtime is in force from the block after the call on (PS-33).
    """
    return _SET_CODE + encode_bytes(spec.encode())


def subscriber_call(name: str, para: int) -> bytes:
    """Return one of the pallet's root calls, encoded."""
    return bytes((items.PALLET.index, SUBSCRIBER_CALLS.index(name))) + scale.u32.encode(para)


def execute_downward(storage: Storage, message: bytes) -> DispatchOutcome | None:
    """Run the root call in a downward message.

    Returns `None` after an upgrade, and if the message has no call that this runtime knows. A call
    that fails or does not decode changes nothing. The block stays valid, because the message was
    chosen by the relay chain and not by the author.
    """
    decoded = _decoded_call(message)
    if isinstance(decoded, RuntimeSpec):
        with contextlib.suppress(ImpossibleConfig):
            upgrade(storage, decoded)
        return None
    if decoded is None:
        return None
    name, para = decoded
    return dispatch.dispatch(_SUBSCRIBER, storage, Root(), Call(items.PALLET.name, name, (para,)))


def is_root_call(message: bytes) -> bool:
    """Return whether a downward message has a root call that this runtime knows.

    Such calls are runtime upgrades and calls of the subscriber's pallet.
    """
    return _decoded_call(message) is not None


def root_calls(spec: RuntimeSpec, messages: InboundMessages) -> tuple[RootCall, ...]:
    """Return the reads of the chain's state by the root calls in the downward messages, in order.

    A walk makes these reads first, so that they are charged (PS-45). Calls for which a block has no
    room do not run.
    """
    calls = []
    for message in messages.downward:
        decoded = _decoded_call(message.msg)
        if isinstance(decoded, RuntimeSpec):
            rows = carried_over(spec, decoded)
            changed = _changed_caches(spec, decoded)
            read = partial(_read_for_upgrade, spec, rows, changed)
            calls.append(RootCall(len(rows) + len(changed), read))
            # Later calls in the block read what the new runtime has left.
            with contextlib.suppress(ImpossibleConfig):
                _ensure_possible(spec, decoded)
                spec = decoded
        elif decoded is not None:
            calls.append(RootCall(_ROWS_A_CALL, partial(look_up, para=decoded[1])))
    return tuple(calls)


_ROWS_A_CALL: Final = 4
"""The number of rows that a call about a publisher may read (`look_up`)."""


def _changed_caches(before: RuntimeSpec, after: RuntimeSpec) -> list[ParaId]:
    """Return the publishers whose cache an upgrade drops."""
    known = sorted({**before.subscriptions, **after.subscriptions})
    if before.cache is not after.cache:
        return known
    return [
        para for para in known if before.subscriptions.get(para) != after.subscriptions.get(para)
    ]


def _read_for_upgrade(
    spec: RuntimeSpec,
    rows: Sequence[tuple[ParaId, PubsubKey]],
    changed: Sequence[ParaId],
    storage: Storage,
) -> None:
    """Read the rows that an upgrade reads: deliveries that move, and dropped caches."""
    for para, key in rows:
        delivered.get(storage, spec, para, key)
    for para in changed:
        items.CACHE_INFO.get(storage, para)


def _ensure_possible(before: RuntimeSpec, after: RuntimeSpec) -> None:
    """Raise `ImpossibleConfig` unless an upgrade from one runtime to another can work."""
    check_runtime(after)
    if after.para_id != before.para_id:
        raise ImpossibleConfig(
            f"a runtime of parachain {after.para_id} cannot run parachain {before.para_id}"
        )
    if after.accounts != before.accounts:
        raise ImpossibleConfig("an upgrade cannot change whether a chain has accounts")
    # Otherwise a node with the file of those rules and a node without it would disagree.
    if after.rules not in {before.rules, b""}:
        raise ImpossibleConfig(
            f"an upgrade cannot bring the rules 0x{after.rules.hex()} to a chain that has others"
        )


def _decoded_call(message: bytes) -> RuntimeSpec | tuple[str, ParaId] | None:
    """Return the runtime that a message installs, or its call and publisher.

    Returns `None` for any other message.
    """
    call = superuser_call(message)
    return None if call is None else _read_call(call)


# The same few messages are decoded again and again: by walks and blocks, authors and verifiers.
@lru_cache(maxsize=64)
def _read_call(call: bytes) -> RuntimeSpec | tuple[str, ParaId] | None:
    try:
        if call.startswith(_SET_CODE):
            return decode_spec(scale.bytes_.decode(call[2:]))
        pallet, index, para = _SUBSCRIBER_CALL.decode(call)
    except (ScaleError, ImpossibleConfig):
        return None
    known = pallet == items.PALLET.index and index < len(SUBSCRIBER_CALLS)
    return (SUBSCRIBER_CALLS[index], para) if known else None


def superuser_call(message: bytes) -> bytes | None:
    """Return the encoded root call in a downward message.

    Returns `None` if the message has another form.
    """
    if not message.startswith(_SUPERUSER_TRANSACT):
        return None
    try:
        return scale.bytes_.decode(message[len(_SUPERUSER_TRANSACT) :])
    except ScaleError:
        return None


def check_runtime(
    spec: RuntimeSpec, handlers: Mapping[str, SubscriptionHandler] = HANDLERS
) -> None:
    """Raise `ImpossibleConfig` unless blocks can be executed with a runtime."""
    config.integrity_test(spec)
    ensure_handler(spec, handlers)


def ensure_handler(spec: RuntimeSpec, handlers: Mapping[str, SubscriptionHandler]) -> None:
    """Raise `ImpossibleConfig` unless the runtime's handler is in `handlers`."""
    if spec.handler not in handlers:
        raise ImpossibleConfig(f"unknown handler {spec.handler!r}. Handlers: {', '.join(handlers)}")


@lru_cache(maxsize=64)
def sound_runtime(code: bytes) -> RuntimeSpec:
    """Decode the value of `:code` as a runtime.

    Raises `ScaleError`, or `ImpossibleConfig` if the runtime cannot work.
    """
    spec = decode_spec(code)
    config.integrity_test(spec)
    return spec


def upgrade(storage: Storage, spec: RuntimeSpec) -> None:
    """Install another runtime.

    Raises `ImpossibleConfig`, and changes nothing, if it cannot work. A new cache policy starts
    with an empty cache, because rows that it wrote at an earlier time may be outdated.
    """
    before = runtime_spec(storage)
    _ensure_possible(before, spec)
    # The rows are read in the form of the old runtime, so they are moved first.
    repack(storage, before, spec)
    for para in sorted({**items.SUBSCRIPTION_HASH.get(storage), **before.subscriptions}):
        keys = before.subscriptions.get(para, ())
        if before.cache is not spec.cache:
            drop_cache(storage, para, keys)
        if before.subscriptions.get(para) != spec.subscriptions.get(para):
            # This must be done now. If a second upgrade in the same block restored the old keys,
            # the next walk would not notice a change.
            forget(storage, para, keys)
    storage.put(CODE, spec.encode())
    note_new_code(storage)
