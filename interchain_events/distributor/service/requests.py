"""Parsing of clients' requests, and pages of events (ID-10).

The events of several networks form one list. Networks count independently, so the cursor after a
page has the last number shown of each network.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeVar
from urllib.parse import unquote

from aiohttp import web

from interchain_events.distributor.event import MOST_METADATUM, MOST_NUMBER, MOST_TYPE, Notice
from interchain_events.distributor.service.adapters import Query
from interchain_events.distributor.service.addresses import check_endpoint
from interchain_events.distributor.service.poster import secret_bytes
from interchain_events.distributor.service.problems import bad

T = TypeVar("T")
MOST_TYPES: Final = 64
"""The greatest number of a subscription's event types."""
MOST_INTEREST_METADATA: Final = 16
"""The greatest number of a subscription's metadata."""
MOST_LIMIT: Final = 1000
"""The greatest number of events on a page."""
MOST_MS: Final = 2**53 - 1
"""The greatest time in a query, in ms."""
MOST_SECRET: Final = 256
"""The greatest length of a secret, in characters."""
MOST_CURSOR: Final = 4096
"""The greatest length of a cursor or of a name in a path, in characters."""

_NUMBER: Final = re.compile(r"[0-9]{1,20}")


class SubscriptionRequest(NamedTuple):
    """A client's request for a subscription."""

    types: tuple[str, ...]
    metadata: tuple[str, ...]
    endpoint: str
    secret: str | None


def check_receiver(request: web.Request, fields: object, own: str) -> None:
    """Check that a publication is meant for this distributor (ID-11).

    A field `rpcAddress` must be `own`, the public URL, or the address of the request. Raises
    `Problem`.
    """
    receiver = fields.get("rpcAddress") if isinstance(fields, dict) else None
    if receiver is None:
        return
    # An adapter may have no public URL. An empty `rpcAddress` must not count as equal to it.
    known = {own.rstrip("/"), f"{request.scheme}://{request.host}"} - {""}
    if not isinstance(receiver, str) or receiver.rstrip("/") not in known:
        raise bad("wrong-receiver", "rpcAddress is not this receiver's own")


def _texts(
    body: Mapping[str, object], name: str, fewest: int, most: int, length: int
) -> tuple[str, ...]:
    """Return the strings in a field without duplicates, in the order of their first occurrence.

    There must be `fewest` to `most` of them, with at most `length` characters each. Raises
    `Problem`.
    """
    values = body.get(name, [])
    if not isinstance(values, list) or not fewest <= len(values) <= most:
        raise bad("bad-subscription", f"{name}: a list of {fewest} to {most} strings is needed")
    for value in values:
        if not isinstance(value, str) or not 1 <= len(value) <= length or not is_storable(value):
            raise bad("bad-subscription", f"{name}: strings of 1 to {length} characters are needed")
    return tuple(dict.fromkeys(values))


def is_storable(text: str) -> bool:
    """Return whether stores can write a text: it has neither a NUL nor a lone surrogate."""
    if "\0" in text:
        return False
    return not any("\ud800" <= character <= "\udfff" for character in text)


def parse_subscription(body: object, *, everything: bool, private: bool) -> SubscriptionRequest:
    """Return the subscription in the body of `/subscribe`, or of `/subscribe/all` if `everything`.

    `private` allows endpoints at private addresses. Raises `Problem`.
    """
    if not isinstance(body, dict):
        raise bad("bad-subscription", "the body is not a JSON object")
    try:
        endpoint = check_endpoint(body.get("notificationEndpoint"), private=private)
    except ValueError as error:
        raise bad("bad-endpoint", f"notificationEndpoint: {error}") from None
    if everything:
        return SubscriptionRequest(("*",), (), endpoint, secret=None)
    types = _texts(body, "eventTypes", 1, most=MOST_TYPES, length=MOST_TYPE)
    metadata = _texts(body, "metadata", 0, most=MOST_INTEREST_METADATA, length=MOST_METADATUM)
    return SubscriptionRequest(types, metadata, endpoint, _secret(body.get("secret")))


