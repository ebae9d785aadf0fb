"""The states of an event on the networks, as clients see them (ID-4, ID-10)."""

from typing import NamedTuple

from pubsub_emulator.distributor.core import rows
from pubsub_emulator.distributor.core.rules import Rules
from pubsub_emulator.distributor.once import Transaction
from pubsub_emulator.distributor.once.claims import lease_end


class NetworkState(NamedTuple):
    """One network's state of an id; `waiting` while an answer of its adapter is still to come."""

    name: str
    state: str
    error: str = ""
    waiting: bool = False
    refused: bool = False


class Whereabouts(NamedTuple):
    """An event's states, and the first block time, seconds, 0 if none is known."""

    known: bool
    time: int
    networks: list[NetworkState]


def whereabouts(rules: Rules, tx: Transaction, event_id: str) -> Whereabouts:
    """The states of an id on all networks."""
    stored = rows.get_event(tx, event_id)
    states = [_state(tx, network, event_id) for network in rules.networks]
    known = stored is not None or any(state.state != "absent" for state in states)
    return Whereabouts(known, 0 if stored is None else stored.time, states)


def _state(tx: Transaction, network: str, event_id: str) -> NetworkState:
    target, published = rows.on_network(network), rows.published(network)
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
        error = "the network's log is not read yet"
    return NetworkState(network, "claimed" if claimed else "absent", error, waiting)


def status_of(found: Whereabouts, *, new: bool) -> int:
    """The status of a publication (ID-10): 200 where no network lacked it, 201 a yes, 202 stored, 422 all refuse."""
    if not new:
        return 200
    if any(each.state in {"published", "seen"} for each in found.networks):
        return 201
    return 422 if all(each.refused for each in found.networks) else 202
