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
    """The reason why the event is not published yet or was given up, empty if there is none."""
    waiting: bool = False
    """Whether the adapter's first answer is still expected. A client may wait for it."""
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

    Until the network's log has been read to its end, jobs for it are held (ID-36). The state then
    gives this as the error and does not let clients wait.
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
    state = "claimed" if lease_end(tx, published, event_id) > tx.now else "absent"
    is_unread = rows.get_state(tx, network) is not rows.LogState.READY
    if job is None:
        return NetworkState(network, state)
    if job.reason:
        return NetworkState(network, state, job.reason)
    return NetworkState(network, state, NOT_READ if is_unread else "", waiting=not is_unread)


def status_of(event: Whereabouts, *, new: bool) -> int:
    """Return the HTTP status with which a publication is answered (ID-10).

    `new` is that of the `Reply`: false if every network had the event already. The status is then
    200. Otherwise it is 201 if at least one network has the event now, 422 if all refused it, and
    202 if the distributor is still trying to publish it.
    """
    if not new:
        return 200
    if any(network.state in {"published", "seen"} for network in event.networks):
        return 201
    if all(network.refused for network in event.networks):
        return 422
    return 202
