"""The arrival of an event: it is stored, replicated and matched (ID-31, ID-40, ID-22).

An event is matched with interests, which are the subscriptions of clients. Arrivals come from
notifications and from reads of a log, in the order of the log (see `reading`).
"""

from interchain_events.distributor.core import jobs, rows
from interchain_events.distributor.core.messages import Turn
from interchain_events.distributor.core.rules import NOW
from interchain_events.distributor.event import Event, Notice
from interchain_events.distributor.once.claims import commit, forget


def arrive(turn: Turn, network: str, notice: Notice, *, history: bool) -> None:
    """Store an event that is in a network's log, and the jobs that follow from it.

    The event becomes seen on that network. Each other network that lacks it gets a job to publish
    it, and each interest that matches gets a job to notify its subscriber. A repeated arrival has
    no further effect. A notice without a global id goes into quarantine (ID-21), and a notice whose
    id is known with other content is only noted as a conflict (ID-22).

    `history` says that the log is being read for the first time, so that the event may be older
    than this distributor. Then its jobs come after those of live events, it is published only if it
    is not older than `Rules.since`, and only interests that existed at its time get it.
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
    lane = int(history)
    stored = known(turn, notice.id, digest)
    kept = rows.Stored(list(notice.event), digest) if stored is None else stored
    conflicts, first = kept.digest != digest, not kept.seen
    if first and not conflicts:
        # `seen` is 0 for an event that has not been seen, so a clock at 0 must not produce it.
        kept = _told(kept, notice)._replace(seen=max(turn.now, 1))
        if turn.rules.retain:
            turn.tx.put(rows.EXPIRY, notice.id, "1", due=notice.time * 1000 + turn.rules.retain)
    kept = kept.at(network, notice.number, every=bool(turn.rules.retain))
    if kept != stored:
        rows.put_event(turn.tx, notice.id, kept)
    if conflicts:
        turn.note("conflict", network, notice.id)
        return
    if not (history and notice.time < _since(turn)):
        for other in turn.rules.networks:
            if other != network:
                due = turn.now + turn.rules.delay(other)
                _enqueue(
                    turn, rows.on_network(other), rows.published(other), notice, lane=lane, due=due
                )
    if first:
        for name, types, metadata, created in rows.get_index(turn.tx):
            # Block times have whole seconds, so the event may be up to 999 ms later than its block
            # time.
            if matches(types, metadata, notice.event) and not (
                history and notice.time * 1000 + 999 < created
            ):
                _enqueue(turn, rows.to_subscription(name), rows.notified(name), notice, lane=lane)


def _since(turn: Turn) -> int:
    """Return the second from which events of a history are published on other networks."""
    if turn.rules.since != NOW:
        return turn.rules.since
    begin = rows.get_begin(turn.tx)
    return turn.now // 1000 if begin is None else begin


def _enqueue(
    turn: Turn, target: str, done: str, notice: Notice, *, lane: int = 0, due: int = 0
) -> None:
    """Store a job for an event, unless it is done already or was given up.

    `done` is the name of the set of ids for which this target's work is done.
    """
    event_id = notice.id or ""
    if (
        turn.tx.has(done, event_id)
        or turn.tx.get(rows.DEAD, rows.letter_of(target, event_id)) is not None
    ):
        return
    jobs.enqueue(turn, target, event_id, notice.event.order, due=due, lane=lane)


def known(turn: Turn, event_id: str, digest: str) -> rows.Stored | None:
    """Return the stored event of an id, `None` if there is none.

    An event that only an interest's notification reported counts as not stored if its content
    differs, since such a report must not block the event of the log.
    """
    stored = rows.get_event(turn.tx, event_id)
    if stored is None or not stored.hearsay:
        return stored
    return stored._replace(hearsay=0) if stored.digest == digest else None


def mark_seen(turn: Turn, network: str, event_id: str) -> None:
    """Note that a network's log has an event, so that its job for that network ends.

    The log overrides everything that was stored before: a dead letter, or an acceptance that was
    not confirmed yet.
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
    """End the alarm about an acceptance that was untrue, as the log has the event now."""
    if turn.tx.get(rows.REVOCATIONS, f"{network}|{event_id}") is None:
        return
    turn.tx.delete(rows.REVOCATIONS, f"{network}|{event_id}")
    alarm = f"{network}|untrue-yes"
    if (turn.tx.get(rows.ALARMS, alarm) or "").startswith(f"{event_id}:"):
        turn.tx.delete(rows.ALARMS, alarm)


def _told(stored: rows.Stored, notice: Notice) -> rows.Stored:
    """Return the row with the values of its first notice."""
    return stored._replace(
        time=stored.time or notice.time,
        number=notice.number,
        signer=notice.signer,
        publisher=notice.event.iss,
    )


def matches(types: list[str], metadata: list[str], event: Event) -> bool:
    """Return whether an interest with these types and metadata concerns an event.

    The event's type must be listed, or `*` must be. The event must have one of the metadata if any
    are given.
    """
    if "*" not in types and event.event_type not in types:
        return False
    return not metadata or any(value in event.metadata for value in metadata)


def tell_interest(turn: Turn, subscription: str, interest: rows.Interest, notice: Notice) -> None:
    """Store the job of one interest, for which an adapter sent a notification (ID-40).

    Unlike `arrive`, this replicates nothing and notifies no other interest, because it does not
    move the cursor of the network's log. The event arrives when the log is read.
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
    # Until the log has the event, this content does not count for its id.
    kept = rows.Stored(list(notice.event), digest, hearsay=1) if stored is None else stored
    if not kept.seen:
        rows.put_event(turn.tx, notice.id, _told(kept, notice))
    _enqueue(turn, rows.to_subscription(subscription), rows.notified(subscription), notice)


def expire(turn: Turn, event_id: str) -> None:
    """Forget an id that is older than `Rules.retain` (ID-46).

    If a network or a subscription still has a job for it, the attempt is repeated later.
    """
    stored = rows.get_event(turn.tx, event_id)
    if stored is None:
        turn.tx.delete(rows.EXPIRY, event_id)
        return
    subscriptions = [entry[0] for entry in rows.get_index(turn.tx)]
    targets = [rows.on_network(each) for each in turn.rules.networks]
    targets += [rows.to_subscription(each) for each in subscriptions]
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
