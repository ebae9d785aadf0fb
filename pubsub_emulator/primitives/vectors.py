"""Formats of golden vectors, for `pubsub vectors check`. A room that reads vectors declares its formats.

    FORMATS = (Format("state roots", has("entries", "root_v0", "root_v1"), cases),)

`cases` yields a name and a check for each case of a document. A check returns if the case holds and raises if not.
`cli.vectors` lists the modules that declare formats.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hexadecimal import hexed

Document = Mapping[str, Any]
Case = tuple[str, Callable[[], None]]


class Mismatch(PubsubError):
    """The computed value differs from the one in the vector."""


@dataclass(frozen=True, slots=True)
class Format:
    """One format of vector files. `unchecked` names the fields that no check covers."""

    name: str
    fits: Callable[[Document], bool]
    cases: Callable[[Document], Iterator[Case]]
    unchecked: tuple[str, ...] = ()


def has(*fields: str) -> Callable[[Document], bool]:
    """A predicate: the document has a list `vectors` whose first item has these fields."""

    def fits(document: Document) -> bool:
        vectors = document.get("vectors")
        return (
            isinstance(vectors, list) and bool(vectors) and isinstance(vectors[0], dict) and {*fields} <= {*vectors[0]}
        )

    return fits


def each_vector(check: Callable[[Document], None]) -> Callable[[Document], Iterator[Case]]:
    """One case for each item of `vectors`, named by its `name` or its index."""

    def cases(document: Document) -> Iterator[Case]:
        for at, vector in enumerate(document["vectors"]):
            name = str(vector.get("name", at)) if isinstance(vector, dict) else str(at)
            yield name, lambda vector=vector: check(vector)  # type: ignore[misc]  # bound where it is made

    return cases


def same(what: str, found: object, stated: object) -> None:
    """Raise `Mismatch` unless the two are equal."""
    if found != stated:
        raise Mismatch(f"{what} is {_shown(found)}, the vector states {_shown(stated)}")


def _shown(value: object) -> str:
    text = hexed(value) if isinstance(value, bytes) else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
