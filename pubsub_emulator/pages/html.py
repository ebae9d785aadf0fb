"""Makes HTML from Python values. All text is escaped, except `Html`, which is markup already."""

from collections.abc import Iterable
from html import escape
from typing import Final, Protocol, runtime_checkable

from pubsub_emulator.files.shown import safe


@runtime_checkable
class SupportsHtml(Protocol):
    """Text that is markup already, by the protocol of template engines."""

    def __html__(self) -> str:
        """Return the markup."""


class Html(str):
    """Markup. Only this module and drawings create it."""

    __slots__ = ()

    def __html__(self) -> str:
        """Return the markup, so that a template does not escape it."""
        return self


def tag(name: str, *content: object, **attributes: str) -> Html:
    """Return an element. Attributes that are Python keywords end in an underscore."""
    attribute_text = "".join(
        f' {key.rstrip("_")}="{escape(safe(value))}"' for key, value in attributes.items()
    )
    return Html(f"<{name}{attribute_text}>{join(content)}</{name}>")


def join(content: Iterable[object]) -> Html:
    """Return joined markup and texts. `None` is skipped."""
    return Html("".join(_text(item) for item in content if item is not None))


def _text(value: object) -> str:
    if isinstance(value, SupportsHtml):
        return str(value.__html__())
    return escape(f"{value:,}" if isinstance(value, int) else safe(str(value)))


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> Html:
    """Return a table, in which integers are right-aligned."""
    header_row = tag("tr", *(tag("th", name) for name in head))
    body = []
    for row in rows:
        row_cells = (tag("td", cell, class_="f" if isinstance(cell, int) else "t") for cell in row)
        body.append(tag("tr", *row_cells))
    return tag("table", tag("thead", header_row), tag("tbody", *body))


_KINDS: Final = {"t": "", "f": "figure", "m": "figure minor", "l": "long"}
"""The classes of a table's columns by letter.

`t` is text, `f` a figure, `m` a figure that is hidden on phones, and `l` text of several lines.
"""


def heads(kinds: str, *titles: str) -> Html:
    """Return the head of a table, with a letter of `_KINDS` for each column."""
    pairs = zip(kinds, titles, strict=True)
    return tag("tr", *(_cell("th", kind, title, scope="col") for kind, title in pairs))


def cells(kinds: str, *values: object) -> Html:
    """Return a row of a table, whose first cell is its head.

    Integers are written with commas. Texts are escaped unless they are markup. `None` is an empty
    cell.
    """
    first, *rest = zip(kinds, values, strict=True)
    head = _cell("th", *first, scope="row")
    return tag("tr", head, *(_cell("td", kind, value) for kind, value in rest))


def _cell(name: str, kind: str, value: object, **attributes: str) -> Html:
    """Return a cell of a column of that kind."""
    if _KINDS[kind]:
        attributes["class_"] = _KINDS[kind]
    return tag(name, value, **attributes)


def fold(title: str, content: object) -> Html:
    """Return folded content with a title."""
    return tag("details", tag("summary", title), content)
