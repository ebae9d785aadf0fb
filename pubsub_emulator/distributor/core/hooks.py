"""Subscriptions: ours on adapters (ID-32), and those of clients (ID-40)."""

import json

from pubsub_emulator.distributor.core import jobs, messages, rows
from pubsub_emulator.distributor.core.rows import Dead, Hooks, Interest, get_job, put_job
from pubsub_emulator.distributor.core.rules import FORMS
from pubsub_emulator.distributor.core.turn import Turn
from pubsub_emulator.distributor.once.claims import commit, release
from pubsub_emulator.primitives.hashing import blake2_256

ACCEPTED = 1
LISTED = 2
INTEREST = "interest:"
GONE = 410


def started(turn: Turn, told: messages.Start) -> None:
    """A process starts: compare every adapter and read every log now."""
    for network in turn.rules.networks:
        known = rows.get_hooks(turn.tx, network) or Hooks(told.keys[network])
        turn.tx.put(rows.HOOKS, network, rows.encode(known), due=turn.now)
        rows.put_cursor(turn.tx, network, rows.get_cursor(turn.tx, network)._replace(reading=0), turn.now)


def hooks_due(turn: Turn, network: str) -> None:
    """Ask an adapter for its subscriptions, to compare them."""
    hooks = rows.get_hooks(turn.tx, network)
    if hooks is None or network not in turn.rules.networks:
        turn.tx.delete(rows.HOOKS, network)
        return
    turn.tx.put(rows.HOOKS, network, rows.encode(hooks), due=turn.now + turn.rules.silence)
    turn.emit(messages.List(network))


def _put(turn: Turn, network: str, hooks: Hooks) -> None:
    turn.tx.put(rows.HOOKS, network, rows.encode(hooks), due=turn.now + turn.rules.silence)


def listed(turn: Turn, told: messages.Listed) -> None:
    """Compare an adapter's subscriptions with those it should have: ask for the missing ones and remove the others."""
    hooks = rows.get_hooks(turn.tx, told.network)
    if told.hooks is None or hooks is None:
        return
    endpoint = turn.rules.hook_url(told.network, hooks.key)
    wanted = {endpoint, *_compare_interests(turn, told)}
    found: set[str] = set()
    for hook in told.hooks:
        ours = turn.rules.ours(told.network, hook.endpoint)
        if ours and hook.subscription and (hook.endpoint not in wanted or hook.endpoint in found):
            turn.emit(messages.DropHook(told.network, hook.subscription))
        found.add(hook.endpoint)
    if endpoint in found:
        if hooks.asked != LISTED:
            _put(turn, told.network, hooks._replace(asked=LISTED))
    elif hooks.asked == ACCEPTED:  # accepted and not listed: that form is not offered
        _try_form(turn, told.network, hooks._replace(form=hooks.form + 1, asked=0))
    else:
        _try_form(turn, told.network, hooks._replace(asked=0))


def _try_form(turn: Turn, network: str, hooks: Hooks) -> None:
    _put(turn, network, hooks)
    if hooks.form < len(FORMS):
        turn.emit(messages.MakeHook(network, FORMS[hooks.form], hooks.key))
    else:
        turn.note("no-hook", network)


def _compare_interests(turn: Turn, told: messages.Listed) -> set[str]:
    """Ask for the interests that an adapter lacks; returns the endpoints of all."""
    there = {hook.endpoint for hook in told.hooks or ()}
    wanted: set[str] = set()
    for subscription, *_ in rows.get_index(turn.tx):
        interest = rows.get_interest(turn.tx, subscription)
        if interest is None:
            continue
        endpoint = turn.rules.interest_url(told.network, subscription, interest.key)
        wanted.add(endpoint)
        asked = turn.tx.get(rows.HOOKS, f"{told.network}|{subscription}")
        if endpoint not in there and asked is None:
            turn.emit(_make_interest(told.network, subscription, interest))
    return wanted


def _make_interest(network: str, subscription: str, interest: Interest) -> messages.MakeInterest:
    return messages.MakeInterest(network, subscription, interest.key, tuple(interest.types), tuple(interest.metadata))


def hooked(turn: Turn, told: messages.Hooked) -> None:
    """Note how an adapter answered a subscription: accepted, form not offered, or no answer."""
    hooks = rows.get_hooks(turn.tx, told.network)
    if told.form.startswith(INTEREST):
        if told.accepted:  # asked once: an adapter that does not list it would otherwise get one more each time
            turn.tx.put(rows.HOOKS, f"{told.network}|{told.form.removeprefix(INTEREST)}", "1")
        return
    if hooks is None or told.accepted is None or hooks.form >= len(FORMS) or FORMS[hooks.form] != told.form:
        return
    if told.accepted:
        _put(turn, told.network, hooks._replace(asked=ACCEPTED))
        turn.emit(messages.List(told.network))
    else:
        _try_form(turn, told.network, hooks._replace(form=hooks.form + 1, asked=0))


