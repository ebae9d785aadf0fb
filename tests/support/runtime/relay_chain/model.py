"""A model of the whole relay side in plain dictionaries, written from the rules.

In a block, in this order, a session may change, queues are served, parachain blocks are included,
calls run, and expired entries are removed. Each method returns its errors and events as texts.
"""

from dataclasses import dataclass, field

from support.runtime.relay_chain.world import ALICE, BOB, MANAGERS, STRANGER

from pubsub_emulator.emulator.relay.runtime import RelayConfig
from pubsub_emulator.runtime.framework.origin import Origin, Parachain, Root, Signed
from pubsub_emulator.runtime.pallet_pubsub import weights
from pubsub_emulator.runtime.pallet_pubsub.registry import sovereign_account

INSTRUCTION = 10_000_000
"""ref_time of any instruction, and of finding out that bytes are no message."""

Place = tuple[int, bytes]
"""A publisher and a key."""


@dataclass(frozen=True)
class Message:
    """An upward message: its bytes and their meaning.

    `refused` is the reason why it never runs.
    """

    data: bytes
    publishes: tuple[tuple[bytes, bytes, int], ...] = ()
    others: int = 0
    """How many instructions there are besides."""
    refused: str | None = None

    @property
    def decodes(self) -> bool:
        return self.refused not in {"Corrupt", "Unsupported"}


