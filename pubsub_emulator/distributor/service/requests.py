"""Requests of clients, parsed and checked, and pages of events, whose cursor has a number for each network (ID-10)."""

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar
from urllib.parse import unquote

from aiohttp import web

from pubsub_emulator.distributor.event import MOST_METADATUM, MOST_NUMBER, MOST_TYPE, Notice
from pubsub_emulator.distributor.service.adapters import Query
from pubsub_emulator.distributor.service.addresses import check_endpoint
from pubsub_emulator.distributor.service.poster import secret_bytes
from pubsub_emulator.distributor.service.problems import bad

T = TypeVar("T")
MOST_TYPES: Final = 64
MOST_INTEREST_METADATA: Final = 16
MOST_LIMIT: Final = 1000
MOST_MS: Final = 2**53 - 1
MOST_SECRET: Final = 256
MOST_CURSOR: Final = 4096

_NUMBER: Final = re.compile(r"[0-9]{1,20}")


class Wish(NamedTuple):
    """A subscription that a client wants."""

    types: tuple[str, ...]
    metadata: tuple[str, ...]
    endpoint: str
    secret: str | None


def check_receiver(request: web.Request, fields: object, own: str) -> None:
    """Refuse a publication that names another receiver than `own` or the address that was asked (ID-11)."""
    receiver = fields.get("rpcAddress") if isinstance(fields, dict) else None
    if receiver is None:
        return
    known = {own.rstrip("/"), f"{request.scheme}://{request.host}"} - {""}
    if not isinstance(receiver, str) or receiver.rstrip("/") not in known:
        raise bad("wrong-receiver", "rpcAddress is not this receiver's own")


def _texts(body: Mapping[str, object], name: str, fewest: int, most: int, length: int) -> tuple[str, ...]:
    values = body.get(name, [])
    if not isinstance(values, list) or not fewest <= len(values) <= most:
        raise bad("bad-subscription", f"{name}: a list of {fewest} to {most} strings is needed")
    for value in values:
        if not isinstance(value, str) or not 1 <= len(value) <= length or not is_storable(value):
            raise bad("bad-subscription", f"{name}: strings of 1 to {length} characters are needed")
    return tuple(dict.fromkeys(values))


def is_storable(text: str) -> bool:
    """Whether stores take a text: it has no NUL and no half of a surrogate pair."""
    return "\0" not in text and not any("\ud800" <= each <= "\udfff" for each in text)


def parse_wish(body: object, *, everything: bool, private: bool) -> Wish:
    """A body of `/subscribe` or, for everything, `/subscribe/all`. Raises `Problem`."""
    if not isinstance(body, dict):
        raise bad("bad-subscription", "the body is not a JSON object")
    try:
        endpoint = check_endpoint(body.get("notificationEndpoint"), private=private)
    except ValueError as error:
        raise bad("bad-endpoint", f"notificationEndpoint: {error}") from None
    if everything:
        return Wish(("*",), (), endpoint, None)
    types = _texts(body, "eventTypes", 1, MOST_TYPES, MOST_TYPE)
    metadata = _texts(body, "metadata", 0, MOST_INTEREST_METADATA, MOST_METADATUM)
    return Wish(types, metadata, endpoint, _secret(body.get("secret")))


def _secret(secret: object) -> str | None:
    if secret is None:
        return None
    if not isinstance(secret, str) or len(secret) > MOST_SECRET:
        raise bad("bad-subscription", f"secret: a string of at most {MOST_SECRET} characters is needed")
    try:
        secret_bytes(secret)
    except ValueError as error:
        raise bad("bad-subscription", f"secret: {error}") from None
    return secret


def _integer(parameters: Mapping[str, str], name: str, default: int, fewest: int, most: int) -> int:
    text = parameters.get(name)
    if text is None:
        return default
    if not _NUMBER.fullmatch(text) or not fewest <= int(text) <= most:
        raise bad("bad-query", f"{name}: an integer of {fewest} to {most} is needed")
    return int(text)


def parse_query(parameters: Mapping[str, str]) -> Query:
    """The parameters of `/events`, without `after`. Raises `Problem`."""
    everything = parameters.get("all", "false")
    if everything not in {"true", "false"}:
        raise bad("bad-query", "all: true or false is needed")
    environment = parameters.get("envM")
    if environment is not None and not 1 <= len(environment) <= MOST_METADATUM:
        raise bad("bad-query", f"envM: 1 to {MOST_METADATUM} characters are needed")
    start = _integer(parameters, "startDate", 0, 0, MOST_MS)
    end = _integer(parameters, "endDate", MOST_MS, 0, MOST_MS)
    limit = _integer(parameters, "limit", MOST_LIMIT, 1, MOST_LIMIT)
    return Query(start, end, environment, everything == "true", limit=limit)


def parse_number(parameters: Mapping[str, str]) -> int:
    """The number after which an adapter is read: `after` plus 1, or 0 without `after`. Raises `Problem`."""
    return _integer(parameters, "after", -1, 0, MOST_NUMBER) + 1


def newest_per_entity(rows: list[T], entity: Callable[[T], str]) -> list[T]:
    """The last row of each entity, in the order of the rows."""
    last = {entity(row): place for place, row in enumerate(rows)}
    return [rows[place] for place in sorted(last.values())]


def horizon(merged: list[tuple[str, Notice]], reached: Mapping[str, list[Notice]], limit: int) -> int:
    """The number of merged rows that can be shown: none after the end of a part that has more."""
    full = [(name, part[-1]) for name, part in reached.items() if len(part) == limit]
    return min((merged.index(last) + 1 for last in full), default=len(merged))


def write_cursor(cursor: dict[str, int], page: list[tuple[str, Notice]]) -> str:
    """The cursor after a page: how far each network was shown."""
    found = dict(cursor)
    for name, notice in page:
        found[name] = max(found.get(name, 0), notice.number)
    return base64.urlsafe_b64encode(json.dumps(found, sort_keys=True).encode()).decode().rstrip("=")


def read_cursor(text: str) -> dict[str, int]:
    """The number up to which each network was shown. Raises `Problem`."""
    if not text or text == "0":
        return {}
    try:
        found = json.loads(base64.urlsafe_b64decode(unquote(text)[:MOST_CURSOR] + "=" * (-len(text) % 4)))
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict) and all(type(each) is int and 0 <= each <= MOST_NUMBER for each in found.values()):
        return found
    raise bad("bad-cursor", "after: not a cursor of header IED-Next")
