"""The status page at `/`, for people with a browser.

It is one HTML document without scripts. The browser reloads it every few seconds, but only if the
reader asks for that: people with a screen reader lose their place on a page that changes by itself.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, NamedTuple

from pubsub_emulator.files.shown import safe
from pubsub_emulator.pages.assets import styles

REFRESH_SECONDS: Final = 5
"""The interval at which the browser reloads the page if the reader asks for that."""
REFRESH: Final = "refresh"
"""The parameter of a request for a page that is reloaded."""
MOST_ROWS: Final = 200
"""The greatest number of subscriptions that are shown."""
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
"""The page's Content-Security-Policy. The page may not load or run anything."""

_STYLE: Final = f"""{styles()}
td {{ overflow-wrap: anywhere; }}
.badge {{ white-space: normal; }}
.badge.good::before {{ content: "\\2713\\00a0"; }}
.badge.bad::before {{ content: "\\2715\\00a0"; }}
"""
"""The style of the emulator's pages, and signs that say the same as the colours of states."""


class Check(NamedTuple):
    """One line of the state of a service."""

    name: str
    status: str
    """`UP`, `DEGRADED` or `DOWN`."""
    cause: str = ""


class NetworkLine(NamedTuple):
    """A network on the page."""

    name: str
    cause: str
    """The reason why its adapter does not answer, empty if it answers."""
    waiting: int
    oldest: float
    """Seconds for which the oldest event has waited."""
    given_up: int


class SubscriptionLine(NamedTuple):
    """A subscription on the page."""

    name: str
    types: Sequence[str]
    endpoint: str
    waiting: int
    cause: str
    """The reason why its subscriber does not answer, empty if it answers."""
    active: bool


class StatusPage(NamedTuple):
    """Everything on the page."""

    name: str
    """The URL of the distributor."""
    status: str
    checks: Sequence[Check]
    networks: Sequence[NetworkLine]
    subscriptions: Sequence[SubscriptionLine] | None
    """`None` if callers need a token to see them."""
    total: int
    """The number of all subscriptions."""
    is_refreshed: bool = False
    """Whether the browser reloads the page by itself."""


class _Cell(NamedTuple):
    """A cell of a table."""

    kind: str
    """The class of its element: `long`, `figure` or `state`."""
    html: str


def status_page(status: StatusPage) -> str:
    """Return the page as HTML."""
    networks = [
        (
            _text(line.name),
            _mark("answers" if not line.cause else line.cause, is_up=not line.cause),
            _number(line.waiting),
            _number(round(line.oldest)),
            _number(line.given_up),
        )
        for line in status.networks
    ]
    checks = [
        (_text(check.name), _mark(check.status, is_up=check.status == "UP"), _text(check.cause))
        for check in status.checks
    ]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">' if status.is_refreshed else "",
        f"<title>{escape(status.status)}: distributor</title><style>{_STYLE}</style></head><body>",
        '<header class="page-head"><h1>Distributor</h1>',
        _introduction(status),
        "</header><main>",
        _card("Networks", _table(_NETWORK_COLUMNS, networks)),
        _card("Checks", _table(("what", "state", "cause"), checks)),
        _card("Subscriptions", _subscriptions(status)),
        "</main></body></html>",
    ]
    return "\n".join(parts)


_NETWORK_COLUMNS: Final = ("network", "adapter", "events waiting", "oldest, seconds", "given up")


def _card(title: str, content: str) -> str:
    """Return a section with a title."""
    return f'<section class="card"><h2>{title}</h2>{content}</section>'


def _introduction(status: StatusPage) -> str:
    """Return the line with the state of the whole distributor."""
    state = _span(status.status, is_up=status.status == "UP")
    links = 'Calls: <a href="/docs">/docs</a>. Figures: <a href="/metrics">/metrics</a>.'
    again = f'<a href="/?{REFRESH}">Load this page every {REFRESH_SECONDS} seconds</a>.'
    if status.is_refreshed:
        again = f'This page is loaded every {REFRESH_SECONDS} seconds: <a href="/">stop</a>.'
    return f"<p>{escape(safe(status.name))} is {state}. {links} {again}</p>"


def _subscriptions(status: StatusPage) -> str:
    """Return the table of subscriptions, or the reason why there is none."""
    if status.subscriptions is None:
        return "<p>A token with the right <code>read</code> is needed to see them.</p>"
    if not status.subscriptions:
        return "<p>There are none.</p>"
    lines = [
        (
            _text(line.name),
            _text(", ".join(line.types)),
            _text(line.endpoint),
            _mark(_subscriber(line), is_up=line.active and not line.cause),
            _number(line.waiting),
        )
        for line in status.subscriptions
    ]
    more = status.total - len(lines)
    header = ("subscription", "event types", "endpoint", "subscriber", "waiting")
    return _table(header, lines) + (f"<p>{more:,} more are not shown.</p>" if more > 0 else "")


def _subscriber(line: SubscriptionLine) -> str:
    """Return the state of a subscriber in words."""
    if not line.active:
        return "ended by the subscriber"
    return line.cause or "answers"


def _table(header: Sequence[str], lines: Iterable[Sequence[_Cell]]) -> str:
    """Return a table. On narrow screens each row becomes a list whose cells name their columns."""
    rows = list(lines)
    kinds = [cell.kind for cell in rows[0]] if rows else [""] * len(header)
    head = "".join(
        f'<th scope="col" class="{kind}">{escape(name)}</th>'
        for name, kind in zip(header, kinds, strict=True)
    )
    body = "".join(f"<tr>{_row(header, row)}</tr>" for row in rows)
    table = f'<table class="stacked"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scroll" tabindex="0">{table}</div>'


def _row(header: Sequence[str], row: Sequence[_Cell]) -> str:
    """Return the cells of a row."""
    return "".join(
        f'<td class="{cell.kind}" data-label="{escape(name)}">{cell.html}</td>'
        for name, cell in zip(header, row, strict=True)
    )


def _text(text: str) -> _Cell:
    """Return a cell with a text, which a stranger may have chosen."""
    return _Cell("long", escape(safe(text)))


def _number(value: int) -> _Cell:
    return _Cell("figure", f"{value:,}")


def _mark(text: str, *, is_up: bool) -> _Cell:
    return _Cell("state", _span(text, is_up=is_up))


def _span(text: str, *, is_up: bool) -> str:
    """Return a state with a sign and a colour that say the same."""
    return f'<span class="badge {"good" if is_up else "bad"}">{escape(safe(text))}</span>'
