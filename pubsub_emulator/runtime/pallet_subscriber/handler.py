"""Subscription handlers: the callbacks that receive deliveries.

A handler receives one call per change, in its own storage layer and under a weight limit. An
exception undoes only the writes of that call (PS-66). The runtime spec names the handler, so that
all nodes that replay a block run the same one.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Protocol

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.pubsub import TtlState
from pubsub_emulator.primitives.scale import Codec
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.codecs import para_id, pubsub_key
from pubsub_emulator.runtime.framework.hashers import Blake2_128Concat, Twox64Concat
from pubsub_emulator.runtime.framework.items import StorageDoubleMap, StorageMap
from pubsub_emulator.runtime.framework.pallet import Pallet
from pubsub_emulator.runtime.framework.relay_request import TopKey, relay_storage_key
from pubsub_emulator.runtime.framework.relay_state import RelayStateProof
from pubsub_emulator.runtime.framework.static_keys import StaticValues
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.config import runtime_spec


class HandlerError(PubsubError):
    """An error with which a handler refuses an entry."""


NOTHING_PROVEN: Final = RelayStateProof({}, StaticValues())
"""The relay state of a context without a proof."""


class HandlerContext:
    """The context of a handler: the chain's storage, the proven relay state, a weight limit."""

    __slots__ = ("_exceeded", "_left", "relay", "storage")

    def __init__(
        self, storage: Storage, limit: Weight, relay: RelayStateProof = NOTHING_PROVEN
    ) -> None:
        self.storage = storage
        self.relay = relay
        self._left = limit
        self._exceeded = False

    def consume(self, weight: Weight) -> None:
        """Count `weight`. Raises `HandlerError` if the callback exceeds its limit."""
        if weight.any_gt(self._left):
            self._exceeded = True
            raise HandlerError(f"{weight} exceeds the {self._left} left")
        self._left -= weight

    def ensure_within_limit(self) -> None:
        """Raise `HandlerError` if `consume` has raised, even if the handler caught that error."""
        if self._exceeded:
            raise HandlerError("the weight limit was exceeded")


class SubscriptionHandler(Protocol):
    """The application that receives the deliveries."""

    def on_data_updated(
        self,
        context: HandlerContext,
        publisher: ParaId,
        key: PubsubKey,
        value: bytes,
        ttl_state: TtlState,
    ) -> None:
        """Handle an entry that is new or changed."""

    def on_data_removed(self, context: HandlerContext, publisher: ParaId, key: PubsubKey) -> None:
        """Handle the removal of an entry that was delivered before."""


class Observe:
    """The handler `observe`, which stores nothing."""

    def on_data_updated(
        self,
        context: HandlerContext,
        publisher: ParaId,
        key: PubsubKey,
        value: bytes,
        ttl_state: TtlState,
    ) -> None:
        """Do nothing."""

    def on_data_removed(self, context: HandlerContext, publisher: ParaId, key: PubsubKey) -> None:
        """Do nothing."""


CONSUMER: Final = Pallet("Consumer", 104, "pallet_consumer")
_about: Final = "The newest value of each entry, with the handler `store`."
VALUES: Final = StorageDoubleMap(
    CONSUMER, "Values", _about, Twox64Concat, para_id, Twox64Concat, pubsub_key, scale.bytes_
)

REQUESTED: Final = StorageMap(
    CONSUMER,
    "Requested",
    "The newest value of each requested relay key that is present, with the handler `store`.",
    Blake2_128Concat,
    relay_storage_key,
    scale.bytes_,
)

_WRITE: Final = Weight(25_000_000, 0)
"""The weight of about one write to RocksDB."""


_RAW: Final[Codec[bytes]] = Codec(
    "raw bytes", lambda value: value, lambda reader: reader.take(reader.remaining())
)
"""The codec of a value that is stored unchanged."""


class StoreHandler:
    """The handler `store`, which stores the newest value of each entry under `Consumer::Values`.

    Values of requested relay keys are stored under `Consumer::Requested`.
    """

    def on_data_updated(
        self,
        context: HandlerContext,
        publisher: ParaId,
        key: PubsubKey,
        value: bytes,
        ttl_state: TtlState,
    ) -> None:
        """Write the value."""
        del ttl_state
        context.consume(_WRITE)
        VALUES.insert(context.storage, publisher, key, value)

    def on_data_removed(self, context: HandlerContext, publisher: ParaId, key: PubsubKey) -> None:
        """Remove the value."""
        context.consume(_WRITE)
        VALUES.remove(context.storage, publisher, key)

    def on_relay_state(self, context: HandlerContext) -> None:
        """Write the values that changed, and remove those that are absent."""
        for requested in runtime_spec(context.storage).extra_keys:
            if isinstance(requested, TopKey):
                value = context.relay.read_optional_entry(requested.key, _RAW)
            else:
                value = context.relay.read_child_storage(requested.storage_key, requested.key)
            if value == REQUESTED.get(context.storage, requested):
                continue
            context.consume(_WRITE)
            if value is None:
                REQUESTED.remove(context.storage, requested)
            else:
                REQUESTED.insert(context.storage, requested, value)


_KNOWN: Final[dict[str, SubscriptionHandler]] = {"observe": Observe(), "store": StoreHandler()}

HANDLERS: Final[Mapping[str, SubscriptionHandler]] = MappingProxyType(_KNOWN)
"""The handlers that every verifier in this process knows."""


class HandlerTaken(PubsubError):
    """A name of two handlers, with which two verifiers could compute different states."""


def register_handler(name: str, handler: SubscriptionHandler) -> None:
    """Let runtime specs name `handler`.

    Call it in the module of the handler's pallet, which every verifier imports. The handler must
    not have any state outside the chain's storage. Another instance of its class may be registered
    again. Raises `HandlerTaken` if the name belongs to another class.
    """
    known = _KNOWN.setdefault(name, handler)
    if type(known) is not type(handler):
        raise HandlerTaken(
            f"{name!r} is the handler {type(known).__qualname__}, not {type(handler).__qualname__}"
        )
