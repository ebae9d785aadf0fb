"""Publications of clients, and the results of calls and probes (ID-30, ID-34).

On each network an id is absent, claimed, published (its adapter accepted it) or seen (its log has
it). Only the log is proof. An acceptance that the log does not confirm is checked by probes and, if
it proves untrue, revoked.
"""

from interchain_events.distributor.core import jobs, rows
from interchain_events.distributor.core.arrivals import known
from interchain_events.distributor.core.messages import (
    Answered,
    No,
    Probe,
    Probed,
    Publish,
    Reply,
    Turn,
    Yes,
)
from interchain_events.distributor.once.claims import commit, release, renew, revoke


def publish(turn: Turn, request: Publish) -> None:
    """Store an event and a job for each network that lacks it, and reply.

    Networks that have the event or are working on it are left alone. A dead letter is removed, so
    the client's request tries those networks again. The reply has the code `conflict` if the id is
    known with other content (ID-22).
    """
    digest = request.event.digest()
    stored = known(turn, request.id, digest)
    if stored is not None and stored.digest != digest:
        turn.note("conflict", "publish", request.id)
        turn.emit(Reply("conflict", request.id))
        return
    kept = rows.Stored(list(request.event), digest) if stored is None else stored
    if kept != rows.get_event(turn.tx, request.id):
        rows.put_event(turn.tx, request.id, kept)
    lacking = [
        network
        for network in turn.rules.networks
        if not turn.tx.has(rows.published(network), request.id)
    ]
    for network in lacking:
        jobs.unbury(turn, rows.on_network(network), request.id)
        jobs.enqueue(turn, rows.on_network(network), request.id, request.event.order)
    turn.emit(Reply(value=request.id, new=bool(lacking)))


def answered(turn: Turn, message: Answered) -> None:
    """Apply an adapter's answer to a call.

    An acceptance is a fact, so it counts whichever process made the call. A refusal or an unclear
    answer counts only if this process still has the claim: otherwise another one has called since.
    """
    target = rows.on_network(message.network)
    published = rows.published(message.network)
    if isinstance(message.answer, Yes):
        _committed(turn, message.network, message.id, message.answer.time)
    elif not turn.tx.has(published, message.id) and jobs.owned(turn, published, message.id):
        if isinstance(message.answer, No):
            release(turn.tx, published, message.id, turn.rules.owner)
            jobs.bury(turn, target, message.id, message.answer.reason)
        else:
            _in_doubt(turn, target, message.id, message.answer.reason)
    jobs.end_call(turn, message.network, message.id)


def _in_doubt(turn: Turn, target: str, event_id: str, reason: str) -> None:
    """Leave an unclear call to a later probe.

    The claim remains until its lease ends, as the call may still take effect. The job is due some
    time after that, longer with each failure.
    """
    job = rows.get_job(turn.tx, target, event_id)
    if job is None:
        return
    tries = job.tries + 1
    due = max(job.until, turn.now) + min(1000 << min(tries - 1, 20), turn.rules.most_retry)
    rows.put_job(turn.tx, target, event_id, job._replace(tries=tries, due=due, reason=reason))


def _committed(turn: Turn, network: str, event_id: str, time: int) -> None:
    """Note that an adapter has accepted an event: claimed becomes published.

    Until the log shows the event, a row in `rows.UNSEEN` causes probes. An event that was
    already seen stays seen. `time` is the block time in seconds, 0 if it is unknown.
    """
    stored = rows.get_event(turn.tx, event_id)
    if stored is None:
        return
    target = rows.on_network(network)
    published = rows.published(network)
    if not turn.tx.has(published, event_id):
        commit(turn.tx, published, event_id)
        job = rows.get_job(turn.tx, target, event_id)
        # The job's time bounds the search of later probes. Without a job, the call that was
        # accepted cannot have begun earlier than one lease ago.
        since = turn.now - turn.rules.lease if job is None else job.since
        row = rows.Unseen(turn.now, since, time)
        turn.tx.put(
            rows.UNSEEN,
            f"{network}|{event_id}",
            row.text(),
            due=turn.now + turn.rules.check_after,
        )
        jobs.unbury(turn, target, event_id)
    if not stored.time and time:
        rows.put_event(turn.tx, event_id, stored._replace(time=time))
    jobs.finish(turn, target, event_id)


