"""The base class of settings, and descriptions of fields for errors and documentation."""

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain as chained
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, MinLen
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

Location = tuple[str | int, ...]
"""The way to a value of a document: names of tables and fields, and indices of lists from 0."""


class Model(BaseModel):
    """The base class of settings: immutable and without unknown fields.

    `add_meanings` reads the strings below the fields where descriptions are needed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class StrictModel(Model):
    """A model that does not convert values, such as a text to a number or a number to a flag."""

    model_config = ConfigDict(strict=True)


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A field whose value is not allowed or contradicts another part of the file."""

    location: Location
    """The way to the field."""
    reason: str

    def field(self) -> str:
        """Return the location as text, in which elements of lists count from 1."""
        return ".".join(str(part + 1) if isinstance(part, int) else part for part in self.location)


@dataclass(frozen=True, slots=True)
class Described:
    """A field for the documentation."""

    table: str
    """The table that it belongs to, such as `subscribers.load`."""
    name: str
    holds: str
    """The allowed values in words."""
    default: str
    meaning: str
    """The string below the field."""


def described(root: type[Model]) -> Iterator[Described]:
    """Yield every field of every table of a file, with tables in the order of first use."""
    add_meanings(root)
    yield from _table("", root)


def add_meanings(root: type[Model]) -> None:
    """Give each field of a model and of the models in it its description.

    The description is the string below the field in the source. Reading sources takes time, so that
    this is only done for the schema and the documentation.
    """
    # Inner models come first, because a model copies their descriptions when it is rebuilt.
    for model in reversed((root, *models_of(root))):
        for home in model.__mro__:
            if not issubclass(home, Model):
                continue
            body = ast.parse(inspect.getsource(home)).body[0]
            for above, below in pairwise(body.body if isinstance(body, ast.ClassDef) else ()):
                match above, below:
                    case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(
                        value=ast.Constant(value=str() as meaning)
                    ):
                        model.model_fields[name].description = inspect.cleandoc(meaning)
        model.model_rebuild(force=True)


def _table(place: str, model: type[Model]) -> Iterator[Described]:
    """Yield the fields of a table, then those of the tables in it."""
    for name, field in _written(model).items():
        meaning = " ".join((field.description or "").split())
        yield Described(place, name, holds(field), _default(field), meaning)
    for name, field in model.model_fields.items():
        inner = models_in(field.annotation)
        # If a field has several kinds of tables, the documentation lists them elsewhere.
        for each in inner if len(inner) == 1 else ():
            yield from _table(f"{place}.{name}" if place else name, each)


def _default(field: FieldInfo) -> str:
    """Return the default of a field as it is written in files."""
    if field.is_required():
        return ""
    value = field.get_default(call_default_factory=True)
    if isinstance(value, Model) or (
        isinstance(value, tuple) and any(isinstance(each, Model) for each in value)
    ):
        return "see there"
    if value is None or value in ((), []):
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if _is_share(tuple(field.metadata)):
        return f"{value / 1_000_000:g}"
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    return f"{value:_}" if isinstance(value, int) else f'"{value}"'


def models_of(root: type[Model]) -> Iterator[type[Model]]:
    """Yield the models of the tables of a model, at any depth."""
    for field in root.model_fields.values():
        for inner in models_in(field.annotation):
            yield inner
            yield from models_of(inner)


def models_in(annotation: object) -> tuple[type[Model], ...]:
    """Return the models in a type, at any depth of lists and alternatives."""
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return (annotation,)
    return tuple(chained.from_iterable(map(models_in, get_args(annotation))))


def holds(field: FieldInfo) -> str:
    """Return the allowed values of a field, as in `a whole number from 1 to 4,294,967,295`."""
    return _says(field.annotation, tuple(field.metadata))


def _says(annotation: object, metadata: tuple[Any, ...]) -> str:
    """Return the allowed values of a type with these constraints in words."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *more = get_args(annotation)
        return _says(inner, (*_opened(more), *metadata))
    if origin in (Union, UnionType) and len(models_in(annotation)) > 1:
        return "a table of one of the kinds"
    if origin in (Union, UnionType):
        return " or ".join(_says(each, ()) for each in get_args(annotation) if each is not NoneType)
    if origin is Literal:
        *others, last = (
            f'"{each}"' if isinstance(each, str) else str(each) for each in get_args(annotation)
        )
        return f"{', '.join(others)} or {last}" if others else last
    some = " of at least one" if any(isinstance(each, MinLen) for each in metadata) else ""
    if origin in _LISTS:
        return f"a list{some}, each {_says(get_args(annotation)[0], ())}"
    if origin is dict:
        return f"a table of names{some}, each {_says(get_args(annotation)[1], ())}"
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return f"a table {{ {', '.join(_written(annotation))} }}"
    if annotation is bool:
        return "true or false"
    if annotation is bytes:
        return "0x and hexadecimal digits"
    if annotation is str:
        pattern = next((each.pattern for each in metadata if getattr(each, "pattern", None)), None)
        return f"text like {pattern}" if pattern else "text"
    return _number("whole number" if annotation is not float else "number", metadata)


def _opened(metadata: list[object]) -> Iterator[object]:
    """Yield the metadata with pydantic's `Field` replaced by the bounds inside it."""
    for each in metadata:
        yield from each.metadata if isinstance(each, FieldInfo) else (each,)


def _is_share(metadata: tuple[object, ...]) -> bool:
    return any(isinstance(each, BeforeValidator) for each in metadata)


