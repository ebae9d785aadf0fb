"""CandyPath: filters over the data of events (IC-26), parsed once, evaluated in bounded work.

A filter is parsed into small frozen nodes; `matches` visits values and counts each visit and comparison as a step. One
that would need more than 100,000 steps does not match; `evaluate` raises `Overrun` then.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from pubsub_emulator.icrc72.comparison import compare, compare_word
from pubsub_emulator.icrc72.errors import FilterError
from pubsub_emulator.icrc72.facts import Width
from pubsub_emulator.icrc72.ic.candid.types import Variant
from pubsub_emulator.icrc72.values import Value, nat, option

MOST_BYTES: Final = 1024
MOST_DEPTH: Final = 16
MOST_TESTS: Final = 64
MOST_STEPS: Final = 100_000

_NAME: Final = re.compile(r'(?:\\.|[^ .\[\]()*@$?:,=<>!~&|"\\])*', re.DOTALL)
_WORD: Final = re.compile(r'(?:\\.|[^ \])\[(,?"\\])*', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)
_OPERATORS: Final = ("!~~=", "!~=", "~~=", "~=", "==", "!=", "<>", ">=", "<=", ">", "<")
_INDEX: Final = re.compile(r"-?[0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Name:
    """A step to the entries of a name, or to an item when it is a plain integer."""

    name: str
    index: int | None


@dataclass(frozen=True, slots=True)
class All:
    """A step to every item or value."""


class Where(NamedTuple):
    """A step to the items for which a filter holds."""

    filter: "Filter"


class Path(NamedTuple):
    """The path to a value: from the data (`$`) or the current item, step by step."""

    root: bool
    steps: tuple[Name | All | Where, ...]


class Word(NamedTuple):
    """A value as written; `literal` when an escape makes it text and nothing else."""

    text: str
    literal: bool


@dataclass(frozen=True, slots=True)
class Null:
    """`?`."""


class Test(NamedTuple):
    """A path and what one of the values there must be."""

    path: Path
    operator: str
    values: tuple[Word | Path | Null, ...]


class Filter(NamedTuple):
    """Alternatives of terms that all must hold."""

    alternatives: tuple[tuple["Test | Filter", ...], ...]


class Overrun(Exception):
    """The evaluation took more steps than are allowed."""


@lru_cache(maxsize=4096)
def parse(text: str) -> Filter:
    """Read a filter. Raises `FilterError` with the place."""
    if len(text.encode(errors="replace")) > MOST_BYTES:
        raise FilterError(f"a filter has at most {MOST_BYTES} bytes")
    parser = _Parser(text)
    found = parser.filter(1)
    parser.end()
    return found


def matches(text: str, data: Value) -> bool:
    """True when the filter holds for the data; an evaluation of too many steps does not. Raises `FilterError`."""
    try:
        return evaluate(parse(text), data)
    except Overrun:
        return False


def lets_pass(width: Width, identifier: int, data: Value) -> bool:
    """True when a filter and skip, each where there is one, let an event through: skip comes first (IC-27)."""
    text, skip = width
    return (skip is None or skip.passes(identifier)) and (text is None or matches(text, data))


def evaluate(parsed: Filter, data: Value) -> bool:
    """True when the filter holds. Raises `Overrun`."""
    return _Evaluation(data).holds(parsed, data)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._tests = 0

    def end(self) -> None:
        if self._at < len(self._text):
            raise self._wrong("the end")

    def filter(self, depth: int) -> Filter:
        if depth > MOST_DEPTH:
            raise FilterError(f"a filter has at most depth {MOST_DEPTH}")
        alternatives = [self._all(depth)]
        while self._skip(" | "):
            alternatives.append(self._all(depth))
        return Filter(tuple(alternatives))

    def _all(self, depth: int) -> tuple[Test | Filter, ...]:
        terms = [self._term(depth)]
        while self._skip(" & "):
            terms.append(self._term(depth))
        return tuple(terms)

    def _term(self, depth: int) -> Test | Filter:
        if self._skip("("):
            found = self.filter(depth + 1)
            self._expect(")")
            return found
        return self._test(depth)

    def _test(self, depth: int) -> Test:
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
            self._at = before
        return Test(path, "!=", (Null(),))

    def _path(self, depth: int) -> Path:
        if self._skip("$"):
            return Path(True, self._steps(depth))
        if self._skip("@"):
            return Path(False, self._steps(depth))
        first: Name | All = All() if self._skip("*") else self._name()
        return Path(False, (first, *self._steps(depth)))

    def _steps(self, depth: int) -> tuple[Name | All | Where, ...]:
        found: list[Name | All | Where] = []
        while True:
            if self._skip("."):
                found.append(All() if self._skip("*") else self._name())
            elif self._skip("["):
                found.append(Where(self.filter(depth + 1)))
                self._expect("]")
            else:
                return tuple(found)

    def _value(self, depth: int) -> Word | Path | Null:
        if self._skip("?"):
            return Null()
        if self._text.startswith(("$", "@"), self._at):
            return self._path(depth)
        return Word(*self._characters(_WORD, "a value"))

    def _name(self) -> Name:
        name, escaped = self._characters(_NAME, "a name")
        return Name(name, int(name) if not escaped and _INDEX.fullmatch(name) else None)

    def _characters(self, allowed: re.Pattern[str], what: str) -> tuple[str, bool]:
        found = allowed.match(self._text, self._at)
        written = "" if found is None else found.group()
        self._at += len(written)
        if self._text.startswith("\\", self._at):
            raise self._wrong("a character after \\")
        if not written:
            raise self._wrong(what)
        escaped = "\\" in written
        return _ESCAPED.sub(r"\1", written) if escaped else written, escaped

    def _skip(self, words: str) -> bool:
        found = self._text.startswith(words, self._at)
        if found:
            self._at += len(words)
        return found

    def _expect(self, words: str) -> None:
        if not self._skip(words):
            raise self._wrong(repr(words))

    def _wrong(self, expected: str) -> FilterError:
        found = repr(self._text[self._at : self._at + 20]) if self._at < len(self._text) else "the end"
        return FilterError(f"the filter has {found} at {self._at} where {expected} was expected")


def unwrapped(value: Value) -> Value:
    """An Option is looked through; null stays `Option` of nothing."""
    while value.tag == "Option" and value.value is not None:
        value = value.value
    return value


class _Evaluation:
    def __init__(self, data: Value) -> None:
        self._data = data
        self._left = MOST_STEPS

    def holds(self, parsed: Filter, item: Value) -> bool:
        return any(all(self._term(term, item) for term in terms) for terms in parsed.alternatives)

    def _term(self, term: Test | Filter, item: Value) -> bool:
        if isinstance(term, Filter):
            return self.holds(term, item)
        return any(self._test(term.path, term.operator, value, item) for value in term.values)

    def _test(self, path: Path, operator: str, wanted: Word | Path | Null, item: Value) -> bool:
        if isinstance(wanted, Null):
            return self._null(path, operator, item)
        for found in self._select(path, item):
            self._step()
            if isinstance(wanted, Word):
                if compare_word(found, operator, wanted.text, literal=wanted.literal):
                    return True
                continue
            for other in self._select(wanted, item):
                self._step()
                if compare(found, operator, other):
                    return True
        return False

    def _null(self, path: Path, operator: str, item: Value) -> bool:
        if operator == "==":
            return all(found == _NOTHING for found in self._select(path, item))
        if operator in {"!=", "<>"}:
            return any(found != _NOTHING for found in self._select(path, item))
        return False

    def _select(self, path: Path, item: Value) -> Iterator[Value]:
        return self._walk(self._data if path.root else item, path.steps, 0)

    def _walk(self, value: Value, steps: tuple[Name | All | Where, ...], at: int) -> Iterator[Value]:
        self._step()
        value = unwrapped(value)
        if at == len(steps):
            yield value
            return
        step = steps[at]
        for each in self._children(value, step):
            yield from self._walk(each, steps, at + 1)

    def _children(self, value: Value, step: Name | All | Where) -> Iterator[Value]:
        if isinstance(step, Where):
            match value:
                case ("Array" | "Set", items):
                    for each in items:
                        self._step()
                        if self.holds(step.filter, unwrapped(each)):
                            yield each
                case ("Map" | "Class" | "ValueMap", _) if self.holds(step.filter, value):
                    yield value
        elif isinstance(step, All):
            yield from _items(value)
        else:
            yield from self._named(value, step)

    def _named(self, value: Value, step: Name) -> Iterator[Value]:
        match value:
            case (("Map" | "Class"), entries):
                for entry in entries:
                    self._step()
                    if entry[0] == step.name:
                        yield entry[1]
            case ("ValueMap", pairs):
                for key, each in pairs:
                    self._step()
                    if key == ("Text", step.name):
                        yield each
            case (("Array" | "Bytes" | "Floats" | "Nats"), packed):
                if step.index is not None and -len(packed) <= step.index < len(packed):
                    yield list(_items(value))[step.index] if value.tag != "Array" else value.value[step.index]

    def _step(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Overrun


def _items(value: Value) -> Iterator[Value]:
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
            for each in raws:
                double: Variant[Literal["Float"], bytes] = Variant("Float", each)
                yield double
        case ("Nats", numbers):
            for number in numbers:
                yield nat(number)


_NOTHING: Final = option(None)
