"""Registers IPython formatters for the emulator's types."""

from operator import attrgetter
from typing import Any

from pubsub_emulator.explorer.cards import CARDS, line, sequence_card


def register(shell: object) -> None:
    """Register formatters of the types in `CARDS`, in HTML and in plain text."""
    html, plain = _formatters(shell)
    for shown, make in CARDS.items():
        html.for_type(shown, make)
        plain.for_type(shown, lambda thing, printer, _cycle: printer.text(line(thing)))
    for kind in (list, tuple):
        # For lists of other things it returns `None`, and IPython shows them as usual.
        html.for_type(kind, sequence_card)


def unregister(shell: object) -> None:
    """Remove the formatters."""
    html, plain = _formatters(shell)
    for shown in CARDS:
        html.pop(shown, None)
        plain.pop(shown, None)
    for kind in (list, tuple):
        html.pop(kind, None)


def _formatters(shell: object) -> list[Any]:
    every = attrgetter("display_formatter.formatters")(shell)
    return [every[kind] for kind in ("text/html", "text/plain")]
