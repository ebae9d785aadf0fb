"""Pages of events of several networks: the cursor of header `IED-Next` has a number for each network (ID-10)."""

import base64
import binascii
import json
from collections.abc import Mapping
from urllib.parse import unquote

from pubsub_emulator.distributor.event import Notice
from pubsub_emulator.distributor.service.problems import bad
from pubsub_emulator.distributor.service.requests import MOST_CURSOR


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
    except (binascii.Error, ValueError, RecursionError):
        raise bad("bad-cursor", "after: not a cursor of header IED-Next") from None
    if not isinstance(found, dict) or not all(
        isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**64 for number in found.values()
    ):
        raise bad("bad-cursor", "after: not a cursor of header IED-Next")
    return found
