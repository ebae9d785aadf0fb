"""The type of a table's rows, for modules that need no Arrow."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Row = dict[str, Any]
"""A row of a table by its columns, as Arrow has it; the schema says which types."""


def fields_of(source: object, names: Iterable[str]) -> Row:
    """Columns that are called as in the object that has them."""
    return {name: getattr(source, name) for name in names}


Kept = Mapping[str, Any]
"""What `asdict` or a `to_json` made of an object; the reader of it knows the types of its fields."""
