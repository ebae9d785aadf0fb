"""The OpenAPI 3.1 description of the interface that adapters and distributors have in common.

It is written in `openapi.json`. The parts that can be derived are added here.
"""

import copy
import json
from functools import cache
from importlib import resources
from typing import Any, Final

from interchain_events.distributor.event import MOST_NUMBER
from pubsub_emulator.version import VERSION

Json = dict[str, Any]

ANYWHERE: Final = (401, 403, 429, 503)
"""Statuses of errors that every request can meet."""
_OF_DISTRIBUTORS: Final = ("/api/dead-letters", "/internal/")
"""The beginnings of paths that adapters do not have."""


@cache
def document(*, distributor: bool) -> Json:
    """Return the description of a distributor or of an adapter.

    Both versions of the interface have the same operations.
    """
    made: Json = json.loads(
        resources.files(__package__ or "").joinpath("openapi.json").read_text(encoding="utf-8")
    )
    made["info"] |= {
        "title": f"{made['info']['title']}: {'distributor' if distributor else 'adapter'}"
    }
    made["info"]["version"] = VERSION
    described: Json = made["paths"]
    made["paths"] = {}
    for path, item in described.items():
        for method in {"get", "post", "delete"} & item.keys():
            for status in ANYWHERE:
                item[method]["responses"].setdefault(
                    str(status), {"$ref": "#/components/responses/Problem"}
                )
        if not distributor and path.startswith(_OF_DISTRIBUTORS):
            continue
        if not distributor and path == "/api/events":
            _by_number(item["get"])
        for version in ("v1", "v2") if path.startswith("/api/") else ("",):
            made["paths"][path.replace("/api/", f"/api/{version}/")] = _versioned(item, version)
    return made


def _by_number(events: Json) -> None:
    """Describe `/events` of an adapter: its cursor is a number, and it has no other networks."""
    del events["responses"]["200"]["headers"]
    after = next(each for each in events["parameters"] if each.get("name") == "after")
    after["schema"] = {"type": "integer", "minimum": 0, "maximum": MOST_NUMBER}


def _versioned(item: Json, version: str) -> Json:
    """Return the operations of a path with ids that are unique in the description."""
    made = copy.deepcopy(item)
    for part in made.values():
        if version and isinstance(part, dict):
            part["operationId"] += f"-{version}"
    return made


def page(*, distributor: bool) -> str:
    """Return the calls in plain text, with which `/` and `/docs` answer."""
    described = document(distributor=distributor)
    lines = [described["info"]["title"], ""]
    for path, item in described["paths"].items():
        if not path.startswith(("/api/v1/", "/internal/")):
            lines += [
                f"{name.upper():<7}{path:<42}{item[name]['summary']}"
                for name in item
                if name != "parameters"
            ]
    return "\n".join([*lines, "", "Bodies and answers: /openapi.json", ""])
