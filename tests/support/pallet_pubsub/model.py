"""The pallet as a plain dictionary: what every state must be equal to, written for obviousness alone."""

from dataclasses import dataclass, field

from support.pallet_pubsub.world import ALICE, BOB

from pubsub_emulator.runtime.framework.origin import Origin, Parachain, Root, Signed
from pubsub_emulator.runtime.pallet_pubsub import Config

Place = tuple[int, bytes]
"""A publisher and a key."""


@dataclass
class Model:
    """Every method answers with the name of the error it refuses with, or none when it was done."""

    config: Config
    owners: dict[int, bytes]
    entries: dict[Place, tuple[bytes, int, int]] = field(default_factory=dict)
    registered: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    held: dict[bytes, int] = field(default_factory=lambda: {ALICE: 0, BOB: 0})
    free: dict[bytes, int] = field(default_factory=lambda: {ALICE: 1000, BOB: 1000})

    # Looking

    def is_system(self, para: int) -> bool:
        return para < self.config.system_para_threshold

    def keys(self, para: int) -> list[bytes]:
        return sorted(key for owner, key in self.entries if owner == para)

    def size(self, para: int) -> int:
        return sum(32 + len(value) for (owner, _), (value, _, _) in self.entries.items() if owner == para)

    def finite(self) -> dict[Place, tuple[int, int]]:
        return {place: (ttl, when) for place, (_, ttl, when) in self.entries.items() if ttl}

    def due(self, now: int) -> list[Place]:
        """What is expired, in order of expiry."""
        finite = self.finite()
        late = [place for place, (ttl, when) in finite.items() if when + ttl <= now]
        return sorted(late, key=lambda place: sum(finite[place]))

    # Doing

    def publish(self, now: int, para: int, key: bytes, value: bytes, ttl: int) -> str | None:
        if not self.is_system(para) and para not in self.registered:
            return "PublishNotAuthorized"
        if len(value) > self.config.max_value_length:
            return "ValueTooLong"
        after = dict(self.entries)
        after[para, key] = (value, ttl, now)
        grown = Model(self.config, {}, after)
        if len(grown.keys(para)) > self.config.max_stored_keys:
            return "TooManyStoredKeys"
        if grown.size(para) > self.config.max_total_storage_size:
            return "TotalStorageSizeExceeded"
        self.entries = after
        return None

    def register(self, origin: Origin, para: int) -> str | None:
        if isinstance(origin, Root):
            return "BadOrigin"
        if para in self.registered:
            return "AlreadyRegistered"
        if len(self.registered) >= self.config.max_publishers:
            return "TooManyPublishers"
        if not isinstance(origin, Signed) or self.owners.get(para) != origin.account:
            return "NotAuthorized"
        return self._hold(para, origin.account, self.config.publisher_deposit)

    def force_register(self, origin: Origin, manager: bytes, deposit: int, para: int) -> str | None:
        if not isinstance(origin, Root):
            return "BadOrigin"
        if para in self.registered:
            return "AlreadyRegistered"
        if len(self.registered) >= self.config.max_publishers:
            return "TooManyPublishers"
        return self._hold(para, manager, deposit)

    def deregister(self, origin: Origin, para: int) -> str | None:
        if isinstance(origin, Root):
            return "BadOrigin"
        if para not in self.registered:
            return "NotRegistered"
        if not self._manages(origin, para):
            return "NotAuthorized"
        return self.remove(para)

    def force_deregister(self, origin: Origin, para: int) -> str | None:
        if not isinstance(origin, Root):
            return "BadOrigin"
        if para not in self.registered and not self.keys(para):
            return "NotRegistered"
        return self.remove(para)

    def delete(self, origin: Origin, para: int, keys: list[bytes]) -> str | None:
        if isinstance(origin, Root):
            return "BadOrigin"
        if para not in self.registered and not self.is_system(para):
            return "NotRegistered"
        if not self._manages(origin, para):
            return "NotAuthorized"
        return self._delete(para, keys)

    def force_delete(self, origin: Origin, para: int, keys: list[bytes]) -> str | None:
        if not isinstance(origin, Root):
            return "BadOrigin"
        return self._delete(para, keys)

    def remove(self, para: int) -> None:
        """The publisher goes, by whatever door."""
        self.entries = {place: entry for place, entry in self.entries.items() if place[0] != para}
        if para in self.registered:
            manager, deposit = self.registered.pop(para)
            self.held[manager] -= deposit
            self.free[manager] += deposit

    def _delete(self, para: int, keys: list[bytes]) -> str | None:
        stored = [key for key in self.keys(para) if key in keys]
        for key in stored:
            del self.entries[para, key]
        return None if stored else "NoKeysToDelete"

    def _hold(self, para: int, manager: bytes, deposit: int) -> str | None:
        if self.free[manager] - deposit < 1:
            return "FundsUnavailable"
        self.free[manager] -= deposit
        self.held[manager] += deposit
        self.registered[para] = (manager, deposit)
        return None

    def _manages(self, origin: Origin, para: int) -> bool:
        if isinstance(origin, Parachain):
            return origin.para == para
        return isinstance(origin, Signed) and para in self.registered and self.registered[para][0] == origin.account
