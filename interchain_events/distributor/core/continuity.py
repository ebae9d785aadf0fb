"""Whether the store is still the one to which this process has written.

A store may come back empty, as an older copy (a backup, a replica that lags), or be another one.
Nothing in it says so: it answers, and what was there before is simply not known any more. So each
process compares two things with its memory in every transaction. The epoch is a name that the first
process gives to a store, and that changes with each loss. The seat is a count of the process's own
transactions.

    no epoch                              the store was emptied
    only later epochs than the last use   the store was emptied, and another process began with it
    the known epoch and a later one       another process has noticed a loss
    an earlier epoch than the known one   the store is older than the process remembers
    the seat counts fewer transactions    the same
    other epochs                          this is another store, which is not touched

After a loss, the histories of all networks are read again before anything is published on them.
Calls that began before the loss may still take effect, so that reading ends one lease later at the
earliest. Jobs that were stored until then are in doubt: the network is asked before it is called.

The store also keeps the time of the first start, for `Rules.since`. A process that is killed and
started again would otherwise take the events that it has not read yet for older ones.

A store may also have been restored while no process ran. A process that starts finds out from the
seats when the store was last used. If that is not just now, it also reads to the end of the logs
before it publishes, as nobody can tell it whether transactions are missing.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from interchain_events.database.errors import StoreError
from interchain_events.distributor.core import hooks, rows
from interchain_events.distributor.core.messages import Effects, Input, Start, Turn
from interchain_events.distributor.core.rows import State
from interchain_events.distributor.core.rules import NOW, Rules
from interchain_events.distributor.core.step import step
from interchain_events.distributor.once import Transaction

EPOCHS: Final = "epochs"
"""The key of the list of epochs in `rows.CONTINUITY`, oldest first."""
MOST_EPOCHS: Final = 16
"""The number of epochs that are kept."""
SEATS: Final = "seats"
"""The key of the list of owners that have a seat."""
MOST_SEATS: Final = 64
"""The number of seats that are kept. A process whose seat was dropped reads the logs again."""
IN_USE: Final = 10_000
"""A store that was used in the last milliseconds of this number was not restored meanwhile."""

EMPTIED: Final = "the store was emptied"
NOTICED: Final = "another process noticed that the store lost rows"
OLDER: Final = "the store is older than it was"


class AnotherStore(StoreError):
    """Raised if the store is not the one with which the process has worked so far.

    It may be that of another distributor, so nothing is written to it.
    """


class Seat(NamedTuple):
    """The memory of a process about the store."""

    keys: Mapping[str, str]
    """A random text for each network, the key of its webhook unless the store has one already."""
    epochs: tuple[str, ...] = ()
    """The epochs that the store had last, oldest first. Empty before the first transaction."""
    number: int = 0
    """The number of the last transaction of this process that was surely stored."""
    time: int = 0
    """The time of that transaction in ms."""
    begin: int = 0
    """The second in which the distributor began. 0 before the first transaction, and where
    `Rules.since` is not `NOW`."""


class Entered(NamedTuple):
    """The beginning of a transaction."""

    seat: Seat
    """The memory of the process once the transaction is stored."""
    effects: Effects
    """The effects of what was repaired."""
    loss: str
    """What the store has lost, empty if nothing."""


class Taken(NamedTuple):
    """A transaction with some inputs."""

    entered: Entered
    effects: list[Effects]
    """The effects of each input."""


def enter(rules: Rules, seat: Seat, tx: Transaction) -> Entered:
    """Begin a transaction: compare the store with the memory of the process, and repair a loss.

    Every transaction of a process begins with this. A store may run it several times, so the memory
    is returned and not changed. Raises `AnotherStore`.
    """
    turn = Turn(rules, tx, tx.now)
    epochs: list[str] = json.loads(tx.get(rows.CONTINUITY, EPOCHS) or "[]")
    found = _read_seat(tx, rules.owner)
    loss = ""
    begin = seat.begin
    if not seat.epochs:
        epochs = _join(turn, seat, epochs)
        begin = _begin(turn, turn.now // 1000)
    else:
        loss = _loss(seat, epochs, found.number)
    if loss:
        epochs = _repair(turn, seat, epochs, loss)
        begin = _begin(turn, seat.begin)
    count = max(found.number, seat.number) + 1
    tx.put(rows.CONTINUITY, _seat_key(rules.owner), f"{count} {turn.now}")
    entered = Seat(seat.keys, tuple(epochs), count, turn.now, begin)
    return Entered(entered, turn.effects, loss)


def _begin(turn: Turn, known: int) -> int:
    """Return the second in which the distributor began, and store it.

    It is the earlier one of the store's and of `known`, the process's own. Returns 0 if
    `Rules.since` does not ask for it.
    """
    if turn.rules.since != NOW:
        return 0
    stored = rows.get_begin(turn.tx)
    begin = known if stored is None else min(known, stored)
    if begin != stored:
        rows.put_begin(turn.tx, begin)
    return begin


def _loss(seat: Seat, epochs: list[str], count: int) -> str:
    """Return what the store has lost since the last transaction of a process, empty if nothing.

    `count` is that of the stored seat. Raises `AnotherStore`.
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
    """Apply several inputs in one transaction and return the effects of each."""
    entered = enter(rules, seat, tx)
    return Taken(entered, [step(rules, tx, each) for each in inputs])