def _secret(secret: object) -> str | None:
    """Return the secret of a subscription. Raises `Problem` if it cannot sign notifications."""
    if secret is None:
        return None
    if not isinstance(secret, str) or len(secret) > MOST_SECRET:
        raise bad(
            "bad-subscription", f"secret: a string of at most {MOST_SECRET} characters is needed"
        )
    try:
        secret_bytes(secret)
    except ValueError as error:
        raise bad("bad-subscription", f"secret: {error}") from None
    return secret


def _integer(parameters: Mapping[str, str], name: str, default: int, fewest: int, most: int) -> int:
    """Return an integer parameter of a query, `default` if it is absent. Raises `Problem`."""
    text = parameters.get(name)
    if text is None:
        return default
    if not _NUMBER.fullmatch(text) or not fewest <= int(text) <= most:
        raise bad("bad-query", f"{name}: an integer of {fewest} to {most} is needed")
    return int(text)


def parse_query(parameters: Mapping[str, str]) -> Query:
    """Return the query in the parameters of `/events`, except `after`. Raises `Problem`."""
    everything = parameters.get("all", "false")
    if everything not in {"true", "false"}:
        raise bad("bad-query", "all: true or false is needed")
    environment = parameters.get("envM")
    if environment is not None and not 1 <= len(environment) <= MOST_METADATUM:
        raise bad("bad-query", f"envM: 1 to {MOST_METADATUM} characters are needed")
    start = _integer(parameters, "startDate", 0, fewest=0, most=MOST_MS)
    end = _integer(parameters, "endDate", MOST_MS, fewest=0, most=MOST_MS)
    limit = _integer(parameters, "limit", MOST_LIMIT, fewest=1, most=MOST_LIMIT)
    return Query(start, end, environment, all=everything == "true", limit=limit)


def parse_number(parameters: Mapping[str, str]) -> int:
    """Return the number after which an adapter is read. Raises `Problem`.

    The parameter `after` counts from 0 and numbers count from 1. Without the parameter, the log is
    read from its beginning.
    """
    return _integer(parameters, "after", -1, fewest=0, most=MOST_NUMBER) + 1


def newest_per_entity(rows: list[T], entity: Callable[[T], str]) -> list[T]:
    """Return the last row of each entity, in the order of the rows."""
    last = {entity(row): index for index, row in enumerate(rows)}
    return [rows[index] for index in sorted(last.values())]


def horizon(
    merged: list[tuple[str, Notice]], reached: Mapping[str, list[Notice]], limit: int
) -> int:
    """Return how many of the merged rows can be shown in their final order.

    If the part of a network has `limit` rows, the network may have further ones, which would come
    before later rows of other networks. So only the rows up to the end of the first such part can
    be shown.
    """
    full = [(name, part[-1]) for name, part in reached.items() if len(part) == limit]
    return min((merged.index(last) + 1 for last in full), default=len(merged))


def write_cursor(cursor: dict[str, int], page: list[tuple[str, Notice]]) -> str:
    """Return the cursor after a page: the last number shown of each network, as base64 of JSON.

    `cursor` is the one before the page.
    """
    numbers = dict(cursor)
    for name, notice in page:
        numbers[name] = max(numbers.get(name, 0), notice.number)
    text = json.dumps(numbers, sort_keys=True)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_cursor(text: str) -> dict[str, int]:
    """Return the last number shown of each network, as written by `write_cursor`.

    Raises `Problem`.
    """
    if not text or text == "0":
        return {}
    try:
        numbers = json.loads(
            base64.urlsafe_b64decode(unquote(text)[:MOST_CURSOR] + "=" * (-len(text) % 4))
        )
    except (ValueError, RecursionError):
        numbers = None
    if isinstance(numbers, dict) and all(
        type(number) is int and 0 <= number <= MOST_NUMBER for number in numbers.values()
    ):
        return numbers
    raise bad("bad-cursor", "after: not a cursor of header IED-Next")