def check_unseen(turn: Turn, key: str) -> None:
    """Emit a probe for an id that was accepted and has not been seen in the log.

    The row is due again after `Rules.check_after`. A legacy adapter may need days until it can
    show the event, and a probe costs it more the older the acceptance is. So there the wait
    doubles, up to `Rules.most_check`. Rows of removed networks are deleted.
    """
    network, _, event_id = key.partition("|")
    text = turn.tx.get(rows.UNSEEN, key)
    if text is None:
        return
    if network not in turn.rules.networks:
        turn.tx.delete(rows.UNSEEN, key)
        return
    unseen = rows.read_unseen(text)
    wait = turn.rules.check_after
    if network in turn.rules.legacy:
        wait = max(wait, min(turn.now - unseen.committed, turn.rules.most_check))
    turn.tx.put(rows.UNSEEN, key, text, due=turn.now + wait)
    stored = rows.get_event(turn.tx, event_id)
    entity = "" if stored is None else stored.fields().order
    turn.emit(
        Probe(
            network,
            event_id,
            since=unseen.since // 1000,
            asked_at=turn.now,
            entity=entity,
            time=unseen.time,
        )
    )


def probed(turn: Turn, message: Probed) -> None:
    """Apply the result of a probe.

    If the id counts as published, the probe checked that acceptance. Otherwise the probe precedes a
    call of a job in doubt: the event is there, or it could not be asked for, or it is absent and
    the call is made again.
    """
    published = rows.published(message.network)
    if turn.tx.has(published, message.id):
        _checked(turn, message)
    elif message.there:
        _committed(turn, message.network, message.id, 0)
    elif message.there is None and jobs.owned(turn, published, message.id):
        _in_doubt(turn, rows.on_network(message.network), message.id, "probe failed")
    elif jobs.owned(turn, published, message.id) and _call_again(
        turn, message.network, message.id, message.asked_at
    ):
        # The network is still being called, so its next held job must not start.
        return
    jobs.end_call(turn, message.network, message.id)


def _call_again(turn: Turn, network: str, event_id: str, at: int) -> bool:
    """Claim an event again and repeat its call. Returns whether the call was emitted.

    Does nothing if the probe was emitted before the current claim: a call of that claim may have
    begun since.
    """
    target = rows.on_network(network)
    job = rows.get_job(turn.tx, target, event_id)
    if job is None or at < job.until - turn.rules.lease:
        return False
    renew(turn.tx, rows.published(network), event_id, turn.rules.owner, turn.rules.lease)
    until = turn.now + turn.rules.lease
    rows.put_job(turn.tx, target, event_id, job._replace(until=until, due=until))
    jobs.note_call(turn, network, event_id, until)
    jobs.call(turn, network, event_id)
    return True


def _checked(turn: Turn, message: Probed) -> None:
    """Apply a probe of an id that was accepted but not seen.

    If the network does not have the event, the acceptance was untrue. It is revoked, and the event
    is enqueued again. Repeated untrue acceptances of the same event raise an alarm.

    If the network has the event, that alone does not make it seen. A probe does not report the
    event's number, without which the event could not be revoked after a rewind. So the id is probed
    until the log shows it. For a legacy network the probe is enough, as the log may never show the
    event's number. If a legacy adapter can never show the event, its acceptance is believed,
    because publishing again would duplicate the event: another event of the same entity and second
    hides it. While its log is short, an adapter also hides events behind others of the last second.
    That ends with the next event, so the id is probed again until then.
    """
    key = f"{message.network}|{message.id}"
    text = turn.tx.get(rows.UNSEEN, key)
    # A probe that was emitted before the acceptance cannot disprove it.
    if message.there is None or text is None:
        return
    unseen = rows.read_unseen(text)
    if message.asked_at <= unseen.committed:
        return
    if message.there and message.network not in turn.rules.legacy:
        return
    if message.there or message.hidden:
        turn.tx.delete(rows.UNSEEN, key)
        return
    if unseen.time != 0 and message.last == unseen.time:
        return
    turn.tx.delete(rows.UNSEEN, key)
    revoke(turn.tx, rows.published(message.network), message.id)
    count = int(turn.tx.get(rows.REVOCATIONS, key) or "0") + 1
    turn.tx.put(rows.REVOCATIONS, key, str(count))
    turn.note("revoked", message.network, message.id, f"{count}")
    if count >= turn.rules.alarm_after:
        turn.tx.put(rows.ALARMS, f"{message.network}|untrue-yes", f"{message.id}: {count} times")
        turn.note("alarm", message.network, message.id)
    stored = rows.get_event(turn.tx, message.id)
    if stored is not None:
        jobs.enqueue(turn, rows.on_network(message.network), message.id, stored.fields().order)