def _number(kind: str, metadata: tuple[object, ...]) -> str:
    """Return the allowed range of a number in words."""
    if _is_share(metadata):
        return "a share from 0 to 1"
    above = next((each.gt for each in metadata if isinstance(each, Gt)), None)
    least = next((each.ge for each in metadata if isinstance(each, Ge)), 0)
    most = next((each.le for each in metadata if isinstance(each, Le)), None)
    start = f"from {least}" if above is None else f"above {above}"
    return f"a {kind} {start} on" if most is None else f"a {kind} {start} to {most:,}"


def faults(document: object, error: ValidationError, root: type[Model]) -> list[Misplaced]:
    """Return the faults of a document, each field once.

    The reasons name the allowed values, because pydantic's messages name Python's types.
    """
    found: dict[Location, str] = {}
    for details in error.errors():
        location, reason = _fault(document, details, root)
        found.setdefault(location, reason)
    inside: set[Location] = set()
    for location in found:
        inside.update(location[:depth] for depth in range(len(location)))
    # For a value with alternatives, pydantic reports findings of each. If one of them has findings
    # inside the value, it was meant, and findings about the whole value are dropped.
    return [
        Misplaced(at, why)
        for at, why in found.items()
        if at not in inside or not why.startswith(_WANTED)
    ]


_WANTED: Final = "should be "
"""The beginning of reasons that only say which values are allowed."""
_LISTS: Final = (tuple, list)


def _fault(document: object, details: ErrorDetails, root: type[Model]) -> tuple[Location, str]:
    """Return the place of pydantic's finding in the document, and the reason.

    pydantic's own place also contains the names of alternatives and tags, which are not in the
    document.
    """
    location: list[str | int] = []
    value: object = document
    kind: object = root
    """The type of the value at the location."""
    model = root
    """The last table on the way."""
    key: object = None
    options: tuple[type[Model], ...] = (root,)
    for part in details["loc"]:
        if isinstance(part, int) and isinstance(value, list):
            value = value[part] if part < len(value) else None
            kind = _inner(kind, _LISTS, 0)
        elif part == "[key]":
            value, kind = location[-1], key
            continue
        elif not isinstance(part, str) or not isinstance(value, dict):
            continue
        elif tagged := _tagged(options, part, value):
            options = (tagged,)
            continue
        elif (named := _inner(kind, (dict,), 1)) is not None and part in value:
            value = value[part]
            key = _inner(kind, (dict,), 0)
            kind = named
        elif part in value or any(part in _written(each) for each in options):
            model = next(
                (each for each in options if part in _written(each)),
                options[0] if options else model,
            )
            field = _written(model).get(part)
            kind = None if field is None else Annotated[field.annotation, None, *field.metadata]
            value = value.get(part)
        else:
            continue
        location.append(part)
        options = tuple(
            each
            for each in _alternatives(kind)
            if isinstance(each, type) and issubclass(each, Model)
        )
    if details["type"] in {"union_tag_invalid", "union_tag_not_found"}:
        name = details["ctx"]["discriminator"].strip("'")
        tags: list[Any] = []
        for option in options:
            tags += get_args(_written(option)[name].annotation)
        given = value.get(name) if isinstance(value, dict) else None
        reason = "missing" if given is None else f"{shown(given)} is none of those known"
        return (*location, name), f"{reason}; {_hint(str(given or ''), tags)}"
    return tuple(location), _reason(details, tuple(location), value, kind, model)


def _alternatives(kind: object) -> tuple[object, ...]:
    """Return the types that a value may have, without annotations."""
    origin = get_origin(kind)
    if origin is Annotated:
        return _alternatives(get_args(kind)[0])
    if origin in (Union, UnionType):
        return tuple(chained.from_iterable(map(_alternatives, get_args(kind))))
    return (kind,)


def _inner(kind: object, containers: tuple[type, ...], at: int) -> object:
    """Return the type of the elements of a list or table, or `None` for any other type."""
    found = (get_args(each)[at] for each in _alternatives(kind) if get_origin(each) in containers)
    return next(found, None)


def _tagged(
    options: tuple[type[Model], ...], tag: str, value: dict[str, object]
) -> type[Model] | None:
    """Return the model among several whose constant field has this value in the document."""
    for model in options if len(options) > 1 else ():
        for name, field in _written(model).items():
            if (
                get_origin(field.annotation) is Literal
                and tag in get_args(field.annotation)
                and value.get(name) == tag
            ):
                return model
    return None


def _written(model: type[Model]) -> dict[str, FieldInfo]:
    """Return the fields of a table by the names that they have in a file."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _reason(
    details: ErrorDetails, location: Location, value: object, kind: object, model: type[Model]
) -> str:
    """Return the reason of a finding in words."""
    if details["type"] == "extra_forbidden":
        return f"no such field; {_hint(str(location[-1]), list(_written(model)))}"
    if details["type"] == "value_error" or kind is None:
        return details["msg"].removeprefix("Value error, ")
    if details["type"] == "missing":
        return f"missing: {_says(kind, ())}"
    tables = models_in(kind)
    if (
        isinstance(value, dict)
        and _inner(kind, _LISTS, 0)
        and tables
        and location[-1] in _written(model)
    ):
        return f"{_WANTED}a list of tables, written [[{location[-1]}]] and not [{location[-1]}]"
    return f"{_WANTED}{_says(kind, ())}, not {shown(value)}"


def _hint(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"{f'did you mean {near[0]}? There' if near else 'there'} are {', '.join(known)}"


def shown(value: object) -> str:
    """Return a value as in a file, shortened if it is long."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