def subscribe(turn: Turn, asked: messages.Subscribe) -> None:
    """Store a client's subscription, unless an equal one exists, and ask every adapter for it."""
    key = "equal|" + _equality(asked)
    known = turn.tx.get(rows.INTERESTS, key)
    if known is not None:
        turn.emit(messages.Reply(value=known, new=False))
        return
    name = asked.fresh
    interest = Interest(list(asked.types), list(asked.metadata), asked.endpoint, asked.secret, asked.key, turn.now)
    turn.tx.put(rows.INTERESTS, key, name)
    turn.tx.put(rows.SUBSCRIPTIONS, name, rows.encode(interest))
    rows.put_index(turn.tx, [*rows.get_index(turn.tx), (name, interest.types, interest.metadata, interest.created)])
    for network in turn.rules.networks:
        turn.emit(_make_interest(network, name, interest))
    turn.emit(messages.Reply(value=name))


def _equality(asked: messages.Subscribe | Interest) -> str:
    """The key under which equal subscriptions are found."""
    fields = (sorted(set(asked.types)), sorted(set(asked.metadata)), asked.endpoint, asked.secret)
    return blake2_256(json.dumps(fields).encode()).hex()


def unsubscribe(turn: Turn, asked: messages.Unsubscribe) -> None:
    """End a client's subscription; the adapters' part of it is removed by the next comparison."""
    interest = rows.get_interest(turn.tx, asked.subscription)
    if interest is None:
        turn.emit(messages.Reply("not-found"))
        return
    _leave_index(turn, asked.subscription, interest)
    turn.tx.delete(rows.SUBSCRIPTIONS, asked.subscription)
    turn.emit(messages.Reply())


def _leave_index(turn: Turn, subscription: str, interest: Interest) -> None:
    turn.tx.delete(rows.INTERESTS, "equal|" + _equality(interest))
    rows.put_index(turn.tx, [entry for entry in rows.get_index(turn.tx) if entry[0] != subscription])
    for network in turn.rules.networks:
        turn.tx.delete(rows.HOOKS, f"{network}|{subscription}")
        hooks = rows.get_hooks(turn.tx, network)
        if hooks is not None:
            turn.tx.put(rows.HOOKS, network, rows.encode(hooks), due=turn.now)


def posted(turn: Turn, told: messages.Posted) -> None:
    """A notification ended. Only 2xx marks it as delivered; 410 ends the subscription (ID-41)."""
    target, done = rows.to_subscription(told.subscription), rows.notified(told.subscription)
    if turn.tx.has(done, told.id):
        return
    if told.status is not None and 200 <= told.status < 300:
        commit(turn.tx, done, told.id)
        jobs.unbury(turn, target, told.id)
        jobs.finish(turn, target, told.id)
        return
    job = get_job(turn.tx, target, told.id)
    if job is None or not release(turn.tx, done, told.id, turn.rules.owner):
        return
    reason = "no answer" if told.status is None else f"status {told.status}"
    job = job._replace(tries=job.tries + 1, until=0, reason=reason)
    job = job._replace(due=turn.now + jobs.post_backoff(turn, told.subscription, told.id, job.tries))
    put_job(turn.tx, target, told.id, job)
    if told.status == GONE:
        _end(turn, told.subscription)
        jobs.bury(turn, target, told.id, reason)
    elif job.tries >= turn.rules.most_failures:
        jobs.bury(turn, target, told.id, reason)


def _end(turn: Turn, subscription: str) -> None:
    interest = rows.get_interest(turn.tx, subscription)
    if interest is not None and interest.active:
        _leave_index(turn, subscription, interest)
        turn.tx.put(rows.SUBSCRIPTIONS, subscription, rows.encode(interest._replace(active=0)))
        turn.note("subscription-ended", subscription)


def redrive(turn: Turn, asked: messages.Redrive) -> None:
    """Try a dead letter again, as if it had never been tried."""
    text = turn.tx.get(rows.DEAD, asked.letter)
    if text is None:
        turn.emit(messages.Reply("not-found"))
        return
    dead = Dead(*json.loads(text))
    kind, _, name = dead.target.partition(":")
    stored = rows.get_event(turn.tx, dead.id)
    interest = rows.get_interest(turn.tx, name) if kind == "s" else None
    if stored is None or (kind == "n" and name not in turn.rules.networks):
        turn.emit(messages.Reply("gone", "the event or the network is not there any more"))
    elif kind == "s" and (interest is None or not interest.active):
        turn.emit(messages.Reply("gone", "the subscription has ended"))
    else:
        turn.tx.delete(rows.DEAD, asked.letter)
        jobs.enqueue(turn, dead.target, dead.id, stored.fields().order)
        turn.emit(messages.Reply(value=dead.id))
