"""The type of a table's rows, for modules that need no Arrow."""

from collections.abc import Mapping
from typing import Any

Row = dict[str, Any]
"""A row of a table by its columns, as Arrow has it; the schema says which types."""

Kept = Mapping[str, Any]
"""What `asdict` or a `to_json` made of an object; the reader of it knows the types of its fields."""