class _Used(NamedTuple):
    """A seat as it is stored."""

    number: int
    """The number of the owner's last transaction."""
    time: int
    """The time of that transaction in ms."""


def _seat_key(owner: str) -> str:
    return f"seat|{owner}"


def _read_seat(tx: Transaction, owner: str) -> _Used:
    """Return the seat of a process, of zeros if it has none."""
    count, _, time = (tx.get(rows.CONTINUITY, _seat_key(owner)) or "0 0").partition(" ")
    return _Used(int(count), int(time))


def _join(turn: Turn, seat: Seat, epochs: list[str]) -> list[str]:
    """Take a seat, and return the epochs of the store. A store without any gets its first one."""
    tx = turn.tx
    owners: list[str] = json.loads(tx.get(rows.CONTINUITY, SEATS) or "[]")
    used = max((_read_seat(tx, owner).time for owner in owners), default=0)
    if used and used < turn.now - IN_USE:
        _distrust(turn, until=turn.now)
    _take_seat(turn, owners)
    return epochs or _add_epoch(turn, seat, [])


def _take_seat(turn: Turn, owners: list[str]) -> None:
    """Add a process to the owners of seats, and drop the oldest seats beyond the limit."""
    owner = turn.rules.owner
    listed = [*(each for each in owners if each != owner), owner]
    for dropped in listed[:-MOST_SEATS]:
        turn.tx.delete(rows.CONTINUITY, _seat_key(dropped))
    turn.tx.put(rows.CONTINUITY, SEATS, json.dumps(listed[-MOST_SEATS:]))


def _add_epoch(turn: Turn, seat: Seat, epochs: list[str]) -> list[str]:
    """Store a new epoch after earlier ones and return all.

    It is the time and a hash over random texts, as the state machine has no random numbers.
    """
    content = json.dumps((epochs, turn.rules.owner, seat.number, sorted(seat.keys.items())))
    epoch = hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
    listed = [*epochs, f"{turn.now}-{epoch}"][-MOST_EPOCHS:]
    turn.tx.put(rows.CONTINUITY, EPOCHS, json.dumps(listed))
    return listed


def _repair(turn: Turn, seat: Seat, epochs: list[str], loss: str) -> list[str]:
    """Start over with a store that has lost rows, and return its epochs from now on.

    The first process that notices a loss adds an epoch to those that it knows, so that the others
    notice it, too.
    """
    owners: list[str] = json.loads(turn.tx.get(rows.CONTINUITY, SEATS) or "[]")
    _take_seat(turn, owners)
    _distrust(turn, until=turn.now + turn.rules.lease)
    hooks.started(turn, Start(dict(seat.keys)))
    turn.note("store-lost", "store", "", loss)
    # After a loss that another process has noticed, the store has a newer epoch already.
    begun = bool(epochs) and _born(epochs[-1]) > seat.time
    if loss == NOTICED or begun:
        return epochs
    return _add_epoch(turn, seat, list(seat.epochs))


def _born(epoch: str) -> int:
    """Return the time in ms at which an epoch began."""
    return int(epoch.partition("-")[0])


def _distrust(turn: Turn, until: int) -> None:
    """Publish on no network before its log has been read to an end after `until`, in ms."""
    for network in turn.rules.networks:
        if rows.get_state(turn.tx, network) is State.READY:
            turn.tx.put(rows.STATES, network, State.REREAD)
        rows.put_loss(turn.tx, network, rows.Loss(until))
