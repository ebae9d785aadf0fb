"""What rules are tested with: their list, their findings, and helpers around one driver."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, Literal

from pubsub_emulator.client.conform.driver import Driver, Included
from pubsub_emulator.client.errors import BadAnswer
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.trie.errors import TrieError
from pubsub_emulator.trie.lazy import StateUnavailable

Verdict = Literal["holds", "broken", "not testable here"]
KEYS: Final = tuple(bytes(key_from_data(b"conform/%d" % at)) for at in range(4))
_SHOWN: Final = 200
_LARGEST: Final = 60_000
"""Bytes of values in one extrinsic."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one rule; `expected`, `seen` and `block` are those of the first thing that is broken."""

    rule: str
    sentence: str
    verdict: Verdict
    expected: str = ""
    seen: str = ""
    block: int | None = None
    reason: str = ""


class Broken(Exception):
    """A rule does not hold."""

    def __init__(self, expected: object, seen: object, block: int) -> None:
        super().__init__()
        (self.expected, self.seen), self.block = _said(expected, seen), block


class Untestable(Exception):
    """A rule cannot be tested on this chain."""


Check = Callable[["Story"], None]
RULES: Final[list[tuple[str, str, Check]]] = []
"""The rules in the order in which they are tested."""


def rule(name: str, sentence: str) -> Callable[[Check], Check]:
    """Decorator: a function tests a rule. It raises `Broken` or `Untestable`."""

    def keep(check: Check) -> Check:
        RULES.append((name, sentence, check))
        return check

    return keep


def conform(driver: Driver, only: Collection[str] = ()) -> list[Finding]:
    """Test all rules, or `only` some by name. Raises `ClientError` if the node fails or answers with other types."""
    story = Story(driver)
    return [_judged(story, *each) for each in RULES if not only or each[0] in only]


def _judged(story: "Story", name: str, sentence: str, check: Check) -> Finding:
    try:
        check(story)
    except Broken as broken:
        return Finding(name, sentence, "broken", broken.expected, broken.seen, broken.block)
    except Untestable as why:
        return Finding(name, sentence, "not testable here", reason=str(why))
    except (StateUnavailable, TrieError) as error:
        return Finding(name, sentence, "broken", "a state that its root proves", str(error), story.d.relay.best())
    except (AttributeError, IndexError, KeyError, OverflowError, ScaleError, TypeError, ValueError) as error:
        said = f"{name}: the chain's types are not those of the rules: {type(error).__name__}: {error}"
        raise BadAnswer(said) from error
    return Finding(name, sentence, "holds")


def expect(expected: object, seen: object, block: int) -> None:
    """Raise `Broken` unless what is seen is what is expected."""
    if expected != seen:
        raise Broken(expected, seen, block)


