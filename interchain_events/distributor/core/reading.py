"""Reading a network's log: catching up, gaps, and logs that were rewound (ID-33, ID-36, ID-37).

Notifications can be lost, reordered or false, so every log is also read. A read begins at the last
number that an earlier read confirmed. So it also checks the numbers that have only been reported by
notifications since.

A log has been rewound if a number now has another block, id or content, for example because the
network was reset or blocks were reverted, or if the log stays shorter than the part that was read.
Then the last number that is still the same is searched for by bisection, and the ids after it are
revoked. The log is read again before events are published on its network.

Rows without blocks may look the same before and after a rewind. So if an adapter does not report
blocks, each read begins some rows earlier.

A legacy adapter is read by time. If a number had another id before, the log was rewound, and the
earlier id is revoked. Other rewinds of such a log are not noticed.
"""

import hmac
from dataclasses import dataclass
from typing import Final

from interchain_events.distributor.core import jobs, rows
from interchain_events.distributor.core.arrivals import arrive, mark_seen, tell_interest
from interchain_events.distributor.core.messages import (
    LogPage,
    Noticed,
    Paged,
    ReadLog,
    Reply,
    Turn,
)
from interchain_events.distributor.core.rows import LogCursor, LogState, get_cursor, put_cursor
from interchain_events.distributor.event import Notice
from interchain_events.distributor.once import Transaction
from interchain_events.distributor.once.claims import forget

SLOW_READ: Final = 4
"""The number of call timeouts after which a read of a legacy log counts as lost. Such a read
consists of several calls."""
RETRIES: Final = 6
"""A failed read is repeated after `Rules.silence` divided by this number."""


def is_key(tx: Transaction, network: str, subscription: str | None, key: str) -> bool:
    """Return whether `key` is that of the webhooks of a network or of a client's subscription.

    The comparison takes the same time for every key, so that its duration does not help to guess
    the key.
    """
    row: rows.Hooks | rows.Interest | None
    if subscription is None:
        row = rows.get_hooks(tx, network)
    else:
        row = rows.get_interest(tx, subscription)
    if row is None or not row.key:
        return False
    return hmac.compare_digest(row.key.encode(), key.encode())


