"""Reading a network's log: catching up, gaps, and logs that were rewound (ID-33, ID-36, ID-37).

Notifications can be lost, reordered or false, so every log is also read. A read begins at the last
number that an earlier read confirmed. So each read also checks the numbers that only notifications
have reported since.

If a number has another block, id or content than before, the log was rewound, for example because
the network was reset or blocks were reverted. The same follows if a log stays shorter than the part
that was read. Then the last common number is searched for by bisection, and the ids after it are
revoked. The log is read again before anything is published on its network.

Rows without blocks may have the same content before and after a rewind. So if an adapter does not
report blocks, each read begins some rows earlier.

A legacy adapter is read by time. If a number that is shown had another id before, the log was
rewound, and the earlier id is revoked. Other rewinds of such a log are not noticed.
"""

import hmac
from dataclasses import dataclass
from typing import Final

from interchain_events.distributor.core import jobs, rows
from interchain_events.distributor.core.arrivals import arrive, mark_seen, tell_interest
from interchain_events.distributor.core.messages import Noticed, Page, Paged, Read, Reply, Turn
from interchain_events.distributor.core.rows import Cursor, State, get_cursor, put_cursor
from interchain_events.distributor.event import Notice
from interchain_events.distributor.once import Transaction
from interchain_events.distributor.once.claims import forget

SLOW_READ: Final = 4
"""The number of call timeouts after which a read of a legacy log counts as lost. Such a read
consists of several calls."""
RETRIES: Final = 6
"""A failed read is repeated after `Rules.silence` divided by this number."""


def is_key(tx: Transaction, network: str, subscription: str | None, key: str) -> bool:
    """Return whether the webhooks of a network, or of a client's subscription, have this key.

    The comparison takes the same time for every key, so that keys cannot be guessed from it.
    """
    row = (
        rows.get_hooks(tx, network) if subscription is None else rows.get_interest(tx, subscription)
    )
    return row is not None and bool(row.key) and hmac.compare_digest(row.key.encode(), key.encode())


def noticed(turn: Turn, message: Noticed) -> None:
    """Take a notification from an adapter and reply (ID-31).

    The reply has the code of an error, or is empty if everything is stored. A notification of
    everything moves the network's cursor. One for a client's subscription only serves that
    subscription, and only if the log has no gap before the event. Otherwise the log is read.
    """
    if message.network not in turn.rules.networks:
        turn.emit(Reply("not-found"))
        return
    if not is_key(turn.tx, message.network, message.subscription, message.key):
        turn.emit(Reply("unauthorized"))
        return
    interest = (
        None if message.subscription is None else rows.get_interest(turn.tx, message.subscription)
    )
    cursor = get_cursor(turn.tx, message.network)
    if message.subscription is None or interest is None:
        _take(turn, message.network, cursor, message.notice)
    elif message.notice.number <= cursor.last + 1 and _steady(cursor):
        tell_interest(turn, message.subscription, interest, message.notice)
    else:
        _read_soon(turn, message.network, cursor)
    turn.emit(Reply())


def _steady(cursor: Cursor) -> bool:
    """Return whether a log is neither searched nor revoked after a rewind."""
    return cursor.cut < 0 and not cursor.high


def _take(turn: Turn, network: str, cursor: Cursor, notice: Notice) -> None:
    """Take a notice if it is the next one of the log, or park it if it lies beyond a gap.

    A notice at a known number has already been taken. If its content differs from the known one,
    the log is read to find out whether it was rewound.
    """
    if notice.number <= cursor.last:
        if network not in turn.rules.legacy:
            if not _same(turn, network, notice):
                _read_soon(turn, network, cursor)
        # A legacy adapter shows only the newest event of each entity, so its cursor may have passed
        # earlier ones.
        elif (known := turn.tx.get(rows.numbers(network), str(notice.number))) is None:
            arrive(turn, network, notice, history=False)
        elif known.partition("|")[0] != (notice.id or ""):
            _read_soon(turn, network, cursor)
    elif notice.number == cursor.last + 1 and _steady(cursor):
        arrive(turn, network, notice, history=False)
        cursor = _unpark(turn, network, cursor._replace(last=notice.number))
        cursor = cursor._replace(
            short=cursor.short if cursor.parked or network not in turn.rules.legacy else 0
        )
        put_cursor(turn.tx, network, cursor, turn.now + turn.rules.silence)
    else:
        _read_soon(turn, network, _park(turn, network, cursor, notice))


def _park(turn: Turn, network: str, cursor: Cursor, notice: Notice) -> Cursor:
    """Park a notice until the gap before it has been read. Its event counts as seen at once.

    Beyond `Rules.most_parked` the notice is dropped; the log has it anyway. Returns the changed
    cursor.
    """
    if notice.number in cursor.parked or len(cursor.parked) >= turn.rules.most_parked:
        return cursor
    if notice.id is not None:
        mark_seen(turn, network, notice.id)
    turn.tx.put(rows.parked(network), str(notice.number), rows.notice_text(notice))
    return cursor._replace(parked=sorted([*cursor.parked, notice.number]))


