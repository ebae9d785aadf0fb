"""The API reference: a page per package, written before Sphinx reads them, and plain docstrings.

Docstrings of this project are plain text: paragraphs, `names`, lists, and columns or indented
blocks, which are drawings and tables and keep their shape. Sphinx expects reStructuredText, so
`plain` says the same in that language.
"""

import ast
import inspect
import re
from importlib import import_module
from itertools import groupby
from pathlib import Path
from textwrap import dedent
from typing import Any, ClassVar

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.domains.python import ObjectEntry, PyAttribute, PyProperty, PythonDomain, PyVariable
from sphinx.environment import BuildEnvironment

_COLUMNS = re.compile(r"\S {2,}\S")
_LIST = re.compile(r"(- |\d+\. )")
_CODE = re.compile(r"(`[^`]+`)")
_LONGEST = {"type": 160, "value": 60}
"""Characters of a value; of a type with all its modules, which the page leaves out."""
_LONGEST_SIGNATURE = 400
"""Characters of a signature, with all modules of its types."""
_SPECIAL = re.compile(r"([*|\\]|(?<=\w)_(?!\w))")


def plain(lines: list[str]) -> list[str]:
    """A plain docstring as reStructuredText."""
    found: list[str] = []
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        paragraph = [""] if blank else list(group)
        drawn = paragraph[0].startswith(" ") or any(_COLUMNS.search(line) for line in paragraph)
        if blank:
            found.append("")
        elif drawn and not _LIST.match(paragraph[0]):
            found += ["::", "", *(f"    {line}" for line in paragraph)]
        else:
            found += _prose(paragraph)
    return found


def _prose(paragraph: list[str]) -> list[str]:
    """Convert a paragraph, or one that leads into a list.

    Nothing in it except `names` has a meaning for Sphinx.
    """
    found: list[str] = []
    for line in paragraph:
        begins = _LIST.match(line) is not None
        if begins and found and not _LIST.match(found[-1]) and not found[-1].startswith("  "):
            found.append("")
        parts = _CODE.split(line)
        found.append(
            "".join(
                part if _CODE.fullmatch(part) else _SPECIAL.sub(r"\\\1", part) for part in parts
            )
        )
    return found


def package_page(root: Path, package: Path) -> str:
    """Return the page of a package below the folder `root`.

    It has the package's docstring, a link to each inner package, and a section for each module.
    """
    name = ".".join(package.relative_to(root).parts)
    parts = [_title(name, "="), f".. automodule:: {name}\n   :members:\n   :ignore-module-all:\n"]
    inner = sorted(each.parent.name for each in package.glob("*/__init__.py"))
    if inner:
        entries = "\n".join(f"   {each} <{name}.{each}>" for each in inner)
        parts.append(f".. toctree::\n   :caption: Packages in it\n   :maxdepth: 1\n\n{entries}\n")
    modules = sorted(each.stem for each in package.glob("*.py"))
    modules = [each for each in modules if not each.startswith("_") and not each.endswith("_pb2")]
    parts += [
        f"{_title(each, '-')}\n.. automodule:: {name}.{each}\n   :members:\n" for each in modules
    ]
    return "\n".join(parts)


class Short:
    """A directive without a value or type of more than a line: it is in the source."""

    options: dict[str, str | None]

    def run(self) -> list[nodes.Node]:
        """Describe the object."""
        for option, longest in _LONGEST.items():
            if len(self.options.get(option) or "") > longest:
                del self.options[option]
        return super().run()  # type: ignore[misc,no-any-return]  # a directive is beside it


class Attribute(Short, PyAttribute):
    """Of a class."""


class Property(Short, PyProperty):
    """The same, computed."""


class Variable(Short, PyVariable):
    """Of a module."""


def face_page(root: Path) -> str:
    """Return the page of the names in `pubsub_emulator` itself, each with a link to its module."""
    package = import_module("pubsub_emulator")
    rows = []
    for name in sorted(package.__all__):
        found = getattr(package, name)
        docstring = inspect.getdoc(found) if callable(found) else ""
        first = " ".join((docstring or "").partition("\n\n")[0].split())
        module = getattr(found, "__module__", "")
        place = (
            f":py:mod:`{module.removeprefix('pubsub_emulator.')} <{module}>`"
            if _is_described(root, module)
            else ""
        )
        said = first if callable(found) and not first.startswith(f"{name}(") else ""
        rows.append(
            f"   * - ``{name}``\n     - {' '.join(_prose([said])) if said else ''}\n     - {place}"
        )
    table = ".. list-table::\n   :header-rows: 1\n\n   * - name\n     - what it is\n     - module\n"
    return "\n".join(
        (_title("pubsub_emulator", "="), *_prose([_FACE]), "", table + "\n".join(rows), "")
    )


