"""A parser for `.did` files: type definitions and one service.

It covers the part of the language that the files of this project use. It has no imports and no
service constructors, and reduces function and service types to opaque references.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from interchain_events.icrc72.ic.candid import types as t
from interchain_events.icrc72.ic.errors import DidError

_TOKEN: Final = re.compile(
    r"\s+|//[^\n]*|/\*.*?\*/"
    r'|(?P<text>"(?:[^"\\]|\\.)*")'
    r"|(?P<number>0x[0-9a-fA-F_]+|[0-9][0-9_]*)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>->|[{}();:,=])",
    re.DOTALL,
)
"""Tokens; the first line matches white space and comments, which have no group and are dropped."""
_MODES: Final = frozenset(["query", "oneway", "composite_query"])

Makers = Mapping[str, t.Make]
"""By the name of a record type, a function that makes the Python value from the tuple of fields."""


class Method(NamedTuple):
    """A method of a service."""

    name: str
    arguments: tuple[t.Type, ...]
    results: tuple[t.Type, ...]
    mode: str
    """`update`, `query`, `composite_query` or `oneway`."""


class Interface(NamedTuple):
    """The content of a `.did` file."""

    types: Mapping[str, t.Type]
    """The defined types by name."""
    methods: Mapping[str, Method]
    """The methods of the service by name; empty if the file has no service."""


def parse(text: str, makers: Makers | None = None) -> Interface:
    """Parse a `.did` file.

    Decoders make the values of a record type that `makers` names by calling its function, and
    tuples for other records. Raises `DidError` with the line.
    """
    return _Parser(text, makers or {}).interface()


def parse_types(text: str, definitions: Mapping[str, t.Type] | None = None) -> tuple[t.Type, ...]:
    """Parse a list of argument types such as `(nat, opt text)`, which may use `definitions`.

    Raises `DidError`.
    """
    parser = _Parser(text, {}, dict(definitions or {}))
    types = parser.arguments()
    parser.end()
    return types


class _Parser:
    """A recursive-descent parser that looks at most one token ahead."""

    def __init__(self, text: str, makers: Makers, types: dict[str, t.Type] | None = None) -> None:
        self._tokens = list(_tokens(text))
        self._at = 0
        self._makers = makers
        self._types: dict[str, t.Type] = {} if types is None else types

    def interface(self) -> Interface:
        """Read a whole file. A type may be used before its definition."""
        methods: dict[str, Method] = {}
        while self._at < len(self._tokens):
            word = self._name()
            if word == "type":
                name = self._name()
                self._expect("=")
                self._types[name] = self._type(self._makers.get(name))
            elif word == "service":
                if not self._is(":"):
                    self._name()
                self._expect(":")
                methods = self._service()
            else:
                # The error is about the word that was read.
                self._at -= 1
                raise self._unexpected("`type` or `service`")
            self._skip(";")
        return Interface(self._types, methods)

    def end(self) -> None:
        """Raise `DidError` unless the whole text was read."""
        if self._at < len(self._tokens):
            raise self._unexpected("the end")

    def arguments(self) -> tuple[t.Type, ...]:
        """Read a list of types, with the parentheses."""
        self._expect("(")
        types: list[t.Type] = []
        while not self._skip(")"):
            # An argument may have a name, which is only documentation.
            if self._peek(1) == ":":
                self._at += 2
            types.append(self._type())
            if not self._is(")"):
                self._expect(",")
        return tuple(types)

    def _service(self) -> dict[str, Method]:
        """Read the methods of a service, with the braces."""
        self._expect("{")
        methods: dict[str, Method] = {}
        while not self._skip("}"):
            name = self._label()
            self._expect(":")
            arguments = self.arguments()
            self._expect("->")
            results = self.arguments()
            mode = self._name() if self._peek() in _MODES else "update"
            methods[name] = Method(name, arguments, results, mode)
            if not self._is("}"):
                self._expect(";")
        return methods

    def _type(self, make: t.Make | None = None) -> t.Type:
        """Read a type. If it is a record, `make` will make its Python values."""
        word = self._name()
        if word == "opt":
            return t.Opt(self._type())
        if word == "vec":
            return t.Vec(self._type())
        if word == "blob":
            return t.Vec(t.PRIMS["nat8"])
        if word == "record":
            return t.Record(self._fields(of_record=True), make)
        if word == "variant":
            return t.Cases(self._fields(of_record=False))
        if word in {"func", "service"}:
            return self._reference(word)
        return t.PRIMS[word] if word in t.PRIMS else t.Named(word, self._types)

    def _reference(self, word: str) -> t.Reference:
        """Read and drop the signature of a function or service type."""
        if word == "service":
            self._service()
        else:
            self.arguments()
            self._expect("->")
            self.arguments()
            if self._peek() in _MODES:
                self._at += 1
        return t.Reference(word)

    def _fields(self, *, of_record: bool) -> tuple[t.Field, ...]:
        """Read the fields of a record or the cases of a variant, with their braces.

        A field has a name, a number, or neither: then its id is one more than that of the field
        before it. A case without a type has the type null.
        """
        self._expect("{")
        fields: list[t.Field] = []
        next_id = 0
        while not self._skip("}"):
            labelled = self._peek(1) == ":" or (not of_record and self._peek(1) in {";", "}"})
            number = self._number() if labelled else next_id
            name = self._label() if number is None else str(number)
            identity = t.hash_of(name) if number is None else number
            next_id = identity + 1
            has_type = not labelled or self._skip(":")
            type_: t.Type = self._type() if has_type else t.PRIMS["null"]
            fields.append(t.Field(identity, name, type_))
            if not self._is("}"):
                self._expect(";")
        return t.checked_fields(tuple(fields))

    def _peek(self, ahead: int = 0) -> str | None:
        """Return the text of a token without advancing, or `None` after the end."""
        at = self._at + ahead
        return self._tokens[at][1] if at < len(self._tokens) else None

    def _is(self, sign: str) -> bool:
        return self._at < len(self._tokens) and self._tokens[self._at][:2] == ("sign", sign)

    def _skip(self, sign: str) -> bool:
        """Skip a sign if it comes next, and return whether it did."""
        is_next = self._is(sign)
        if is_next:
            self._at += 1
        return is_next

    def _expect(self, sign: str) -> None:
        if not self._skip(sign):
            raise self._unexpected(repr(sign))

    def _unexpected(self, wanted: str) -> DidError:
        if self._at >= len(self._tokens):
            return DidError(f"the text ends where {wanted} was expected")
        _, token, line = self._tokens[self._at]
        return DidError(f"line {line}: {wanted} was expected, not {token!r}")

    def _take(self, kind: str) -> str | None:
        """Return the next token and advance if it is of a kind; otherwise return `None`."""
        if self._at >= len(self._tokens):
            return None
        token_kind, token, _ = self._tokens[self._at]
        if token_kind != kind:
            return None
        self._at += 1
        return token

    def _name(self) -> str:
        """Read a name. Raises `DidError` if none follows."""
        name = self._take("name")
        if name is None:
            raise self._unexpected("a name")
        return name

    def _number(self) -> int | None:
        """Read a number, and return `None` if none follows."""
        digits = self._take("number")
        return None if digits is None else int(digits.replace("_", ""), 0)

    def _label(self) -> str:
        """Read the name of a field, case or method, which may be quoted."""
        quoted = self._take("text")
        return self._name() if quoted is None else re.sub(r"\\(.)", r"\1", quoted[1:-1])


def _tokens(text: str) -> list[tuple[str, str, int]]:
    """Split a text into tokens: kind (`text`, `number`, `name` or `sign`), text and line."""
    tokens: list[tuple[str, str, int]] = []
    at = 0
    line = 1
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise DidError(
                f"line {line}: {text[at : at + 20]!r} cannot be in an interface description"
            )
        if match.lastgroup is not None:
            tokens.append((match.lastgroup, match.group(), line))
        line += match.group().count("\n")
        at = match.end()
    return tokens
