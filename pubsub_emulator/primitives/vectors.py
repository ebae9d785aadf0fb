"""Formats of golden vectors, for `pubsub vectors check`.

A room that reads vectors declares its formats.

    FORMATS = (Format("state roots", has("entries", "root_v0", "root_v1"), cases),)

`cases` yields a name and a check for each case of a document. A check returns if the case holds and
raises if not. `laboratory.vectors` lists the modules that declare formats.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hexadecimal import hexed

Document = Mapping[str, Any]
Case = tuple[str, Callable[[], None]]


class Mismatch(PubsubError):
    """The computed value differs from the value in the vector."""


@dataclass(frozen=True, slots=True)
class Format:
    """One format of vector files."""

    name: str
    fits: Callable[[Document], bool]
    """A predicate for documents of this format."""
    cases: Callable[[Document], Iterator[Case]]
    """A function that yields the cases of a document."""
    unchecked: tuple[str, ...] = ()
    """The names of the fields that no check covers."""


def has(*fields: str, of: str = "vectors") -> Callable[[Document], bool]:
    """Return a predicate for documents with a list `of` whose first item has these fields."""

    def fits(document: Document) -> bool:
        first = next(iter(document[of]), None) if isinstance(document.get(of), list) else None
        return isinstance(first, dict) and {*fields} <= {*first}

    return fits


def cases_of(
    vectors: Iterable[Any], check: Callable[[Any], None], kind: str = ""
) -> Iterator[Case]:
    """Yield a case for each vector.

    The case is named by `kind` and its index if there is a `kind`, else by its `name` or its index.
    """
    for index, vector in enumerate(vectors):
        name: object = index
        if kind:
            name = f"{kind} {index}"
        elif isinstance(vector, dict):
            name = vector.get("name", index)
        yield str(name), partial(check, vector)


def each_vector(check: Callable[[Document], None]) -> Callable[[Document], Iterator[Case]]:
    """Return a function that yields one case for each item of `vectors`."""
    return lambda document: cases_of(document["vectors"], check)


def same(what: str, found: object, stated: object) -> None:
    """Raise `Mismatch`, which calls the value `what`, unless two values are equal."""
    if found != stated:
        raise Mismatch(f"{what} is {_shown(found)}, the vector states {_shown(stated)}")


def _shown(value: object) -> str:
    text = hexed(value) if isinstance(value, bytes) else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
