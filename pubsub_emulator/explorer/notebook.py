"""Registers IPython formatters for the emulator's types."""

from operator import attrgetter
from typing import Any

from pubsub_emulator.explorer.cards import CARDS, line, sequence_card


def register(shell: object) -> None:
    """Register formatters of the types in `CARDS`, in HTML and in plain text."""
    html, plain = _formatters(shell)
    for kind_of_object, make in CARDS.items():
        html.for_type(kind_of_object, make)
        plain.for_type(kind_of_object, lambda thing, printer, _cycle: printer.text(line(thing)))
    for kind in (list, tuple):
        # For a list of other objects, it returns `None`, and IPython shows the list as usual.
        html.for_type(kind, sequence_card)


def unregister(shell: object) -> None:
    """Remove the formatters."""
    html, plain = _formatters(shell)
    for kind_of_object in CARDS:
        html.pop(kind_of_object, None)
        plain.pop(kind_of_object, None)
    for kind in (list, tuple):
        html.pop(kind, None)


def _formatters(shell: object) -> list[Any]:
    formatters = attrgetter("display_formatter.formatters")(shell)
    return [formatters[kind] for kind in ("text/html", "text/plain")]
