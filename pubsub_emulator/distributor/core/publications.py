"""Publications of clients, and the results of calls and probes (ID-30, ID-34)."""

from pubsub_emulator.distributor.core import jobs, rows
from pubsub_emulator.distributor.core.arrivals import known
from pubsub_emulator.distributor.core.messages import Answered, No, Probe, Probed, Publish, Reply, Turn, Yes
from pubsub_emulator.distributor.once.claims import commit, release, renew, revoke


def publish(turn: Turn, request: Publish) -> None:
    """Store an event and a job for each network that lacks it; what is done or under way stays as it is."""
    digest = request.event.digest()
    stored = known(turn, request.id, digest)
    if stored is not None and stored.digest != digest:
        turn.note("conflict", "publish", request.id)
        turn.emit(Reply("conflict", request.id))
        return
    kept = rows.Stored(list(request.event), digest) if stored is None else stored
    if kept != rows.get_event(turn.tx, request.id):
        rows.put_event(turn.tx, request.id, kept)
    lacking = [network for network in turn.rules.networks if not turn.tx.has(rows.published(network), request.id)]
    for network in lacking:
        jobs.unbury(turn, rows.on_network(network), request.id)
        jobs.enqueue(turn, rows.on_network(network), request.id, request.event.order)
    turn.emit(Reply(value=request.id, new=bool(lacking)))


def answered(turn: Turn, message: Answered) -> None:
    """Take an adapter's answer. A yes counts whoever asked; a no counts only for the owner of the claim."""
    target, published = rows.on_network(message.network), rows.published(message.network)
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
    """Keep the claim until its lease ends; some time later the id is probed."""
    job = rows.get_job(turn.tx, target, event_id)
    if job is None:
        return
    tries = job.tries + 1
    due = max(job.until, turn.now) + min(1000 << min(tries - 1, 20), turn.rules.most_retry)
    rows.put_job(turn.tx, target, event_id, job._replace(tries=tries, due=due, reason=reason))


def _committed(turn: Turn, network: str, event_id: str, time: int) -> None:
    """Claimed → published. An id that was seen stays seen."""
    stored = rows.get_event(turn.tx, event_id)
    if stored is None:  # kept no longer
        return
    target, published = rows.on_network(network), rows.published(network)
    if not turn.tx.has(published, event_id):
        commit(turn.tx, published, event_id)
        job = rows.get_job(turn.tx, target, event_id)
        since = turn.now - turn.rules.lease if job is None else job.since
        row = rows.unseen_text(turn.now, since)
        turn.tx.put(rows.UNSEEN, f"{network}|{event_id}", row, due=turn.now + turn.rules.check_after)
        jobs.unbury(turn, target, event_id)
    if not stored.time and time:
        rows.put_event(turn.tx, event_id, stored._replace(time=time))
    jobs.finish(turn, target, event_id)


def check_unseen(turn: Turn, key: str) -> None:
    """Probe an id that was published and has not been seen."""
    network, _, event_id = key.partition("|")
    text = turn.tx.get(rows.UNSEEN, key)
    if text is None:
        return
    if network not in turn.rules.networks:
        turn.tx.delete(rows.UNSEEN, key)
        return
    turn.tx.put(rows.UNSEEN, key, text, due=turn.now + turn.rules.check_after)
    stored = rows.get_event(turn.tx, event_id)
    entity = "" if stored is None else stored.fields().order
    _, since = rows.read_unseen(text)
    turn.emit(Probe(network, event_id, since // 1000, turn.now, entity))


def probed(turn: Turn, message: Probed) -> None:
    """Take the result of a probe: of a published id that was not seen, or of a job in doubt."""
    published = rows.published(message.network)
    if turn.tx.has(published, message.id):
        _checked(turn, message)
    elif message.there:
        _committed(turn, message.network, message.id, 0)
    elif message.there is None and jobs.owned(turn, published, message.id):
        _in_doubt(turn, rows.on_network(message.network), message.id, "probe failed")
    elif jobs.owned(turn, published, message.id) and _call_again(turn, message.network, message.id, message.asked_at):
        return
    jobs.end_call(turn, message.network, message.id)


def _call_again(turn: Turn, network: str, event_id: str, at: int) -> bool:
    """Claim again and repeat the call, unless this answers a probe of an earlier claim. Returns whether it did."""
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
    """Published → seen, or a yes without a deed: published → absent, and the outbox publishes again.

    A probe has no number, so it would not be known what to revoke if the log were taken back. So an id counts as seen
    only once the log shows it, and is asked for again until then; a legacy log is not compared and the probe is enough.
    A yes that a legacy adapter cannot show any more is believed: publishing again would double.
    """
    key = f"{message.network}|{message.id}"
    text = turn.tx.get(rows.UNSEEN, key)
    if message.there is None or text is None or message.asked_at <= rows.read_unseen(text)[0]:
        return
    if message.there and message.network not in turn.rules.legacy:
        return
    turn.tx.delete(rows.UNSEEN, key)
    if message.there or message.hidden:
        return
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
