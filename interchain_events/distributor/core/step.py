"""The function `step`, which applies one input to the stored state (ID-51)."""

from collections.abc import Callable
from typing import Any, Final

from interchain_events.distributor.core import (
    arrivals,
    hooks,
    jobs,
    messages,
    publications,
    reading,
    rows,
)
from interchain_events.distributor.core.rules import Rules
from interchain_events.distributor.once import Transaction


def step(rules: Rules, tx: Transaction, message: messages.Input) -> messages.Effects:
    """Apply one input to the state and return the effects.

    `tx` holds the state, and the writes to it make the new state. The effects may be carried out
    only after the writes have been stored. If a process dies before it carries them out, rows with
    due times start the same work again. This costs time, but no event is lost.
    """
    turn = messages.Turn(rules, tx, tx.now)
    handle = _HANDLERS[type(message)]
    handle(turn, message)
    return turn.effects


def _due(turn: messages.Turn, message: messages.Due) -> None:
    """Do the work for which a row has become due. Its table says which work that is."""
    match message.table:
        case rows.JOBS:
            target, _, event_id = message.key.partition("|")
            jobs.start(turn, target, event_id)
        case rows.CURSORS:
            reading.cursor_due(turn, message.key)
        case rows.HOOKS:
            hooks.hooks_due(turn, message.key)
        case rows.UNSEEN:
            publications.check_unseen(turn, message.key)
        case rows.CALLING:
            jobs.end_call(turn, message.key, turn.tx.get(rows.CALLING, message.key) or "")
        case rows.HELD:
            jobs.release_held(turn, message.key)
        case rows.EXPIRY:
            arrivals.expire(turn, message.key)
        case _:
            # Rows of other tables have no due times. Write the row without one, so that it is not
            # listed again.
            value = turn.tx.get(message.table, message.key)
            if value is not None:
                turn.tx.put(message.table, message.key, value)


_HANDLERS: Final[dict[type[messages.Input], Callable[[messages.Turn, Any], None]]] = {
    messages.Due: _due,
    messages.Noticed: reading.noticed,
    messages.Answered: publications.answered,
    messages.Posted: hooks.posted,
    messages.Publish: publications.publish,
    messages.Paged: reading.paged,
    messages.Probed: publications.probed,
    messages.Subscribe: hooks.subscribe,
    messages.Unsubscribe: hooks.unsubscribe,
    messages.Redrive: hooks.redrive,
    messages.Listed: hooks.listed,
    messages.Hooked: hooks.hooked,
    messages.Start: hooks.started,
}
"""The function that applies an input, by the type of the input."""


def steps(rules: Rules, inputs: list[messages.Input], tx: Transaction) -> list[messages.Effects]:
    """Apply several inputs in one transaction and return the effects of each.

    Processes call `continuity.take` instead, which first checks that the store has not lost rows.
    """
    return [step(rules, tx, message) for message in inputs]
