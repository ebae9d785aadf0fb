"""Subscriptions: ours on adapters (ID-32), and those of clients (ID-40)."""

import json

from pubsub_emulator.distributor.core import jobs, messages, rows
from pubsub_emulator.distributor.core.rules import FORMS, Rules
from pubsub_emulator.distributor.once.claims import commit, release
from pubsub_emulator.primitives.hashing import blake2_256

ACCEPTED = 1
LISTED = 2
INTEREST = "interest:"
GONE = 410


def started(turn: messages.Turn, message: messages.Start) -> None:
    """A process starts: compare every adapter and read every log now."""
    for network in turn.rules.networks:
        known = rows.get_hooks(turn.tx, network) or rows.Hooks(message.keys[network])
        rows.put_hooks(turn.tx, network, known, turn.now)
        rows.put_cursor(turn.tx, network, rows.get_cursor(turn.tx, network)._replace(reading=0), turn.now)


def hooks_due(turn: messages.Turn, network: str) -> None:
    """Ask an adapter for its subscriptions, to compare them."""
    hooks = rows.get_hooks(turn.tx, network)
    if hooks is None or network not in turn.rules.networks:
        turn.tx.delete(rows.HOOKS, network)
        return
    _put(turn, network, hooks)
    turn.emit(messages.List(network))


def _put(turn: messages.Turn, network: str, hooks: rows.Hooks) -> None:
    rows.put_hooks(turn.tx, network, hooks, turn.now + turn.rules.silence)


def listed(turn: messages.Turn, message: messages.Listed) -> None:
    """Compare an adapter's subscriptions with those it should have: ask for the missing ones and remove the others."""
    hooks = rows.get_hooks(turn.tx, message.network)
    if message.hooks is None or hooks is None:
        return
    endpoint = turn.rules.hook_url(message.network, hooks.key)
    wanted = {endpoint, *_compare_interests(turn, message)}
    found: set[str] = set()
    for hook in message.hooks:
        ours = turn.rules.ours(message.network, hook.endpoint)
        if ours and hook.subscription and (hook.endpoint not in wanted or hook.endpoint in found):
            turn.emit(messages.DropHook(message.network, hook.subscription))
        found.add(hook.endpoint)
    if endpoint in found:
        if hooks.answer != LISTED:
            _put(turn, message.network, hooks._replace(answer=LISTED))
    else:  # accepted and not listed: that form is not offered
        form = hooks.form + int(hooks.answer == ACCEPTED)
        _try_form(turn, message.network, hooks._replace(form=form, answer=0))


def _try_form(turn: messages.Turn, network: str, hooks: rows.Hooks) -> None:
    _put(turn, network, hooks)
    if hooks.form < len(FORMS):
        endpoint = turn.rules.hook_url(network, hooks.key)
        turn.emit(messages.MakeHook(network, FORMS[hooks.form], endpoint))
    else:
        turn.note("no-hook", network)


def _compare_interests(turn: messages.Turn, message: messages.Listed) -> set[str]:
    """Ask for the interests that an adapter lacks; returns the endpoints of all."""
    there = {hook.endpoint for hook in message.hooks or ()}
    wanted: set[str] = set()
    for subscription, *_ in rows.get_index(turn.tx):
        interest = rows.get_interest(turn.tx, subscription)
        if interest is None:
            continue
        endpoint = turn.rules.interest_url(message.network, subscription, interest.key)
        wanted.add(endpoint)
        request = turn.tx.get(rows.HOOKS, f"{message.network}|{subscription}")
        if endpoint not in there and request is None:
            turn.emit(for_interest(turn.rules, message.network, subscription, interest))
    return wanted


def for_interest(rules: Rules, network: str, name: str, wish: rows.Interest | messages.Subscribe) -> messages.MakeHook:
    """The subscription on an adapter for one interest."""
    endpoint = rules.interest_url(network, name, wish.key)
    return messages.MakeHook(network, INTEREST + name, endpoint, tuple(wish.types), tuple(wish.metadata))


def hooked(turn: messages.Turn, message: messages.Hooked) -> None:
    """Note how an adapter answered a subscription: accepted, form not offered, or no answer."""
    if message.form.startswith(INTEREST):
        if message.accepted:  # asked once: an adapter that does not list it would otherwise get one more each time
            turn.tx.put(rows.HOOKS, f"{message.network}|{message.form.removeprefix(INTEREST)}", "1")
        return
    hooks = rows.get_hooks(turn.tx, message.network)
    if hooks is None or message.accepted is None or hooks.form >= len(FORMS) or FORMS[hooks.form] != message.form:
        return
    if message.accepted:
        _put(turn, message.network, hooks._replace(answer=ACCEPTED))
        turn.emit(messages.List(message.network))
    else:
        _try_form(turn, message.network, hooks._replace(form=hooks.form + 1, answer=0))