def _unpark(turn: Turn, network: str, cursor: Cursor) -> Cursor:
    """Take the parked notices that now follow without a gap, and drop those already passed.

    Returns the changed cursor.
    """
    last, left = cursor.last, []
    for number in cursor.parked:
        if number > last + 1:
            left.append(number)
            continue
        notice = _parked(turn, network, number)
        if notice is not None and number > last:
            arrive(turn, network, notice, history=False)
            last = number
        elif notice is not None and not _same(turn, network, notice):
            # The log was rewound after this notification, so it does not have the parked event.
            _take_away(turn, network, notice.id, number)
    return cursor._replace(last=last, parked=left)


def _parked(turn: Turn, network: str, number: int) -> Notice | None:
    """Remove a parked notice and return it."""
    text = turn.tx.get(rows.parked(network), str(number))
    turn.tx.delete(rows.parked(network), str(number))
    return None if text is None else rows.notice_of(text)


def _read_soon(turn: Turn, network: str, cursor: Cursor) -> None:
    """Read the log now.

    If a read is under way, that read suffices. The log is read again only if it is lost.
    """
    if cursor.reading > turn.now:
        put_cursor(turn.tx, network, cursor, cursor.reading)
    else:
        read(turn, network, cursor)


def read(turn: Turn, network: str, cursor: Cursor) -> None:
    """Emit a read of the next page.

    The cursor's row is due again when the read counts as lost.
    """
    if network not in turn.rules.networks:
        put_cursor(turn.tx, network, cursor, None)
        return
    until = turn.now + turn.rules.call_timeout * (SLOW_READ if network in turn.rules.legacy else 1)
    put_cursor(turn.tx, network, cursor._replace(reading=until), until)
    after = cursor.last if network in turn.rules.legacy else _after(turn, cursor)
    # A page must contain new rows even if rows are read again: they come on top of the page size.
    limit = 1 if cursor.high else turn.rules.page + max(cursor.verified - after - 1, 0)
    turn.emit(Read(network, after, limit, max(cursor.newest - turn.rules.overlap, 0)))


def _after(turn: Turn, cursor: Cursor) -> int:
    """Return the number after which the next read begins.

    During a search, the read has the one number in the middle. Otherwise it begins with the last
    confirmed number, or `Rules.recheck` rows before it if rows do not have blocks.
    """
    if cursor.high:
        return (cursor.low + cursor.high) // 2 - 1
    return max(cursor.verified - 1 - (0 if cursor.blocks else turn.rules.recheck), 0)


def cursor_due(turn: Turn, network: str) -> None:
    """Read the log, or continue to revoke after a rewind."""
    cursor = get_cursor(turn.tx, network)
    if cursor.cut >= 0:
        _take_back(turn, network, cursor)
    else:
        read(turn, network, cursor)


def paged(turn: Turn, message: Paged) -> None:
    """Take a page of the log, or note that the read failed.

    A page that answers an earlier `Read` is ignored. It is
    recognized by the number after which it begins.
    """
    cursor = get_cursor(turn.tx, message.network)
    if message.network not in turn.rules.networks:
        return
    if message.page is None:
        put_cursor(
            turn.tx,
            message.network,
            cursor._replace(reading=0),
            turn.now + turn.rules.silence // RETRIES,
        )
    elif message.network in turn.rules.legacy:
        _paged_by_time(turn, message.network, cursor, message.page)
    elif cursor.cut >= 0 or message.after != _after(turn, cursor):
        return
    elif cursor.high:
        _searched(turn, message.network, cursor, message.page.notices)
    else:
        _Numbered(turn, message.network, cursor, message.page).take()


