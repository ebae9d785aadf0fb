"""Stories: random sequences of events in whole networks with honest collators.

The events include governance, upgrades, channels, message loads, and parachains that leave, fail
and return. A network must keep three promises:

    no blame      honest candidates do not get a verdict, and steps do not fail
    once          every message and every change of an entry is delivered once, in order, or is
                  lost for a known reason
    no one stuck  after a quiet time, every parachain that governance has not disabled builds blocks

`docs/protocol.md` lists the ways in which governance can disable a parachain. `tell` draws a story
from a seed.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import chain as chained
from itertools import repeat
from typing import Final

from pubsub_emulator.emulator.network import Network, NetworkConfig, Pace, ParachainConfig, Step
from pubsub_emulator.emulator.relay.runtime import RelayConfig
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.types import AccountId, Hash, ParaId, PubsubKey
from pubsub_emulator.runtime.framework.origin import Root, Signed
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber import delivered
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.config import CachePolicy, RuntimeSpec
from pubsub_emulator.runtime.parachain.governance import subscriber_call, transact
from pubsub_emulator.runtime.relay.host_configuration import HostConfiguration
from pubsub_emulator.runtime.relay.hrmp import HrmpChannelId

PUBLISHERS: Final = (ParaId(1000), ParaId(2100))
"""A system parachain, and one that is registered as a publisher."""

SUBSCRIBERS: Final = (ParaId(2500), ParaId(2600), ParaId(2700))
PARAS: Final = (*PUBLISHERS, *SUBSCRIBERS)
KEYS: Final = tuple(sorted(key_from_data(b"key %d" % number) for number in range(12)))
OFFLINE: Final = Pace(every=1 << 40)
"""The pace of a parachain without collators."""

CONFIGURATIONS: Final = (
    HostConfiguration(),
    HostConfiguration(max_upward_message_num_per_candidate=1),
    HostConfiguration(max_upward_message_size=3000),
    HostConfiguration(max_upward_queue_count=2),
    HostConfiguration(max_upward_message_size=2500, max_upward_queue_size=2500),
    HostConfiguration(hrmp_max_message_num_per_candidate=1),
    HostConfiguration(max_downward_message_size=300),
    HostConfiguration(hrmp_channel_max_capacity=1, hrmp_max_parachain_outbound_channels=1),
)
"""Configurations that governance may set without disabling a parachain."""

QUIET: Final = 16
"""The number of steps after which a network without new events has nothing left to do."""


class BrokenPromise(PubsubError):
    """A promise that a network broke. The message names the promise and the step."""


@dataclass(slots=True)
class _Message:
    """A message that was sent."""

    sender: ParaId | None
    """The parachain that sent it, or `None` for the relay chain."""
    recipient: ParaId
    arrived: int = 0
    """The number of times that the message has arrived. More than one is a broken promise."""
    excused: bool = False
    """Whether it may be lost, because a queue that may have contained it was removed."""


@dataclass(slots=True)
class NetworkStory:
    """A network with the events so far and the deliveries that are still due."""

    network: Network = field(default_factory=lambda: Network(_config()))
    events: list[str] = field(default_factory=list)
    """The events so far, for error messages."""
    messages: dict[bytes, _Message] = field(default_factory=dict)
    """The messages so far, by content."""
    paces: dict[ParaId, Pace] = field(default_factory=dict)
    """The paces of failed parachains."""
    last: dict[tuple[ParaId, ParaId, PubsubKey], Hash | None] = field(default_factory=dict)
    """The hash of the last entry delivered, by subscriber, publisher and key."""
    again: set[tuple[ParaId, ParaId]] = field(default_factory=set)
    """Pairs of subscriber and publisher whose entries may all be delivered once more."""
    count: int = 0
    """A counter that makes contents unique."""
    closing: list[Callable[[_Message], bool]] = field(default_factory=list)
    """Conditions for messages whose queues the next relay block removes. Messages sent before that
    block can be lost with them.
    """

    # Events. Arguments are any integers, which are reduced to valid choices.

    def publish(self, index: int, key: int, size: int, ttl: int = 0) -> None:
        """Publish a new value under a key."""
        self._say(f"publish {index} {key} {size} {ttl}")
        value = b"%d " % self._next() + b"v" * size
        self.network.publish(
            PUBLISHERS[index % len(PUBLISHERS)], KEYS[key % len(KEYS)], value, ttl=ttl
        )

    def delete(self, index: int, key: int) -> None:
        """Delete a key of a publisher."""
        self._say(f"delete {index} {key}")
        self.network.delete(PUBLISHERS[index % len(PUBLISHERS)], [KEYS[key % len(KEYS)]])

    def send(self, sender_index: int, to: int, size: int) -> None:
        """Send a message from a parachain to another one. It waits if there is no channel."""
        sender = PARAS[sender_index % len(PARAS)]
        recipient = PARAS[to % len(PARAS)]
        if sender == recipient:
            return
        self._say(f"send {sender} {recipient} {size}")
        self.network.send(sender, recipient, self._new(sender, recipient, size))

    def send_downward(self, to: int, size: int) -> None:
        """Send a message from the relay chain to a parachain."""
        recipient = PARAS[to % len(PARAS)]
        self._say(f"send_downward {recipient} {size}")
        self.network.send_downward(recipient, self._new(None, recipient, size))

    def upgrade(self, index: int, keys: int, policy: int) -> None:
        """Change the keys and the cache policy of a subscriber."""
        para = SUBSCRIBERS[index % len(SUBSCRIBERS)]
        self._say(f"upgrade {para} {keys} {policy}")
        old_spec = self.network.parachain(para).spec()
        wanted = KEYS[keys % len(KEYS) :] if keys % 5 else ()
        subscriptions = dict.fromkeys(PUBLISHERS[: 1 + keys % 2], wanted) if wanted else {}
        cache = tuple(CachePolicy)[policy % len(CachePolicy)]
        version = old_spec.spec_version + 1
        self.network.upgrade(
            replace(old_spec, subscriptions=subscriptions, cache=cache, spec_version=version)
        )
        self.again.update((para, publisher) for publisher in PUBLISHERS)

    def nonsense_upgrade(self, index: int) -> None:
        """Send a parachain the runtime of another one, or bytes that are not a runtime."""
        para = SUBSCRIBERS[index % len(SUBSCRIBERS)]
        self._say(f"nonsense_upgrade {para}")
        spec = replace(self.network.parachain(para).spec(), para_id=ParaId(para + 1))
        self.network.send_downward(
            para, transact(b"\x00\x02" + bytes((index % 4,)) + spec.encode())
        )

    def order(self, index: int, publisher: int, call: int) -> None:
        """Let governance call a subscriber's pallet."""
        para = SUBSCRIBERS[index % len(SUBSCRIBERS)]
        about = PUBLISHERS[publisher % len(PUBLISHERS)]
        name = ("clear_publisher_cache", "redeliver", "enable_publisher")[call % 3]
        self._say(f"order {para} {about} {name}")
        self.network.send_downward(para, transact(subscriber_call(name, about)))
        if name == "redeliver":
            self.again.add((para, about))

    def open_channel(self, sender_index: int, recipient_index: int, capacity: int) -> None:
        """Let governance open a channel."""
        sender = PARAS[sender_index % len(PARAS)]
        recipient = PARAS[recipient_index % len(PARAS)]
        self._say(f"open_channel {sender} {recipient} {capacity}")
        self.network.call(
            Root(), "Hrmp", "force_open_hrmp_channel", sender, recipient, capacity % 9, 4096
        )

    def close_channel(self, sender_index: int, recipient_index: int) -> None:
        """Let governance close a channel. Messages in it are lost."""
        sender = PARAS[sender_index % len(PARAS)]
        recipient = PARAS[recipient_index % len(PARAS)]
        self._say(f"close_channel {sender} {recipient}")
        self.network.call(Root(), "Hrmp", "hrmp_close_channel", HrmpChannelId(sender, recipient))
        self._excuse(lambda message: (message.sender, message.recipient) == (sender, recipient))

    def leave(self, index: int) -> None:
        """Deregister a parachain."""
        para = PARAS[index % len(PARAS)]
        self._say(f"leave {para}")
        self.network.call(Root(), "Registrar", "deregister", para)
        self._excuse(lambda message: para in {message.sender, message.recipient})

    def come_back(self, index: int) -> None:
        """Register a parachain again, also as a publisher if it was one."""
        para = PARAS[index % len(PARAS)]
        self._say(f"come_back {para}")
        head = self.network.parachain(para).header.encode()
        manager = self.network.manager(para)
        self.network.call(Root(), "Registrar", "force_register", manager, para, head)
        if para in PUBLISHERS:
            self.network.call(Root(), "Broadcaster", "force_register_publisher", manager, 0, para)

    def fail(self, index: int) -> None:
        """Remove all collators of a parachain."""
        chain = self.network.parachain(PARAS[index % len(PARAS)])
        self._say(f"fail {chain.para}")
        self.paces.setdefault(chain.para, chain.pace)
        chain.pace = OFFLINE

    def recover(self, index: int) -> None:
        """Give a parachain its collators back."""
        para = PARAS[index % len(PARAS)]
        self._say(f"recover {para}")
        if para in self.paces:
            self.network.parachain(para).pace = self.paces.pop(para)

    def configure(self, index: int) -> None:
        """Let governance set another host configuration, which takes effect in the next session."""
        self._say(f"configure {index}")
        config = CONFIGURATIONS[index % len(CONFIGURATIONS)]
        session = self.network.relay.runtime.session.current_index(self.network.relay.storage()) + 1
        self.network.call(Root(), "Configuration", "set_config", config, session)
        # The relay chain's own messages can be lost if they are too long now or a queue is full.
        self._excuse(lambda message: message.sender is None)

    def odd_call(self, index: int, number: int) -> None:
        """Make a call that fails, or that sets unusual balances."""
        self._say(f"odd_call {index} {number}")
        account = AccountId(bytes((number % 251,)) * 32)
        calls: tuple[tuple[object, ...], ...] = (
            (Root(), "Balances", "force_set_balance", account, (1 << 128) - 1 - number),
            (
                Root(),
                "Balances",
                "force_set_balance",
                self.network.manager(PARAS[number % len(PARAS)]),
                number % 3,
            ),
            (Signed(account), "Registrar", "register", ParaId(number % 2000), b"head"),
            (Signed(account), "Broadcaster", "register_publisher", PUBLISHERS[number % 2]),
            (Root(), "Broadcaster", "force_deregister_publisher", ParaId(number % 3000)),
            (Signed(account), "Balances", "transfer_allow_death", account, number),
        )
        self.network.call(*calls[index % len(calls)])  # type: ignore[arg-type]  # each is an origin, two names and arguments

    def steps(self, count: int) -> None:
        """Build relay blocks, and check the promises after each."""
        self._say(f"steps {count}")
        for _ in range(count):
            try:
                (step,) = self.network.step(1)
            except PubsubError as error:
                raise self._broken(f"a step failed: {type(error).__name__}: {error}") from error
            self.closing.clear()
            self._watch(step)

    # Promises

    def end(self) -> None:
        """Wait until the network is quiet, and check the promises that hold only then."""
        for index in range(len(PARAS)):
            self.recover(index)
        self.network.call(Root(), "Configuration", "set_config", HostConfiguration(), 0)
        self.steps(QUIET)
        heights = {para: self.network.parachain(para).header.number for para in PARAS}
        for para in PUBLISHERS:
            self.network.give_turn(para)
        self.steps(1)
        living = self.network.relay.runtime.paras.parachains(self.network.relay.storage())
        for para in PARAS:
            if para in living and self.network.parachain(para).header.number == heights[para]:
                raise self._broken(f"parachain {para} is stuck at block {heights[para]}")
        self._nothing_lost(living)
        self._all_delivered(living)

    def _watch(self, step: Step) -> None:
        """Check the blocks, messages and deliveries of a step."""
        for record in step.refused:
            raise self._broken(f"an honest block of {record.chain} is refused: {record.refusal}")
        for para, reason in step.idle.items():
            raise self._broken(f"parachain {para} cannot build: {reason}")
        for record in step.records:
            inherent = record.candidate.inherent
            arrived = [message.msg for message in inherent.messages.downward]
            for _, messages in inherent.messages.horizontal:
                arrived += [message.data for message in messages]
            for data in arrived:
                self._arrive(record.chain, data)
        for para in SUBSCRIBERS:
            for delivery in step.deliveries(para):
                place = (para, delivery.publisher, delivery.key)
                now = None if delivery.value is None else delivery.entry_hash
                is_repeated = place in self.last and self.last[place] == now
                if is_repeated and (para, delivery.publisher) not in self.again:
                    raise self._broken(
                        f"{para} received key {delivery.key.hex()} of {delivery.publisher} twice"
                    )
                self.last[place] = now

    def _arrive(self, para: ParaId, data: bytes) -> None:
        """Check that a message arrived at its recipient, and not for the second time."""
        message = self.messages.get(data)
        if message is None:
            return
        message.arrived += 1
        if message.arrived > 1:
            raise self._broken(f"{para} received {data[:12]!r} twice")
        if message.recipient != para:
            raise self._broken(f"{para} received {data[:12]!r}, which is for {message.recipient}")

    def _nothing_lost(self, living: list[ParaId]) -> None:
        """Check that every message arrived, still waits, or may be lost."""
        waiting: set[bytes] = set()
        for para in PARAS:
            waiting.update(message.data for message in self.network.parachain(para).horizontal)
        for data, message in self.messages.items():
            is_missing = not message.arrived and data not in waiting and not message.excused
            if is_missing and message.recipient in living:
                raise self._broken(
                    f"message {data[:12]!r} of {message.sender} to {message.recipient} is lost"
                )

    def _all_delivered(self, living: list[ParaId]) -> None:
        """Check that every subscriber knows whether each of its keys exists."""
        state = self.network.relay.state
        for para in SUBSCRIBERS:
            chain = self.network.parachain(para)
            if para not in living:
                continue
            storage = Storage(chain.state)
            spec = chain.spec()
            for publisher, keys in spec.subscriptions.items():
                if items.DISABLED_PUBLISHERS.contains(storage, publisher):
                    raise self._broken(f"{para} has disabled {publisher}, which did nothing odd")
                child, places = self.network.rules.placed(publisher, keys)
                rows = dict(state.child_entries(child))
                for key, place in zip(keys, places, strict=True):
                    row = delivered.get(storage, spec, publisher, key)
                    entry = rows.get(place)
                    if (row is None) != (entry is None):
                        raise self._broken(
                            f"{para} did not receive the present state of key {key.hex()} of"
                            f" {publisher}"
                        )

    # Helpers

    def _say(self, line: str) -> None:
        """Note an event, for error messages."""
        self.events.append(line)

    def _broken(self, problem: str) -> BrokenPromise:
        """Return the error about a broken promise, with all events so far."""
        return BrokenPromise(
            f"relay block {self.network.number}: {problem}\n" + "\n".join(self.events)
        )

    def _next(self) -> int:
        """Return a number that no other content has."""
        self.count += 1
        return self.count

    def _new(self, sender: ParaId | None, recipient: ParaId, size: int) -> bytes:
        """Return the content of a new message and remember it."""
        data = b"message %d " % self._next() + b"m" * size
        living = self.network.relay.runtime.paras.parachains(self.network.relay.storage())
        has_left = recipient not in living or (sender is not None and sender not in living)
        message = _Message(sender, recipient)
        message.excused = (
            has_left
            or self._leaving(sender, recipient)
            or any(closes(message) for closes in self.closing)
        )
        self.messages[data] = message
        if sender is None and size > min(
            config.max_downward_message_size for config in CONFIGURATIONS
        ):
            # It is too long under a configuration that governance may set before it arrives.
            message.excused = True
        return data

    def _leaving(self, *paras: ParaId | None) -> bool:
        """Return whether one of these parachains is about to leave."""
        storage = self.network.relay.storage()
        known = self.network.relay.runtime.paras
        return any(para is not None and known.is_offboarding(storage, para) for para in paras)

    def _excuse(self, condition: Callable[[_Message], bool]) -> None:
        """Allow the loss of messages that satisfy a condition, up to the next relay block."""
        self.closing.append(condition)
        for message in self.messages.values():
            message.excused = message.excused or condition(message)


