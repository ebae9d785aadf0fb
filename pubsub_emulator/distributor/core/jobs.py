"""The outbox: jobs in queues by target and entity, started, finished, given up (ID-30, ID-37, ID-41).

A job is begun only by a claim, in the same transaction that writes its new time. So whatever dies, the row comes due
when the lease has lapsed, and who takes it then knows by `doubt` that it must ask before it calls.
"""

import hashlib
import json
from typing import Final

from pubsub_emulator.distributor.core import rows
from pubsub_emulator.distributor.core.messages import Call, Post, Probe, Turn
from pubsub_emulator.distributor.once import Claim, claim
from pubsub_emulator.distributor.once.claims import lease_end, owner_of

JITTER: Final = 10
"""A notification's wait is longer by up to one part in so many."""


def enqueue(
    turn: Turn, target: str, event_id: str, entity: str, *, due: int = 0, lane: int = 0, doubt: int = 0
) -> None:
    """Store a job behind the others of its target and entity, unless it is there; start it if it is first and due."""
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
    """Remove a job from its queue, if there is one, and start the next where it was the first."""
    tx, job = turn.tx, rows.get_job(turn.tx, target, event_id)
    if job is None:
        return
    tx.delete(rows.JOBS, f"{target}|{event_id}")
    before = rows.get_job(tx, target, job.before) if job.before else None
    after = rows.get_job(tx, target, job.after) if job.after else None
    if before is not None:
        rows.put_job(tx, target, job.before, before._replace(after=job.after))
    if after is not None:
        rows.put_job(tx, target, job.after, after._replace(before=job.before, due=max(after.due, turn.now)))
        if not job.before:
            start(turn, target, job.after)
    elif job.before:
        tx.put(rows.QUEUES, f"{target}|{job.entity}", job.before)
    else:
        tx.delete(rows.QUEUES, f"{target}|{job.entity}")


def bury(turn: Turn, target: str, event_id: str, reason: str) -> None:
    """Give a job up: it becomes a dead letter."""
    job = rows.get_job(turn.tx, target, event_id)
    letter = rows.Dead(target, event_id, reason, turn.now, 0 if job is None else job.tries)
    rows.put_dead(turn.tx, rows.letter_of(target, event_id), letter)
    turn.note("dead-letter", target, event_id, reason)
    finish(turn, target, event_id)


def unbury(turn: Turn, target: str, event_id: str) -> None:
    """Remove a dead letter, if there is one."""
    letter = rows.letter_of(target, event_id)
    if turn.tx.get(rows.DEAD, letter) is not None:
        turn.tx.delete(rows.DEAD, letter)


def start(turn: Turn, target: str, event_id: str) -> None:
    """Claim and begin a job that is the first of its queue and due; otherwise change nothing."""
    job = rows.get_job(turn.tx, target, event_id)
    if job is None or job.before or job.due > turn.now:
        return
    kind, _, name = target.partition(":")
    if kind == "n":
        _start_call(turn, name, event_id, job)
    else:
        _start_post(turn, name, event_id, job)


def _claimed(turn: Turn, target: str, event_id: str, job: rows.Job) -> rows.Job | None:
    """Store the job with a lease, and return it; `None` if it is done or leased by another process."""
    kind, _, name = target.partition(":")
    set_name = rows.published(name) if kind == "n" else rows.notified(name)
    lease = turn.rules.lease if kind == "n" else 2 * turn.rules.post_timeout
    outcome = claim(turn.tx, set_name, event_id, turn.rules.owner, lease)
    if outcome is Claim.DONE:
        finish(turn, target, event_id)
        return None
    if outcome is Claim.IN_FLIGHT:
        rows.put_job(turn.tx, target, event_id, job._replace(due=lease_end(turn.tx, set_name, event_id)))
        return None
    until = turn.now + lease
    begun = job._replace(until=until, due=until, doubt=1)
    rows.put_job(turn.tx, target, event_id, begun)
    return begun


