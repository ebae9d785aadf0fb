"""Descriptions of the values that each field of a scenario may have, for errors and documentation."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from annotated_types import Ge, Le, MinLen
from pydantic import BeforeValidator, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from pubsub_emulator.emulator.scenario.check import Location, Misplaced
from pubsub_emulator.emulator.scenario.model import Model, Scenario


@dataclass(frozen=True, slots=True)
class Described:
    """One field: its table (`subscribers.load`), name, allowed values, default, and meaning."""

    table: str
    name: str
    holds: str
    default: str
    meaning: str


def described(root: type[Model] = Scenario) -> Iterator[Described]:
    """Every field of every table of a scenario, tables in the order of first use."""
    yield from _table("", root)


def _table(place: str, model: type[Model]) -> Iterator[Described]:
    for name, field in _written(model).items():
        meaning = " ".join((field.description or "").split())
        yield Described(place, name, holds(field), _default(field), meaning)
    for name, field in model.model_fields.items():
        for inner in models_in(field.annotation):
            yield from _table(f"{place}.{name}" if place else name, inner)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return ""
    value = field.default
    if isinstance(value, Model) or (isinstance(value, tuple) and any(isinstance(each, Model) for each in value)):
        return "see there"
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if _is_share(tuple(field.metadata)):
        return f"{value / 1_000_000:g}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return f"{value:,}" if isinstance(value, int) else f'"{value}"'


def models_in(annotation: Any) -> tuple[type[Model], ...]:
    """The tables in a type, at any depth of lists and alternatives."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return (annotation,)
    return tuple(model for inner in get_args(annotation) for model in models_in(inner))


def holds(field: FieldInfo) -> str:
    """The values that a field may have, as in `a whole number from 1 to 4,294,967,295`."""
    return _says(field.annotation, tuple(field.metadata))


def _says(annotation: Any, metadata: tuple[Any, ...]) -> str:
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *more = get_args(annotation)
        return _says(inner, (*_opened(more), *metadata))
    if origin in (Union, UnionType):
        return " or ".join(_says(each, ()) for each in get_args(annotation) if each is not NoneType)
    if origin is Literal:
        *others, last = (f'"{each}"' for each in get_args(annotation))
        return f"{', '.join(others)} or {last}" if others else last
    if origin is tuple:
        some = " of at least one" if any(isinstance(each, MinLen) for each in metadata) else ""
        return f"a list{some}, each {_says(get_args(annotation)[0], ())}"
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return f"a table {{ {', '.join(_written(annotation))} }}"
    if annotation is bool:
        return "true or false"
    if annotation is str:
        return "text"
    return _number(metadata)


def _opened(metadata: list[Any]) -> Iterator[Any]:
    """The metadata with pydantic's `Field` replaced by the bounds inside of it."""
    for each in metadata:
        yield from each.metadata if isinstance(each, FieldInfo) else (each,)


def _is_share(metadata: tuple[Any, ...]) -> bool:
    return any(isinstance(each, BeforeValidator) for each in metadata)


def _number(metadata: tuple[Any, ...]) -> str:
    if _is_share(metadata):
        return "a share from 0 to 1"
    least = next((each.ge for each in metadata if isinstance(each, Ge)), 0)
    most = next((each.le for each in metadata if isinstance(each, Le)), None)
    return f"a whole number from {least} on" if most is None else f"a whole number from {least} to {most:,}"


def faults(document: object, error: ValidationError, root: type[Model] = Scenario) -> list[Misplaced]:
    """The faults of a document, each field once, with the allowed values instead of pydantic's message."""
    found: dict[Location, str] = {}
    for details in error.errors():
        location, reason = _fault(document, details, root)
        found.setdefault(location, reason)
    inside = {location[:depth] for location in found for depth in range(len(location))}
    # the alternative that was meant has findings inside of it; findings of others about the whole are dropped
    return [Misplaced(at, why) for at, why in found.items() if at not in inside or not why.startswith(_WANTED)]


_WANTED: Final = "should be "


def _fault(document: object, details: ErrorDetails, root: type[Model]) -> tuple[Location, str]:
    """The place of pydantic's finding in the document, without the alternative that pydantic tried."""
    location: list[str | int] = []
    value = document
    model = root
    field: FieldInfo | None = None
    options: tuple[type[Model], ...] = (root,)
    for part in details["loc"]:
        if isinstance(part, int) and isinstance(value, list):
            value = value[part] if part < len(value) else None
        elif isinstance(part, str) and isinstance(value, dict) and _names(options, part, value):
            model = next((each for each in options if part in _written(each)), options[0] if options else model)
            field = _written(model).get(part)
            options = models_in(field.annotation) if field is not None else ()
            value = value.get(part)
        else:
            continue
        location.append(part)
    return tuple(location), _reason(details, tuple(location), value, field, model)


def _names(options: tuple[type[Model], ...], part: str, value: dict[str, object]) -> bool:
    return part in value or any(part in _written(each) for each in options)


def _written(model: type[Model]) -> dict[str, FieldInfo]:
    """The fields of a table under the names that they have in a file."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _reason(
    details: ErrorDetails, location: Location, value: object, field: FieldInfo | None, model: type[Model]
) -> str:
    kind = details["type"]
    if kind == "extra_forbidden":
        near = get_close_matches(str(location[-1]), _written(model), n=1)
        meant = f"did you mean {near[0]}? There are" if near else "there are"
        return f"no such field; {meant} {', '.join(_written(model))}"
    if kind == "value_error" or field is None:
        return details["msg"].removeprefix("Value error, ")
    if kind == "missing":
        return f"missing: {holds(field)}"
    tables = models_in(field.annotation)
    if isinstance(value, dict) and get_origin(field.annotation) is tuple and tables and location[-1] in _written(model):
        return f"{_WANTED}a list of tables, written [[{location[-1]}]] and not [{location[-1]}]"
    return f"{_WANTED}{_element(field) if isinstance(location[-1], int) else holds(field)}, not {shown(value)}"


def _element(field: FieldInfo) -> str:
    """The values that elements of a list may have."""
    lists = [each for each in (field.annotation, *get_args(field.annotation)) if get_origin(_plain(each)) is tuple]
    return _says(get_args(_plain(lists[0]))[0], ()) if lists else holds(field)


def _plain(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def shown(value: object) -> str:
    """A value as in a file, cut short."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
