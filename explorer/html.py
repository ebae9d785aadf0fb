"""HTML from Python values: text is escaped, always; what is markup already says so by its type."""

from collections.abc import Iterable
from html import escape


class Html(str):
    """Markup; only this module and drawings make it."""

    __slots__ = ()


def tag(name: str, *content: object, **attributes: str) -> Html:
    """An element; attributes end in an underscore where Python has their name for itself."""
    given = "".join(f' {key.rstrip("_")}="{escape(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{given}>{join(content)}</{name}>")


def join(content: Iterable[object]) -> Html:
    """Markup and texts, one after the other; nothing for none."""
    return Html("".join(_text(each) for each in content if each is not None))


def _text(value: object) -> str:
    if isinstance(value, Html):
        return value
    return escape(f"{value:,}" if isinstance(value, int) else str(value))


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> Html:
    """A table; whole numbers stand at the right."""
    top = tag("tr", *(tag("th", name) for name in head))
    body = (tag("tr", *(tag("td", cell, class_="f" if isinstance(cell, int) else "t") for cell in row)) for row in rows)
    return tag("table", tag("thead", top), tag("tbody", *body))


def fold(title: str, content: object) -> Html:
    """Something that a reader may open."""
    return tag("details", tag("summary", title), content)
