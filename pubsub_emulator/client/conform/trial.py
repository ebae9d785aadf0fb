"""A trial of a chain: the actions, readings and requirements of which the tests of rules consist.

Extrinsics are signed by development accounts. Only `chain_*`, `state_*`, `author_*` and
`system_accountNextIndex` are called. Child tries are read through proofs that are verified against
the block's header.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

from pubsub_emulator.client.chain import BlockingChain
from pubsub_emulator.client.conform.mapping import Mapping
from pubsub_emulator.client.decode import decode
from pubsub_emulator.client.encode import Encoded
from pubsub_emulator.client.errors import ClientError, NodeUnavailable
from pubsub_emulator.client.extrinsics import Signer, development_signer
from pubsub_emulator.client.node import DecodedEvent
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hexadecimal import hexed, unhex
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.scale import encode_bytes, encode_compact
from pubsub_emulator.trie.errors import TrieError
from pubsub_emulator.trie.lazy import StateUnavailable

Event = tuple[str, dict[str, Any]]
"""The name and fields of an event."""
Entry = tuple[bytes, bytes, int]
"""Key, value and ttl."""
Verdict = Literal["holds", "broken", "not testable here"]
KEYS: Final = tuple(bytes(key_from_data(b"conform/%d" % index)) for index in range(4))
"""Keys for the tests."""
_SHOWN: Final = 200
"""The maximum length of a value in a finding."""
_LARGEST: Final = 60_000
"""The maximum size of all values in one extrinsic, in bytes."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of the test of one rule."""

    rule: str
    """The rule's number or name."""
    sentence: str
    """The rule in words."""
    verdict: Verdict
    expected: str = ""
    """The expected value in the first violation."""
    seen: str = ""
    """The actual value in the first violation."""
    block: int | None = None
    """The relay block of the first violation."""
    reason: str = ""
    """The reason why the rule is not testable here."""
    is_unreadable: bool = False
    """Whether the reason is an answer of the node that cannot be used."""


class Broken(Exception):
    """A rule that does not hold."""

    def __init__(self, expected: object, seen: object, block: int) -> None:
        super().__init__()
        self.expected, self.seen = _shown(expected, seen)
        self.block = block


class Untestable(Exception):
    """A rule that cannot be tested on this chain."""


Check = Callable[["Trial"], None]
"""Tests a rule. Raises `Broken` or `Untestable`."""
RULES: Final[dict[str, tuple[str, Check]]] = {}
"""The sentence and the test of each rule by its name, in the order of the tests."""


def rule(name: str, sentence: str) -> Callable[[Check], Check]:
    """Declare a function as the test of a rule. It raises `Broken` or `Untestable`."""

    def keep(check: Check) -> Check:
        RULES[name] = sentence, check
        return check

    return keep


def conform(
    trial: "Trial", only: Collection[str] = (), begin: Callable[[int, str], None] | None = None
) -> list[Finding]:
    """Test all rules, or those in `only`.

    `begin` is called before each test with the number of finished tests and the rule's name.

    A rule is not testable here if the node refuses a call that its test needs, or its answer cannot
    be read. Raises `NodeUnavailable` if the node does not answer, because the other tests would
    wait for it as well.
    """
    findings: list[Finding] = []
    for name, (sentence, check) in RULES.items():
        if only and name not in only:
            continue
        if begin is not None:
            begin(len(findings), name)
        findings.append(_judged(trial, name, sentence, check))
    return findings


def _judged(trial: "Trial", name: str, sentence: str, check: Check) -> Finding:
    """Test one rule and return the finding. Raises `NodeUnavailable`."""
    try:
        check(trial)
    except Broken as broken:
        return Finding(
            name,
            sentence,
            "broken",
            expected=broken.expected,
            seen=broken.seen,
            block=broken.block,
        )
    except Untestable as error:
        return Finding(name, sentence, "not testable here", reason=str(error))
    except NodeUnavailable:
        raise
    except ClientError as error:
        return _unreadable(name, sentence, str(error))
    except (StateUnavailable, TrieError) as error:
        cause = error.__cause__
        if isinstance(cause, NodeUnavailable):
            raise cause from error
        # The node refused or garbled the proof, for example because it pruned the state.
        if isinstance(cause, ClientError):
            return _unreadable(name, sentence, str(error))
        return Finding(
            name,
            sentence,
            "broken",
            expected="a state that its root proves",
            seen=str(error),
            block=_best_block(trial),
        )
    except (
        AttributeError,
        IndexError,
        KeyError,
        OverflowError,
        ScaleError,
        TypeError,
        ValueError,
    ) as error:
        # The test could not read a decoded value in the form that the rules give it.
        reason = f"the chain's types are not those of the rules: {type(error).__name__}: {error}"
        return _unreadable(name, sentence, reason)
    return Finding(name, sentence, "holds")