def noticed(turn: Turn, message: Noticed) -> None:
    """Apply a notification from an adapter and reply (ID-31).

    The reply has the code `not-found` or `unauthorized`, or is empty. A notification for the
    distributor's own subscription to all events moves the network's cursor. One for a client's
    subscription only serves that subscription, and only if the log has no gap before the event.
    Otherwise the log is read.
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
        _take_notice(turn, message.network, cursor, message.notice)
    elif message.notice.number <= cursor.last + 1 and _steady(cursor):
        tell_interest(turn, message.subscription, interest, message.notice)
    else:
        _read_soon(turn, message.network, cursor)
    turn.emit(Reply())


def _steady(cursor: LogCursor) -> bool:
    """Return whether no rewind of the log is being searched for or revoked."""
    return cursor.cut < 0 and not cursor.high


def _take_notice(turn: Turn, network: str, cursor: LogCursor, notice: Notice) -> None:
    """Let a notice arrive if it is the next one of the log, or park it if it is beyond a gap."""
    if notice.number <= cursor.last:
        _take_passed(turn, network, cursor, notice)
    elif notice.number == cursor.last + 1 and _steady(cursor):
        arrive(turn, network, notice, history=False)
        cursor = _unpark(turn, network, cursor._replace(last=notice.number))
        if network in turn.rules.legacy and not cursor.parked:
            cursor = cursor._replace(short=0)
        put_cursor(turn.tx, network, cursor, due=turn.now + turn.rules.silence)
    else:
        _read_soon(turn, network, _park(turn, network, cursor, notice))


def _take_passed(turn: Turn, network: str, cursor: LogCursor, notice: Notice) -> None:
    """Compare a notice with the known entry of its number, which the cursor has passed.

    If they differ, the log is read to find out whether it was rewound.
    """
    if network not in turn.rules.legacy:
        if not _same(turn, network, notice):
            _read_soon(turn, network, cursor)
        return
    known = turn.tx.get(rows.numbers(network), str(notice.number))
    if known is None:
        # A legacy adapter shows only the newest event of each entity, so the cursor may have passed
        # earlier ones that have not arrived.
        arrive(turn, network, notice, history=False)
    elif _id_of(known) != (notice.id or ""):
        _read_soon(turn, network, cursor)


def _id_of(known: str) -> str:
    """Return the event id in a `rows.entry`, empty if the event has none."""
    return known.partition("|")[0]


def _park(turn: Turn, network: str, cursor: LogCursor, notice: Notice) -> LogCursor:
    """Park a notice until the gap before it has been read, and return the changed cursor.

    Its event counts as seen at once. If there are `Rules.most_parked` already, the notice is
    dropped, and its event arrives when the log is read.
    """
    if notice.number in cursor.parked or len(cursor.parked) >= turn.rules.most_parked:
        return cursor
    if notice.id is not None:
        mark_seen(turn, network, notice.id)
    turn.tx.put(rows.parked(network), str(notice.number), rows.notice_text(notice))
    return cursor._replace(parked=sorted([*cursor.parked, notice.number]))


def _unpark(turn: Turn, network: str, cursor: LogCursor) -> LogCursor:
    """Let the parked notices arrive that now follow without a gap, and return the changed cursor.

    Parked notices that the cursor has passed are dropped.
    """
    last = cursor.last
    left = []
    for number in cursor.parked:
        if number > last + 1:
            left.append(number)
            continue
        notice = _pop_parked(turn, network, number)
        if notice is not None and number > last:
            arrive(turn, network, notice, history=False)
            last = number
        elif notice is not None and not _same(turn, network, notice):
            # The log was rewound after this notification and has another event at its number.
            _forget_number(turn, network, notice.id, number)
    return cursor._replace(last=last, parked=left)


def _pop_parked(turn: Turn, network: str, number: int) -> Notice | None:
    """Remove a parked notice and return it, `None` if it is not there."""
    text = turn.tx.get(rows.parked(network), str(number))
    turn.tx.delete(rows.parked(network), str(number))
    return None if text is None else rows.notice_of(text)


def _read_soon(turn: Turn, network: str, cursor: LogCursor) -> None:
    """Read the log, unless a read is under way.

    If the read under way is lost, the log is read again.
    """
    if cursor.reading > turn.now:
        put_cursor(turn.tx, network, cursor, cursor.reading)
    else:
        read(turn, network, cursor)


def read(turn: Turn, network: str, cursor: LogCursor) -> None:
    """Emit a read of the next page.

    The cursor's row is due again when the read counts as lost. A network that is no longer in the
    settings is not read.
    """
    if network not in turn.rules.networks:
        put_cursor(turn.tx, network, cursor, None)
        return
    if network in turn.rules.legacy:
        timeout = SLOW_READ * turn.rules.call_timeout
        after = cursor.last
    else:
        timeout = turn.rules.call_timeout
        after = _after(turn, cursor)
    until = turn.now + timeout
    put_cursor(turn.tx, network, cursor._replace(reading=until), due=until)
    # Rows that are read again come on top of the page size, so that every page has new rows.
    repeated = max(cursor.verified - after - 1, 0)
    limit = 1 if cursor.high else turn.rules.page + repeated
    since = max(cursor.newest - turn.rules.overlap, 0)
    turn.emit(ReadLog(network, after, limit, since=since))


def _after(turn: Turn, cursor: LogCursor) -> int:
    """Return the number after which the next read begins.

    During a search, only the number in the middle of the range is read. Otherwise the read begins
    with the last confirmed number, or `Rules.recheck` rows before it if its row has no block.
    """
    if cursor.high:
        return (cursor.low + cursor.high) // 2 - 1
    recheck = 0 if cursor.blocks else turn.rules.recheck
    return max(cursor.verified - 1 - recheck, 0)


def cursor_due(turn: Turn, network: str) -> None:
    """Read the log, or revoke the next page after a rewind."""
    cursor = get_cursor(turn.tx, network)
    if cursor.cut >= 0:
        _revoke_page(turn, network, cursor)
    else:
        read(turn, network, cursor)


def paged(turn: Turn, message: Paged) -> None:
    """Apply a page of the log, or read again soon if the read failed.

    A page that answers an earlier `ReadLog` is ignored. It is recognized by the number after which
    it begins.
    """
    cursor = get_cursor(turn.tx, message.network)
    if message.network not in turn.rules.networks:
        return
    if message.page is None:
        put_cursor(
            turn.tx,
            message.network,
            cursor._replace(reading=0),
            due=turn.now + turn.rules.silence // RETRIES,
        )
    elif message.network in turn.rules.legacy:
        _take_legacy_page(turn, message.network, cursor, message.page)
    elif cursor.cut >= 0 or message.after != _after(turn, cursor):
        return
    elif cursor.high:
        _apply_search(turn, message.network, cursor, message.page.notices)
    else:
        _Numbered(turn, message.network, cursor, message.page).take()


def _take_legacy_page(turn: Turn, network: str, cursor: LogCursor, page: LogPage) -> None:
    """Let the notices of a legacy page and the parked ones arrive, in the order of their numbers.

    For the time that was read, a legacy adapter shows only the newest event of each entity.
    Notifications of the others may still be under way. So events after a gap are parked, unless the
    gap is older than this distributor or has lasted for `Rules.gap_patience`.
    """
    history = rows.get_state(turn.tx, network) is not LogState.READY
    notices = {notice.number: notice for notice in page.notices}
    for number in cursor.parked:
        parked = _pop_parked(turn, network, number)
        if parked is not None:
            notices.setdefault(number, parked)
    is_patient = not cursor.short or turn.now < cursor.short + turn.rules.gap_patience
    # In a history, notifications of events from before this time are no longer expected.
    oldest = turn.now - turn.rules.gap_patience if history else 0
    has_room = len(notices) < turn.rules.most_parked
    cursor = cursor._replace(parked=[], reading=0)
    for number, notice in sorted(notices.items()):
        may_wait = is_patient and has_room and notice.time * 1000 >= oldest
        waits = may_wait and number > cursor.last + 1
        _revoke_replaced(turn, network, notice)
        if turn.tx.get(rows.numbers(network), str(number)) is None:
            if waits:
                cursor = _park(turn, network, cursor, notice)
                continue
            arrive(turn, network, notice, history=history)
        if not waits:
            last = max(cursor.last, number)
            newest = max(cursor.newest, notice.time)
            cursor = cursor._replace(last=last, verified=last, newest=newest)
    gap_since = cursor.short or turn.now
    cursor = cursor._replace(short=gap_since if cursor.parked else 0)
    if page.complete:
        _end_pass(turn, network, cursor)
    else:
        # The next read begins `Rules.overlap` before `newest`, which is where this page ends.
        newest = max(cursor.newest, page.until + turn.rules.overlap)
        read(turn, network, cursor._replace(newest=newest))


def _revoke_replaced(turn: Turn, network: str, notice: Notice) -> None:
    """Revoke the event that had the number of a notice before, if it was another one.

    The log was rewound, and the number was given again. Only ids are compared, because an adapter
    may show the content of an event differently in its log and in its notifications.
    """
    known = turn.tx.get(rows.numbers(network), str(notice.number))
    if known is None:
        return
    event_id = _id_of(known)
    if event_id == (notice.id or ""):
        return
    turn.tx.delete(rows.numbers(network), str(notice.number))
    _forget_number(turn, network, event_id, notice.number)
    turn.note("rewind", network, event_id, f"{notice.number} has another event")


def _end_pass(turn: Turn, network: str, cursor: LogCursor) -> None:
    """End a pass that has read the log to its end, and read the log again after a while.

    If the network has been waiting for this, it may now be published to, and its held jobs start.
    """
    loss = rows.get_loss(turn.tx, network)
    if loss is not None and turn.now < loss.until:
        # Calls that began before the loss may still take effect.
        put_cursor(turn.tx, network, cursor, due=loss.until)
        return
    wait = turn.rules.silence // RETRIES if cursor.parked else turn.rules.silence
    put_cursor(turn.tx, network, cursor, due=turn.now + wait)
    if rows.get_state(turn.tx, network) is not LogState.READY:
        turn.tx.put(rows.STATES, network, LogState.READY)
        if loss is not None:
            rows.put_loss(turn.tx, network, rows.NetworkLoss(doubted=turn.now))
        jobs.release_held(turn, network)


@dataclass
class _Numbered:
    """The work on a page of a log that is read by number. `cursor` changes with each notice."""

    turn: Turn
    network: str
    cursor: LogCursor
    page: LogPage

    def take(self) -> None:
        """Check or add the notices up to a gap or a difference, and then decide how to continue."""
        first = _after(self.turn, self.cursor) + 1
        # A log may begin with a number above 1.
        if not self.cursor.last and self.page.notices:
            first = self.page.notices[0].number
        history = rows.get_state(self.turn.tx, self.network) is LogState.HISTORY
        expected = first
        for notice in self.page.notices:
            # Logs have no gaps. If the adapter has omitted a number, a later read may contain it.
            if notice.number != expected:
                self.turn.note("gap", self.network, str(expected))
                break
            if notice.number <= self.cursor.last:
                if not _same(self.turn, self.network, notice):
                    self._handle_difference(notice.number, first)
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

    def _handle_difference(self, number: int, first: int) -> None:
        """Handle a rewound log. `number` is the first row of the page that differs.

        If the page begins before `number`, the row before it is the last common one. If `number` is
        1, every row differs. Otherwise the last common number is searched for.
        """
        if number > first or number == 1:
            _begin_revoking(self.turn, self.network, self.cursor, number - 1)
        else:
            _search(self.turn, self.network, self.cursor)

    def _end(self, first: int, highest: int) -> None:
        """Read the next page, or end the pass over the log.

        `first` is the first number of the page, `highest` the last one that it has confirmed or
        added. If a complete page ends before the last known number, the log is too short.
        """
        turn = self.turn
        cursor = self.cursor._replace(reading=0)
        if not self.page.complete:
            short = 0 if highest >= cursor.last else cursor.short
            read(turn, self.network, _unpark(turn, self.network, cursor._replace(short=short)))
        elif highest < cursor.last:
            self._handle_short(cursor, first, highest)
        else:
            _end_pass(turn, self.network, _unpark(turn, self.network, cursor._replace(short=0)))

    def _handle_short(self, cursor: LogCursor, first: int, highest: int) -> None:
        """Handle a log that is shorter than the part that was read before.

        The adapter may only lag behind, so the log counts as rewound only if it stays short for
        `Rules.patience`. If the page has confirmed any row, `highest` is the last common number.
        """
        turn = self.turn
        since = cursor.short or turn.now
        if turn.now - since < turn.rules.patience:
            put_cursor(
                turn.tx,
                self.network,
                cursor._replace(short=since),
                due=turn.now + turn.rules.silence // RETRIES,
            )
        elif highest >= first:
            _begin_revoking(turn, self.network, cursor, highest)
        else:
            _search(turn, self.network, cursor)


def _same(turn: Turn, network: str, notice: Notice) -> bool:
    """Return whether no other notice is known for the number of this one."""
    known = turn.tx.get(rows.numbers(network), str(notice.number))
    return known is None or rows.same_entry(known, notice)


def _note_block(turn: Turn, network: str, notice: Notice) -> None:
    """Add the block to the entry of a number whose notification lacked it."""
    known = turn.tx.get(rows.numbers(network), str(notice.number))
    if notice.block and known is not None and not rows.tells_block(known):
        turn.tx.put(rows.numbers(network), str(notice.number), rows.entry(notice))


def _search(turn: Turn, network: str, cursor: LogCursor) -> None:
    """Start to search for the last number that is still the same.

    It is less than the last confirmed number, whose row now differs or is missing.
    """
    _narrow(turn, network, cursor._replace(low=0, high=max(cursor.verified, 1), reading=0))


def _apply_search(turn: Turn, network: str, cursor: LogCursor, notices: tuple[Notice, ...]) -> None:
    """Continue the search above the middle number if its row is still the same, else below it."""
    middle = (cursor.low + cursor.high) // 2
    is_common = bool(notices) and notices[0].number == middle and _same(turn, network, notices[0])
    narrowed = cursor._replace(low=middle) if is_common else cursor._replace(high=middle)
    _narrow(turn, network, narrowed)


def _narrow(turn: Turn, network: str, cursor: LogCursor) -> None:
    """Read the number in the middle of the range, or end the search and start to revoke."""
    if cursor.high - cursor.low > 1:
        read(turn, network, cursor)
    else:
        _begin_revoking(turn, network, cursor, cursor.low)


def _begin_revoking(turn: Turn, network: str, cursor: LogCursor, cut: int) -> None:
    """Start to revoke the numbers after `cut`.

    The network is not published to until its log has been read again. Parked notices are revoked,
    too, because their events count as seen.
    """
    turn.tx.put(rows.STATES, network, LogState.REREAD)
    for number in cursor.parked:
        notice = _pop_parked(turn, network, number)
        if notice is not None:
            _forget_number(turn, network, notice.id, number)
    turn.note("rewind", network, "", f"{cursor.last} to {cut}")
    _revoke_page(
        turn,
        network,
        cursor._replace(cut=cut, done=cut, low=0, high=0, short=0, parked=[], reading=0),
    )


def _revoke_page(turn: Turn, network: str, cursor: LogCursor) -> None:
    """Revoke one page of the numbers after `LogCursor.cut`.

    Each page is revoked in a transaction of its own, in ascending order. After the last page, the
    log is read again.
    """
    end = min(cursor.last, cursor.done + turn.rules.page)
    for number in range(cursor.done + 1, end + 1):
        known = turn.tx.get(rows.numbers(network), str(number)) or ""
        turn.tx.delete(rows.numbers(network), str(number))
        _forget_number(turn, network, _id_of(known), number)
    if end < cursor.last:
        put_cursor(turn.tx, network, cursor._replace(done=end), due=turn.now)
        return
    verified = min(cursor.verified, cursor.cut)
    read(
        turn, network, cursor._replace(last=cursor.cut, verified=verified, cut=-1, done=0, blocks=0)
    )


def _forget_number(turn: Turn, network: str, event_id: str | None, number: int) -> None:
    """Forget the number of an event, because the log does not have the event there any more.

    If the network does not have the event at another number, the event becomes absent there and is
    enqueued again. The job is in doubt, because the event may be at another place of the log.
    """
    if not event_id:
        return
    stored = rows.get_event(turn.tx, event_id)
    first = 0 if stored is None else stored.first(network)
    if first and first != number:
        return
    if stored is not None and first:
        left = [pair for pair in stored.numbers if pair[0] != network]
        rows.put_event(turn.tx, event_id, stored._replace(numbers=left))
    turn.tx.remove(rows.published(network), event_id)
    turn.tx.delete(rows.UNSEEN, f"{network}|{event_id}")
    forget(turn.tx, rows.published(network), event_id)
    if stored is not None:
        jobs.enqueue(turn, rows.on_network(network), event_id, stored.fields().order, doubt=1)