_FACE = (
    "The names that users need: `from pubsub_emulator import Network`. Everything else is imported"
    " from its module."
)


def _is_described(root: Path, module: str) -> bool:
    parts = module.split(".")
    return len(parts) > 1 and root.joinpath(*parts).with_suffix(".py").is_file()


def _title(text: str, line: str) -> str:
    return f"``{text}``\n{line * (len(text) + 4)}\n"


def write_pages(app: Sphinx) -> None:
    """Every package's page into `api/`; pages of packages that are gone go, too."""
    root = Path(app.confdir).parent
    folder = Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    pages = {"pubsub_emulator": face_page(root)} if app.config.api_rooms else {}
    for room in app.config.api_rooms:
        for init in sorted((root / room).rglob("__init__.py")):
            package = ".".join(init.parent.relative_to(root).parts)
            pages[package] = package_page(root, init.parent)
    for old in folder.glob("*.rst"):
        if old.stem not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


class IndexedDomain(PythonDomain):
    """Sphinx's domain, with an index for the types in signatures.

    Sphinx searches all objects for each type of each signature, which took most of the site's build
    time. This class offers it only the objects that end in the searched name.
    """

    directives: ClassVar = {
        **PythonDomain.directives,
        "attribute": Attribute,
        "data": Variable,
        "property": Property,
    }

    def __init__(self, env: BuildEnvironment) -> None:
        self._by_end: dict[str, list[str]] = {}
        self._indexed = 0
        self._among: dict[str, ObjectEntry] | None = None
        super().__init__(env)

    @property
    def objects(self) -> dict[str, ObjectEntry]:
        """All of them, or those among which is searched."""
        return super().objects if self._among is None else self._among

    def find_obj(  # noqa: PLR0917  # what Sphinx calls it with
        self,
        env: BuildEnvironment,
        modname: str,
        classname: str,
        name: str,
        type: str | None,  # noqa: A002  # its name
        searchmode: int = 0,
    ) -> list[tuple[str, ObjectEntry]]:
        """The objects that a name means."""
        every = self.objects
        if self._indexed != len(every):
            self._by_end = {}
            self._indexed = len(every)
            for full in every:
                self._by_end.setdefault(full.rpartition(".")[2], []).append(full)
        ends = self._by_end.get(name.removesuffix("()").rpartition(".")[2], ())
        self._among = {full: every[full] for full in ends if full in every}
        try:
            return super().find_obj(env, modname, classname, name, type, searchmode)
        finally:
            self._among = None


def say_it_plainly(
    _app: Sphinx, _what: str, _name: str, _it: object, _options: object, lines: list[str]
) -> None:
    """What autodoc does with each docstring."""
    lines[:] = plain(lines)


def without_walls(  # what Sphinx calls it with
    _app: Sphinx,
    kind: str,
    _name: str,
    described: object,
    _options: object,
    signature: str | None,
    returns: str | None,
) -> tuple[str, str] | None:
    """Show a signature of many lines as the source has it, or as names.

    Sphinx writes out the types that an alias stands for, which takes megabytes for a type that
    contains itself. A model of settings is shown without a signature: its fields are listed below
    it, each with its meaning.
    """
    if kind == "class" and hasattr(described, "model_fields"):
        return "", ""
    if len(signature or "") + len(returns or "") <= _LONGEST_SIGNATURE:
        return None
    if inspect.isclass(described):
        return f"({', '.join(inspect.signature(described).parameters)})", ""
    return _as_written(described)


def _as_written(function: Any) -> tuple[str, str]:
    """Return the arguments and the result of a function, with the types as its source has them."""
    source = dedent(inspect.getsource(inspect.unwrap(function)))
    definition = ast.parse(source).body[0]
    if not isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
        raise TypeError(f"{function!r} is not written as a function")
    arguments = definition.args
    first = (arguments.posonlyargs + arguments.args)[:1]
    if first and first[0].arg in {"self", "cls"}:
        (arguments.posonlyargs or arguments.args).pop(0)
    returns = ast.unparse(definition.returns) if definition.returns else ""
    return f"({ast.unparse(arguments)})", returns


def skipped(  # as above
    _app: Sphinx, _kind: str, name: str, _found: object, _skip: bool, _options: object
) -> bool | None:
    """Leave out what a library puts into every model."""
    return True if name == "model_config" else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Sphinx calls it."""
    # Types are shown where they are declared; autodoc collects each a second time for lists that
    # are not shown.
    vars(import_module("sphinx.ext.autodoc._dynamic._signatures"))["_record_typehints"] = (
        lambda **_types: None
    )
    app.add_config_value("api_rooms", (), "env", (tuple, list))
    app.add_domain(IndexedDomain, override=True)
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", say_it_plainly)
    app.connect("autodoc-process-signature", without_walls)
    app.connect("autodoc-skip-member", skipped)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
