"""The page of a dry run: a tree of additions, changes and removals."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pubsub_emulator.explorer.html import Html, join, page, tag

_STYLE: Final = (
    ":root{color-scheme:light dark;--bad:#c62828;--good:#2e7d32}"
    "@media(prefers-color-scheme:dark){:root{--bad:#ef9a9a;--good:#a5d6a7}}"
    "body{font:15px/1.45 system-ui,sans-serif;margin:1rem}ul{list-style:none;padding-left:1.2rem;margin:0}"
    "code{font-family:ui-monospace,monospace;font-size:.9em;overflow-wrap:anywhere}"
    "del{color:var(--bad)}ins{color:var(--good);text-decoration:none}"
)


def difference_page(title: str, shown: Mapping[str, object]) -> str:
    """A self-contained page; `shown` has `delta` in jsondiffpatch's format."""
    found = shown["delta"]
    body = tag("p", "Nothing would change.") if found is None else _node(found)
    return page(title, _STYLE, body)


def _tree(found: Mapping[str, object]) -> Html:
    return tag("ul", *(tag("li", name, ": ", _node(each)) for name, each in _named(found)))


def _named(found: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Fields by name, items by place; a removed item's place has a mark before it."""
    items = found.get("_t") == "a"
    for name, each in found.items():
        if not (items and name == "_t"):
            yield (f"[{name.removeprefix('_')}]" if items else name), each


def _node(each: Any) -> Html:
    if isinstance(each, Mapping):
        return _tree(each)
    if len(each) == 1:
        return tag("ins", _code(each[0]))
    if len(each) == 3:
        return tag("del", _code(each[0]))
    return join((tag("del", _code(each[0])), " → ", tag("ins", _code(each[1]))))


def _code(value: object) -> Html:
    return tag("code", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
