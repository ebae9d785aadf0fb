"""The outbox: jobs in queues, which are started, finished and given up (ID-30, ID-37, ID-41).

A job publishes an event on a network or notifies a subscription of it. The jobs of one target and
one entity form a queue. Only the first job of a queue may run, so that an entity's events stay in
order.

A job starts only with a claim, and the transaction of the claim also moves the job's due time to
the end of the lease. So if a process dies, the job is due again when its lease has lapsed. The
process that then takes it sees from `doubt` that a call may have been made, and asks the network
first.
"""

import hashlib
import json
from typing import Final

from interchain_events.distributor.core import rows
from interchain_events.distributor.core.messages import Call, Post, Probe, Turn
from interchain_events.distributor.once import Claim, claim
from interchain_events.distributor.once.claims import lease_end, owner_of

JITTER: Final = 10
"""A notification's wait is prolonged by up to one part in this many, so that failed notifications
are not all repeated at the same moment."""


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

    Does nothing if the target already has a job for the event. `due` is the earliest time in ms.
    `doubt` is 1 if the network must be asked before the call.
    """
    if rows.get_job(turn.tx, target, event_id) is not None:
        return
    queue = f"{target}|{entity}"
    last = turn.tx.get(rows.QUEUES, queue) or ""
    job = rows.Job(entity, turn.now, max(due, turn.now), lane, doubt, before=last)
    if last:
        neighbour = rows.get_job(turn.tx, target, last)
        if neighbour is not None:
            rows.put_job(turn.tx, target, last, neighbour._replace(after=event_id))
    turn.tx.put(rows.QUEUES, queue, event_id)
    rows.put_job(turn.tx, target, event_id, job)
    start(turn, target, event_id)


def finish(turn: Turn, target: str, event_id: str) -> None:
    """Remove a job from its queue and start the next one if the job was the first.

    Does nothing if there is no such job.
    """
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
    letter = rows.Dead(target, event_id, reason, turn.now, 0 if job is None else job.tries)
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
    """Claim a job's event and return the job with its lease.

    Returns `None` if the event is done, and then finishes the job, or if another process has the
    claim, and then lets the job come due at the end of that lease.
    """
    kind, _, name = target.partition(":")
    set_name = rows.published(name) if kind == "n" else rows.notified(name)
    lease = turn.rules.lease if kind == "n" else 2 * turn.rules.post_timeout
    outcome = claim(turn.tx, set_name, event_id, turn.rules.owner, lease)
    if outcome is Claim.DONE:
        finish(turn, target, event_id)
        return None
    if outcome is Claim.IN_FLIGHT:
        rows.put_job(
            turn.tx, target, event_id, job._replace(due=lease_end(turn.tx, set_name, event_id))
        )
        return None
    until = turn.now + lease
    begun = job._replace(until=until, due=until, doubt=1)
    rows.put_job(turn.tx, target, event_id, begun)
    return begun


def _start_call(turn: Turn, network: str, event_id: str, job: rows.Job) -> None:
    """Claim a job that publishes on a network, and emit the call, or a probe if in doubt.

    The job is held instead if the network must not be called now. It is buried if the network was
    removed from the settings.
    """
    target = rows.on_network(network)
    if network not in turn.rules.networks:
        bury(turn, target, event_id, "network-removed")
        return
    if rows.get_state(turn.tx, network) is not rows.State.READY or is_called(turn, network):
        _hold(turn, network, event_id, job)
        return
    loss = rows.get_loss(turn.tx, network)
    begun = _claimed(turn, target, event_id, job)
    if begun is None:
        return
    note_call(turn, network, event_id, begun.until)
    if loss is not None and job.since <= loss.doubted:
        # The store has lost rows, maybe those of an earlier job of this event.
        since = job.since - turn.rules.lease
        turn.emit(Probe(network, event_id, since // 1000, turn.now, job.entity))
    elif job.doubt:
        turn.emit(Probe(network, event_id, job.since // 1000, turn.now, job.entity))
    else:
        call(turn, network, event_id)


def call(turn: Turn, network: str, event_id: str) -> None:
    """Emit the call of a job that was claimed in this step.

    The job is buried if its event was forgotten in the meantime.
    """
    stored = rows.get_event(turn.tx, event_id)
    if stored is None:
        bury(turn, rows.on_network(network), event_id, "event-expired")
        return
    turn.emit(
        Call(
            network,
            event_id,
            stored.fields(),
            turn.now + turn.rules.lease - turn.rules.call_timeout,
        )
    )


def is_called(turn: Turn, network: str) -> bool:
    """Return whether a call or probe of a legacy network is under way.

    A legacy adapter refuses a second call while it works on one. Other networks are called
    concurrently.
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
    """Put a job aside, without a due time, until `release_held` starts it."""
    first, following = held_range(turn, network)
    turn.tx.put(rows.held(network), str(following), event_id)
    turn.tx.put(rows.HELD, network, rows.encode((first, following + 1)))
    rows.put_job(turn.tx, rows.on_network(network), event_id, job, due=False)


