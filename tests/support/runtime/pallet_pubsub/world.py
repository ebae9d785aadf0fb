"""A relay state with the pallet.

It has what FRAME tests call `ExtBuilder`, `assert_ok` and `assert_noop`.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key
from pubsub_emulator.primitives.types import AccountId, Hash, ParaId, PubsubKey
from pubsub_emulator.primitives.weights import WEIGHT_MAX, Weight
from pubsub_emulator.runtime.balances import Balances
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.dispatch import DispatchError, ModuleError
from pubsub_emulator.runtime.framework.events import events
from pubsub_emulator.runtime.framework.origin import Origin, Parachain, Root, Signed
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.pallet_pubsub import Broadcaster, Config, Error, TtlPolicy
from pubsub_emulator.runtime.pallet_pubsub.registry import PUBLISHER_DEPOSIT
from pubsub_emulator.runtime.pallet_pubsub.storage import PublishedKeys, TotalStorageSize, TtlData

ALICE = AccountId(b"\xaa" * 32)
BOB = AccountId(b"\xbb" * 32)
POOR = AccountId(b"\xcc" * 32)
ROOT = Root()

MOCK = Config(
    max_value_length=1024,
    max_stored_keys=50,
    max_total_storage_size=2048,
    max_publishers=1000,
    publisher_deposit=100,
)
"""The limits that upstream's scenarios speak of."""


def name(text: str) -> PubsubKey:
    return PubsubKey(blake2_256(text.encode()))


def numbered(count: int, first: int = 0) -> list[PubsubKey]:
    return [name(f"key {i}") for i in range(first, first + count)]


class Owners:
    """A registrar that is a dictionary."""

    def __init__(self, owners: dict[int, AccountId]) -> None:
        self.owners = owners

    def owner_of(self, _storage: Storage, para: ParaId) -> AccountId | None:
        return self.owners.get(para)


class World:
    """One relay chain's storage at a block, with accounts ALICE 1000, BOB 1000, POOR 50; ALICE owns
    2000 and up.
    """

    def __init__(self, config: Config = MOCK, now: int = 1, **changes: Any) -> None:
        self.config = replace(config, **changes)
        self.balances = Balances(existential_deposit=1)
        self.owners = Owners(dict.fromkeys(range(2000, 6000), ALICE))
        self.pallet = Broadcaster(self.config, self.balances, self.owners)
        self.pallet.integrity_test()
        self.storage = Storage(State())
        self.balances.genesis(self.storage, {ALICE: 1000, BOB: 1000, POOR: 50})
        self.at(now)

    # Time and state

    @property
    def now(self) -> int:
        return system.NUMBER.get(self.storage)

    def at(self, number: int) -> "World":
        """Go to a block, and clear the events of the last one."""
        self.storage.log.clear()
        system.NUMBER.put(self.storage, number)
        return self

    def root(self) -> Hash:
        return self.storage.commit()

    def try_state(self) -> None:
        self.pallet.try_state(self.storage)
        self.balances.try_state(self.storage)

    def events(self) -> list[Event]:
        """Return the events of this pallet in this block."""
        return [event for event in events(self.storage) if event.PALLET.name == "Broadcaster"]

    # Doing

    def publish(self, para: int, key: bytes, value: bytes = b"value", ttl: int = 0) -> None:
        self.pallet.publish(self.storage, ParaId(para), PubsubKey(key), value, ttl)

    def register(self, para: int, origin: Origin | None = None) -> None:
        self.pallet.register_publisher(
            self.storage, Signed(ALICE) if origin is None else origin, ParaId(para)
        )

    def force_register(
        self, para: int, deposit: int = 0, manager: AccountId = ALICE, origin: Origin = ROOT
    ) -> None:
        self.pallet.force_register_publisher(self.storage, origin, manager, deposit, ParaId(para))

    def deregister(self, para: int, origin: Origin | None = None) -> None:
        self.pallet.deregister_publisher(
            self.storage, Signed(ALICE) if origin is None else origin, ParaId(para)
        )

    def force_deregister(self, para: int, origin: Origin = ROOT) -> None:
        self.pallet.force_deregister_publisher(self.storage, origin, ParaId(para))

    def delete(self, para: int, keys: Iterable[bytes], origin: Origin | None = None) -> None:
        self.pallet.delete_keys(
            self.storage, Signed(ALICE) if origin is None else origin, ParaId(para), list(keys)
        )

    def force_delete(self, para: int, keys: Iterable[bytes], origin: Origin = ROOT) -> None:
        self.pallet.force_delete_keys(self.storage, origin, ParaId(para), list(keys))

    def idle(self, remaining: Weight = WEIGHT_MAX) -> Weight:
        return self.pallet.on_idle(self.storage, self.now, remaining)

    # Looking

    def entry(self, para: int, key: bytes) -> PublishedEntry | None:
        raw = self.storage.child_get(derive_child_key(ParaId(para)), key)
        return None if raw is None else PublishedEntry.decode(raw)

    def value(self, para: int, key: bytes) -> bytes | None:
        entry = self.entry(para, key)
        return None if entry is None else entry.value

    def keys(self, para: int) -> list[bytes]:
        return [key for key, _ in self.storage.child_iter(derive_child_key(ParaId(para)))]

    def count(self, para: int) -> int:
        return PublishedKeys.get(self.storage, ParaId(para))

    def size(self, para: int) -> int:
        return TotalStorageSize.get(self.storage, ParaId(para))

    def ttl(self, para: int, key: bytes) -> tuple[int, int] | None:
        return TtlData.get(self.storage, ParaId(para), PubsubKey(key))

    def ttl_rows(self) -> int:
        return sum(1 for _ in TtlData.rows(self.storage))

    def child_root(self, para: int) -> Hash | None:
        return self.storage.child_root(derive_child_key(ParaId(para)))

    def free(self, who: AccountId) -> int:
        return system.account(self.storage, who).data.free

    def held(self, who: AccountId) -> int:
        return self.balances.balance_on_hold(self.storage, PUBLISHER_DEPOSIT, who)

    def everything(self, para: int) -> tuple[object, ...]:
        """Return all values of a publisher, which are empty or 0 after its removal."""
        rows = sum(1 for _ in TtlData.items(self.storage, ParaId(para)))
        return self.keys(para), self.count(para), self.size(para), rows, self.child_root(para)

    # Refusals

    def refuses(
        self,
        why: Error | DispatchError | type[Exception],
        action: Callable[..., object],
        *args: Any,
    ) -> None:
        """Assert that the action raises this error and changes neither state nor events (PS-10)."""
        before, log = self.root(), list(self.storage.log)
        wanted = ModuleError(why) if isinstance(why, Error) else why
        with pytest.raises(wanted if isinstance(wanted, type) else type(wanted)) as caught:
            action(*args)
        if not isinstance(wanted, type):
            assert caught.value == wanted, f"{caught.value!r} instead of {wanted!r}"
        assert self.storage.log == log
        assert self.root() == before


NOTHING_LEFT: tuple[object, ...] = ([], 0, 0, 0, None)


def parachain(para: int) -> Parachain:
    return Parachain(ParaId(para))


def both_policies(test: Callable[..., None]) -> Any:
    return pytest.mark.parametrize("policy", list(TtlPolicy), ids=lambda policy: policy.value)(test)
