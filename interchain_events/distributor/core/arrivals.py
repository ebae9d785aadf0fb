"""The arrival of an event, which is stored, replicated and matched (ID-22, ID-31, ID-40).

Events arrive from notifications and from reads of a log, in the order of the log (see `reading`).
They are matched with interests, which are the subscriptions of clients.
"""

from interchain_events.distributor.core import jobs, rows
from interchain_events.distributor.core.messages import Turn
from interchain_events.distributor.core.rules import NOW
from interchain_events.distributor.event import Event, Notice
from interchain_events.distributor.once.claims import commit, forget


def arrive(turn: Turn, network: str, notice: Notice, *, history: bool) -> None:
    """Store an event that is in a network's log, and the jobs that follow from it.

    The event is marked as seen on that network. Each other network that lacks it gets a job to
    publish it, and each interest that matches gets a job to notify its subscriber. A repeated
    arrival has no further effect. A notice without a global id goes into quarantine (ID-21). If the
    id is known with other content, the notice is only noted as a conflict (ID-22).

    `history` is true if the log is being read for the first time, so that the event may be older
    than this distributor. Its jobs then come after those of live events. It is replicated only if
    it is not older than `Rules.since`, and reaches only interests that existed at its time.
    """
    turn.tx.put(rows.numbers(network), str(notice.number), rows.entry(notice))
    if notice.id is None:
        turn.tx.put(rows.QUARANTINE, f"{network}|{notice.number:020}", rows.notice_text(notice))
        turn.note("quarantine", network, str(notice.number), notice.fault)
        return
    if turn.rules.retain and notice.time * 1000 < turn.now - turn.rules.retain:
        turn.note("too-old", network, notice.id)
        return
    mark_seen(turn, network, notice.id)
    digest = notice.event.digest()
    before = known(turn, notice.id, digest)
    stored = rows.StoredEvent(list(notice.event), digest) if before is None else before
    is_conflict = stored.digest != digest
    is_first = not stored.seen
    if is_first and not is_conflict:
        # `seen` is 0 for an event that has not been seen, so a clock at 0 must not produce it.
        stored = _with_notice(stored, notice)._replace(seen=max(turn.now, 1))
        if turn.rules.retain:
            turn.tx.put(rows.EXPIRY, notice.id, "1", due=notice.time * 1000 + turn.rules.retain)
    stored = stored.with_number(network, notice.number, every=bool(turn.rules.retain))
    if stored != before:
        rows.put_event(turn.tx, notice.id, stored)
    if is_conflict:
        turn.note("conflict", network, notice.id)
        return
    _replicate(turn, network, notice, history=history)
    if is_first:
        _notify_interests(turn, notice, history=history)


def _replicate(turn: Turn, network: str, notice: Notice, *, history: bool) -> None:
    """Store a job for each other network that lacks an event which has arrived from `network`."""
    if history and notice.time < _since(turn):
        return
    for other in turn.rules.networks:
        if other != network:
            _enqueue(
                turn,
                rows.on_network(other),
                rows.published(other),
                notice,
                lane=int(history),
                due=turn.now + turn.rules.delay(other),
            )


def _notify_interests(turn: Turn, notice: Notice, *, history: bool) -> None:
    """Store a job for each interest that matches an event."""
    # Block times are whole seconds, so the event may be up to 999 ms later than its block time.
    latest = notice.time * 1000 + 999
    for name, types, metadata, created in rows.get_index(turn.tx):
        precedes = history and latest < created
        if matches(types, metadata, notice.event) and not precedes:
            _enqueue(
                turn, rows.to_subscription(name), rows.notified(name), notice, lane=int(history)
            )


def _since(turn: Turn) -> int:
    """Return the second from which events of a network's history are replicated."""
    if turn.rules.since != NOW:
        return turn.rules.since
    begin = rows.get_begin(turn.tx)
    return turn.now // 1000 if begin is None else begin


def _enqueue(
    turn: Turn, target: str, done: str, notice: Notice, *, lane: int = 0, due: int = 0
) -> None:
    """Store a job for an event, unless the target's work for it is done or was given up.

    `done` is the name of the set of event ids for which this target's work is done.
    """
    event_id = notice.id or ""
    if (
        turn.tx.has(done, event_id)
        or turn.tx.get(rows.DEAD, rows.letter_of(target, event_id)) is not None
    ):
        return
    jobs.enqueue(turn, target, event_id, notice.event.order, due=due, lane=lane)


