"""CandyPath, the language of filters on the data of events (IC-26).

A filter combines tests with ` & `, ` | ` and parentheses. A test selects values with a path, such
as `order.items[price > 5].name`, and compares them: it holds if one of the values does. A filter is
parsed once into immutable nodes. A name with dots is written in quotes or with a backslash before
each dot: `"com.example.host" == John`. A path that begins with `$event` leads into the whole event:
`$event.headers.content-type == ICRC16`.

The evaluation counts every visit of a value and every comparison as a step. A filter that takes
more than 100,000 steps does not match.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple, Protocol

from interchain_events.icrc72.comparison import compare, compare_word
from interchain_events.icrc72.errors import FilterError
from interchain_events.icrc72.facts import Width
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.keys import (
    BROADCASTER_HEADERS,
    EVENT_TIMESTAMP,
    REPLAY_END,
    REPLAY_ID,
    REPLAYED,
)
from interchain_events.icrc72.values import Pairs, Value, as_nat, first, map_, nat, option
from interchain_events.icrc72.values import text as text_value

MOST_BYTES: Final = 1024
"""The longest text of a filter in bytes."""
MOST_DEPTH: Final = 16
"""How deep parentheses and brackets may be nested."""
MOST_TESTS: Final = 64
"""How many tests a filter may have."""
MOST_STEPS: Final = 100_000
"""How many steps an evaluation may take."""

# A backslash takes the special meaning from any character in a name or value.
_NAME: Final = re.compile(r'(?:\\.|[^ .\[\]()*@$?:,=<>!~&|"\\])*', re.DOTALL)
_WORD: Final = re.compile(r'(?:\\.|[^ \])\[(,?"\\])*', re.DOTALL)
_QUOTED: Final = re.compile(r'"((?:\\.|[^"\\])+)"', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
# Longer operators come before those with which they begin: the first that matches is taken.
_OPERATORS: Final = ("!~~=", "!~=", "~~=", "~=", "==", "!=", "<>", ">=", "<=", ">", "<")
_INDEX: Final = re.compile(r"-?[0-9]+", re.ASCII)


_ADDED: Final = BROADCASTER_HEADERS | {REPLAYED, REPLAY_ID, REPLAY_END}
"""The headers that an event does not have when it is first published."""


_FIELDS: Final = frozenset(
    ("eventId", "prevEventId", "timestamp", "namespace", "source", "headers", "data")
)
"""The fields of an event to which `$event` leads."""


@dataclass(frozen=True, slots=True)
class Name:
    """A step to the entries of this name, or to the item of an array at this index."""

    name: str
    index: int | None
    """The name as an integer, which may be negative; `None` if it is not one."""


@dataclass(frozen=True, slots=True)
class All:
    """A step to all items or values (`*`)."""


class Where(NamedTuple):
    """A step to the items for which a filter holds (`[…]`)."""

    filter: "Filter"


class Path(NamedTuple):
    """A path to values."""

    root: bool
    """Whether it begins at the data of the event (`$`), and not at the current item."""
    steps: tuple[Name | All | Where, ...]
    whole: bool = False
    """Whether it begins at the whole event (`$event`)."""


class Word(NamedTuple):
    """A value in the text of a filter."""

    text: str
    literal: bool
    """Whether a character is escaped, so that it is only text and never a number."""


@dataclass(frozen=True, slots=True)
class Null:
    """Null in a filter (`?`)."""


class Test(NamedTuple):
    """A test, which holds if a value at the path is in a relation to one of `values`."""

    path: Path
    operator: str
    values: tuple[Word | Path | Null, ...]


class Filter(NamedTuple):
    """A parsed filter, which holds if all terms of one of the alternatives hold."""

    alternatives: tuple[tuple["Test | Filter", ...], ...]


class Overrun(Exception):
    """An evaluation takes more steps than are allowed."""


@lru_cache(maxsize=4096)
def parse(text: str) -> Filter:
    """Parse a filter. Raises `FilterError` with the position of the error."""
    if len(text.encode(errors="replace")) > MOST_BYTES:
        raise FilterError(f"a filter has at most {MOST_BYTES} bytes")
    parser = _Parser(text)
    parsed = parser.filter(1)
    parser.end()
    return parsed


def matches(text: str, data: Value) -> bool:
    """Return whether a filter holds for data. If it takes too many steps, it does not.

    Raises `FilterError` if it cannot be parsed.
    """
    try:
        return evaluate(parse(text), data)
    except Overrun:
        return False


class Filtered(Protocol):
    """An event or a notification."""

    @property
    def eventId(self) -> int:  # noqa: N802 — the field's name in the standard
        """Return the id of the event."""

    @property
    def prevEventId(self) -> int | None:  # noqa: N802 — as above
        """Return the id of the event before it, or `None`."""

    @property
    def timestamp(self) -> int:
        """Return its time (ns)."""

    @property
    def namespace(self) -> str:
        """Return its namespace."""

    @property
    def data(self) -> Value:
        """Return its data."""

    @property
    def source(self) -> Principal:
        """Return its publisher."""

    @property
    def headers(self) -> Pairs | None:
        """Return its headers."""


def lets_pass(width: Width, event: Filtered) -> bool:
    """Return whether an event passes the skip and the filter of a width, in this order (IC-27)."""
    text, skip = width
    if skip is not None and not skip.passes(event.eventId):
        return False
    try:
        return text is None or evaluate(parse(text), event.data, event)
    except Overrun:
        return False


def evaluate(parsed: Filter, data: Value, event: Filtered | None = None) -> bool:
    """Return whether a parsed filter holds for data, or for an event with these data.

    Raises `Overrun` if it takes too many steps.
    """
    return _Evaluation(data, event).holds(parsed, data)


def whole(event: Filtered) -> Value:
    """Return an event as its publisher made it, which `$event` in a filter stands for.

    Headers that broadcasters append, or that mark a replay, are left out, and the time is that of
    the event. So a filter gives the same result at the entry, at the exit, and in a replay.
    """
    headers = tuple((key, value) for key, value in event.headers or () if key not in _ADDED)
    time = as_nat(first(event.headers, EVENT_TIMESTAMP))
    prev: Value = option(None) if event.prevEventId is None else nat(event.prevEventId)
    source: Variant[Literal["Principal"], Principal] = Variant("Principal", event.source)
    own: Variant[Literal["Map"], Pairs] = Variant("Map", headers)
    parts: dict[str, Value] = {
        "eventId": nat(event.eventId),
        "prevEventId": prev,
        "timestamp": nat(event.timestamp if time is None else time),
        "namespace": text_value(event.namespace),
        "source": source,
        "headers": own,
        "data": event.data,
    }
    return map_(parts)


class _Parser:
    """A recursive-descent parser of filters. White space is significant."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._tests = 0

    def end(self) -> None:
        """Raise `FilterError` unless the whole text was read."""
        if self._at < len(self._text):
            raise self._wrong("the end")

    def filter(self, depth: int) -> Filter:
        """Read alternatives, joined by ` | `, at a depth of nesting counted from 1."""
        if depth > MOST_DEPTH:
            raise FilterError(f"a filter has at most depth {MOST_DEPTH}")
        alternatives = [self._all(depth)]
        while self._skip(" | "):
            alternatives.append(self._all(depth))
        return Filter(tuple(alternatives))

    def _all(self, depth: int) -> tuple[Test | Filter, ...]:
        """Read terms, joined by ` & `, which binds tighter than ` | `."""
        terms = [self._term(depth)]
        while self._skip(" & "):
            terms.append(self._term(depth))
        return tuple(terms)

    def _term(self, depth: int) -> Test | Filter:
        if self._skip("("):
            nested = self.filter(depth + 1)
            self._expect(")")
            return nested
        return self._test(depth)

    def _test(self, depth: int) -> Test:
        """Read a test: `path:[a, b]`, `path operator value`, or `path`, which must not be null."""
        self._tests += 1
        if self._tests > MOST_TESTS:
            raise FilterError(f"a filter has at most {MOST_TESTS} tests")
        path = self._path(depth)
        if self._skip(":"):
            self._skip(" ")
            self._expect("[")
            values = [self._value(depth)]
            while self._skip(","):
                self._skip(" ")
                values.append(self._value(depth))
            self._expect("]")
            return Test(path, "==", tuple(values))
        before = self._at
        if self._skip(" "):
            for operator in _OPERATORS:
                if self._skip(operator):
                    self._expect(" ")
                    return Test(path, operator, (self._value(depth),))
            # The space belongs to ` & ` or ` | `.
            self._at = before
        return Test(path, "!=", (Null(),))

    def _path(self, depth: int) -> Path:
        """Read a path: from the data (`$`), the event (`$event`), or the current item (`@`).

        `@.` is implied. An event has a fixed set of fields, so a path into another one could never
        match and is refused.
        """
        if self._skip("$event"):
            start = self._at
            steps = self._steps(depth)
            field = steps[0] if steps else None
            if isinstance(field, Name) and field.name not in _FIELDS:
                self._at = start
                raise self._wrong("a field of an event")
            return Path(root=False, steps=steps, whole=True)
        if self._skip("$"):
            return Path(root=True, steps=self._steps(depth))
        if self._skip("@"):
            return Path(root=False, steps=self._steps(depth))
        first: Name | All = All() if self._skip("*") else self._name()
        return Path(root=False, steps=(first, *self._steps(depth)))

    def _steps(self, depth: int) -> tuple[Name | All | Where, ...]:
        steps: list[Name | All | Where] = []
        while True:
            if self._skip("."):
                steps.append(All() if self._skip("*") else self._name())
            elif self._skip("["):
                steps.append(Where(self.filter(depth + 1)))
                self._expect("]")
            else:
                return tuple(steps)

    def _value(self, depth: int) -> Word | Path | Null:
        """Read a value to compare with: null (`?`), a path (with `$` or `@`), or a word."""
        if self._skip("?"):
            return Null()
        if self._text.startswith(("$", "@"), self._at):
            return self._path(depth)
        return Word(*self._characters(_WORD, "a value"))

    def _name(self) -> Name:
        """Read the name of an entry. In quotes, it may contain dots and spaces."""
        quoted = _QUOTED.match(self._text, self._at)
        if quoted is not None:
            self._at = quoted.end()
            return Name(_ESCAPED.sub(r"\1", quoted[1]), None)
        name, escaped = self._characters(_NAME, "a name")
        return Name(name, int(name) if not escaped and _INDEX.fullmatch(name) else None)

    def _characters(self, allowed: re.Pattern[str], expected: str) -> tuple[str, bool]:
        """Read a name or value, and return it without its escapes and whether it had any."""
        match = allowed.match(self._text, self._at)
        written = "" if match is None else match.group()
        self._at += len(written)
        if self._text.startswith("\\", self._at):
            raise self._wrong("a character after \\")
        if not written:
            raise self._wrong(expected)
        escaped = "\\" in written
        return _ESCAPED.sub(r"\1", written) if escaped else written, escaped

    def _skip(self, words: str) -> bool:
        """Skip words if they come next, and return whether they did."""
        is_next = self._text.startswith(words, self._at)
        if is_next:
            self._at += len(words)
        return is_next

    def _expect(self, words: str) -> None:
        if not self._skip(words):
            raise self._wrong(repr(words))

    def _wrong(self, expected: str) -> FilterError:
        rest = self._text[self._at : self._at + 20]
        fault = f"has {rest!r} at {self._at}" if rest else f"ends at {self._at}"
        return FilterError(f"the filter {fault}, where {expected} was expected")