def _paged_by_time(turn: Turn, network: str, cursor: Cursor, page: Page) -> None:
    """Take a page of a legacy log and the parked notices, in the order of their numbers.

    In the time asked for, a legacy adapter shows only the newest event of each entity.
    Notifications of the earlier ones may still be under way. So events after a gap are parked and
    wait, unless the gap is older than this distributor or has lasted for `Rules.gap_patience`.
    """
    history = rows.get_state(turn.tx, network) is not State.READY
    fresh = {notice.number: notice for notice in page.notices}
    for number in cursor.parked:
        notice = _parked(turn, network, number)
        if notice is not None:
            fresh.setdefault(number, notice)
    patient = not cursor.short or turn.now < cursor.short + turn.rules.gap_patience
    old = turn.now - turn.rules.gap_patience if history else 0
    cursor = cursor._replace(parked=[], reading=0)
    for number in sorted(fresh):
        young = fresh[number].time * 1000 >= old and len(fresh) < turn.rules.most_parked
        waits = patient and young and number > cursor.last + 1
        _take_replaced(turn, network, fresh[number])
        if turn.tx.get(rows.numbers(network), str(number)) is None:
            if waits:
                cursor = _park(turn, network, cursor, fresh[number])
                continue
            arrive(turn, network, fresh[number], history=history)
        if not waits:
            last = max(cursor.last, number)
            newest = max(cursor.newest, fresh[number].time)
            cursor = cursor._replace(last=last, verified=last, newest=newest)
    cursor = cursor._replace(short=(cursor.short or turn.now) if cursor.parked else 0)
    if page.complete:
        _read_whole(turn, network, cursor)
    else:
        read(
            turn,
            network,
            cursor._replace(newest=max(cursor.newest, page.until + turn.rules.overlap)),
        )


def _take_replaced(turn: Turn, network: str, notice: Notice) -> None:
    """Revoke the event that had the number of a notice before, if that was another one.

    The log was rewound, and the number given again. Only ids are compared: an adapter may show the
    content of an event in another way than its notification did.
    """
    known = turn.tx.get(rows.numbers(network), str(notice.number))
    if known is None:
        return
    event_id = known.partition("|")[0]
    if event_id == (notice.id or ""):
        return
    turn.tx.delete(rows.numbers(network), str(notice.number))
    _take_away(turn, network, event_id, notice.number)
    turn.note("rewind", network, event_id, f"{notice.number} has another event")


def _read_whole(turn: Turn, network: str, cursor: Cursor) -> None:
    """End a pass over the log that has reached its end.

    The log is read again after a while. If this was the first pass, or the first after a rewind or
    after the store lost rows, the network may now be published to, and its held jobs start.
    """
    loss = rows.get_loss(turn.tx, network)
    if loss is not None and turn.now < loss.until:
        # Calls that began before the loss may still take effect.
        put_cursor(turn.tx, network, cursor, loss.until)
        return
    wait = turn.rules.silence // RETRIES if cursor.parked else turn.rules.silence
    put_cursor(turn.tx, network, cursor, turn.now + wait)
    if rows.get_state(turn.tx, network) is not State.READY:
        turn.tx.put(rows.STATES, network, State.READY)
        if loss is not None:
            rows.put_loss(turn.tx, network, rows.Loss(doubted=turn.now))
        jobs.release_held(turn, network)


@dataclass
class _Numbered:
    """A page of a numbered log, taken notice by notice.

    `cursor` changes with each notice.
    """

    turn: Turn
    network: str
    cursor: Cursor
    page: Page

    def take(self) -> None:
        """Take the notices up to a gap or a difference, and then decide how to go on."""
        first = _after(self.turn, self.cursor) + 1
        # The first number of a log need not be 1.
        if not self.cursor.last and self.page.notices:
            first = self.page.notices[0].number
        history = rows.get_state(self.turn.tx, self.network) is State.HISTORY
        expected = first
        for notice in self.page.notices:
            # Logs have no gaps. If the adapter left a number out, a later read may have it.
            if notice.number != expected:
                self.turn.note("gap", self.network, str(expected))
                break
            if notice.number <= self.cursor.last:
                if not _same(self.turn, self.network, notice):
                    self._differs(notice.number, first)
                    return
                if notice.number > self.cursor.verified:
                    _note_block(self.turn, self.network, notice)
            else:
                arrive(self.turn, self.network, notice, history=history)
                self.cursor = self.cursor._replace(last=notice.number)
            if notice.number >= self.cursor.verified:
                self.cursor = self.cursor._replace(
                    verified=notice.number, blocks=int(bool(notice.block))
                )
            expected += 1
        self._end(first, highest=expected - 1)

    def _differs(self, number: int, first: int) -> None:
        """Handle a rewound log, whose first differing row in the page is `number`.

        If rows of the page come before it, or if it is the first number of all, the cut is known.
        Otherwise the last common number must be searched for.
        """
        if number > first or number == 1:
            _begin_taking_back(self.turn, self.network, self.cursor, number - 1)
        else:
            _search(self.turn, self.network, self.cursor)

    def _end(self, first: int, highest: int) -> None:
        """Read the next page, or end the pass over the log.

        `highest` is the last number that the page has confirmed or added. A complete page that ends
        before the last known number means that the log is too short.
        """
        turn = self.turn
        cursor = self.cursor._replace(reading=0)
        if not self.page.complete:
            short = 0 if highest >= cursor.last else cursor.short
            read(turn, self.network, _unpark(turn, self.network, cursor._replace(short=short)))
        elif highest < cursor.last:
            self._is_short(cursor, highest, first)
        else:
            _read_whole(turn, self.network, _unpark(turn, self.network, cursor._replace(short=0)))

    def _is_short(self, cursor: Cursor, highest: int, first: int) -> None:
        """Handle a log that is shorter than the part that was read.

        The adapter may only lag behind, so a log counts as rewound only if it stays short for
        `Rules.patience`.
        """
        turn = self.turn
        since = cursor.short or self.turn.now
        if turn.now - since < turn.rules.patience:
            put_cursor(
                turn.tx,
                self.network,
                cursor._replace(short=since),
                turn.now + turn.rules.silence // RETRIES,
            )
        elif highest >= first:
            _begin_taking_back(turn, self.network, cursor, highest)
        else:
            _search(turn, self.network, cursor)


