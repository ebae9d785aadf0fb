"""A trial of a chain: the vocabulary in which rules are tested.

It makes calls, reads the results, and requires values. Extrinsics are signed by development
accounts. Only `chain_*`, `state_*`, `author_*` and `system_accountNextIndex` are called. Child
tries are read through proofs that are verified against the block's header.
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
KEYS: Final = tuple(bytes(key_from_data(b"conform/%d" % at)) for at in range(4))
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
    """Why the rule is not testable here."""
    is_unreadable: bool = False
    """Whether the reason is an answer of the node that cannot be used."""


class Broken(Exception):
    """A rule that does not hold."""

    def __init__(self, expected: object, seen: object, block: int) -> None:
        super().__init__()
        (self.expected, self.seen) = _said(expected, seen)
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

    `begin` is called before each rule with the number of rules before it and its name.

    A rule is not testable here if the node refuses a call that its test needs, or answers something
    that cannot be read. Raises `NodeUnavailable` if the node does not answer, because the other
    rules would wait for it as well.
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
        return Finding(name, sentence, "broken", broken.expected, broken.seen, broken.block)
    except Untestable as why:
        return Finding(name, sentence, "not testable here", reason=str(why))
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
        wanted = "a state that its root proves"
        return Finding(name, sentence, "broken", wanted, str(error), _best_block(trial))
    except (
        AttributeError,
        IndexError,
        KeyError,
        OverflowError,
        ScaleError,
        TypeError,
        ValueError,
    ) as error:
        said = f"the chain's types are not those of the rules: {type(error).__name__}: {error}"
        return _unreadable(name, sentence, said)
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
    """Return the finding about a rule whose test met an answer that cannot be used."""
    return Finding(name, sentence, "not testable here", reason=reason, is_unreadable=True)


def expect(expected: object, seen: object, block: int) -> None:
    """Raise `Broken` unless the seen value equals the expected one."""
    if expected != seen:
        raise Broken(expected, seen, block)


def _said(expected: object, seen: object) -> tuple[str, str]:
    """Return both values as texts. Of long ones, return the part in which they begin to differ."""
    plain = (sorted(value) if isinstance(value, set) else value for value in (expected, seen))
    texts = [hexed(value) if isinstance(value, bytes) else repr(value) for value in plain]
    same = next(
        (at for at, (one, other) in enumerate(zip(*texts, strict=False)) if one != other), 0
    )
    start = max(0, same - _SHOWN // 2) if max(map(len, texts)) > _SHOWN else 0
    end = start + _SHOWN
    one, other = ("…" * (start > 0) + each[start:end] + "…" * (len(each) > end) for each in texts)
    return one, other


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
    """A relay chain and parachains under one mapping. It is a context manager."""

    def __init__(self, url: str, mapping: Mapping, paras: dict[int, str]) -> None:
        self.mapping = mapping
        self._stack = ExitStack()
        self.relay = self._open(url)
        base = url.rstrip("/")
        wanted = {mapping.publisher, mapping.system, *paras}
        self.paras = {
            para: self._open(paras.get(para, f"{base}/{para}")) for para in sorted(wanted)
        }
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
        """Make a call of the pallet about the publisher, by default signed by its manager."""
        of = self.mapping
        named = {of.name(key): value for key, value in {"para": of.publisher, **arguments}.items()}
        return self.relay_call(of.pallet, of.name(name), named, by=by, root=root)

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
        """Publish entries by a call of the parachain, or by a message.

        The result has the relay block of the effect or of the refusal. Its error is `Parachain: …`
        if the parachain's own call fails, and otherwise as for `send`.
        """
        how = self.mapping.publish
        keys = {key for key, _, _ in entries}
        if how.by == "message":
            return self.send(para, self.message(entries), keys=keys)[0]
        call = self.paras[para].call(how.pallet, how.call, {how.argument: list(map(list, entries))})
        return self._sent(para, call, keys, 1)[0]

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

        The error is `None`, `incomplete`, a reason why the message was not processed (such as
        `BadFormat`), or `nothing` if no effect was seen in time.
        """
        how, chain = self.mapping.message, self.paras[para]
        others = {name: Encoded(unhex(text)) for name, text in how.others.items()}
        sent = messages if how.wrapped else map(Encoded, messages)
        last = how.root and len(messages) == 1
        calls = [
            chain.call(how.pallet, how.call, {how.argument: each, **others}, root=last)
            for each in sent
        ]
        call = (
            calls[0]
            if len(calls) == 1
            else chain.call("Utility", "batch_all", {"calls": calls}, root=how.root)
        )
        return self._sent(para, call, keys, len(messages))

    def _sent(
        self, para: int, call: Encoded, keys: Collection[bytes], count: int
    ) -> list[Included]:
        """Submit a parachain's call, and find the effects of its messages on the relay chain."""
        chain = self.paras[para]
        since = self.relay.best()
        failed = chain.failure(chain.submit(self.manager, call)[1])
        if failed is not None:
            return [Included(since, f"Parachain: {failed}")] * count
        found: list[Included] = []
        last = since
        for _ in range(self.mapping.delay):
            while last < min(self.relay.best(), since + self.mapping.delay):
                last += 1
                found += self._outcomes(para, keys, last)
                if len(found) >= count:
                    return found
            self.step()
        return found + [Included(last, "nothing")] * (count - len(found))

    def _outcomes(self, para: int, keys: Collection[bytes], number: int) -> list[Included]:
        """Return the effects of a parachain's messages in a relay block.

        A parachain other than the publisher can have further traffic. Of its messages, only the one
        that published `keys` is returned.
        """
        events = self.relay.events(number)
        ours = self._ours(events)
        name = self.mapping.name("DataPublished")
        key = self.mapping.name("key")
        if para != self.mapping.publisher and keys:
            published = any(each[0] == name and each[1].get(key) in keys for each in ours)
            return [Included(number, None, ours)] if published else []
        mine = f"{{'Para': {para}}}"
        return [
            Included(number, _refusal(each), ours)
            for each in events
            if each.pallet == "MessageQueue" and mine in str(each.fields.get("origin"))
        ]

    def step(self, count: int = 1) -> int:
        """Let the relay chain build blocks, with a remark in each, and return the best number."""
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
            (each.name, each.fields) for each in events if each.pallet == self.mapping.pallet
        )

    # The publisher

    @property
    def para(self) -> int:
        """Return the publisher's id."""
        return self.mapping.publisher

    def entry(self, value: bytes, ttl: int, when: int) -> bytes:
        """Return the encoding of an entry."""
        numbers = {"ttl": ttl.to_bytes(4, "little"), "when_inserted": when.to_bytes(4, "little")}
        parts = {"value": encode_bytes(value), **numbers}
        return b"".join(parts[name] for name in self.mapping.entry)

    def event(self, name: str, **fields: object) -> Event:
        """Return an event of the pallet, with the chain's names."""
        called = self.mapping.name
        return called(name), {called(key): value for key, value in fields.items()}

    def info(self, number: int) -> tuple[bytes, int] | None:
        """Return manager and deposit of the registration after a block, or `None`."""
        found = self.of_publisher(number, "RegisteredPublishers")
        if found is None:
            return None
        return tuple(found.values() if isinstance(found, dict) else found)

    def of_publisher(self, number: int, name: str, *keys: bytes) -> Any:
        """Return a storage item of the publisher after a block."""
        return self.item(number, name, self.para.to_bytes(4, "little"), *keys)

    def counters(self, number: int) -> tuple[int, int]:
        """Return the publisher's counters of keys and bytes."""
        keys, size = (
            self.of_publisher(number, name) or 0 for name in ("PublishedKeys", "TotalStorageSize")
        )
        return keys, size

    def balance(self, number: int, *, fees: bool = True) -> tuple[int, int]:
        """Return the manager's free and held balance.

        By default, the fees that the manager paid in the block are added to the free balance.
        """
        found = self.relay.item(number, "System", "Account", self.manager.account)["data"]
        paid = (
            each.fields for each in self.relay.events(number) if each.name == "TransactionFeePaid"
        )
        spent = sum(each["actual_fee"] for each in paid if each["who"] == self.manager.account)
        return found["free"] + (spent if fees else 0), found["reserved"]

    def released(self, number: int, deposit: int) -> None:
        """Require that a block returned a deposit to the manager."""
        free, held = self.balance(number - 1, fees=False)
        expect((free + deposit, held - deposit), self.balance(number), number)

    def gone(self) -> None:
        """Remove the publisher's registration and data, if there are any."""
        number = self.relay.best()
        if self.info(number) is not None or self.root(number, self.para) is not None:
            self.do("force_deregister_publisher", root=True)

    def fresh(self, *entries: Entry) -> Included:
        """Register the publisher anew and publish some entries."""
        self.gone()
        made = self.do(
            "force_register_publisher", root=True, manager=self.manager.account, deposit=0
        )
        return self.publish(self.para, entries) if entries else made

    def published(self, *entries: Entry) -> Included:
        """Publish entries that must be accepted."""
        made = self.publish(self.para, entries)
        expect(None, made.error, made.number)
        return made

    def many(self, count: int, length: int) -> list[bytes]:
        """Publish `count` keys with values of one length and return the keys.

        Raises `Untestable` if that takes too many calls.
        """
        at_once = max(1, min(64, _LARGEST // (length + 40)))
        if count > at_once * self.mapping.most_calls:
            calls = -(-count // at_once)
            raise Untestable(f"it takes {calls} calls, and {self.mapping.most_calls} may be spent")
        keys = [bytes(key_from_data(b"many/%d" % at)) for at in range(count)]
        for start in range(0, count, at_once):
            self.published(*((key, bytes(length), 0) for key in keys[start : start + at_once]))
        return keys

    def number(self, name: str) -> int:
        """Return a constant of the pallet.

        Raises `Untestable` if the chain has no constant of this name.
        """
        metadata = self.relay.metadata()
        called = self.mapping.name(name)
        pallet = metadata.pallets.get(self.mapping.pallet)
        found = None if pallet is None else pallet.constants.get(called)
        value = None if found is None else decode(metadata, found.type, found.value)
        if not isinstance(value, int):
            raise Untestable(f"the chain has no constant {called}")
        return value

    def longest(self) -> int:
        """Return `MaxValueLength`. Raises `Untestable` if no extrinsic can carry such a value."""
        found = self.number("MaxValueLength")
        if found >= _LARGEST:
            raise Untestable(f"a value of {found:,} bytes fits no extrinsic")
        return found

    # Requirements

    def did(self, made: Included, event: str, **fields: object) -> None:
        """Require that a call succeeded with exactly this event of the pallet."""
        expect((None, (self.event(event, **fields),)), (made.error, made.events), made.number)

    def refuses(self, made: Included, error: str) -> None:
        """Require that a call failed with this error, without events and changes."""
        named = (
            error if error == "BadOrigin" else f"{self.mapping.pallet}.{self.mapping.name(error)}"
        )
        expect((named, ()), (made.error, made.events), made.number)
        expect(self.all(made.number - 1), self.all(made.number), made.number)

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
        """Return everything of the publisher: root, registration, counters and held balance."""
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
    """Return the reason why a message had no effect or not its whole effect, or `None`."""
    if event.name == "Processed":
        return None if event.fields.get("success") else "incomplete"
    error = event.fields.get("error", event.name)
    return str(next(iter(error), event.name)) if isinstance(error, dict) else str(error)