def unwrapped(value: Value) -> Value:
    """Return the value inside of nested Options. Null stays an empty Option."""
    while value.tag == "Option" and value.value is not None:
        value = value.value
    return value


class _Evaluation:
    """One evaluation of a filter, with the steps that are left."""

    def __init__(self, data: Value, event: Filtered | None) -> None:
        self._data = data
        self._event = event
        self._left = MOST_STEPS

    def holds(self, parsed: Filter, item: Value) -> bool:
        return any(all(self._term(term, item) for term in terms) for terms in parsed.alternatives)

    def _term(self, term: Test | Filter, item: Value) -> bool:
        if isinstance(term, Filter):
            return self.holds(term, item)
        return any(self._test(term.path, term.operator, value, item) for value in term.values)

    def _test(self, path: Path, operator: str, wanted: Word | Path | Null, item: Value) -> bool:
        """Return whether a value at a path is in a relation to a word or another path's value."""
        if isinstance(wanted, Null):
            return self._null(path, operator, item)
        for value in self._select(path, item):
            self._step()
            if isinstance(wanted, Word):
                if compare_word(value, operator, wanted.text, literal=wanted.literal):
                    return True
                continue
            for other in self._select(wanted, item):
                self._step()
                if compare(value, operator, other):
                    return True
        return False

    def _null(self, path: Path, operator: str, item: Value) -> bool:
        """Compare the values at a path with null.

        A path without values equals null. No value is greater or less than null.
        """
        if operator == "==":
            return all(value == _NOTHING for value in self._select(path, item))
        if operator in {"!=", "<>"}:
            return any(value != _NOTHING for value in self._select(path, item))
        return False

    def _select(self, path: Path, item: Value) -> Iterator[Value]:
        """Yield the values at a path. `item` is the item to which `@` refers."""
        if path.whole:
            if self._event is None:
                return iter(())
            return self._walk(whole(self._event), path.steps, 0)
        return self._walk(self._data if path.root else item, path.steps, 0)

    def _walk(
        self, value: Value, steps: tuple[Name | All | Where, ...], position: int
    ) -> Iterator[Value]:
        """Yield the values to which the steps from `position` on lead, looking into Options."""
        self._step()
        value = unwrapped(value)
        if position == len(steps):
            yield value
            return
        step = steps[position]
        for child in self._children(value, step):
            yield from self._walk(child, steps, position + 1)

    def _children(self, value: Value, step: Name | All | Where) -> Iterator[Value]:
        """Yield the values to which one step leads.

        A condition selects items of an Array or Set, but a Map or Class as a whole.
        """
        if isinstance(step, Where):
            match value:
                case ("Array" | "Set", items):
                    for item in items:
                        self._step()
                        if self.holds(step.filter, unwrapped(item)):
                            yield item
                case ("Map" | "Class" | "ValueMap", _) if self.holds(step.filter, value):
                    yield value
        elif isinstance(step, All):
            yield from _items(value)
        else:
            yield from self._named(value, step)

    def _named(self, value: Value, step: Name) -> Iterator[Value]:
        """Yield the entries of a map or class with a name, or the item of an array at an index."""
        match value:
            case (("Map" | "Class"), entries):
                for entry in entries:
                    self._step()
                    if entry[0] == step.name:
                        yield entry[1]
            case ("ValueMap", pairs):
                for key, inside in pairs:
                    self._step()
                    if key == ("Text", step.name):
                        yield inside
            case (("Array" | "Bytes" | "Floats" | "Nats"), packed):
                if step.index is not None and -len(packed) <= step.index < len(packed):
                    # Packed arrays have bare Python values, and `_items` gives them their tags.
                    yield (
                        list(_items(value))[step.index]
                        if value.tag != "Array"
                        else value.value[step.index]
                    )

    def _step(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Overrun


def _items(value: Value) -> Iterator[Value]:
    """Yield the items of an array or set, or the values of a map or class. Others have none."""
    match value:
        case (("Array" | "Set"), items):
            yield from items
        case (("Map" | "Class" | "ValueMap"), entries):
            for entry in entries:
                yield entry[1]
        case ("Bytes", raw):
            for byte in raw:
                small: Variant[Literal["Nat8"], int] = Variant("Nat8", byte)
                yield small
        case ("Floats", raws):
            for raw in raws:
                double: Variant[Literal["Float"], bytes] = Variant("Float", raw)
                yield double
        case ("Nats", numbers):
            for number in numbers:
                yield nat(number)


_NOTHING: Final = option(None)
