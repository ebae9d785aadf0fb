"""The linking of JavaScript modules into one script, for pages that are a single file.

Each module becomes a function that runs once and returns its exports. Only the forms of `import`
and `export` that this project and its libraries use are read; others are refused, so that nothing
is left out. Names are not changed: each module keeps a scope of its own.

    import { a, b as c } from "./x.js";     import{a as b}from"./x.js"     import a from "./x.js";
    import "./x.js";
    export function f() …      export const c = …      export class C …     export default …
    export{a as b,c};
"""

import re
from collections.abc import Callable
from posixpath import dirname, join, normpath
from typing import Final

_IMPORT: Final = re.compile(
    r'\s*import\s*(?:(?:\{(?P<names>[^{}]*)\}|(?P<default>\w+))\s*from\s*)?"(?P<path>\.[^"]+)";?'
)
_COMMENT: Final = re.compile(r"\s*//[^\n]*\n")
_DECLARED: Final = re.compile(
    r"^export (?=(?:async )?(?:function\*? ?|const |class )(\w+))", re.MULTILINE
)
_DEFAULT: Final = re.compile(r"\bexport default ")
_LISTED: Final = re.compile(r"\bexport ?\{([^{}]*)\};?\s*$")
_LEFT: Final = re.compile(r"^(?:import|export)\b|[;}](?:import|export)[ {]", re.MULTILINE)


class CannotLink(ValueError):
    """A module that cannot be part of a script."""


def linked(entry: str, read: Callable[[str], str]) -> str:
    """Return a script that does what the module `entry` does.

    `read` returns a module by its path. Raises `CannotLink` for modules that import each other in a
    circle, for a form of `import` or `export` that is not known, and for text that would end an
    element of HTML.
    """
    done: dict[str, str] = {}
    _add(entry, read, done, ())
    text = '"use strict";\nconst modules = {};\n' + "".join(done.values())
    if re.search(r"</script|<!--", text, re.IGNORECASE):
        raise CannotLink("a module has text that would end its element of HTML")
    return text


def _add(
    path: str, read: Callable[[str], str], done: dict[str, str], above: tuple[str, ...]
) -> None:
    """Add a module to `done`, behind those that it imports."""
    if path in above:
        raise CannotLink(f"{' imports '.join((*above, path))}")
    if path in done:
        return
    body = read(path)
    bound: list[str] = []
    while True:
        comment = _COMMENT.match(body)
        if comment is not None:
            body = body[comment.end() :]
            continue
        found = _IMPORT.match(body)
        if found is None:
            break
        imported = normpath(join(dirname(path), found["path"]))
        _add(imported, read, done, (*above, path))
        bound.append(_bound(found["names"], found["default"], imported))
        body = body[found.end() :]
    body, exports = _exports(body, path)
    head = "".join(bound)
    done[path] = (
        f'modules["{path}"] = (() => {{\n{head}{body.strip()}\nreturn {{ {exports} }};\n}})();\n'
    )


def _bound(names: str | None, default: str | None, path: str) -> str:
    """Return the statement that binds what a module imports from another one."""
    if default is not None:
        return f'const {default} = modules["{path}"].default;\n'
    if names is None:
        return ""
    pairs = ", ".join(": ".join(each.split(" as ")) for each in _listed(names))
    return f'const {{ {pairs} }} = modules["{path}"];\n'


def _exports(body: str, path: str) -> tuple[str, str]:
    """Return a module's text without `export`, and its exports as fields of an object."""
    fields = list(_DECLARED.findall(body))
    body = _DECLARED.sub("", body)
    listed = _LISTED.search(body)
    if listed is not None:
        for each in _listed(listed[1]):
            own, _, other = each.partition(" as ")
            fields.append(f"{other or own}: {own}")
        body = body[: listed.start()]
    if _DEFAULT.search(body):
        body = _DEFAULT.sub("const defaultExport = ", body, count=1)
        fields.append("default: defaultExport")
    left = _LEFT.search(body)
    if left is not None:
        raise CannotLink(f"{path}: not a known form: {body[left.start() :][:60]!r}")
    return body, ", ".join(fields)


def _listed(names: str) -> list[str]:
    """Return the names between braces."""
    return [each.strip() for each in names.split(",") if each.strip()]