@dataclass
class RelayModel:
    config: RelayConfig
    now: int = 0
    session: int = 0
    owners: dict[int, bytes] = field(default_factory=lambda: dict(MANAGERS))
    lifecycle: dict[int, str] = field(default_factory=lambda: dict.fromkeys(MANAGERS, "Parachain"))
    actions: dict[int, list[int]] = field(default_factory=dict)
    queues: dict[int, list[Message]] = field(default_factory=dict)
    turns: list[int] = field(default_factory=list)
    entries: dict[Place, tuple[bytes, int, int]] = field(default_factory=dict)
    registered: dict[int, tuple[bytes, int]] = field(default_factory=dict)
    held: dict[bytes, int] = field(default_factory=dict)
    free: dict[bytes, int] = field(default_factory=dict)
    told: list[tuple[object, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for who in (ALICE, BOB, STRANGER, *MANAGERS.values()):
            self.held[who] = 0
            self.free[who] = 0
        for who in MANAGERS.values():
            self.free[who] = 3 * 1_000_000_000_000

    # A block, part by part

    def begin(self) -> None:
        self.now += 1
        self.told = []
        if self.now % self.config.session_length == 0:
            self._rotate()
        self._serve()

    def include(self, para: int, messages: list[Message]) -> None:
        host = self.config.host
        queue = self.queues.get(para, [])
        sizes = [len(message.data) for message in messages]
        why = None
        if self.lifecycle.get(para) not in {"Parachain", "Offboarding"}:
            why = "UnscheduledCandidate"
        elif messages and self.lifecycle[para] == "Offboarding":
            why = "IsOffboarding"
        elif len(messages) > host.max_upward_message_num_per_candidate:
            why = "MoreMessagesThanPermitted"
        elif max(sizes, default=0) > host.max_upward_message_size:
            why = "MessageSize"
        elif messages and len(queue) + len(messages) > host.max_upward_queue_count:
            why = "CapacityExceeded"
        elif messages and sum(len(m.data) for m in queue) + sum(sizes) > host.max_upward_queue_size:
            why = "TotalSizeExceeded"
        if why is not None:
            self.told.append(("CandidateRefused", para, why))
        elif messages:
            if not queue:
                self.turns.append(para)
            self.queues[para] = [*queue, *messages]
            self.told.append(("UpwardMessagesReceived", para, len(messages)))

    def finish(self, expired: list[Place]) -> None:
        """Remove the entries that the sweep has removed, which the caller has checked."""
        for place in expired:
            del self.entries[place]

    # Sessions

    def _rotate(self) -> None:
        self.session += 1
        leaving = []
        for para in sorted(self.actions.pop(self.session, [])):
            if self.lifecycle[para] == "Onboarding":
                self.lifecycle[para] = "Parachain"
            else:
                leaving.append(para)
                del self.lifecycle[para]
        for para in leaving:
            self.queues.pop(para, None)
            self.turns = [other for other in self.turns if other != para]
        for para in leaving:
            if para in self.registered or self.keys(para):
                self._remove(para)
        self.told.append(("NewSession", self.session))

    # Messages

    def _serve(self) -> None:
        overhead = self.config.queue.overhead.ref_time
        limit = left = self.config.queue.service_weight.ref_time
        for para in list(self.turns):
            queue = self.queues[para]
            served = 0
            while queue:
                weight = self.weigh(queue[0])
                too_heavy = overhead + weight > limit
                if (overhead if too_heavy else overhead + weight) > left:
                    break
                first = queue.pop(0)
                served += 1
                left -= overhead
                if too_heavy:
                    self.told.append(("OverweightDropped", para, first.data, weight))
                else:
                    left -= self._execute(para, first, weight)
            if served:
                self.turns.remove(para)
                if queue:
                    self.turns.append(para)
            if queue:
                return
            del self.queues[para]

    def weigh(self, message: Message) -> int:
        if not message.decodes:
            return INSTRUCTION
        return (
            sum(self._publish_weight(value) for _, value, _ in message.publishes)
            + message.others * INSTRUCTION
        )

    def _publish_weight(self, value: bytes) -> int:
        return INSTRUCTION + weights.publish(self.config.pubsub, len(value)).ref_time

    def _execute(self, para: int, message: Message, weight: int) -> int:
        if message.refused is not None:
            self.told.append(("ProcessingFailed", para, message.data, message.refused))
            return weight if message.decodes else 0
        used = message.others * INSTRUCTION
        for index, (key, value, ttl) in enumerate(message.publishes):
            used += self._publish_weight(value)
            why = self._publish(para, key, value, ttl)
            if why is not None:
                used -= (
                    message.others * INSTRUCTION
                )  # given back, as all that comes after a failure
                self.told.append(("Attempted", used, index))
                self.told.append(("Processed", para, message.data, used, False))
                return used
        self.told.append(("Processed", para, message.data, used, True))
        return used

    def _publish(self, para: int, key: bytes, value: bytes, ttl: int) -> str | None:
        limits = self.config.pubsub
        if not self.is_system(para) and para not in self.registered:
            return "PublishNotAuthorized"
        if len(value) > limits.max_value_length:
            return "ValueTooLong"
        after = self.entries | {(para, key): (value, ttl, self.now)}
        mine = [len(value) for (owner, _), (value, _, _) in after.items() if owner == para]
        if len(mine) > limits.max_stored_keys:
            return "TooManyStoredKeys"
        if sum(mine) + 32 * len(mine) > limits.max_total_storage_size:
            return "TotalStorageSizeExceeded"
        self.entries = after
        self.told.append(("DataPublished", para, key, len(value)))
        return None

    # Calls: each answers with the name of its error, or none

    def call(self, origin: Origin, pallet: str, name: str, args: tuple[object, ...]) -> str | None:
        told = len(self.told)
        method = getattr(self, f"{pallet.lower()}_{name}")
        why: str | None = method(origin, *args)
        if why is not None:
            del self.told[told:]
        return why

    def registrar_register(self, origin: Origin, para: int, _head: bytes) -> str | None:
        if not isinstance(origin, Signed):
            return "BadOrigin"
        if para in self.owners:
            return "AlreadyRegistered"
        if self.is_system(para):
            return "NotReserved"
        if para in self.lifecycle:
            return "CannotOnboard"
        self.owners[para] = origin.account
        self.lifecycle[para] = "Onboarding"
        self._schedule(para)
        return None

    def registrar_deregister(self, origin: Origin, para: int) -> str | None:
        if para not in self.owners:
            return "NotRegistered"
        if origin not in (Root(), Signed(self.owners[para]), Parachain(para)):
            return "NotOwner"
        if self.lifecycle[para] != "Parachain":
            return "CannotOffboard"
        del self.owners[para]
        self.lifecycle[para] = "Offboarding"
        self._schedule(para)
        return None

    def broadcaster_register_publisher(self, origin: Origin, para: int) -> str | None:
        if isinstance(origin, Root):
            return "BadOrigin"
        if (why := self._vacant(para)) is not None:
            return why
        if origin != Parachain(para) and (
            para not in self.owners or origin != Signed(self.owners[para])
        ):
            return "NotAuthorized"
        return self._hold(para, self._account(origin), self.config.pubsub.publisher_deposit)

    def broadcaster_force_register_publisher(
        self, origin: Origin, manager: bytes, deposit: int, para: int
    ) -> str | None:
        if not isinstance(origin, Root):
            return "BadOrigin"
        return self._vacant(para) or self._hold(para, manager, deposit)

    def broadcaster_deregister_publisher(self, origin: Origin, para: int) -> str | None:
        if isinstance(origin, Root):
            return "BadOrigin"
        if para not in self.registered:
            return "NotRegistered"
        if not self._manages(origin, para):
            return "NotAuthorized"
        return self._remove(para)

    def broadcaster_force_deregister_publisher(self, origin: Origin, para: int) -> str | None:
        if not isinstance(origin, Root):
            return "BadOrigin"
        if para not in self.registered and not self.keys(para):
            return "NotRegistered"
        return self._remove(para)

    def broadcaster_delete_keys(self, origin: Origin, para: int, keys: list[bytes]) -> str | None:
        if isinstance(origin, Root):
            return "BadOrigin"
        if para not in self.registered and not self.is_system(para):
            return "NotRegistered"
        if not self._manages(origin, para):
            return "NotAuthorized"
        return self._delete("KeysDeleted", para, keys)

    def broadcaster_force_delete_keys(
        self, origin: Origin, para: int, keys: list[bytes]
    ) -> str | None:
        if not isinstance(origin, Root):
            return "BadOrigin"
        return self._delete("KeysForcedDeleted", para, keys)

    # What calls have in common

    def is_system(self, para: int) -> bool:
        return para < self.config.pubsub.system_para_threshold

    def keys(self, para: int) -> list[bytes]:
        return sorted(key for owner, key in self.entries if owner == para)

    def finite(self) -> dict[Place, tuple[int, int]]:
        return {place: (ttl, when) for place, (_, ttl, when) in self.entries.items() if ttl}

    def due(self) -> list[Place]:
        """Return the expired entries, ordered by expiry.

        Entries of the same expiry are in order of publisher and key, as the index encodes them.
        """
        late = [
            (when + ttl, p.to_bytes(4, "little"), k)
            for (p, k), (ttl, when) in self.finite().items()
        ]
        return [
            (int.from_bytes(p, "little"), k) for expiry, p, k in sorted(late) if expiry <= self.now
        ]

    def _schedule(self, para: int) -> None:
        self.actions.setdefault(self.session + self.config.session_delay, []).append(para)

    def _account(self, origin: Origin) -> bytes:
        return origin.account if isinstance(origin, Signed) else sovereign_account(origin.para)  # type: ignore[union-attr]  # root was refused before

    def _vacant(self, para: int) -> str | None:
        if para in self.registered:
            return "AlreadyRegistered"
        return (
            "TooManyPublishers"
            if len(self.registered) >= self.config.pubsub.max_publishers
            else None
        )

    def _hold(self, para: int, manager: bytes, deposit: int) -> str | None:
        if deposit and not self.free.get(manager, 0) + self.held.get(manager, 0):
            return "CannotCreateHold"
        if deposit and self.free[manager] - deposit <= 0:
            return "FundsUnavailable"
        if deposit:
            self.free[manager] -= deposit
            self.held[manager] += deposit
        self.registered[para] = (manager, deposit)
        self.told.append(("PublisherRegistered", para, manager))
        return None

    def _manages(self, origin: Origin, para: int) -> bool:
        if origin == Parachain(para):
            return True
        return para in self.registered and self.registered[para][0] == self._account(origin)

    def _delete(self, event: str, para: int, keys: list[bytes]) -> str | None:
        stored = [key for key in self.keys(para) if key in keys]
        for key in stored:
            del self.entries[para, key]
        if not stored:
            return "NoKeysToDelete"
        self.told.append((event, para, len(stored)))
        return None

    def _remove(self, para: int) -> None:
        self.entries = {place: entry for place, entry in self.entries.items() if place[0] != para}
        if para in self.registered:
            manager, deposit = self.registered.pop(para)
            if deposit:
                self.held[manager] -= deposit
                self.free[manager] += deposit
        self.told.append(("PublisherDeregistered", para))
