"""The state of an event on each network, as clients see it (ID-4, ID-10)."""

from typing import Final, NamedTuple

from interchain_events.distributor.core import rows
from interchain_events.distributor.core.rules import Rules
from interchain_events.distributor.once import Transaction
from interchain_events.distributor.once.claims import lease_end

NOT_READ: Final = "the network's log is not read yet"
"""The error of an event that waits until its network may be published to."""


class NetworkState(NamedTuple):
    """The state of an id on one network."""

    name: str
    state: str
    """`absent`, `claimed` (a call is under way), `published` (the adapter accepted it) or `seen`
    (it is in the network's log)."""
    error: str = ""
    """The reason why it is not published yet or was given up, empty if there is none."""
    waiting: bool = False
    """Whether the adapter's first answer is still expected, so that a client may wait for it."""
    refused: bool = False
    """Whether the event was given up on this network."""


class Whereabouts(NamedTuple):
    """The states of an event on all networks."""

    known: bool
    """Whether the distributor knows the id at all."""
    time: int
    """The first known block time in seconds, 0 if no time is known."""
    networks: list[NetworkState]


def whereabouts(rules: Rules, tx: Transaction, event_id: str) -> Whereabouts:
    """Return the states of an id on all networks."""
    stored = rows.get_event(tx, event_id)
    states = [_state(tx, network, event_id) for network in rules.networks]
    known = stored is not None or any(state.state != "absent" for state in states)
    return Whereabouts(known, 0 if stored is None else stored.time, states)


def _state(tx: Transaction, network: str, event_id: str) -> NetworkState:
    """Return the state of an id on one network.

    A job is held if its network's log has not been read to its end, as nothing is published before
    (ID-36).
    """
    target = rows.on_network(network)
    published = rows.published(network)
    if tx.has(published, event_id):
        unseen = tx.get(rows.UNSEEN, f"{network}|{event_id}") is not None
        return NetworkState(network, "published" if unseen else "seen")
    dead = rows.get_dead(tx, rows.letter_of(target, event_id))
    if dead is not None:
        return NetworkState(network, "absent", dead.reason, refused=True)
    job = rows.get_job(tx, target, event_id)
    claimed = lease_end(tx, published, event_id) > tx.now
    held = rows.get_state(tx, network) is not rows.State.READY
    waiting = job is not None and not job.reason and not held
    error = "" if job is None else job.reason
    if job is not None and held and not error:
        error = NOT_READ
    return NetworkState(network, "claimed" if claimed else "absent", error, waiting)


def status_of(found: Whereabouts, *, new: bool) -> int:
    """Return the HTTP status for a publication (ID-10).

    200 if no network lacked the event, 201 if at least one accepted it, 422 if all refused it, and
    202 if it is stored and its publication goes on.
    """
    if not new:
        return 200
    if any(each.state in {"published", "seen"} for each in found.networks):
        return 201
    return 422 if all(each.refused for each in found.networks) else 202
