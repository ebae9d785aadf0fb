"""The base class of settings, and descriptions of their fields for errors and documentation."""

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
"""The path to a value in a document: names of tables and fields, and indices of lists from 0."""


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
    """The path to the field."""
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
    """The allowed values, as text."""
    default: str
    meaning: str
    """The string below the field."""


def described(root: type[Model]) -> Iterator[Described]:
    """Yield all fields of all tables of a file. Tables are in the order of their first use."""
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
            definition = ast.parse(inspect.getsource(home)).body[0]
            if not isinstance(definition, ast.ClassDef):
                continue
            for above, below in pairwise(definition.body):
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
        if len(inner) == 1:
            yield from _table(f"{place}.{name}" if place else name, inner[0])


def _default(field: FieldInfo) -> str:
    """Return the default of a field as it is written in files."""
    if field.is_required():
        return ""
    value = field.get_default(call_default_factory=True)
    if isinstance(value, Model) or (
        isinstance(value, tuple) and any(isinstance(item, Model) for item in value)
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
    """Return the allowed values of a field, such as `a whole number from 1 to 4,294,967,295`."""
    return _allowed(field.annotation, tuple(field.metadata))


def _allowed(annotation: object, metadata: tuple[Any, ...]) -> str:
    """Return the allowed values of a type with these constraints, as text."""
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *more = get_args(annotation)
        return _allowed(inner, (*_opened(more), *metadata))
    if origin in (Union, UnionType) and len(models_in(annotation)) > 1:
        return "a table of one of the kinds"
    if origin in (Union, UnionType):
        options = (option for option in get_args(annotation) if option is not NoneType)
        # Several types of keys are all written as text.
        return " or ".join(dict.fromkeys(_allowed(option, ()) for option in options))
    if origin is Literal:
        *others, last = (
            f'"{value}"' if isinstance(value, str) else str(value) for value in get_args(annotation)
        )
        return f"{', '.join(others)} or {last}" if others else last
    has_minimum = any(isinstance(constraint, MinLen) for constraint in metadata)
    some = " of at least one" if has_minimum else ""
    if origin in _LISTS:
        return f"a list{some}, each {_allowed(get_args(annotation)[0], ())}"
    if origin is dict:
        return f"a table of names{some}, each {_allowed(get_args(annotation)[1], ())}"
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return f"a table {{ {', '.join(_written(annotation))} }}"
    if annotation is bool:
        return "true or false"
    if annotation is bytes:
        return "0x and hexadecimal digits"
    if annotation is str:
        patterns = (getattr(constraint, "pattern", None) for constraint in metadata)
        pattern = next((pattern for pattern in patterns if pattern), None)
        return f"text like {pattern}" if pattern else "text"
    if isinstance(annotation, type) and not issubclass(annotation, int | float):
        # A validator makes the value from text, such as a key from `Mmr.RootHash`.
        return "text"
    return _number("whole number" if annotation is not float else "number", metadata)


def _opened(metadata: list[object]) -> Iterator[object]:
    """Yield the metadata with pydantic's `Field` replaced by the bounds inside it."""
    for item in metadata:
        yield from item.metadata if isinstance(item, FieldInfo) else (item,)


def _is_share(metadata: tuple[object, ...]) -> bool:
    """Return whether a number is a share. Only shares are converted before they are checked."""
    return any(isinstance(constraint, BeforeValidator) for constraint in metadata)


def _number(kind: str, metadata: tuple[object, ...]) -> str:
    """Return the allowed range of a number, as text."""
    if _is_share(metadata):
        return "a share from 0 to 1"
    above = next((bound.gt for bound in metadata if isinstance(bound, Gt)), None)
    least = next((bound.ge for bound in metadata if isinstance(bound, Ge)), 0)
    most = next((bound.le for bound in metadata if isinstance(bound, Le)), None)
    start = f"from {least}" if above is None else f"above {above}"
    return f"a {kind} {start} on" if most is None else f"a {kind} {start} to {most:,}"


def faults(document: object, error: ValidationError, root: type[Model]) -> list[Misplaced]:
    """Return the faults of a document, at most one for each field.

    The reasons name the allowed values, whereas pydantic's messages name Python's types.
    """
    reasons: dict[Location, str] = {}
    for details in error.errors():
        location, reason = _fault(document, details, root)
        reasons.setdefault(location, reason)
    with_faults_inside: set[Location] = set()
    for location in reasons:
        with_faults_inside.update(location[:depth] for depth in range(len(location)))
    # If a value can have one of several types, pydantic reports findings for each type. A finding
    # inside the value shows which type was meant. Those about the whole value are then dropped.
    return [
        Misplaced(location, reason)
        for location, reason in reasons.items()
        if location not in with_faults_inside or not reason.startswith(_WANTED)
    ]


_WANTED: Final = "should be "
"""The beginning of reasons that only say which values are allowed."""
_LISTS: Final = (tuple, list)


def _fault(document: object, details: ErrorDetails, root: type[Model]) -> tuple[Location, str]:
    """Return the location of pydantic's finding in the document, and the reason.

    pydantic's own location also contains the names of alternative types and tags, which are not in
    the document.
    """
    location: list[str | int] = []
    value: object = document
    kind: object = root
    """The type of the value at the location."""
    model = root
    """The innermost table so far."""
    key: object = None
    """The type of the keys of the innermost dictionary so far."""
    options: tuple[type[Model], ...] = (root,)
    for part in details["loc"]:
        if isinstance(part, int) and isinstance(value, list):
            value = value[part] if part < len(value) else None
            kind = _inner(kind, _LISTS, 0)
        elif part == "[key]":
            value = location[-1]
            kind = key
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
        elif part in value or any(part in _written(option) for option in options):
            model = next(
                (option for option in options if part in _written(option)),
                options[0] if options else model,
            )
            field = _written(model).get(part)
            kind = None if field is None else Annotated[field.annotation, None, *field.metadata]
            value = value.get(part)
        else:
            continue
        location.append(part)
        options = tuple(
            alternative
            for alternative in _alternatives(kind)
            if isinstance(alternative, type) and issubclass(alternative, Model)
        )
    if details["type"] in {"union_tag_invalid", "union_tag_not_found"}:
        name = details["ctx"]["discriminator"].strip("'")
        tags: list[Any] = []
        for option in options:
            tags += get_args(_written(option)[name].annotation)
        given = value.get(name) if isinstance(value, dict) else None
        reason = "missing" if given is None else f"{shown(given)} is not known"
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


def _inner(kind: object, containers: tuple[type, ...], index: int) -> object:
    """Return a type argument of a container type, or `None` for any other type.

    The argument with the index 0 is the type of a list's elements or of a dictionary's keys.
    """
    for alternative in _alternatives(kind):
        if get_origin(alternative) in containers:
            return get_args(alternative)[index]
    return None


def _tagged(
    options: tuple[type[Model], ...], tag: str, value: dict[str, object]
) -> type[Model] | None:
    """Return the model among several whose tag field has this value in the document, or `None`."""
    if len(options) == 1:
        return None
    for model in options:
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
    """Return the reason of a finding, as text."""
    if details["type"] == "extra_forbidden":
        return f"no such field; {_hint(str(location[-1]), list(_written(model)))}"
    if details["type"] == "value_error" or kind is None:
        return details["msg"].removeprefix("Value error, ")
    if details["type"] == "missing":
        return f"missing: {_allowed(kind, ())}"
    tables = models_in(kind)
    if (
        isinstance(value, dict)
        and _inner(kind, _LISTS, 0)
        and tables
        and location[-1] in _written(model)
    ):
        return f"{_WANTED}a list of tables, written [[{location[-1]}]] and not [{location[-1]}]"
    return f"{_WANTED}{_allowed(kind, ())}, not {shown(value)}"


def _hint(name: str, known: list[str]) -> str:
    """Return the known names as text, and first the one that resembles `name`."""
    near = get_close_matches(name, known, n=1)
    if near:
        return f"did you mean {near[0]}? Known: {', '.join(known)}"
    return f"known: {', '.join(known)}"


def shown(value: object) -> str:
    """Return a value as in a file, shortened if it is long."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
