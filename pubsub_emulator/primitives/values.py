"""Value types: dataclasses whose instances are never changed."""

from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, cast, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_type(cls: type[T]) -> type[T]:
    """Make a class a dataclass with slots that the type checker regards as frozen.

    Instances are compared and hashed by their fields.

    Use it for classes of which a block makes thousands of instances. `dataclass(frozen=True)` also
    guards instances at run time, which makes construction three to four times slower.

    The methods are closures, because a program makes hundreds of these classes when it starts:
    compiling methods for each class, as `dataclass` does, would take most of that time.
    """
    value_class: Any = dataclass(slots=True, eq=False, repr=False)(cls)
    shown = [member.name for member in fields(value_class)]
    compared = [member.name for member in fields(value_class) if member.compare]
    values = attrgetter(*compared) if compared else type

    def equal(self: object, other: object) -> bool:
        return values(self) == values(other) if type(self) is type(other) else NotImplemented

    def digest(self: object) -> int:
        return hash(values(self))

    def text(self: object) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({values})"

    value_class.__eq__ = equal
    value_class.__hash__ = digest
    if "__repr__" not in vars(cls):
        value_class.__repr__ = text
    return cast("type[T]", value_class)