def _same(turn: Turn, network: str, notice: Notice) -> bool:
    """Return whether a number still has the entry that was noted for it, if there is one."""
    known = turn.tx.get(rows.numbers(network), str(notice.number))
    return known is None or rows.same_entry(known, notice)


def _note_block(turn: Turn, network: str, notice: Notice) -> None:
    """Add the block to the entry of a number whose notification lacked it."""
    known = turn.tx.get(rows.numbers(network), str(notice.number))
    if notice.block and known is not None and not rows.tells_block(known):
        turn.tx.put(rows.numbers(network), str(notice.number), rows.entry(notice))


def _search(turn: Turn, network: str, cursor: Cursor) -> None:
    """Start to search for the last common number.

    It lies below the last confirmed number, which now differs or is missing.
    """
    _narrow(turn, network, cursor._replace(low=0, high=max(cursor.verified, 1), reading=0))


def _searched(turn: Turn, network: str, cursor: Cursor, notices: tuple[Notice, ...]) -> None:
    """Halve the range of the search, depending on whether its middle is the same as before."""
    middle = (cursor.low + cursor.high) // 2
    common = bool(notices) and notices[0].number == middle and _same(turn, network, notices[0])
    _narrow(turn, network, cursor._replace(low=middle) if common else cursor._replace(high=middle))


def _narrow(turn: Turn, network: str, cursor: Cursor) -> None:
    """Read the number in the middle, or end the search and revoke the rest of the log."""
    if cursor.high - cursor.low > 1:
        read(turn, network, cursor)
    else:
        _begin_taking_back(turn, network, cursor, cursor.low)


def _begin_taking_back(turn: Turn, network: str, cursor: Cursor, cut: int) -> None:
    """Start to revoke the numbers after `cut`.

    Nothing is published on the network until its log has been read again. Parked notices are
    revoked, too, as they were counted as seen.
    """
    turn.tx.put(rows.STATES, network, State.REREAD)
    for number in cursor.parked:
        notice = _parked(turn, network, number)
        _take_away(turn, network, None if notice is None else notice.id, number)
    turn.note("rewind", network, "", f"{cursor.last} to {cut}")
    _take_back(
        turn,
        network,
        cursor._replace(cut=cut, done=cut, low=0, high=0, short=0, parked=[], reading=0),
    )


def _take_back(turn: Turn, network: str, cursor: Cursor) -> None:
    """Revoke one page of the numbers after the cut, oldest first, and then read the log again.

    Each page is a transaction of its own. `Cursor.done` is the last revoked number.
    """
    end = min(cursor.last, cursor.done + turn.rules.page)
    for number in range(cursor.done + 1, end + 1):
        known = turn.tx.get(rows.numbers(network), str(number)) or ""
        turn.tx.delete(rows.numbers(network), str(number))
        _take_away(turn, network, known.partition("|")[0], number)
    if end < cursor.last:
        put_cursor(turn.tx, network, cursor._replace(done=end), turn.now)
        return
    verified = min(cursor.verified, cursor.cut)
    read(
        turn, network, cursor._replace(last=cursor.cut, verified=verified, cut=-1, done=0, blocks=0)
    )


def _take_away(turn: Turn, network: str, event_id: str | None, number: int) -> None:
    """Forget a number that is no longer in a log.

    If the network does not have the event at another number, the event becomes absent there and is
    enqueued again. The job is in doubt, so the network is asked first: it may have the event again
    at another place.
    """
    if not event_id:
        return
    stored = rows.get_event(turn.tx, event_id)
    first = 0 if stored is None else stored.first(network)
    if first and first != number:
        return
    if stored is not None and first:
        left = [each for each in stored.numbers if each[0] != network]
        rows.put_event(turn.tx, event_id, stored._replace(numbers=left))
    turn.tx.remove(rows.published(network), event_id)
    turn.tx.delete(rows.UNSEEN, f"{network}|{event_id}")
    forget(turn.tx, rows.published(network), event_id)
    if stored is not None:
        jobs.enqueue(turn, rows.on_network(network), event_id, stored.fields().order, doubt=1)
