"""The outbox: jobs in queues, which are started, finished and given up (ID-30, ID-37, ID-41).

A job publishes an event on a network or notifies a subscription of it. The jobs of one target and
one entity form a queue. Only the first job of a queue may run, so that an entity's events stay in
order.

A job starts only with a claim. The transaction of the claim also moves the job's due time to the
end of the lease, so that the job is due again if the process dies. The process that then takes the
job sees from `doubt` that a call may have been made, and probes the network first.
"""

import hashlib
import json
from typing import Final

from interchain_events.distributor.core import rows
from interchain_events.distributor.core.messages import CallNetwork, Post, ProbeNetwork, Turn
from interchain_events.distributor.once import Claim, claim
from interchain_events.distributor.once.claims import lease_end, owner_of

JITTER: Final = 10
"""The wait before a notification is repeated is prolonged by up to a `JITTER`-th, so that failed
notifications are not all repeated at the same moment."""


def enqueue(
    turn: Turn,
    target: str,
    event_id: str,
    entity: str,
    *,
    due: int = 0,
    lane: int = 0,
    doubt: int = 0,
) -> None:
    """Append a job to the queue of its target and entity, and start it if it is first and due.

    Does nothing if the target already has a job for the event. `due` is the earliest time in ms,
    `lane` and `doubt` are those of the `Job`.
    """
    if rows.get_job(turn.tx, target, event_id) is not None:
        return
    queue = f"{target}|{entity}"
    last = turn.tx.get(rows.QUEUES, queue) or ""
    job = rows.Job(
        entity, since=turn.now, due=max(due, turn.now), lane=lane, doubt=doubt, before=last
    )
    if last:
        neighbour = rows.get_job(turn.tx, target, last)
        if neighbour is not None:
            rows.put_job(turn.tx, target, last, neighbour._replace(after=event_id))
    turn.tx.put(rows.QUEUES, queue, event_id)
    rows.put_job(turn.tx, target, event_id, job)
    start(turn, target, event_id)


def finish(turn: Turn, target: str, event_id: str) -> None:
    """Remove a job, if there is one. If it was the first of its queue, start the next one."""
    tx = turn.tx
    job = rows.get_job(turn.tx, target, event_id)
    if job is None:
        return
    tx.delete(rows.JOBS, f"{target}|{event_id}")
    before = rows.get_job(tx, target, job.before) if job.before else None
    after = rows.get_job(tx, target, job.after) if job.after else None
    if before is not None:
        rows.put_job(tx, target, job.before, before._replace(after=job.after))
    if after is not None:
        rows.put_job(
            tx, target, job.after, after._replace(before=job.before, due=max(after.due, turn.now))
        )
        if not job.before:
            start(turn, target, job.after)
    elif job.before:
        tx.put(rows.QUEUES, f"{target}|{job.entity}", job.before)
    else:
        tx.delete(rows.QUEUES, f"{target}|{job.entity}")


def bury(turn: Turn, target: str, event_id: str, reason: str) -> None:
    """Give a job up and store a dead letter for it.

    The next job of the queue starts, so an entity's later events do not wait for a refused one.
    """
    job = rows.get_job(turn.tx, target, event_id)
    tries = 0 if job is None else job.tries
    letter = rows.DeadLetter(target, event_id, reason, time=turn.now, tries=tries)
    rows.put_dead(turn.tx, rows.letter_of(target, event_id), letter)
    turn.note("dead-letter", target, event_id, reason)
    finish(turn, target, event_id)


def unbury(turn: Turn, target: str, event_id: str) -> None:
    """Remove the dead letter of a job, if there is one."""
    letter = rows.letter_of(target, event_id)
    if turn.tx.get(rows.DEAD, letter) is not None:
        turn.tx.delete(rows.DEAD, letter)


def start(turn: Turn, target: str, event_id: str) -> None:
    """Start a job if it is the first of its queue and due, otherwise change nothing."""
    job = rows.get_job(turn.tx, target, event_id)
    if job is None or job.before or job.due > turn.now:
        return
    kind, _, name = target.partition(":")
    if kind == "n":
        _start_call(turn, name, event_id, job)
    else:
        _start_post(turn, name, event_id, job)


def _claimed(turn: Turn, target: str, event_id: str, job: rows.Job) -> rows.Job | None:
    """Claim a job's event, and return the job with its new lease or `None`.

    The result is `None` if the work for the event is done already, and the job is then finished. It
    is also `None` if another process has the claim. The job is then due when that lease ends.
    """
    kind, _, name = target.partition(":")
    set_name = rows.published(name) if kind == "n" else rows.notified(name)
    lease = turn.rules.lease if kind == "n" else 2 * turn.rules.post_timeout
    outcome = claim(turn.tx, set_name, event_id, owner=turn.rules.owner, lease=lease)
    if outcome is Claim.DONE:
        finish(turn, target, event_id)
        return None
    if outcome is Claim.IN_FLIGHT:
        due = lease_end(turn.tx, set_name, event_id)
        rows.put_job(turn.tx, target, event_id, job._replace(due=due))
        return None
    until = turn.now + lease
    # The next process that starts this job must ask first, because this one may call.
    claimed = job._replace(until=until, due=until, doubt=1)
    rows.put_job(turn.tx, target, event_id, claimed)
    return claimed


