"""The OpenAPI 3.1 description of the interface that adapters and distributors have in common.

Its text is `openapi.json`. This module adds the parts that can be derived.
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
"""The statuses of errors with which any request may be answered."""
_OF_DISTRIBUTORS: Final = ("/api/dead-letters", "/internal/")
"""The prefixes of paths that adapters do not have."""


@cache
def document(*, distributor: bool) -> Json:
    """Return the description of a distributor or of an adapter.

    Both versions of the interface have the same operations.
    """
    description: Json = json.loads(
        resources.files(__package__ or "").joinpath("openapi.json").read_text(encoding="utf-8")
    )
    description["info"]["title"] += ": distributor" if distributor else ": adapter"
    description["info"]["version"] = VERSION
    common: Json = description["paths"]
    paths: Json = {}
    description["paths"] = paths
    for path, item in common.items():
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
            paths[path.replace("/api/", f"/api/{version}/")] = _versioned(item, version)
    return description


def _by_number(events: Json) -> None:
    """Change the description of `/events` to that of an adapter.

    Its cursor is a number, and it does not have the headers about several networks.
    """
    del events["responses"]["200"]["headers"]
    after = next(entry for entry in events["parameters"] if entry.get("name") == "after")
    after["schema"] = {"type": "integer", "minimum": 0, "maximum": MOST_NUMBER}


def _versioned(item: Json, version: str) -> Json:
    """Return the operations of a path with ids that are unique in the description."""
    versioned = copy.deepcopy(item)
    for operation in versioned.values():
        if version and isinstance(operation, dict):
            operation["operationId"] += f"-{version}"
    return versioned


def page(*, distributor: bool) -> str:
    """Return a list of the calls in plain text, for `/` and `/docs`."""
    description = document(distributor=distributor)
    lines = [description["info"]["title"], ""]
    for path, item in description["paths"].items():
        if not path.startswith(("/api/v1/", "/internal/")):
            lines += [
                f"{name.upper():<7}{path:<42}{item[name]['summary']}"
                for name in item
                if name != "parameters"
            ]
    return "\n".join([*lines, "", "Bodies and answers: /openapi.json", ""])
