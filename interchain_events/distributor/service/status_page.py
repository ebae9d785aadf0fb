"""The status page at `/`, for people with a browser.

It is one HTML document without scripts, which the browser loads again every few seconds.
"""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, NamedTuple

from pubsub_emulator.files.shown import safe

REFRESH_SECONDS: Final = 5
"""How often the browser loads the page again."""
MOST_ROWS: Final = 200
"""The greatest number of subscriptions that are shown."""
POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
"""The page's Content-Security-Policy: it loads nothing and runs nothing."""

_STYLE: Final = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 2rem; }
th, td { text-align: left; padding: .35rem .75rem; border-bottom: 1px solid #8886; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
td.long { overflow-wrap: anywhere; }
.up::before { content: "\\2713\\00a0"; } .down::before { content: "\\2715\\00a0"; }
.up { color: #176b2c; } .down { color: #b3261e; font-weight: 600; }
@media (prefers-color-scheme: dark) { .up { color: #7ddb94; } .down { color: #ffb4ab; } }
"""


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
    """Why its adapter does not answer, empty if it does."""
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
    """Why its subscriber does not answer, empty if it does."""
    active: bool


class Status(NamedTuple):
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


def status_page(status: Status) -> str:
    """Return the page."""
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
        f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">',
        f"<title>{escape(status.status)}: distributor</title><style>{_STYLE}</style></head><body>",
        "<h1>Distributor</h1>",
        _introduction(status),
        "<h2>Networks</h2>",
        _table(
            ("network", "adapter", "events waiting", "oldest, seconds", "given up"),
            networks,
        ),
        "<h2>Checks</h2>",
        _table(("what", "state", "cause"), checks),
        "<h2>Subscriptions</h2>",
        _subscriptions(status),
        "</body></html>",
    ]
    return "\n".join(parts)


def _introduction(status: Status) -> str:
    """Return the line with the state of the whole distributor."""
    state = _span(status.status, is_up=status.status == "UP")
    links = 'Calls: <a href="/docs">/docs</a>. Figures: <a href="/metrics">/metrics</a>.'
    return f"<p>{escape(safe(status.name))} is {state}. {links}</p>"


def _subscriptions(status: Status) -> str:
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


def _table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a table of cells that are HTML already."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join(f"<tr>{''.join(line)}</tr>" for line in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(text: str) -> str:
    """Return a cell with a text, which a stranger may have chosen."""
    return f'<td class="long">{escape(safe(text))}</td>'


def _number(value: int) -> str:
    return f'<td class="number">{value:,}</td>'


def _mark(text: str, *, is_up: bool) -> str:
    return f"<td>{_span(text, is_up=is_up)}</td>"


def _span(text: str, *, is_up: bool) -> str:
    """Return a state, which a sign and a colour repeat."""
    return f'<span class="{"up" if is_up else "down"}">{escape(safe(text))}</span>'