def _start_call(turn: Turn, network: str, event_id: str, job: rows.Job) -> None:
    """Claim a job that publishes on a network, and emit its call, or a probe if it is in doubt.

    The job is held instead if the network must not be called now. It is buried if the network is no
    longer in the settings.
    """
    target = rows.on_network(network)
    if network not in turn.rules.networks:
        bury(turn, target, event_id, "network-removed")
        return
    if rows.get_state(turn.tx, network) is not rows.LogState.READY or is_called(turn, network):
        _hold(turn, network, event_id, job)
        return
    loss = rows.get_loss(turn.tx, network)
    claimed = _claimed(turn, target, event_id, job)
    if claimed is None:
        return
    note_call(turn, network, event_id, claimed.until)
    is_lost = loss is not None and job.since <= loss.doubted
    if not is_lost and not job.doubt:
        call(turn, network, event_id)
        return
    # The store may have lost an earlier job of this event, whose call began up to one lease before.
    since = job.since - turn.rules.lease if is_lost else job.since
    turn.emit(
        ProbeNetwork(network, event_id, since=since // 1000, asked_at=turn.now, entity=job.entity)
    )


def call(turn: Turn, network: str, event_id: str) -> None:
    """Emit the call of a job that was claimed in this step.

    The job is buried if its event has been forgotten meanwhile.
    """
    stored = rows.get_event(turn.tx, event_id)
    if stored is None:
        bury(turn, rows.on_network(network), event_id, "event-expired")
        return
    before = turn.now + turn.rules.lease - turn.rules.call_timeout
    turn.emit(CallNetwork(network, event_id, stored.fields(), before=before))


def is_called(turn: Turn, network: str) -> bool:
    """Return whether a call or probe of a legacy network is under way.

    A legacy adapter refuses a second call while it works on one. Other networks are called
    concurrently, so for them this is always false.
    """
    return network in turn.rules.legacy and turn.tx.get(rows.CALLING, network) is not None


def note_call(turn: Turn, network: str, event_id: str, until: int) -> None:
    """Note that a legacy network is being called, until `end_call` or until the lease ends."""
    if network in turn.rules.legacy:
        turn.tx.put(rows.CALLING, network, event_id, due=until)


def end_call(turn: Turn, network: str, event_id: str) -> None:
    """Note that the call of a legacy network for an id has ended, and start the next held job."""
    if network in turn.rules.legacy and turn.tx.get(rows.CALLING, network) == event_id:
        turn.tx.delete(rows.CALLING, network)
        release_held(turn, network)


def _hold(turn: Turn, network: str, event_id: str, job: rows.Job) -> None:
    """Append a job to the network's held jobs. It has no due time: `release_held` will start it."""
    first, following = held_range(turn, network)
    turn.tx.put(rows.held(network), str(following), event_id)
    turn.tx.put(rows.HELD, network, rows.encode((first, following + 1)))
    rows.put_job(turn.tx, rows.on_network(network), event_id, job, due=False)


def held_range(turn: Turn, network: str) -> tuple[int, int]:
    """Return the numbers of a network's held jobs: the first one, and the one after the last."""
    first, following = json.loads(turn.tx.get(rows.HELD, network) or "[0,0]")
    return first, following


def release_held(turn: Turn, network: str) -> None:
    """Start one page of the held jobs of a network, or one job if the network is legacy.

    Does nothing before the network's log has been read. If jobs remain that may start, the row in
    `rows.HELD` is due at once, so that they start in the next transaction.
    """
    if rows.get_state(turn.tx, network) is not rows.LogState.READY:
        return
    first, following = held_range(turn, network)
    end = min(following, first + turn.rules.page)
    while first < end and not is_called(turn, network):
        event_id = turn.tx.get(rows.held(network), str(first))
        turn.tx.delete(rows.held(network), str(first))
        first += 1
        # `start` may hold the job again and then extends the stored range.
        turn.tx.put(rows.HELD, network, rows.encode((first, following)))
        if event_id is not None:
            start(turn, rows.on_network(network), event_id)
        _, following = held_range(turn, network)
    may_continue = first < following and not is_called(turn, network)
    due = turn.now if may_continue else None
    turn.tx.put(rows.HELD, network, rows.encode((first, following)), due=due)


def _start_post(turn: Turn, subscription: str, event_id: str, job: rows.Job) -> None:
    """Claim a job that notifies a subscription, and emit the notification.

    If the client has removed the subscription, the job is only finished. If the subscriber has
    ended it, or if the event has been forgotten, the job becomes a dead letter.
    """
    target = rows.to_subscription(subscription)
    interest = rows.get_interest(turn.tx, subscription)
    if interest is None:
        finish(turn, target, event_id)
        return
    if not interest.active:
        bury(turn, target, event_id, "subscription-ended")
        return
    if _claimed(turn, target, event_id, job) is None:
        return
    stored = rows.get_event(turn.tx, event_id)
    if stored is None:
        bury(turn, target, event_id, "event-expired")
        return
    # Derived from the names, so that repetitions have the same `webhook-id`.
    digest = hashlib.blake2b(f"{subscription}|{event_id}".encode(), digest_size=16).hexdigest()
    turn.emit(
        Post(
            subscription,
            event_id,
            interest.endpoint,
            secret=interest.secret,
            webhook=f"msg_{digest}",
            notice=stored.notice(event_id),
            before=turn.now + turn.rules.post_timeout,
        )
    )


def post_backoff(turn: Turn, subscription: str, event_id: str, failures: int) -> int:
    """Return how long to wait after `failures` failed notifications, in ms.

    The wait is 2^failures seconds, at most `Rules.most_backoff`, prolonged by up to a tenth. The
    prolongation is derived from the names, because the state machine has no random numbers.
    """
    # The shift is limited because `failures` may be large.
    wait = min(1000 << min(failures, 20), turn.rules.most_backoff)
    draw = hashlib.blake2b(f"{subscription}|{event_id}|{failures}".encode(), digest_size=4).digest()
    return wait + wait * int.from_bytes(draw) // (JITTER << 32)


def owned(turn: Turn, set_name: str, event_id: str) -> bool:
    """Return whether this process has the current claim of an event."""
    return owner_of(turn.tx, set_name, event_id) == turn.rules.owner
