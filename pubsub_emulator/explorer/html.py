"""Makes HTML from Python values. All text is escaped, except `Html`, which is markup already."""

from collections.abc import Iterable
from html import escape

from pubsub_emulator.files.shown import safe


class Html(str):
    """Markup. Only this module and drawings create it."""

    __slots__ = ()


def tag(name: str, *content: object, **attributes: str) -> Html:
    """Return an element. Attributes that are Python keywords end in an underscore."""
    given = "".join(
        f' {key.rstrip("_")}="{escape(safe(value))}"' for key, value in attributes.items()
    )
    return Html(f"<{name}{given}>{join(content)}</{name}>")


def join(content: Iterable[object]) -> Html:
    """Return markup and texts, one after the other. `None` is skipped."""
    return Html("".join(_text(each) for each in content if each is not None))


def _text(value: object) -> str:
    if isinstance(value, Html):
        return value
    return escape(f"{value:,}" if isinstance(value, int) else safe(str(value)))


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> Html:
    """Return a table, in which integers are right-aligned."""
    top = tag("tr", *(tag("th", name) for name in head))
    body = (
        tag("tr", *(tag("td", cell, class_="f" if isinstance(cell, int) else "t") for cell in row))
        for row in rows
    )
    return tag("table", tag("thead", top), tag("tbody", *body))


def page(title: str, style: str, *body: object) -> str:
    """Return a self-contained page with a title."""
    meta = Html(
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    )
    head = tag("head", meta, tag("title", title), tag("style", Html(style)))
    return (
        f"<!doctype html>\n{tag('html', head, tag('body', tag('h1', title), *body), lang='en')}\n"
    )


def fold(title: str, content: object) -> Html:
    """Return folded content with a title."""
    return tag("details", tag("summary", title), content)
