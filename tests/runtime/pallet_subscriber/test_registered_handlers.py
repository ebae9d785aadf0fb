"""Handlers of pallets that come from outside: known by name to every verifier once registered, and never replaced."""

import pytest

from pubsub_emulator.primitives.pubsub import TtlState, key_from_data
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.runtime.framework.codecs import para_id, pubsub_key
from pubsub_emulator.runtime.framework.hashers import Twox64Concat
from pubsub_emulator.runtime.framework.items import StorageMap
from pubsub_emulator.runtime.framework.pallet import Pallet
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec
from pubsub_emulator.runtime.pallet_subscriber.handler import (
    HANDLERS,
    HandlerContext,
    HandlerTaken,
    Observe,
    register_handler,
)
from pubsub_emulator.runtime.parachain.governance import check_runtime

LAST = StorageMap(Pallet("Registered", 200, "pallet_registered"), "Last", "A row.", Twox64Concat, para_id, pubsub_key)


class KeepsKeys:
    def on_data_updated(
        self, context: HandlerContext, publisher: ParaId, key: PubsubKey, value: bytes, ttl_state: TtlState
    ) -> None:
        del value, ttl_state
        LAST.insert(context.storage, publisher, key)

    def on_data_removed(self, context: HandlerContext, publisher: ParaId, key: PubsubKey) -> None:
        del key
        LAST.remove(context.storage, publisher)


def test_a_registered_handler_can_be_named_by_a_runtime() -> None:
    register_handler("tests/keeps-keys", KeepsKeys())
    spec = RuntimeSpec(ParaId(3000), {ParaId(1000): (key_from_data(b"key"),)}, handler="tests/keeps-keys")
    check_runtime(spec)
    known = HANDLERS["tests/keeps-keys"]
    register_handler("tests/keeps-keys", KeepsKeys())
    assert HANDLERS["tests/keeps-keys"] is known


def test_a_name_never_means_another_handler() -> None:
    with pytest.raises(HandlerTaken, match="'observe' is the handler Observe, not KeepsKeys"):
        register_handler("observe", KeepsKeys())
    assert isinstance(HANDLERS["observe"], Observe)
