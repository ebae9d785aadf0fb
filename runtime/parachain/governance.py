"""How governance reaches a parachain: the relay chain sends it an XCM that transacts as superuser.

Only the one shape that carries a root call is acted on; every other downward message is taken note of by the message
queue chain alone. In bytes, `VersionedXcm::V5`:

    05 08                      V5, two instructions
    2f 00 00                   UnpaidExecution { weight_limit: Unlimited, check_origin: None }
    06 02 00 Vec<u8>           Transact { origin_kind: Superuser, fallback_max_weight: None, call }
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Reader, encode_bytes
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework import dispatch
from pubsub_emulator.runtime.framework.dispatch import Call, DispatchOutcome
from pubsub_emulator.runtime.framework.origin import Root
from pubsub_emulator.runtime.framework.pallet_indices import PALLET_INDEX
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.cache import drop_cache
from pubsub_emulator.runtime.pallet_subscriber.calls import SubscriberCalls, forget
from pubsub_emulator.runtime.pallet_subscriber.config import ImpossibleConfig, RuntimeSpec, decode_spec, integrity_test
from pubsub_emulator.runtime.pallet_subscriber.delivered import repack
from pubsub_emulator.runtime.pallet_subscriber.handler import HANDLERS, SubscriptionHandler

_SUPERUSER_TRANSACT: Final = bytes.fromhex("0508 2f0000 060200")
_SET_CODE: Final = bytes((PALLET_INDEX["System"], 2))
_CALLS: Final = ("clear_publisher_cache", "redeliver", "enable_publisher")
_SUBSCRIBER: Final = SubscriberCalls()


def transact(call: bytes) -> bytes:
    """The downward message that runs `call` as root."""
    return _SUPERUSER_TRANSACT + encode_bytes(call)


def set_code(spec: RuntimeSpec) -> bytes:
    """The call `System::set_code`: the runtime changes from the next block on (PS-33)."""
    return _SET_CODE + encode_bytes(spec.encode())


def subscriber_call(name: str, para: int) -> bytes:
    """One of the pallet's root calls, encoded."""
    return bytes((PALLET_INDEX["Subscriber"], _CALLS.index(name))) + scale.u32.encode(para)


def execute_downward(storage: Storage, message: bytes) -> DispatchOutcome | None:
    """Run the root call that a downward message carries; none when it carries none that this runtime knows.

    A call that fails, or that does not decode, changes nothing and never fails the block: the relay chain sent it.
    """
    call = superuser_call(message)
    if call is None:
        return None
    try:
        if call.startswith(_SET_CODE):
            upgrade(storage, decode_spec(scale.bytes_.decode(call[2:])))
            return None
        name, para = _read_subscriber_call(call)
    except (ScaleError, ImpossibleConfig):
        return None
    return dispatch.dispatch(_SUBSCRIBER, storage, Root(), Call(items.PALLET, name, (para,)))


def superuser_call(message: bytes) -> bytes | None:
    """The encoded root call that a downward message carries, `None` when it has another shape."""
    if not message.startswith(_SUPERUSER_TRANSACT):
        return None
    try:
        return scale.bytes_.decode(message[len(_SUPERUSER_TRANSACT) :])
    except ScaleError:
        return None


def _read_subscriber_call(call: bytes) -> tuple[str, ParaId]:
    reader = Reader(call)
    pallet, index, para = reader.u8(), reader.u8(), ParaId(reader.uint(4))
    reader.end()
    if pallet != PALLET_INDEX[items.PALLET] or index >= len(_CALLS):
        raise ScaleError(f"no call {pallet}.{index}")
    return _CALLS[index], para


def check_runtime(spec: RuntimeSpec, handlers: Mapping[str, SubscriptionHandler] = HANDLERS) -> None:
    """Refuses a runtime that no block could be executed with. Raises `ImpossibleConfig`."""
    integrity_test(spec)
    ensure_handler(spec, handlers)


def ensure_handler(spec: RuntimeSpec, handlers: Mapping[str, SubscriptionHandler]) -> None:
    """Raises `ImpossibleConfig` when none of `handlers` is the runtime's."""
    if spec.handler not in handlers:
        raise ImpossibleConfig(f"no handler is called {spec.handler!r}; there are {', '.join(handlers)}")


@lru_cache(maxsize=64)
def sound_runtime(code: bytes) -> RuntimeSpec:
    """The runtime that `code` describes, if one can work so. Raises `ScaleError` and `ImpossibleConfig`."""
    spec = decode_spec(code)
    integrity_test(spec)
    return spec


def upgrade(storage: Storage, spec: RuntimeSpec) -> None:
    """Install another runtime. Raises `ImpossibleConfig` and changes nothing when it cannot work.

    What one cache policy wrote, another must not trust later: entries may change unseen by it in between. So a new
    policy starts from nothing.
    """
    check_runtime(spec)
    before = decode_spec(storage.get(CODE) or b"")
    if spec.para_id != before.para_id:
        raise ImpossibleConfig(f"a runtime of parachain {spec.para_id} cannot run parachain {before.para_id}")
    if spec.accounts != before.accounts:
        raise ImpossibleConfig("an upgrade cannot change whether a chain has accounts")
    repack(storage, before, spec)
    for para in sorted({**items.SUBSCRIPTION_HASH.get(storage), **before.subscriptions}):
        if before.cache is not spec.cache:
            drop_cache(storage, para)
        if before.subscriptions.get(para) != spec.subscriptions.get(para):
            forget(storage, para)  # now, for a second upgrade in this block may bring the same keys back
    storage.put(CODE, spec.encode())
