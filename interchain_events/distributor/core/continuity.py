"""The check that the store is still the one to which this process has written.

A store may come back empty or as an older copy (a backup, a replica that lags), or it may be
replaced by another one. Then it still answers, but lacks rows. So in every transaction a process
compares two things with its memory:

- The epoch is a name that the first process gives to a store. Each loss adds a new one.
- The seat is a count of the process's own transactions.

    no epoch                              the store was emptied
    only epochs that began after the      the store was emptied, and another process started
      process last used the store         with it
    the known epoch and a later one       another process has noticed a loss
    an earlier epoch than the known one   the store is older than the process remembers
    the seat counts fewer transactions    the store is older than the process remembers
    other epochs                          this is another store, which is not touched

After a loss, the logs of all networks are read again before events are published on them. Calls
that began before the loss may still take effect, so this reading lasts at least one lease. Jobs
that were stored until its end are in doubt: the network is probed before it is called.

The store may also have been restored while no process was running. A process that starts learns
from the seats when the store was last used. Unless that was within `IN_USE`, transactions may be
missing. The process then reads all logs to their ends before it publishes.

The store also contains the time of the first start, for `Rules.since`. Without it, a process that
is killed and restarted would treat events that it has not read yet as older than the distributor.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from interchain_events.database.errors import StoreError
from interchain_events.distributor.core import hooks, rows
from interchain_events.distributor.core.messages import Effects, Input, Start, Turn
from interchain_events.distributor.core.rows import LogState
from interchain_events.distributor.core.rules import NOW, Rules
from interchain_events.distributor.core.step import step
from interchain_events.distributor.once import Transaction

EPOCHS: Final = "epochs"
"""The key of the list of epochs in `rows.CONTINUITY`, oldest first."""
MOST_EPOCHS: Final = 16
"""The greatest number of epochs in a store. The oldest ones are dropped."""
SEATS: Final = "seats"
"""The key of the list of owners that have a seat."""
MOST_SEATS: Final = 64
"""The greatest number of seats in a store. A process whose seat was dropped reads all logs."""
IN_USE: Final = 10_000
"""A store that was used less than this many ms ago has not been restored since."""

EMPTIED: Final = "the store was emptied"
NOTICED: Final = "another process noticed that the store lost rows"
OLDER: Final = "the store is older than it was"


class AnotherStore(StoreError):
    """Raised if the store is not the one with which the process has worked so far.

    It may belong to another distributor, so the process does not write to it.
    """


class Seat(NamedTuple):
    """The knowledge that a process has of the store."""

    keys: Mapping[str, str]
    """A random text for each network. It becomes the key of the network's webhook unless the store
    has one already."""
    epochs: tuple[str, ...] = ()
    """The epochs of the store at the last transaction of this process, oldest first. Empty before
    its first transaction."""
    number: int = 0
    """The number of the last transaction of this process that is known to be stored."""
    time: int = 0
    """The time of that transaction in ms."""
    begin: int = 0
    """The second in which the distributor began. 0 before the first transaction, or if
    `Rules.since` is not `NOW`."""


class Entered(NamedTuple):
    """The result of the check at the beginning of a transaction."""

    seat: Seat
    """The seat of the process once the transaction is stored."""
    effects: Effects
    """The effects of the repair, if there was a loss."""
    loss: str
    """`EMPTIED`, `NOTICED` or `OLDER`, empty if the store has not lost rows."""


class Taken(NamedTuple):
    """The result of a transaction that has applied inputs."""

    entered: Entered
    effects: list[Effects]
    """The effects of each input."""


def enter(rules: Rules, seat: Seat, tx: Transaction) -> Entered:
    """Begin a transaction: compare the store with the seat of the process, and repair a loss.

    Every transaction of a process begins with this. The new seat is returned and `seat` is not
    changed, because a store may run the transaction several times. Raises `AnotherStore`.
    """
    turn = Turn(rules, tx, tx.now)
    epochs: list[str] = json.loads(tx.get(rows.CONTINUITY, EPOCHS) or "[]")
    stored = _read_seat(tx, rules.owner)
    loss = ""
    begin = seat.begin
    if not seat.epochs:
        epochs = _join(turn, seat, epochs)
        begin = _store_begin(turn, turn.now // 1000)
    else:
        loss = _loss(seat, epochs, stored.number)
    if loss:
        epochs = _repair(turn, seat, epochs, loss)
        begin = _store_begin(turn, seat.begin)
    number = max(stored.number, seat.number) + 1
    tx.put(rows.CONTINUITY, _seat_key(rules.owner), f"{number} {turn.now}")
    entered = Seat(seat.keys, tuple(epochs), number, time=turn.now, begin=begin)
    return Entered(entered, turn.effects, loss)


def _store_begin(turn: Turn, known: int) -> int:
    """Store the second in which the distributor began, and return it.

    It is the earlier of the stored second and `known`, the one that the process knows. Returns 0
    and stores nothing if `Rules.since` does not need it.
    """
    if turn.rules.since != NOW:
        return 0
    stored = rows.get_begin(turn.tx)
    begin = known if stored is None else min(known, stored)
    if begin != stored:
        rows.put_begin(turn.tx, begin)
    return begin


def _loss(seat: Seat, epochs: list[str], count: int) -> str:
    """Return how the store has lost rows since a process last used it, empty if it has not.

    `epochs` and `count`, the number of the process's transactions, are those in the store. The
    table at the top of this module has the cases. Raises `AnotherStore`.
    """
    if not epochs or _born(epochs[0]) > seat.time:
        return EMPTIED
    if epochs[-1] == seat.epochs[-1]:
        return OLDER if count < seat.number else ""
    if seat.epochs[-1] in epochs:
        return NOTICED
    if epochs[-1] in seat.epochs:
        return OLDER
    raise AnotherStore(
        "this is not the store with which this process has worked; if it is to be used from now on,"
        " restart the distributor"
    )


def take(rules: Rules, seat: Seat, inputs: list[Input], tx: Transaction) -> Taken:
    """Check the store, apply several inputs in one transaction and return the effects of each.

    Raises `AnotherStore`.
    """
    entered = enter(rules, seat, tx)
    return Taken(entered, [step(rules, tx, message) for message in inputs])


class _Used(NamedTuple):
    """A seat as it is stored."""

    number: int
    """The number of the owner's last transaction."""
    time: int
    """The time of that transaction in ms."""


