"""What a format of golden vectors is, for `pubsub vectors check`: a room that reads vectors declares its formats.

    FORMATS = (Format("state roots", has("entries", "root_v0", "root_v1"), cases),)

`cases` goes through a document and gives a name and a check for each case; a check returns when the case holds and
raises when it does not. Which modules declare formats, `cli.vectors` lists.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hexadecimal import hexed

Document = Mapping[str, Any]
Case = tuple[str, Callable[[], None]]


class Mismatch(PubsubError):
    """What was computed is not what the vector states."""


@dataclass(frozen=True, slots=True)
class Format:
    """One shape of vector files. `unchecked` names fields of it that nothing here computes."""

    name: str
    fits: Callable[[Document], bool]
    cases: Callable[[Document], Iterator[Case]]
    unchecked: tuple[str, ...] = ()


def has(*fields: str) -> Callable[[Document], bool]:
    """Fits documents with a list `vectors` whose first item has these fields."""

    def fits(document: Document) -> bool:
        vectors = document.get("vectors")
        return (
            isinstance(vectors, list) and bool(vectors) and isinstance(vectors[0], dict) and {*fields} <= {*vectors[0]}
        )

    return fits


def each_vector(check: Callable[[dict[str, Any]], None]) -> Callable[[Document], Iterator[Case]]:
    """One case for each item of `vectors`, by its name or its place."""

    def cases(document: Document) -> Iterator[Case]:
        for at, vector in enumerate(document["vectors"]):
            name = str(vector.get("name", at)) if isinstance(vector, dict) else str(at)
            yield name, lambda vector=vector: check(vector)  # type: ignore[misc]  # bound where it is made

    return cases


def same(what: str, found: object, stated: object) -> None:
    """Raises `Mismatch` unless the two are equal."""
    if found != stated:
        raise Mismatch(f"{what} is {_shown(found)}, the vector states {_shown(stated)}")


def _shown(value: object) -> str:
    text = hexed(value) if isinstance(value, bytes) else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
