"""Arrivals: an event of a network's log is stored, replicated and matched (ID-31, ID-40, ID-22)."""

from pubsub_emulator.distributor.core import jobs, rows
from pubsub_emulator.distributor.core.messages import Turn
from pubsub_emulator.distributor.event import Event, Notice
from pubsub_emulator.distributor.once.claims import commit, forget


def arrive(turn: Turn, network: str, notice: Notice, *, history: bool) -> None:
    """Store an event of a network at its place: any → seen; jobs for networks lacking it and for interests.

    `history`: it may be older than this distributor, so it comes after live events, and only older interests get it.
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
    digest, lane = notice.event.digest(), int(history)
    stored = known(turn, notice.id, digest)
    kept = rows.Stored(list(notice.event), digest) if stored is None else stored
    conflicts, first = kept.digest != digest, not kept.seen
    if first and not conflicts:
        kept = _told(kept, notice)._replace(seen=max(turn.now, 1))
        if turn.rules.retain:
            turn.tx.put(rows.EXPIRY, notice.id, "1", due=notice.time * 1000 + turn.rules.retain)
    kept = kept.at(network, notice.number, every=bool(turn.rules.retain))
    if kept != stored:
        rows.put_event(turn.tx, notice.id, kept)
    if conflicts:
        turn.note("conflict", network, notice.id)
        return
    if not (history and notice.time < turn.rules.since):
        for other in turn.rules.networks:
            if other != network:
                due = turn.now + turn.rules.delay(other)
                _enqueue(turn, rows.on_network(other), rows.published(other), notice, lane=lane, due=due)
    if first:
        for name, types, metadata, created in rows.get_index(turn.tx):
            if matches(types, metadata, notice.event) and not (history and notice.time * 1000 + 999 < created):
                _enqueue(turn, rows.to_subscription(name), rows.notified(name), notice, lane=lane)


def _enqueue(turn: Turn, target: str, done: str, notice: Notice, *, lane: int = 0, due: int = 0) -> None:
    """Store a job, unless its id is in the set `done` or was given up."""
    event_id = notice.id or ""
    if turn.tx.has(done, event_id) or turn.tx.get(rows.DEAD, rows.letter_of(target, event_id)) is not None:
        return
    jobs.enqueue(turn, target, event_id, notice.event.order, due=due, lane=lane)


def known(turn: Turn, event_id: str, digest: str) -> rows.Stored | None:
    """The stored event of an id. One that only an interest reported is ignored if its content differs."""
    stored = rows.get_event(turn.tx, event_id)
    if stored is None or not stored.hearsay:
        return stored
    return stored._replace(hearsay=0) if stored.digest == digest else None


def mark_seen(turn: Turn, network: str, event_id: str) -> None:
    """Any → seen: the job of that network is removed."""
    target, published = rows.on_network(network), rows.published(network)
    if not turn.tx.has(published, event_id):
        commit(turn.tx, published, event_id)
        jobs.unbury(turn, target, event_id)
        _end_alarm(turn, network, event_id)
    elif turn.tx.get(rows.UNSEEN, f"{network}|{event_id}") is not None:
        turn.tx.delete(rows.UNSEEN, f"{network}|{event_id}")
        _end_alarm(turn, network, event_id)
    jobs.finish(turn, target, event_id)


def _end_alarm(turn: Turn, network: str, event_id: str) -> None:
    """End the alarm of a yes that was untrue and is true now."""
    if turn.tx.get(rows.REVOCATIONS, f"{network}|{event_id}") is None:
        return
    turn.tx.delete(rows.REVOCATIONS, f"{network}|{event_id}")
    alarm = f"{network}|untrue-yes"
    if (turn.tx.get(rows.ALARMS, alarm) or "").startswith(f"{event_id}:"):
        turn.tx.delete(rows.ALARMS, alarm)


def _told(stored: rows.Stored, notice: Notice) -> rows.Stored:
    return stored._replace(
        time=stored.time or notice.time, number=notice.number, signer=notice.signer, publisher=notice.event.iss
    )


def matches(types: list[str], metadata: list[str], event: Event) -> bool:
    """Whether an interest concerns an event: type equal or `*`, and any of the metadata if there is any."""
    if "*" not in types and event.event_type not in types:
        return False
    return not metadata or any(value in event.metadata for value in metadata)


def tell_interest(turn: Turn, subscription: str, interest: rows.Interest, notice: Notice) -> None:
    """An adapter notified for one interest: that interest gets the event, and nothing is replicated (ID-40)."""
    if notice.id is None or not interest.active or not matches(interest.types, interest.metadata, notice.event):
        return
    digest = notice.event.digest()
    stored = rows.get_event(turn.tx, notice.id)
    if stored is not None and (stored.digest != digest or (stored.seen and stored.seen < interest.created)):
        return
    kept = rows.Stored(list(notice.event), digest, hearsay=1) if stored is None else stored
    if not kept.seen:
        rows.put_event(turn.tx, notice.id, _told(kept, notice))
    _enqueue(turn, rows.to_subscription(subscription), rows.notified(subscription), notice)


def expire(turn: Turn, event_id: str) -> None:
    """Forget an id that is older than `retain` and has no work left (ID-46)."""
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