def _seat_key(owner: str) -> str:
    return f"seat|{owner}"


def _read_seat(tx: Transaction, owner: str) -> _Used:
    """Return the stored seat of a process, zeros if it has none."""
    text = tx.get(rows.CONTINUITY, _seat_key(owner)) or "0 0"
    number, _, time = text.partition(" ")
    return _Used(int(number), int(time))


def _join(turn: Turn, seat: Seat, epochs: list[str]) -> list[str]:
    """Take a seat in a process's first transaction, and return the epochs of the store.

    A new store gets its first epoch. If the store was not used for `IN_USE`, it may have been
    restored, so all logs are read again.
    """
    tx = turn.tx
    owners: list[str] = json.loads(tx.get(rows.CONTINUITY, SEATS) or "[]")
    last_use = max((_read_seat(tx, owner).time for owner in owners), default=0)
    if last_use and last_use < turn.now - IN_USE:
        _distrust(turn, until=turn.now)
    _take_seat(turn, owners)
    return epochs or _add_epoch(turn, seat, [])


def _take_seat(turn: Turn, owners: list[str]) -> None:
    """Move this process to the end of the owners of seats, and drop the oldest beyond the limit."""
    listed = [owner for owner in owners if owner != turn.rules.owner]
    listed.append(turn.rules.owner)
    for dropped in listed[:-MOST_SEATS]:
        turn.tx.delete(rows.CONTINUITY, _seat_key(dropped))
    turn.tx.put(rows.CONTINUITY, SEATS, json.dumps(listed[-MOST_SEATS:]))


def _add_epoch(turn: Turn, seat: Seat, epochs: list[str]) -> list[str]:
    """Append a new epoch to `epochs`, and store and return them.

    The epoch consists of the time and a hash over random texts, because the state machine has no
    random numbers.
    """
    content = json.dumps((epochs, turn.rules.owner, seat.number, sorted(seat.keys.items())))
    epoch = hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
    listed = [*epochs, f"{turn.now}-{epoch}"][-MOST_EPOCHS:]
    turn.tx.put(rows.CONTINUITY, EPOCHS, json.dumps(listed))
    return listed


def _repair(turn: Turn, seat: Seat, epochs: list[str], loss: str) -> list[str]:
    """Continue with a store that has lost rows, and return its epochs from now on.

    All logs are read again before the networks are published to. The first process that notices a
    loss adds an epoch to those that it knows, so that the other processes notice it, too.
    """
    owners: list[str] = json.loads(turn.tx.get(rows.CONTINUITY, SEATS) or "[]")
    _take_seat(turn, owners)
    _distrust(turn, until=turn.now + turn.rules.lease)
    hooks.started(turn, Start(dict(seat.keys)))
    turn.note("store-lost", "store", "", loss)
    # If another process has noticed the loss before, it has added the epoch.
    has_new_epoch = bool(epochs) and _born(epochs[-1]) > seat.time
    if loss == NOTICED or has_new_epoch:
        return epochs
    return _add_epoch(turn, seat, list(seat.epochs))


def _born(epoch: str) -> int:
    """Return the time in ms at which an epoch began."""
    return int(epoch.partition("-")[0])


def _distrust(turn: Turn, until: int) -> None:
    """Stop publishing on each network until its log has been read again.

    The reading does not end before `until`, a time in ms.
    """
    for network in turn.rules.networks:
        if rows.get_state(turn.tx, network) is LogState.READY:
            turn.tx.put(rows.STATES, network, LogState.REREAD)
        rows.put_loss(turn.tx, network, rows.NetworkLoss(until))
