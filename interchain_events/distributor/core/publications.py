"""Publications of clients, and the results of calls and probes (ID-30, ID-34).

On each network an id is absent, claimed (a call is under way), published (the adapter accepted it)
or seen (it is in the log). Only the log proves that an event is on a network. An acceptance that
the log does not confirm is checked by probes, and revoked if it proves untrue.
"""

from interchain_events.distributor.core import jobs, rows
from interchain_events.distributor.core.arrivals import known
from interchain_events.distributor.core.messages import (
    Answered,
    No,
    Probed,
    ProbeNetwork,
    Publish,
    Reply,
    Turn,
    Yes,
)
from interchain_events.distributor.once.claims import commit, release, renew, revoke


def publish(turn: Turn, request: Publish) -> None:
    """Store an event and a job for each network that lacks it, and reply.

    A network that already has a job for the event gets no second one. Dead letters of the event are
    removed, so its publication is tried again on their networks. The reply has the code `conflict`
    if the id is known with other content (ID-22).
    """
    digest = request.event.digest()
    stored = known(turn, request.id, digest)
    if stored is not None and stored.digest != digest:
        turn.note("conflict", "publish", request.id)
        turn.emit(Reply("conflict", request.id))
        return
    if stored is None:
        stored = rows.StoredEvent(list(request.event), digest)
    # `known` may have returned a changed row.
    if stored != rows.get_event(turn.tx, request.id):
        rows.put_event(turn.tx, request.id, stored)
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

    An acceptance is a fact, so it counts even if this process no longer has the claim. A refusal
    or an unclear answer counts only with the claim: without it, another process may have made a
    later call.
    """
    target = rows.on_network(message.network)
    published = rows.published(message.network)
    if isinstance(message.answer, Yes):
        _accept(turn, message.network, message.id, message.answer.time)
    elif not turn.tx.has(published, message.id) and jobs.owned(turn, published, message.id):
        if isinstance(message.answer, No):
            release(turn.tx, published, message.id, turn.rules.owner)
            jobs.bury(turn, target, message.id, message.answer.reason)
        else:
            _retry_later(turn, target, message.id, message.answer.reason)
    jobs.end_call(turn, message.network, message.id)


def _retry_later(turn: Turn, target: str, event_id: str, reason: str) -> None:
    """Make a job with an unclear outcome due again. Its network is then probed before it is called.

    The claim remains until its lease ends, because the call may still take effect. The job is due
    after that, with a wait that doubles with each failure up to `Rules.most_retry`.
    """
    job = rows.get_job(turn.tx, target, event_id)
    if job is None:
        return
    tries = job.tries + 1
    due = max(job.until, turn.now) + min(1000 << min(tries - 1, 20), turn.rules.most_retry)
    rows.put_job(turn.tx, target, event_id, job._replace(tries=tries, due=due, reason=reason))


def _accept(turn: Turn, network: str, event_id: str, time: int) -> None:
    """Note that an adapter has accepted an event, which changes from claimed to published.

    Until the log shows the event, a row in `rows.UNSEEN` causes probes. An event that was already
    seen stays seen. `time` is the block time in seconds, 0 if it is unknown.
    """
    stored = rows.get_event(turn.tx, event_id)
    if stored is None:
        return
    target = rows.on_network(network)
    published = rows.published(network)
    if not turn.tx.has(published, event_id):
        commit(turn.tx, published, event_id)
        job = rows.get_job(turn.tx, target, event_id)
        # Later probes search from this time on. Without a job, its time is not known, but the
        # accepted call cannot have begun more than one lease ago.
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

    The row is due again after `Rules.check_after`. For a legacy network the wait doubles each time,
    up to `Rules.most_check`: its adapter may need days to show the event, and a probe costs it more
    the older the acceptance is. Rows of removed networks are deleted.
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
        ProbeNetwork(
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

    If the id counts as published, the probe checked its acceptance. Otherwise a job in doubt
    emitted the probe before its next call. If the network has the event, the job is finished. If
    the probe failed, the job is tried again later. If the event is absent, the call is made again.
    """
    published = rows.published(message.network)
    if turn.tx.has(published, message.id):
        _check_acceptance(turn, message)
    elif message.there:
        _accept(turn, message.network, message.id, time=0)
    elif message.there is None and jobs.owned(turn, published, message.id):
        _retry_later(turn, rows.on_network(message.network), message.id, "probe failed")
    elif jobs.owned(turn, published, message.id) and _call_again(
        turn, message.network, message.id, message.asked_at
    ):
        # The network is still being called, so its next held job must not start.
        return
    jobs.end_call(turn, message.network, message.id)


def _call_again(turn: Turn, network: str, event_id: str, asked_at: int) -> bool:
    """Renew the claim of an event and repeat its call. Returns whether the call was emitted.

    `asked_at` is the time in ms at which the network was probed. Does nothing if the current claim
    is younger: its own call may have begun after the probe.
    """
    target = rows.on_network(network)
    job = rows.get_job(turn.tx, target, event_id)
    if job is None or asked_at < job.until - turn.rules.lease:
        return False
    renew(
        turn.tx, rows.published(network), event_id, owner=turn.rules.owner, lease=turn.rules.lease
    )
    until = turn.now + turn.rules.lease
    rows.put_job(turn.tx, target, event_id, job._replace(until=until, due=until))
    jobs.note_call(turn, network, event_id, until)
    jobs.call(turn, network, event_id)
    return True


def _check_acceptance(turn: Turn, message: Probed) -> None:
    """Confirm, probe again or revoke the acceptance of an id that is not in the log yet.

    If the network does not have the event, the acceptance was untrue. It is revoked, and the event
    is enqueued again. Repeated untrue acceptances of the same event raise an alarm.
    """
    key = f"{message.network}|{message.id}"
    text = turn.tx.get(rows.UNSEEN, key)
    if message.there is None or text is None:
        return
    unseen = rows.read_unseen(text)
    # A probe that was emitted before the acceptance cannot disprove it.
    if message.asked_at <= unseen.committed:
        return
    # A probe does not report the event's number, without which the event could not be revoked after
    # a rewind. So it does not count as seen, and is probed until the log shows it.
    if message.there and message.network not in turn.rules.legacy:
        return
    # The log of a legacy network may never show the number, so there the probe is enough. If
    # another event of the same entity and second hides the event forever, the adapter is believed,
    # because publishing again could duplicate the event.
    if message.there or message.hidden:
        turn.tx.delete(rows.UNSEEN, key)
        return
    # While its log is short, a legacy adapter may hide the event behind another one of the last
    # second. The next event of the log ends that, so the id is probed again.
    if unseen.time != 0 and message.last == unseen.time:
        return
    _revoke_acceptance(turn, message.network, message.id)


def _revoke_acceptance(turn: Turn, network: str, event_id: str) -> None:
    """Revoke an untrue acceptance, enqueue the event again, and raise an alarm after several."""
    key = f"{network}|{event_id}"
    turn.tx.delete(rows.UNSEEN, key)
    revoke(turn.tx, rows.published(network), event_id)
    count = int(turn.tx.get(rows.REVOCATIONS, key) or "0") + 1
    turn.tx.put(rows.REVOCATIONS, key, str(count))
    turn.note("revoked", network, event_id, f"{count}")
    if count >= turn.rules.alarm_after:
        turn.tx.put(rows.ALARMS, f"{network}|untrue-yes", f"{event_id}: {count} times")
        turn.note("alarm", network, event_id)
    stored = rows.get_event(turn.tx, event_id)
    if stored is not None:
        jobs.enqueue(turn, rows.on_network(network), event_id, stored.fields().order)