def held_range(turn: Turn, network: str) -> tuple[int, int]:
    """Return the numbers of a network's held jobs: the first one, and the one after the last."""
    first, following = json.loads(turn.tx.get(rows.HELD, network) or "[0,0]")
    return first, following


def release_held(turn: Turn, network: str) -> None:
    """Start the held jobs of a network: one page of them, or one job of a legacy network.

    Does nothing while the network's log is being read. If jobs are left that may start, the row in
    `rows.HELD` is due at once, so that the next page follows in a transaction of its own.
    """
    if rows.get_state(turn.tx, network) is not rows.State.READY:
        return
    first, following = held_range(turn, network)
    end = min(following, first + turn.rules.page)
    while first < end and not is_called(turn, network):
        event_id = turn.tx.get(rows.held(network), str(first))
        turn.tx.delete(rows.held(network), str(first))
        first += 1
        # Stored before `start`, which reads the range again if it holds the job.
        turn.tx.put(rows.HELD, network, rows.encode((first, following)))
        if event_id is not None:
            start(turn, rows.on_network(network), event_id)
        following = held_range(turn, network)[1]
    more = first < following and not is_called(turn, network)
    turn.tx.put(rows.HELD, network, rows.encode((first, following)), due=turn.now if more else None)


def _start_post(turn: Turn, subscription: str, event_id: str, job: rows.Job) -> None:
    """Claim a job that notifies a subscription, and emit the notification.

    The job ends without one if the subscription was removed, and becomes a dead letter if the
    subscription ended or the event was forgotten.
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
    # The same for each repetition: the subscriber recognizes duplicates by it.
    webhook = (
        "msg_" + hashlib.blake2b(f"{subscription}|{event_id}".encode(), digest_size=16).hexdigest()
    )
    before = turn.now + turn.rules.post_timeout
    notice = stored.notice(event_id)
    turn.emit(
        Post(subscription, event_id, interest.endpoint, interest.secret, webhook, notice, before)
    )


def post_backoff(turn: Turn, subscription: str, event_id: str, failures: int) -> int:
    """Return the milliseconds to wait after a number of failed notifications.

    2^k seconds after failure k, at most `Rules.most_backoff`, prolonged by up to a tenth. The
    prolongation is derived from the names, as the state machine has no random numbers.
    """
    wait = min(1000 << min(failures, 20), turn.rules.most_backoff)
    draw = hashlib.blake2b(f"{subscription}|{event_id}|{failures}".encode(), digest_size=4).digest()
    return wait + wait * int.from_bytes(draw) // (JITTER << 32)


def owned(turn: Turn, set_name: str, event_id: str) -> bool:
    """Return whether this process has the current claim of an event."""
    return owner_of(turn.tx, set_name, event_id) == turn.rules.owner
