"""Arrivals: an event of a network's log is stored, replicated and matched (ID-31, ID-40, ID-22)."""

from pubsub_emulator.distributor.core import jobs, rows
from pubsub_emulator.distributor.core.rows import Interest, Stored
from pubsub_emulator.distributor.core.turn import Turn
from pubsub_emulator.distributor.event import Event, Notice
from pubsub_emulator.distributor.once.claims import forget


def arrive(turn: Turn, network: str, notice: Notice, *, history: bool) -> None:
    """Store an event of a network at its place: any → seen; jobs for networks lacking it and for interests.

    `history`: it may be older than this distributor, so it comes after live events, and only interests older than it
    get it.
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
    stored = known(turn, notice.id, digest)
    if stored is not None and stored.digest != digest:
        turn.note("conflict", network, notice.id)
        _put(turn, notice.id, stored, stored.at(network, notice.number, every=bool(turn.rules.retain)))
        return
    first = stored is None or not stored.seen
    _store(turn, network, notice, stored, digest)
    if not (history and notice.time < turn.rules.since):
        _replicate(turn, network, notice, lane=int(history))
    if first:
        _match(turn, notice, history=history)


def known(turn: Turn, event_id: str, digest: str) -> Stored | None:
    """The stored event of an id. One that only an interest reported is ignored if its content differs."""
    stored = rows.get_event(turn.tx, event_id)
    if stored is None or not stored.hearsay:
        return stored
    return stored._replace(hearsay=0) if stored.digest == digest else None


def mark_seen(turn: Turn, network: str, event_id: str) -> None:
    """Any → seen: the job of that network is removed."""
    target, published = rows.on_network(network), rows.published(network)
    if not turn.tx.has(published, event_id):
        turn.tx.add(published, event_id)
        forget(turn.tx, published, event_id)
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


def _told(stored: Stored, notice: Notice) -> Stored:
    """The event with what the notice tells of it."""
    return stored._replace(
        time=stored.time or notice.time, number=notice.number, signer=notice.signer, publisher=notice.event.iss
    )


def _store(turn: Turn, network: str, notice: Notice, stored: Stored | None, digest: str) -> None:
    event_id = notice.id or ""
    kept = Stored(list(notice.event), digest) if stored is None else stored
    if not kept.seen:
        kept = _told(kept, notice)._replace(seen=max(turn.now, 1))
        if turn.rules.retain:
            turn.tx.put(rows.EXPIRY, event_id, "1", due=notice.time * 1000 + turn.rules.retain)
    _put(turn, event_id, stored, kept.at(network, notice.number, every=bool(turn.rules.retain)))


def _put(turn: Turn, event_id: str, stored: Stored | None, kept: Stored) -> None:
    if kept != stored:
        rows.put_event(turn.tx, event_id, kept)


def _replicate(turn: Turn, network: str, notice: Notice, lane: int) -> None:
    event_id = notice.id or ""
    for other in turn.rules.networks:
        if other == network or turn.tx.has(rows.published(other), event_id):
            continue
        target, delay = rows.on_network(other), turn.rules.delay(other)
        if turn.tx.get(rows.DEAD, rows.letter_of(target, event_id)) is None:
            due = turn.now + delay if delay else 0
            jobs.enqueue(turn, target, event_id, notice.event.order, due=due, lane=lane)


def matches(types: list[str], metadata: list[str], event: Event) -> bool:
    """Whether an interest concerns an event: type equal or `*`, and any of the metadata if there is any."""
    if "*" not in types and event.event_type not in types:
        return False
    return not metadata or any(value in event.metadata for value in metadata)


def _match(turn: Turn, notice: Notice, *, history: bool) -> None:
    for subscription, types, metadata, created in rows.get_index(turn.tx):
        if history and notice.time * 1000 + 999 < created:
            continue
        if matches(types, metadata, notice.event):
            _tell(turn, subscription, notice, lane=int(history))


def _tell(turn: Turn, subscription: str, notice: Notice, lane: int = 0) -> None:
    event_id = notice.id or ""
    target = rows.to_subscription(subscription)
    if turn.tx.has(rows.notified(subscription), event_id):
        return
    if turn.tx.get(rows.DEAD, rows.letter_of(target, event_id)) is None:
        jobs.enqueue(turn, target, event_id, notice.event.order, lane=lane)


def tell_interest(turn: Turn, subscription: str, interest: Interest, notice: Notice) -> None:
    """An adapter notified for one interest: that interest gets the event, and nothing is replicated (ID-40)."""
    if notice.id is None or not interest.active or not matches(interest.types, interest.metadata, notice.event):
        return
    digest = notice.event.digest()
    stored = rows.get_event(turn.tx, notice.id)
    if stored is not None and (stored.digest != digest or (stored.seen and stored.seen < interest.created)):
        return
    kept = Stored(list(notice.event), digest, hearsay=1) if stored is None else stored
    if not kept.seen:
        rows.put_event(turn.tx, notice.id, _told(kept, notice))
    _tell(turn, subscription, notice)


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
