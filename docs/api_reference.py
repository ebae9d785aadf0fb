"""The API reference: a page for each package, written from its modules before Sphinx reads them, and plain docstrings.

Docstrings of this project are plain text: paragraphs, `names`, lists, and columns or indented blocks, which are
drawings and tables and keep their shape. Sphinx expects reStructuredText, so `plain` says the same in that language.
"""

import re
from itertools import groupby
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

_COLUMNS = re.compile(r"\S {2,}\S")
_LIST = re.compile(r"(- |\d+\. )")
_CODE = re.compile(r"(`[^`]+`)")
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
    """A paragraph, or one that leads into a list; nothing in it but `names` has a meaning for Sphinx."""
    found: list[str] = []
    for line in paragraph:
        begins = _LIST.match(line) is not None
        if begins and found and not _LIST.match(found[-1]) and not found[-1].startswith("  "):
            found.append("")
        parts = _CODE.split(line)
        found.append("".join(part if _CODE.fullmatch(part) else _SPECIAL.sub(r"\\\1", part) for part in parts))
    return found


def page(root: Path, package: Path) -> str:
    """The page of a package: what it is, then each of its modules."""
    name = ".".join(("pubsub_emulator", *package.relative_to(root).parts))
    inner = sorted(each.parent.name for each in package.glob("*/__init__.py"))
    parts = [_title(name, "="), f".. automodule:: {name}\n   :members:\n   :ignore-module-all:\n"]
    for module in sorted(package.glob("*.py")):
        if module.stem not in ("__init__", "__main__"):
            parts.append(_title(module.stem, "-"))
            parts.append(f".. automodule:: {name}.{module.stem}\n   :members:\n")
    if inner:
        entries = "\n".join(f"   {name}.{each}" for each in inner)
        parts.append(f".. toctree::\n   :caption: Packages in it\n\n{entries}\n")
    return "\n".join(parts)


def _title(text: str, line: str) -> str:
    return f"``{text}``\n{line * (len(text) + 4)}\n"


def write_pages(app: Sphinx) -> None:
    """Every package's page into `api/`; pages of packages that are gone go, too."""
    root, folder = Path(app.confdir).parent, Path(app.srcdir) / "api"
    folder.mkdir(exist_ok=True)
    pages = {
        ".".join(("pubsub_emulator", *init.parent.relative_to(root).parts)): page(root, init.parent)
        for room in app.config.api_rooms
        for init in sorted((root / room).rglob("__init__.py"))
    }
    for old in folder.glob("*.rst"):
        if old.stem not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def say_it_plainly(_app: Sphinx, _what: str, _name: str, _it: object, _options: object, lines: list[str]) -> None:
    """What autodoc does with each docstring."""
    lines[:] = plain(lines)


def setup(app: Sphinx) -> dict[str, Any]:
    """Sphinx calls it."""
    app.add_config_value("api_rooms", (), "env", (tuple, list))
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", say_it_plainly)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
