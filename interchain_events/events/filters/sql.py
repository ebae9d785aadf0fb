"""A filter as a WHERE clause over the columns of a log, or of another table (EV-11).

Names, indices and values of a filter are parameters and never become SQL text. Every leaf is TRUE
or FALSE and never NULL, so that NOT inverts a missing path as the predicate does.

SQLite reads integers of more than 64 bits as floats. So integers near this size and beyond it are
compared as text: by sign, length and digits.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias

from interchain_events.database.database import Dialect
from interchain_events.events.filters.algebra import (
    All,
    Any,
    Chain,
    Field,
    Filter,
    Kind,
    Not,
    OneOf,
    Scalar,
    Step,
)


class Clause(NamedTuple):
    """SQL with its parameters, in order."""

    sql: str
    params: tuple[object, ...] = ()


_TRUE: Final = Clause("(1 = 1)")
_FALSE: Final = Clause("(1 = 0)")
_EXACT: Final = 2**62
"""Integers with a smaller absolute value are compared as SQLite's own integers."""


class Columns(Protocol):
    """The conditions that a table of events has for the leaves of a filter.

    Each condition is TRUE or FALSE, never NULL.
    """

    def chain(self, chain: int | None) -> Clause:
        """Return the condition that a row is of a chain."""

    def kind(self, kind: str) -> Clause:
        """Return the condition that a row is of a kind, or of a pallet for `Pallet.*`."""

    def field(self, path: tuple[Step, ...], op: str, value: Scalar | tuple[Scalar, ...]) -> Clause:
        """Return the condition that compares a field.

        Raises `BadFilter` if the table cannot express it.
        """


def where(part: Filter, columns: Columns) -> Clause:
    """Return the condition under which a row matches.

    Raises `BadFilter` if the table cannot express it.
    """
    match part:
        case Any():
            return _TRUE
        case All(parts):
            return _joined([where(inner, columns) for inner in parts], "AND", _TRUE)
        case OneOf(parts):
            return _joined([where(inner, columns) for inner in parts], "OR", _FALSE)
        case Not(inner):
            clause = where(inner, columns)
            return Clause(f"(NOT {clause.sql})", clause.params)
        case Chain(chain):
            return columns.chain(chain)
        case Kind(kind):
            return columns.kind(kind)
        case Field(path, op, value):
            return columns.field(path, op, value)


class LogColumns(Columns):
    """The columns of a log: `chain`, `kind`, and `body` with the fields as JSON."""

    def __init__(self, dialect: Dialect) -> None:
        self._field: type[_JsonField] = (
            _SqliteField if dialect is Dialect.SQLITE else _PostgresField
        )

    def chain(self, chain: int | None) -> Clause:
        if chain is None:
            return Clause("(chain IS NULL)")
        return Clause("(chain IS NOT NULL AND chain = ?)", (chain,))

    def kind(self, kind: str) -> Clause:
        if kind.endswith(".*"):
            # Names consist of letters, digits and _. `/` is the character after `.`, so it ends the
            # range of the pallet's kinds.
            return Clause("(kind >= ? AND kind < ?)", (kind[:-1], f"{kind[:-2]}/"))
        return Clause("(kind = ?)", (kind,))

    def field(self, path: tuple[Step, ...], op: str, value: Scalar | tuple[Scalar, ...]) -> Clause:
        return _leaf(self._field(path), op, value)


def _joined(clauses: Sequence[Clause], word: str, empty: Clause) -> Clause:
    """Return the conjunction or disjunction of clauses as a balanced tree, `empty` without clauses.

    Databases limit the depth of an expression. A chain of many parts would exceed it.
    """
    if not clauses:
        return empty
    if len(clauses) == 1:
        return clauses[0]
    half = len(clauses) // 2
    left = _joined(clauses[:half], word, empty)
    right = _joined(clauses[half:], word, empty)
    return Clause(f"({left.sql} {word} {right.sql})", left.params + right.params)


def _either(*clauses: Clause) -> Clause:
    """Return the disjunction of clauses."""
    return _joined(clauses, "OR", _FALSE)


def _both(*clauses: Clause) -> Clause:
    """Return the conjunction of clauses."""
    return _joined(clauses, "AND", _TRUE)


def _leaf(field: "_JsonField", op: str, value: Scalar | tuple[Scalar, ...]) -> Clause:
    """Return the comparison of a field as a condition that is never NULL."""
    if isinstance(value, tuple):
        test = _either(*(_same(field, item) for item in value))
    elif op == "!=":
        same = _same(field, value)
        # `!=` is true only if the path exists. A value of another type is different.
        test = _both(
            field.is_there(), Clause(f"(NOT COALESCE({same.sql}, {_FALSE.sql}))", same.params)
        )
    elif op == "=":
        test = _same(field, value)
    elif isinstance(value, str):
        test = field.text(op, value)
    else:
        test = field.number(op, int(value or 0))
    return Clause(f"COALESCE({test.sql}, {_FALSE.sql})", test.params)