def known(turn: Turn, event_id: str, digest: str) -> rows.StoredEvent | None:
    """Return the stored event of an id, `None` if there is none.

    `digest` is that of the content that is now reported for the id. If only a notification for an
    interest has reported the event so far (`StoredEvent.hearsay`), the report decides: a different
    digest discards the stored event, and the result is `None`. The same digest confirms it, and
    `hearsay` of the result is 0.
    """
    stored = rows.get_event(turn.tx, event_id)
    if stored is None or not stored.hearsay:
        return stored
    if stored.digest != digest:
        return None
    return stored._replace(hearsay=0)


def mark_seen(turn: Turn, network: str, event_id: str) -> None:
    """Note that a network's log has an event, and finish the event's job for that network.

    Any dead letter, unconfirmed acceptance or alarm of the event there is removed.
    """
    target = rows.on_network(network)
    published = rows.published(network)
    if not turn.tx.has(published, event_id):
        commit(turn.tx, published, event_id)
        jobs.unbury(turn, target, event_id)
        _end_alarm(turn, network, event_id)
    elif turn.tx.get(rows.UNSEEN, f"{network}|{event_id}") is not None:
        turn.tx.delete(rows.UNSEEN, f"{network}|{event_id}")
        _end_alarm(turn, network, event_id)
    jobs.finish(turn, target, event_id)


def _end_alarm(turn: Turn, network: str, event_id: str) -> None:
    """Forget an event's untrue acceptances, and end the alarm about them."""
    if turn.tx.get(rows.REVOCATIONS, f"{network}|{event_id}") is None:
        return
    turn.tx.delete(rows.REVOCATIONS, f"{network}|{event_id}")
    alarm = f"{network}|untrue-yes"
    if (turn.tx.get(rows.ALARMS, alarm) or "").startswith(f"{event_id}:"):
        turn.tx.delete(rows.ALARMS, alarm)


def _with_notice(stored: rows.StoredEvent, notice: Notice) -> rows.StoredEvent:
    """Return the row with the values of a notice that is the first one of its event."""
    return stored._replace(
        time=stored.time or notice.time,
        number=notice.number,
        signer=notice.signer,
        publisher=notice.event.iss,
    )


def matches(types: list[str], metadata: list[str], event: Event) -> bool:
    """Return whether an event matches an interest with these types and metadata.

    `types` must contain the event's type or `*`. If `metadata` is not empty, the event must have at
    least one of its values.
    """
    if "*" not in types and event.event_type not in types:
        return False
    return not metadata or any(value in event.metadata for value in metadata)


def tell_interest(turn: Turn, subscription: str, interest: rows.Interest, notice: Notice) -> None:
    """Store a job that notifies one interest, for which an adapter sent a notification (ID-40).

    The notification does not move the cursor of the network's log. So this does not replicate the
    event or notify other interests. `arrive` does that when the log is read.
    """
    if (
        notice.id is None
        or not interest.active
        or not matches(interest.types, interest.metadata, notice.event)
    ):
        return
    digest = notice.event.digest()
    stored = rows.get_event(turn.tx, notice.id)
    if stored is not None and (
        stored.digest != digest or (stored.seen and stored.seen < interest.created)
    ):
        return
    if stored is None:
        # The content of the id is fixed by the log, not by this notification.
        stored = rows.StoredEvent(list(notice.event), digest, hearsay=1)
    if not stored.seen:
        rows.put_event(turn.tx, notice.id, _with_notice(stored, notice))
    _enqueue(turn, rows.to_subscription(subscription), rows.notified(subscription), notice)


def expire(turn: Turn, event_id: str) -> None:
    """Forget an id that is older than `Rules.retain` (ID-46).

    While a network or a subscription still has a job for it, this is put off by
    `Rules.check_after`.
    """
    stored = rows.get_event(turn.tx, event_id)
    if stored is None:
        turn.tx.delete(rows.EXPIRY, event_id)
        return
    subscriptions = [entry[0] for entry in rows.get_index(turn.tx)]
    targets = [rows.on_network(network) for network in turn.rules.networks]
    targets += [rows.to_subscription(subscription) for subscription in subscriptions]
    if any(rows.get_job(turn.tx, target, event_id) is not None for target in targets):
        turn.tx.put(rows.EXPIRY, event_id, "1", due=turn.now + turn.rules.check_after)
        return
    for network in turn.rules.networks:
        turn.tx.remove(rows.published(network), event_id)
        turn.tx.delete(rows.UNSEEN, f"{network}|{event_id}")
        turn.tx.delete(rows.REVOCATIONS, f"{network}|{event_id}")
        forget(turn.tx, rows.published(network), event_id)
    for subscription in subscriptions:
        turn.tx.remove(rows.notified(subscription), event_id)
    for network, number in stored.numbers:
        turn.tx.delete(rows.numbers(network), str(number))
    turn.tx.delete(rows.EVENTS, event_id)
    turn.tx.delete(rows.EXPIRY, event_id)
    turn.note("expired", "", event_id)