def subscribe(turn: messages.Turn, request: messages.Subscribe) -> None:
    """Store a client's subscription, unless an equal one exists, and ask every adapter for it."""
    key = "equal|" + _equality(request)
    known = turn.tx.get(rows.INTERESTS, key)
    if known is not None:
        turn.emit(messages.Reply(value=known, new=False))
        return
    name = request.fresh
    types, metadata = list(request.types), list(request.metadata)
    interest = rows.Interest(types, metadata, request.endpoint, request.secret, request.key, turn.now)
    turn.tx.put(rows.INTERESTS, key, name)
    rows.put_interest(turn.tx, name, interest)
    rows.put_index(turn.tx, [*rows.get_index(turn.tx), (name, types, metadata, turn.now)])
    for network in turn.rules.networks:
        turn.emit(for_interest(turn.rules, network, name, interest))
    turn.emit(messages.Reply(value=name))


def _equality(request: messages.Subscribe | rows.Interest) -> str:
    fields = (sorted(set(request.types)), sorted(set(request.metadata)), request.endpoint, request.secret)
    return blake2_256(json.dumps(fields).encode()).hex()


def unsubscribe(turn: messages.Turn, request: messages.Unsubscribe) -> None:
    """End a client's subscription; the adapters' part of it is removed by the next comparison."""
    interest = rows.get_interest(turn.tx, request.subscription)
    if interest is None:
        turn.emit(messages.Reply("not-found"))
        return
    _leave_index(turn, request.subscription, interest)
    turn.tx.delete(rows.SUBSCRIPTIONS, request.subscription)
    turn.emit(messages.Reply())


def _leave_index(turn: messages.Turn, subscription: str, interest: rows.Interest) -> None:
    turn.tx.delete(rows.INTERESTS, "equal|" + _equality(interest))
    rows.put_index(turn.tx, [entry for entry in rows.get_index(turn.tx) if entry[0] != subscription])
    for network in turn.rules.networks:
        turn.tx.delete(rows.HOOKS, f"{network}|{subscription}")
        hooks = rows.get_hooks(turn.tx, network)
        if hooks is not None:
            rows.put_hooks(turn.tx, network, hooks, turn.now)


def posted(turn: messages.Turn, message: messages.Posted) -> None:
    """A notification ended. Only 2xx marks it as delivered; 410 ends the subscription (ID-41)."""
    target, done = rows.to_subscription(message.subscription), rows.notified(message.subscription)
    if turn.tx.has(done, message.id):
        return
    if message.status is not None and 200 <= message.status < 300:
        commit(turn.tx, done, message.id)
        jobs.unbury(turn, target, message.id)
        jobs.finish(turn, target, message.id)
        return
    job = rows.get_job(turn.tx, target, message.id)
    if job is None or not release(turn.tx, done, message.id, turn.rules.owner):
        return
    reason = "no answer" if message.status is None else f"status {message.status}"
    job = job._replace(tries=job.tries + 1, until=0, reason=reason)
    job = job._replace(due=turn.now + jobs.post_backoff(turn, message.subscription, message.id, job.tries))
    rows.put_job(turn.tx, target, message.id, job)
    if message.status == GONE:
        _end(turn, message.subscription)
    if message.status == GONE or job.tries >= turn.rules.most_failures:
        jobs.bury(turn, target, message.id, reason)


def _end(turn: messages.Turn, subscription: str) -> None:
    interest = rows.get_interest(turn.tx, subscription)
    if interest is not None and interest.active:
        _leave_index(turn, subscription, interest)
        rows.put_interest(turn.tx, subscription, interest._replace(active=0))
        turn.note("subscription-ended", subscription)


def redrive(turn: messages.Turn, request: messages.Redrive) -> None:
    """Try a dead letter again, as if it had never been tried."""
    dead = rows.get_dead(turn.tx, request.letter)
    if dead is None:
        turn.emit(messages.Reply("not-found"))
        return
    kind, _, name = dead.target.partition(":")
    stored = rows.get_event(turn.tx, dead.id)
    interest = rows.get_interest(turn.tx, name) if kind == "s" else None
    if stored is None or (kind == "n" and name not in turn.rules.networks):
        turn.emit(messages.Reply("gone", "the event or the network is not there any more"))
    elif kind == "s" and (interest is None or not interest.active):
        turn.emit(messages.Reply("gone", "the subscription has ended"))
    else:
        turn.tx.delete(rows.DEAD, request.letter)
        jobs.enqueue(turn, dead.target, dead.id, stored.fields().order)
        turn.emit(messages.Reply(value=dead.id))
