"""The type of a table's rows, for modules that need no Arrow."""

from typing import Any

Row = dict[str, Any]
"""A row of a table by its columns, as Arrow has it; the schema says which types."""