def _start_call(turn: Turn, network: str, event_id: str, job: rows.Job) -> None:
    target = rows.on_network(network)
    if network not in turn.rules.networks:
        bury(turn, target, event_id, "network-removed")
        return
    if rows.get_state(turn.tx, network) is not rows.State.READY or is_called(turn, network):
        _hold(turn, network, event_id, job)
        return
    begun = _claimed(turn, target, event_id, job)
    if begun is None:
        return
    note_call(turn, network, event_id, begun.until)
    if job.doubt:
        turn.emit(Probe(network, event_id, job.since // 1000, turn.now, job.entity))
    else:
        call(turn, network, event_id)


def call(turn: Turn, network: str, event_id: str) -> None:
    """Emit the call of a job that was claimed in this step."""
    stored = rows.get_event(turn.tx, event_id)
    if stored is None:  # nothing to publish: it was kept no longer
        bury(turn, rows.on_network(network), event_id, "event-expired")
        return
    turn.emit(Call(network, event_id, stored.fields(), turn.now + turn.rules.lease - turn.rules.call_timeout))


def is_called(turn: Turn, network: str) -> bool:
    """Whether a call or probe of a legacy network is under way: its adapter refuses what comes at once with it."""
    return network in turn.rules.legacy and turn.tx.get(rows.CALLING, network) is not None


def note_call(turn: Turn, network: str, event_id: str, until: int) -> None:
    """Note that a legacy network is called, at most until a lease ends."""
    if network in turn.rules.legacy:
        turn.tx.put(rows.CALLING, network, event_id, due=until)


def end_call(turn: Turn, network: str, event_id: str) -> None:
    """Begin the next call of a legacy network after that of an id has ended."""
    if network in turn.rules.legacy and turn.tx.get(rows.CALLING, network) == event_id:
        turn.tx.delete(rows.CALLING, network)
        release_held(turn, network)


def _hold(turn: Turn, network: str, event_id: str, job: rows.Job) -> None:
    """Keep a job without a due time until publishing on the network is allowed, or no other call is under way."""
    first, following = held_range(turn, network)
    turn.tx.put(rows.held(network), str(following), event_id)
    turn.tx.put(rows.HELD, network, rows.encode((first, following + 1)))
    rows.put_job(turn.tx, rows.on_network(network), event_id, job, due=False)


def held_range(turn: Turn, network: str) -> tuple[int, int]:
    """The numbers of held jobs: the first, and the one after the last."""
    first, following = json.loads(turn.tx.get(rows.HELD, network) or "[0,0]")
    return first, following


def release_held(turn: Turn, network: str) -> None:
    """Start held jobs: one page, of a legacy network one. The row comes due again until no job is held."""
    if rows.get_state(turn.tx, network) is not rows.State.READY:
        return
    first, following = held_range(turn, network)
    end = min(following, first + turn.rules.page)
    while first < end and not is_called(turn, network):
        event_id = turn.tx.get(rows.held(network), str(first))
        turn.tx.delete(rows.held(network), str(first))
        first += 1
        turn.tx.put(rows.HELD, network, rows.encode((first, following)))
        if event_id is not None:
            start(turn, rows.on_network(network), event_id)
        following = held_range(turn, network)[1]
    more = first < following and not is_called(turn, network)
    turn.tx.put(rows.HELD, network, rows.encode((first, following)), due=turn.now if more else None)


def _start_post(turn: Turn, subscription: str, event_id: str, job: rows.Job) -> None:
    target = rows.to_subscription(subscription)
    interest = rows.get_interest(turn.tx, subscription)
    if interest is None:  # the client ended it
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
    webhook = "msg_" + hashlib.blake2b(f"{subscription}|{event_id}".encode(), digest_size=16).hexdigest()
    before = turn.now + turn.rules.post_timeout
    notice = stored.notice(event_id)
    turn.emit(Post(subscription, event_id, interest.endpoint, interest.secret, webhook, notice, before))


def post_backoff(turn: Turn, subscription: str, event_id: str, failures: int) -> int:
    """Milliseconds to wait after failure k: 2^k s, at most an hour, plus up to a tenth derived from the names."""
    wait = min(1000 << min(failures, 20), turn.rules.most_backoff)
    draw = hashlib.blake2b(f"{subscription}|{event_id}|{failures}".encode(), digest_size=4).digest()
    return wait + wait * int.from_bytes(draw) // (JITTER << 32)


def owned(turn: Turn, set_name: str, event_id: str) -> bool:
    """Whether this process holds the current claim."""
    return owner_of(turn.tx, set_name, event_id) == turn.rules.owner