def _same(field: "_JsonField", value: Scalar) -> Clause:
    """Return the equality of a field and a scalar. It is NULL if the path does not exist."""
    if value is None:
        return field.has_type("null")
    if isinstance(value, bool):
        return field.truth(value)
    if isinstance(value, str):
        return field.text("=", value)
    return field.number("=", value)


class _SqliteField:
    """The conditions on the value at a path in `body`, for SQLite."""

    def __init__(self, path: tuple[Step, ...]) -> None:
        self._path = "$" + "".join(
            f"[{step}]" if isinstance(step, int) else f'."{step}"' for step in path
        )
        """The path in SQLite's syntax. It is passed as a parameter."""

    def is_there(self) -> Clause:
        """Return the condition that the path exists."""
        return Clause("(json_type(body, ?) IS NOT NULL)", (self._path,))

    def has_type(self, name: str) -> Clause:
        """Return the condition that the value has a JSON type."""
        return Clause("(json_type(body, ?) = ?)", (self._path, name))

    def truth(self, value: bool) -> Clause:
        """Return the condition that the value is the boolean `value`."""
        return self.has_type("true" if value else "false")

    def text(self, op: str, value: str) -> Clause:
        """Return the comparison with a text."""
        if op == "prefix":
            test = Clause(
                "(substr(json_extract(body, ?), 1, ?) = ?)", (self._path, len(value), value)
            )
        else:
            test = Clause(f"(json_extract(body, ?) {op} ?)", (self._path, value))
        return _both(self.has_type("text"), test)

    def number(self, op: str, value: int) -> Clause:
        """Return the comparison with an integer."""
        if abs(value) < _EXACT:
            test = Clause(f"(json_extract(body, ?) {op} ?)", (self._path, value))
        else:
            test = self._long(op, str(value), is_negative=value < 0)
        return _both(self.has_type("integer"), test)

    def _long(self, op: str, digits: str, *, is_negative: bool) -> Clause:
        """Return the comparison with an integer as text: by sign, then length, then digits.

        Of two negative integers, the longer one is the smaller one. The sign adds one character to
        the lengths of both.
        """
        equal = self._digits("=", digits)
        if op == "=":
            return equal
        longer = self._length(">", digits)
        shorter = self._length("<", digits)
        same_length = self._length("=", digits)
        has_minus = Clause("(substr(body -> ?, 1, 1) = '-')", (self._path,))
        has_no_minus = Clause("(substr(body -> ?, 1, 1) <> '-')", (self._path,))
        if is_negative:
            less = _both(has_minus, _either(longer, _both(same_length, self._digits(">", digits))))
            more = _either(has_no_minus, shorter, _both(same_length, self._digits("<", digits)))
        else:
            less = _either(has_minus, shorter, _both(same_length, self._digits("<", digits)))
            more = _both(
                has_no_minus, _either(longer, _both(same_length, self._digits(">", digits)))
            )
        strict = less if op[0] == "<" else more
        return _either(strict, equal) if op.endswith("=") else strict

    def _digits(self, op: str, digits: str) -> Clause:
        """Return the comparison of the integer's text, for texts of the same length."""
        return Clause(f"((body -> ?) {op} ?)", (self._path, digits))

    def _length(self, op: str, digits: str) -> Clause:
        """Return the comparison of the length of the integer's text."""
        return Clause(f"(length(body -> ?) {op} ?)", (self._path, len(digits)))


class _PostgresField:
    """The conditions on the value at a path in `body`, for PostgreSQL."""

    def __init__(self, path: tuple[Step, ...]) -> None:
        steps = "".join(" -> ?::int" if isinstance(step, int) else " -> ?::text" for step in path)
        self._value = Clause(f"(body::jsonb{steps})", path)
        """The expression of the value at the path."""

    def is_there(self) -> Clause:
        """Return the condition that the path exists."""
        return Clause(f"({self._value.sql} IS NOT NULL)", self._value.params)

    def has_type(self, name: str) -> Clause:
        """Return the condition that the value has a JSON type."""
        return Clause(f"(jsonb_typeof{self._value.sql} = ?::text)", (*self._value.params, name))

    def truth(self, value: bool) -> Clause:
        """Return the condition that the value is the boolean `value`."""
        return Clause(
            f"({self._value.sql} = ?::jsonb)", (*self._value.params, "true" if value else "false")
        )

    def text(self, op: str, value: str) -> Clause:
        """Return the comparison with a text, by code points."""
        text = f"({self._value.sql} #>> '{{}}')"
        if op == "prefix":
            test = Clause(f"starts_with({text}, ?::text)", (*self._value.params, value))
        else:
            test = Clause(f'({text} COLLATE "C" {op} ?::text)', (*self._value.params, value))
        return _both(self.has_type("string"), test)

    def number(self, op: str, value: int) -> Clause:
        """Return the comparison with an integer of any size."""
        test = Clause(f"({self._value.sql} {op} ?::jsonb)", (*self._value.params, str(value)))
        return _both(self.has_type("number"), test)


_JsonField: TypeAlias = _SqliteField | _PostgresField