def _config() -> NetworkConfig:
    """Return a network with all cache policies and different paces."""
    subscriptions = dict.fromkeys(PUBLISHERS, KEYS)
    policies = (CachePolicy.SLOTS, CachePolicy.NODES, CachePolicy.NONE)
    chains = [ParachainConfig.publisher(RuntimeSpec(para, {})) for para in PUBLISHERS]
    chains += [
        ParachainConfig(
            RuntimeSpec(para, subscriptions, cache=policy),
            pace=Pace(blocks=1 + index % 2, lag=index),
        )
        for index, (para, policy) in enumerate(zip(SUBSCRIBERS, policies, strict=True))
    ]
    channels = (
        (ParaId(1000), ParaId(2500)),
        (ParaId(2500), ParaId(2600)),
        (ParaId(2600), ParaId(2500)),
    )
    relay = RelayConfig(session_length=4, session_delay=1)
    return NetworkConfig(tuple(chains), relay, (PUBLISHERS[1],), channels=channels, seed=b"story")


ACTIONS: Final[tuple[tuple[int, Callable[[NetworkStory, Draws], None]], ...]] = (
    (
        6,
        lambda story, draws: story.publish(
            draws.below(2), draws.below(12), draws.choice((0, 20, 2000))
        ),
    ),
    (
        1,
        lambda story, draws: story.publish(
            draws.below(2), draws.below(12), 5, ttl=1 + draws.below(9)
        ),
    ),
    (2, lambda story, draws: story.delete(draws.below(2), draws.below(12))),
    (
        5,
        lambda story, draws: story.send(
            draws.below(5), draws.below(5), draws.choice((0, 100, 4000))
        ),
    ),
    (3, lambda story, draws: story.send_downward(draws.below(5), draws.choice((0, 200, 40_000)))),
    (2, lambda story, draws: story.upgrade(draws.below(3), draws.below(12), draws.below(3))),
    (1, lambda story, draws: story.nonsense_upgrade(draws.below(12))),
    (2, lambda story, draws: story.order(draws.below(3), draws.below(2), draws.below(3))),
    (3, lambda story, draws: story.open_channel(draws.below(5), draws.below(5), draws.below(9))),
    (2, lambda story, draws: story.close_channel(draws.below(5), draws.below(5))),
    (1, lambda story, draws: story.leave(draws.below(5))),
    (2, lambda story, draws: story.come_back(draws.below(5))),
    (2, lambda story, draws: story.fail(draws.below(5))),
    (2, lambda story, draws: story.recover(draws.below(5))),
    (2, lambda story, draws: story.configure(draws.below(8))),
    (1, lambda story, draws: story.odd_call(draws.below(6), draws.below(5000))),
    (12, lambda story, draws: story.steps(draws.choice((1, 1, 1, 2, 5)))),
)
"""Events with random arguments, and their relative frequencies."""
_TELLABLE: Final = tuple(
    chained.from_iterable(repeat(action, weight) for weight, action in ACTIONS)
)


def tell(seed: bytes, turns: int = 40) -> NetworkStory:
    """Make a whole story from a seed. Raises `BrokenPromise`."""
    story = NetworkStory()
    draws = Draws(seed, "story")
    for _ in range(turns):
        draws.choice(_TELLABLE)(story, draws)
    story.end()
    return story