def _best_block(trial: "Trial") -> int | None:
    """Return the number of the best relay block, or `None` if the node's answer is unusable."""
    try:
        return trial.relay.best()
    except NodeUnavailable:
        raise
    except ClientError:
        return None


def _unreadable(name: str, sentence: str, reason: str) -> Finding:
    """Return the finding about a rule whose test got an answer that cannot be used."""
    return Finding(name, sentence, "not testable here", reason=reason, is_unreadable=True)


def expect(expected: object, seen: object, block: int) -> None:
    """Raise `Broken` unless the seen value equals the expected one.

    `block` is the relay block after which the value was read.
    """
    if expected != seen:
        raise Broken(expected, seen, block)


def _shown(expected: object, seen: object) -> tuple[str, str]:
    """Return both values as texts. Long ones are cut to the part in which they begin to differ."""
    expected_text = _text(expected)
    seen_text = _text(seen)
    if max(len(expected_text), len(seen_text)) <= _SHOWN:
        return expected_text, seen_text
    shorter = min(len(expected_text), len(seen_text))
    difference = 0
    while difference < shorter and expected_text[difference] == seen_text[difference]:
        difference += 1
    start = max(0, difference - _SHOWN // 2)
    return _cut(expected_text, start), _cut(seen_text, start)


def _text(value: object) -> str:
    """Return a value as text: bytes as hexadecimal digits, and sets in order."""
    if isinstance(value, bytes):
        return hexed(value)
    return repr(sorted(value) if isinstance(value, set) else value)


def _cut(text: str, start: int) -> str:
    """Return `_SHOWN` characters of a text, with … where it is cut."""
    end = start + _SHOWN
    before = "…" if start > 0 else ""
    after = "…" if len(text) > end else ""
    return f"{before}{text[start:end]}{after}"


@dataclass(frozen=True, slots=True)
class Included:
    """An extrinsic in a block, or the effect of a message."""

    number: int
    """The height of the block."""
    error: str | None
    """The error (`Pallet.Error` or `BadOrigin`), or `None`."""
    events: tuple[Event, ...] = ()
    """The pallet's events."""


class Trial:
    """A relay chain and its parachains, named as a mapping says. It is a context manager.

    `url` is the relay chain's. A parachain's URL is in `paras`, or is `url` with its id appended.
    Most methods act on the publisher of the mapping, `number` is the height of a relay block, and
    names are this project's, which the mapping translates.
    """

    def __init__(self, url: str, mapping: Mapping, paras: dict[int, str]) -> None:
        self.mapping = mapping
        self._stack = ExitStack()
        self.relay = self._open(url)
        base = url.rstrip("/")
        ids = {mapping.publisher, mapping.system, *paras}
        self.paras = {para: self._open(paras.get(para, f"{base}/{para}")) for para in sorted(ids)}
        self.manager = development_signer(mapping.manager)
        self.stranger = development_signer(mapping.stranger)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._stack.close()

    def _open(self, url: str) -> BlockingChain:
        chain = BlockingChain(url, self.mapping.patience)
        self._stack.callback(chain.close)
        return chain

    # Calls

    def do(
        self, name: str, *, by: Signer | None = None, root: bool = False, **arguments: object
    ) -> Included:
        """Make a call of the pallet about the publisher, by default signed by its manager.

        With `root`, the call is made through `Sudo`.
        """
        mapping = self.mapping
        all_arguments = {"para": mapping.publisher, **arguments}
        chain_arguments = {
            mapping.name(argument): value for argument, value in all_arguments.items()
        }
        return self.relay_call(
            mapping.pallet, mapping.name(name), chain_arguments, by=by, root=root
        )

    def relay_call(
        self,
        pallet: str,
        name: str,
        arguments: dict[str, object],
        *,
        by: Signer | None = None,
        root: bool = False,
    ) -> Included:
        """Make any call on the relay chain."""
        call = self.relay.call(pallet, name, arguments, root=root)
        number, events = self.relay.submit(by or self.manager, call)
        return Included(number, self.relay.failure(events), self._ours(events))

    def publish(self, para: int, entries: Sequence[Entry]) -> Included:
        """Publish entries by the parachain's call or by an XCM message, as the mapping says.

        Returns the relay block in which they were published or refused. If the
        parachain's own call fails, the error is `Parachain: …`. Otherwise it is as for `send`.
        """
        publish = self.mapping.publish
        keys = {key for key, _, _ in entries}
        if publish.by == "message":
            return self.send(para, self.message(entries), keys=keys)[0]
        arguments: dict[str, object] = {publish.argument: list(map(list, entries))}
        call = self.paras[para].call(publish.pallet, publish.call, arguments)
        return self._sent(para, call, keys, count=1)[0]

    def message(self, entries: Sequence[Entry]) -> bytes:
        """Return an XCM v5 message that publishes entries."""
        head = bytes((self.mapping.instruction,))
        parts = (
            head + key + encode_bytes(value) + ttl.to_bytes(4, "little")
            for key, value, ttl in entries
        )
        return b"\5" + encode_compact(len(entries)) + b"".join(parts)

    def send(self, para: int, *messages: bytes, keys: Collection[bytes] = ()) -> list[Included]:
        """Send upward messages in one block of a parachain and return the effect of each.

        `keys` are the keys that they publish, by which `_outcomes` tells them from other messages.
        The error is `None`, `incomplete`, a reason why the message was not processed (such as
        `BadFormat`), or `nothing` if no effect was seen in time.
        """
        send = self.mapping.message
        chain = self.paras[para]
        others = {name: Encoded(unhex(text)) for name, text in send.others.items()}
        calls = []
        for message in messages:
            # `VersionedXcm` is the message itself, and `Vec<u8>` has its length in front.
            value = message if send.wrapped else Encoded(message)
            calls.append(chain.call(send.pallet, send.call, {send.argument: value, **others}))
        call = calls[0]
        if len(calls) > 1:
            call = chain.call("Utility", "batch_all", {"calls": calls})
        if send.root:
            call = chain.call("Sudo", "sudo", {"call": call})
        return self._sent(para, call, keys, count=len(messages))

    def _sent(
        self, para: int, call: Encoded, keys: Collection[bytes], count: int
    ) -> list[Included]:
        """Submit a parachain's call, and find the effects of its messages on the relay chain.

        Returns `count` effects. An effect that was not seen in time has the error `nothing`.
        """
        chain = self.paras[para]
        since = self.relay.best()
        _, events = chain.submit(self.manager, call)
        failure = chain.failure(events)
        if failure is not None:
            return [Included(since, f"Parachain: {failure}")] * count
        outcomes: list[Included] = []
        last = since
        for _ in range(self.mapping.delay):
            while last < min(self.relay.best(), since + self.mapping.delay):
                last += 1
                outcomes += self._outcomes(para, keys, last)
                if len(outcomes) >= count:
                    return outcomes
            self.step()
        return outcomes + [Included(last, "nothing")] * (count - len(outcomes))

    def _outcomes(self, para: int, keys: Collection[bytes], number: int) -> list[Included]:
        """Return the effects of a parachain's messages in a relay block.

        The publisher sends only the messages of this trial. Another parachain can send others, so
        its messages are recognized by the event of one of `keys`.
        """
        events = self.relay.events(number)
        pallet_events = self._ours(events)
        name = self.mapping.name("DataPublished")
        key = self.mapping.name("key")
        if para != self.mapping.publisher and keys:
            published = any(
                event[0] == name and event[1].get(key) in keys for event in pallet_events
            )
            return [Included(number, None, pallet_events)] if published else []
        origin = f"{{'Para': {para}}}"
        return [
            Included(number, _refusal(event), pallet_events)
            for event in events
            if event.pallet == "MessageQueue" and origin in str(event.fields.get("origin"))
        ]

    def step(self, count: int = 1) -> int:
        """Let the relay chain build blocks, with a remark in each, and return its best height.

        A chain can build blocks only when it has an extrinsic.
        """
        for _ in range(count):
            self.relay.submit(
                self.stranger, self.relay.call("System", "remark", {"remark": b"conform"})
            )
        return self.relay.best()

    def until(self, number: int) -> None:
        """Let the relay chain build blocks up to a height."""
        for _ in range(number - self.relay.best()):
            if self.relay.best() < number:
                self.step()

    # Reading

    def child(self, number: int, para: int) -> dict[bytes, bytes]:
        """Return all entries of a publisher's child trie after a relay block, through proofs."""
        return dict(self.relay.state(number).child_entries(self._child_key(para)))

    def root(self, number: int, para: int) -> bytes | None:
        """Return a publisher's child root after a relay block, through a proof."""
        return self.relay.state(number).child_root(self._child_key(para))

    def _child_key(self, para: int) -> bytes:
        return self.mapping.child_prefix.encode() + para.to_bytes(4, "little")

    def item(self, number: int, name: str, *keys: bytes) -> Any:
        """Return a storage item of the pallet after a relay block."""
        return self.relay.item(number, self.mapping.pallet, self.mapping.name(name), *keys)

    def events(self, number: int) -> tuple[Event, ...]:
        """Return the pallet's events of a relay block."""
        return self._ours(self.relay.events(number))

    def _ours(self, events: Sequence[DecodedEvent]) -> tuple[Event, ...]:
        return tuple(
            (event.name, event.fields) for event in events if event.pallet == self.mapping.pallet
        )

    # The publisher

    @property
    def para(self) -> int:
        """Return the publisher's id."""
        return self.mapping.publisher

    def entry(self, value: bytes, ttl: int, when: int) -> bytes:
        """Return the SCALE bytes of an entry that was inserted in the relay block `when`."""
        parts = {
            "value": encode_bytes(value),
            "ttl": ttl.to_bytes(4, "little"),
            "when_inserted": when.to_bytes(4, "little"),
        }
        return b"".join(parts[name] for name in self.mapping.entry)

    def event(self, name: str, **fields: object) -> Event:
        """Return an event of the pallet, with the chain's names."""
        translated = self.mapping.name
        return translated(name), {translated(field): value for field, value in fields.items()}

    def info(self, number: int) -> tuple[bytes, int] | None:
        """Return the manager and the deposit of the registration after a block.

        Returns `None` if the publisher is not registered.
        """
        row = self.of_publisher(number, "RegisteredPublishers")
        if row is None:
            return None
        return tuple(row.values() if isinstance(row, dict) else row)

    def of_publisher(self, number: int, name: str, *keys: bytes) -> Any:
        """Return a storage item of the publisher after a block."""
        return self.item(number, name, self.para.to_bytes(4, "little"), *keys)

    def counters(self, number: int) -> tuple[int, int]:
        """Return the publisher's counters of keys and bytes after a block."""
        keys = self.of_publisher(number, "PublishedKeys") or 0
        size = self.of_publisher(number, "TotalStorageSize") or 0
        return keys, size

    def balance(self, number: int, *, fees: bool = True) -> tuple[int, int]:
        """Return the manager's free and held balance after a block.

        With `fees`, the fees that the manager paid in the block are added to the free balance.
        """
        balances = self.relay.item(number, "System", "Account", self.manager.account)["data"]
        free = balances["free"]
        if fees:
            free += sum(
                event.fields["actual_fee"]
                for event in self.relay.events(number)
                if event.name == "TransactionFeePaid"
                and event.fields["who"] == self.manager.account
            )
        return free, balances["reserved"]

    def released(self, number: int, deposit: int) -> None:
        """Require that a block returned a deposit to the manager.

        A negative deposit must have been taken.
        """
        free, held = self.balance(number - 1, fees=False)
        expect((free + deposit, held - deposit), self.balance(number), number)

    def unregister(self) -> None:
        """Remove the publisher's registration and data, if there are any."""
        number = self.relay.best()
        if self.info(number) is not None or self.root(number, self.para) is not None:
            self.do("force_deregister_publisher", root=True)

    def fresh(self, *entries: Entry) -> Included:
        """Remove the publisher, register it again, and publish some entries.

        Returns the block of the publication, or of the registration if there are no entries.
        """
        self.unregister()
        registration = self.do(
            "force_register_publisher", root=True, manager=self.manager.account, deposit=0
        )
        return self.publish(self.para, entries) if entries else registration

    def published(self, *entries: Entry) -> Included:
        """Publish entries that must be accepted."""
        outcome = self.publish(self.para, entries)
        expect(None, outcome.error, outcome.number)
        return outcome

    def many(self, count: int, length: int) -> list[bytes]:
        """Publish `count` keys with values of one length and return the keys.

        Raises `Untestable` if that takes too many calls.
        """
        at_once = max(1, min(64, _LARGEST // (length + 40)))
        if count > at_once * self.mapping.most_calls:
            calls = -(-count // at_once)
            raise Untestable(f"it takes {calls} calls, and the limit is {self.mapping.most_calls}")
        keys = [bytes(key_from_data(b"many/%d" % index)) for index in range(count)]
        for start in range(0, count, at_once):
            self.published(*((key, bytes(length), 0) for key in keys[start : start + at_once]))
        return keys

    def number(self, name: str) -> int:
        """Return a constant of the pallet.

        Raises `Untestable` if the chain has no constant of this name.
        """
        metadata = self.relay.metadata()
        chain_name = self.mapping.name(name)
        pallet = metadata.pallets.get(self.mapping.pallet)
        constant = None if pallet is None else pallet.constants.get(chain_name)
        value = None if constant is None else decode(metadata, constant.type, constant.value)
        if not isinstance(value, int):
            raise Untestable(f"the chain has no constant {chain_name}")
        return value

    def longest(self) -> int:
        """Return `MaxValueLength`. Raises `Untestable` if an extrinsic cannot hold such a value."""
        length = self.number("MaxValueLength")
        if length >= _LARGEST:
            raise Untestable(f"a value of {length:,} bytes does not fit into an extrinsic")
        return length

    # Requirements

    def did(self, outcome: Included, event: str, **fields: object) -> None:
        """Require that a call succeeded, with this event as the only one of the pallet."""
        expect(
            (None, (self.event(event, **fields),)), (outcome.error, outcome.events), outcome.number
        )

    def refuses(self, outcome: Included, error: str) -> None:
        """Require that a call failed with this error, without an event or a change."""
        chain_error = (
            error if error == "BadOrigin" else f"{self.mapping.pallet}.{self.mapping.name(error)}"
        )
        expect((chain_error, ()), (outcome.error, outcome.events), outcome.number)
        expect(self.all(outcome.number - 1), self.all(outcome.number), outcome.number)

    def has(self, number: int, *keys: bytes) -> None:
        """Require that after a block the publisher has exactly these keys."""
        expect(set(keys), set(self.child(number, self.para)), number)

    def holds(self, number: int, entries: dict[bytes, bytes]) -> None:
        """Require that after a block the publisher has exactly these entries."""
        expect(entries, self.child(number, self.para), number)

    def counts(self, number: int, keys: int, size: int) -> None:
        """Require the publisher's counters after a block."""
        expect((keys, size), self.counters(number), number)

    def all(self, number: int) -> tuple[object, ...]:
        """Return the publisher's root, registration, counters and held balance after a block."""
        return (
            self.root(number, self.para),
            self.info(number),
            self.counters(number),
            self.balance(number)[1],
        )

    def nothing_left(self, number: int) -> None:
        """Require that after a block nothing is stored for the publisher."""
        expect((None, None, (0, 0)), self.all(number)[:3], number)
        for key in KEYS:
            expect(None, self.of_publisher(number, "TtlData", key), number)


def _refusal(event: DecodedEvent) -> str | None:
    """Return the error of a message by its event of `MessageQueue`, or `None` if it succeeded."""
    if event.name == "Processed":
        return None if event.fields.get("success") else "incomplete"
    error = event.fields.get("error", event.name)
    return str(next(iter(error), event.name)) if isinstance(error, dict) else str(error)