def _said(expected: object, seen: object) -> tuple[str, str]:
    """Both values as texts; of long ones the part in which they begin to differ."""
    texts = _text(expected), _text(seen)
    same = next((at for at, (one, other) in enumerate(zip(*texts, strict=False)) if one != other), 0)
    start = max(0, same - _SHOWN // 2) if max(map(len, texts)) > _SHOWN else 0
    return _part(texts[0], start), _part(texts[1], start)


def _part(text: str, start: int) -> str:
    return ("…" if start else "") + text[start : start + _SHOWN] + ("…" if start + _SHOWN < len(text) else "")


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return hexed(value)
    if isinstance(value, set):
        return f"{{{', '.join(sorted(map(_text, value)))}}}"
    return repr(value)


class Story:
    """Helpers of the rules around one driver."""

    def __init__(self, driver: Driver) -> None:
        self.d = driver
        self.para = driver.mapping.publisher
        self.encoded = self.para.to_bytes(4, "little")

    def entry(self, value: bytes, ttl: int, when: int) -> bytes:
        """The bytes of an entry."""
        parts = {
            "value": encode_compact(len(value)) + value,
            "ttl": ttl.to_bytes(4, "little"),
            "when_inserted": when.to_bytes(4, "little"),
        }
        return b"".join(parts[name] for name in self.d.mapping.entry)

    def at(self, number: int, key: bytes) -> bytes | None:
        """The publisher's entry under a key after a block."""
        return self.d.child(number, self.para).get(key)

    def error(self, name: str) -> str:
        """The name of an error of the pallet."""
        return f"{self.d.mapping.pallet}.{self.d.mapping.name(name)}"

    def event(self, name: str, **fields: object) -> tuple[str, dict[str, object]]:
        """An event of the pallet."""
        called = self.d.mapping.name
        return called(name), {called(key): value for key, value in fields.items()}

    def info(self, number: int, para: int | None = None) -> tuple[bytes, int] | None:
        """Manager and deposit of a registration after a block."""
        key = self.encoded if para is None else para.to_bytes(4, "little")
        found = self.d.item(number, "RegisteredPublishers", key)
        return None if found is None else tuple(found.values() if isinstance(found, dict) else found)

    def counters(self, number: int) -> tuple[int, int]:
        """Keys and bytes of the publisher, as the counters say."""
        keys, size = (self.d.item(number, name, self.encoded) or 0 for name in ("PublishedKeys", "TotalStorageSize"))
        return keys, size

    def ttl_row(self, number: int, key: bytes) -> object:
        """The row of `TtlData` of a key."""
        return self.d.item(number, "TtlData", self.encoded, key)

    def held(self, number: int) -> int:
        """The part of the manager's balance that is held."""
        return self.balance(number)[1]

    def balance(self, number: int, *, fees: bool = True) -> tuple[int, int]:
        """The manager's free balance, with the fees of that block unless told otherwise, and what is held."""
        found = self.d.relay.item(number, "System", "Account", self.d.manager.account)["data"]
        paid = (each.fields for each in self.d.relay.events(number) if each.name == "TransactionFeePaid")
        spent = sum(each["actual_fee"] for each in paid if each["who"] == self.d.manager.account)
        return found["free"] + (spent if fees else 0), found["reserved"]

    def released(self, number: int, deposit: int) -> None:
        """Require that a block gave the manager a deposit back."""
        free, held = self.balance(number - 1, fees=False)
        expect((free + deposit, held - deposit), self.balance(number), number)

    def gone(self) -> None:
        """Make the publisher unregistered and without data."""
        number = self.d.relay.best()
        if self.info(number) is not None or self.d.root(number, self.para) is not None:
            self.d.do("force_deregister_publisher", root=True, para=self.para)

    def fresh(self, *entries: tuple[bytes, bytes, int]) -> Included:
        """Register the publisher anew and let it publish some entries."""
        self.gone()
        manager = self.d.manager.account
        made = self.d.do("force_register_publisher", root=True, manager=manager, deposit=0, para=self.para)
        return self.d.publish(self.para, entries) if entries else made

    def published(self, *entries: tuple[bytes, bytes, int]) -> Included:
        """Publish what must be accepted."""
        made = self.d.publish(self.para, entries)
        expect(None, made.error, made.number)
        return made

    def number(self, name: str) -> int:
        """A constant. Raises `Untestable` if the chain has none of that name."""
        found = self.d.constant(name)
        if not isinstance(found, int):
            raise Untestable(f"the chain has no constant {self.d.mapping.name(name)}")
        return found

    def longest(self) -> int:
        """`MaxValueLength`. Raises `Untestable` if no extrinsic could carry such a value."""
        found = self.number("MaxValueLength")
        if found >= _LARGEST:
            raise Untestable(f"a value of {found:,} bytes fits no extrinsic")
        return found

    def refuses(self, made: Included, error: str, before: tuple[object, ...]) -> None:
        """Require that a call failed for one reason and changed nothing."""
        expect(error, made.error, made.number)
        expect((), made.events, made.number)
        expect(before, self.all(made.number), made.number)

    def all(self, number: int) -> tuple[object, ...]:
        """The chain's values of the publisher: root, registration, counters, the held balance."""
        return self.d.root(number, self.para), self.info(number), self.counters(number), self.held(number)


def nothing_left(s: Story, number: int) -> None:
    """Require that a block left nothing of the publisher."""
    expect((None, None, (0, 0)), s.all(number)[:3], number)
    for key in KEYS:
        expect(None, s.ttl_row(number, key), number)


def many(s: Story, count: int, length: int) -> list[bytes]:
    """Publish that many keys with values of one length."""
    at_once = max(1, min(64, _LARGEST // (length + 40)))
    if count > at_once * s.d.mapping.most_calls:
        raise Untestable(f"it takes {-(-count // at_once)} calls, and {s.d.mapping.most_calls} may be spent")
    keys = [bytes(key_from_data(b"many/%d" % at)) for at in range(count)]
    for start in range(0, count, at_once):
        s.published(*((key, bytes(length), 0) for key in keys[start : start + at_once]))
    return keys
