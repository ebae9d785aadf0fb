"""Filters as JSON, for servers and stored subscriptions (EV-10).

The forms are:

    {"any": true}   {"all": [f, …]}   {"one_of": [f, …]}   {"not": f}
    {"chain": 2000}   {"chain": null}   {"kind": "Balances.*"}
    {"field": "dispatch_info.weight", "op": ">=", "value": 5}
    {"field": ["xs", 0], "op": "in", "value": [1, 2]}
"""

import json
from collections.abc import Sequence
from typing import Any as Json
from typing import Final

from interchain_events.events.errors import BadFilter
from interchain_events.events.filters.algebra import (
    ANY,
    MAX_DEPTH,
    MAX_FILTERS,
    All,
    Any,
    Chain,
    Field,
    Filter,
    Kind,
    Not,
    OneOf,
    check_limits,
)

MAX_BYTES: Final = 1_048_576
"""The greatest size of the JSON of one subscription's filters, in bytes."""


def to_json(part: Filter) -> dict[str, Json]:
    """Return a filter as a JSON object."""
    match part:
        case Any():
            return {"any": True}
        case All(parts):
            return {"all": [to_json(inner) for inner in parts]}
        case OneOf(parts):
            return {"one_of": [to_json(inner) for inner in parts]}
        case Not(inner):
            return {"not": to_json(inner)}
        case Chain(chain):
            return {"chain": chain}
        case Kind(kind):
            return {"kind": kind}
        case Field(path, op, value):
            return {
                "field": list(path),
                "op": op,
                "value": list(value) if isinstance(value, tuple) else value,
            }


def from_json(data: object, place: str = "filter", depth: int = 1) -> Filter:
    """Return the filter of a JSON object.

    Raises `BadFilter`, whose message names the place of the error. `place` and `depth` are those of
    this object within the whole filter.
    """
    try:
        return _parsed(data, place, depth)
    except BadFilter as error:
        text = str(error)
        if text.startswith("filter"):
            # An inner filter has already added its place.
            raise
        raise BadFilter(f"{place}: {text}") from None


def _parsed(data: object, place: str, depth: int) -> Filter:
    """Return the filter of a JSON object. The errors do not name the place."""
    if depth > MAX_DEPTH:
        raise BadFilter(f"nested deeper than MAX_DEPTH, {MAX_DEPTH}")
    if not isinstance(data, dict):
        raise BadFilter("a filter is a JSON object")
    if data.keys() == {"field", "op", "value"}:
        return _field(data)
    if len(data) != 1:
        raise BadFilter(
            "a filter has one of any, all, one_of, not, chain, kind; or field with op and value"
        )
    ((name, value),) = data.items()
    match name:
        case "any" if value is True:
            return ANY
        case "all" | "one_of":
            if not isinstance(value, list):
                raise BadFilter("all and one_of take a JSON list of filters")
            parts = [
                from_json(item, f"{place}.{name}[{index}]", depth + 1)
                for index, item in enumerate(value)
            ]
            return All(*parts) if name == "all" else OneOf(*parts)
        case "not":
            return Not(from_json(value, f"{place}.not", depth + 1))
        case "chain":
            return Chain(value)
        case "kind" if isinstance(value, str):
            return Kind(value)
        case _:
            raise BadFilter(
                f"this is not a filter: {json.dumps({str(name)[:64]: '…'}, ensure_ascii=False)}"
            )


def filters_from_json(data: object) -> tuple[Filter, ...]:
    """Return the filters of a subscription from a JSON list. Raises `BadFilter`."""
    if not isinstance(data, list):
        raise BadFilter("filters: a JSON list of filters")
    if len(data) > MAX_FILTERS:
        raise BadFilter(f"{len(data)} filters exceed MAX_FILTERS, {MAX_FILTERS}")
    return check_limits(from_json(item, f"filters[{index}]") for index, item in enumerate(data))


def dump_filters(filters: Sequence[Filter]) -> str:
    """Return filters as one line of JSON. Equal filters have the same text."""
    return json.dumps(
        [to_json(part) for part in filters],
        separators=(",", ":"),
        sort_keys=True,
        ensure_ascii=False,
    )


def parse_filters(text: str | bytes) -> tuple[Filter, ...]:
    """Return the filters in a text by `dump_filters` or by a client. Raises `BadFilter`."""
    if len(text) > MAX_BYTES:
        raise BadFilter(f"filters of {len(text)} bytes exceed MAX_BYTES, {MAX_BYTES}")
    try:
        return filters_from_json(json.loads(text))
    except (ValueError, RecursionError):
        raise BadFilter("filters: not JSON") from None


def _field(data: dict[str, Json]) -> Field:
    """Return a comparison of a field. Raises `BadFilter`."""
    path = data["field"]
    if not isinstance(path, (str, list)):
        raise BadFilter("field is a text with dots, or a list of names and indices")
    value = data["value"]
    if isinstance(value, (dict, float)) or (isinstance(value, list) and data["op"] != "in"):
        raise BadFilter("value is a text, an integer, true, false or null; a list for `in`")
    return Field(path, data["op"], value)
