"""The linking of JavaScript modules into one script, for pages that are a single file.

Each module becomes a function that runs once and returns its exports. Only the forms of `import`
and `export` that this project and its libraries use are supported. Others are refused. Names are
not changed, because each module has a scope of its own.

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
    """Return a script that does the same as the module `entry`.

    `read` returns a module by its path. Raises `CannotLink` if modules import each other in a
    circle, for an unknown form of `import` or `export`, and for text that would end the HTML
    element of the script.
    """
    done: dict[str, str] = {}
    _add(entry, read, done, importers=())
    text = '"use strict";\nconst modules = {};\n' + "".join(done.values())
    if re.search(r"</script|<!--", text, re.IGNORECASE):
        raise CannotLink("a module has text that would end its element of HTML")
    return text


def _add(
    path: str, read: Callable[[str], str], done: dict[str, str], importers: tuple[str, ...]
) -> None:
    """Add a module to `done`, after the modules that it imports."""
    if path in importers:
        raise CannotLink(f"{' imports '.join((*importers, path))}")
    if path in done:
        return
    body = read(path)
    bindings: list[str] = []
    while True:
        comment = _COMMENT.match(body)
        if comment is not None:
            body = body[comment.end() :]
            continue
        statement = _IMPORT.match(body)
        if statement is None:
            break
        imported = normpath(join(dirname(path), statement["path"]))
        _add(imported, read, done, importers=(*importers, path))
        bindings.append(_bound(statement["names"], statement["default"], imported))
        body = body[statement.end() :]
    body, exports = _exports(body, path)
    head = "".join(bindings)
    done[path] = (
        f'modules["{path}"] = (() => {{\n{head}{body.strip()}\nreturn {{ {exports} }};\n}})();\n'
    )


def _bound(names: str | None, default: str | None, path: str) -> str:
    """Return the statement that defines the names that a module imports from another one."""
    if default is not None:
        return f'const {default} = modules["{path}"].default;\n'
    if names is None:
        return ""
    pairs = ", ".join(": ".join(name.split(" as ")) for name in _listed(names))
    return f'const {{ {pairs} }} = modules["{path}"];\n'


def _exports(body: str, path: str) -> tuple[str, str]:
    """Return a module's text without `export`, and its exports as fields of an object."""
    fields = list(_DECLARED.findall(body))
    body = _DECLARED.sub("", body)
    export_list = _LISTED.search(body)
    if export_list is not None:
        for name in _listed(export_list[1]):
            local_name, _, exported_name = name.partition(" as ")
            fields.append(f"{exported_name or local_name}: {local_name}")
        body = body[: export_list.start()]
    if _DEFAULT.search(body):
        body = _DEFAULT.sub("const defaultExport = ", body, count=1)
        fields.append("default: defaultExport")
    unknown = _LEFT.search(body)
    if unknown is not None:
        raise CannotLink(f"{path}: not a known form: {body[unknown.start() :][:60]!r}")
    return body, ", ".join(fields)


def _listed(names: str) -> list[str]:
    """Return the names between braces."""
    return [name.strip() for name in names.split(",") if name.strip()]
