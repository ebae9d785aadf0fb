"""The type of a table's rows, in a module that does not import Arrow."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

Row = dict[str, Any]
"""A row of a table: values by column, as Arrow's `to_pylist` gives them. The schema has their
types."""


def fields_of(source: object, names: Iterable[str]) -> Row:
    """Return some attributes of an object as a row with columns of the same names."""
    return {name: getattr(source, name) for name in names}


JsonObject = Mapping[str, Any]
"""A JSON object that `asdict` or a `to_json` wrote. Its reader knows the types of the fields."""
