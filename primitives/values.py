"""Value types: dataclasses whose instances nobody changes."""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_type(cls: type[T]) -> type[T]:
    """Class decorator: a dataclass with slots, equal and hashed by its fields, and frozen for the type checker.

    For what is made by the thousand in a block. `dataclass(frozen=True)` guards its instances at run time as well, and
    pays for it where they are made: three to four times as much for each.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
