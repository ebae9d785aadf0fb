"""Subscriptions: the distributor's own on adapters (ID-32), and those of clients (ID-40).

An adapter has at most one subscription of the distributor to everything, in the first of the
`FORMS` that works, and one for each client's subscription (an "interest"). The two sides can differ
after an error or a change of settings. So each adapter is asked regularly for its subscriptions,
and differences are repaired.
"""

import json

from interchain_events.distributor.core import jobs, messages, rows
from interchain_events.distributor.core.rules import FORMS, Rules
from interchain_events.distributor.once.claims import commit, release
from pubsub_emulator.primitives.hashing import blake2_256

ACCEPTED = 1
"""The value of `rows.Hooks.answer` if the adapter accepted the form, but has not listed it yet."""
LISTED = 2
"""The value of `rows.Hooks.answer` if the adapter lists the subscription."""
INTEREST = "interest:"
"""The prefix of `MakeHook.form` for a client's subscription."""
GONE = 410
"""The status by which a subscriber ends its subscription (ID-41)."""


def started(turn: messages.Turn, message: messages.Start) -> None:
    """Start a process: let every adapter be compared and every log be read now.

    `reading` is reset because a read of an earlier process is lost.
    """
    for network in turn.rules.networks:
        known = rows.get_hooks(turn.tx, network) or rows.Hooks(message.keys[network])
        rows.put_hooks(turn.tx, network, known, turn.now)
        rows.put_cursor(
            turn.tx, network, rows.get_cursor(turn.tx, network)._replace(reading=0), turn.now
        )


def hooks_due(turn: messages.Turn, network: str) -> None:
    """Ask an adapter for its subscriptions, which `listed` will compare."""
    hooks = rows.get_hooks(turn.tx, network)
    if hooks is None or network not in turn.rules.networks:
        turn.tx.delete(rows.HOOKS, network)
        return
    _put(turn, network, hooks)
    turn.emit(messages.List(network))


def _put(turn: messages.Turn, network: str, hooks: rows.Hooks) -> None:
    """Write an adapter's row, so that its subscriptions are compared again after a while."""
    rows.put_hooks(turn.tx, network, hooks, turn.now + turn.rules.silence)


def listed(turn: messages.Turn, message: messages.Listed) -> None:
    """Compare an adapter's subscriptions with the intended ones, and repair the differences.

    Missing subscriptions are requested, and the distributor's superfluous ones are removed. Those
    of others are ignored. A form that was accepted but is not listed does not work, so the next
    form is tried.
    """
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
    else:
        form = hooks.form + int(hooks.answer == ACCEPTED)
        _try_form(turn, message.network, hooks._replace(form=form, answer=0))


def _try_form(turn: messages.Turn, network: str, hooks: rows.Hooks) -> None:
    """Store and request the form that is tried now, or emit a note if all forms have failed."""
    _put(turn, network, hooks)
    if hooks.form < len(FORMS):
        endpoint = turn.rules.hook_url(network, hooks.key)
        turn.emit(messages.MakeHook(network, FORMS[hooks.form], endpoint))
    else:
        turn.note("no-hook", network)


def _compare_interests(turn: messages.Turn, message: messages.Listed) -> set[str]:
    """Request the clients' subscriptions that an adapter lacks.

    Returns the webhooks of all active subscriptions of clients.
    """
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


def for_interest(
    rules: Rules, network: str, name: str, wish: rows.Interest | messages.Subscribe
) -> messages.MakeHook:
    """Return the request to an adapter for the events of one client's subscription."""
    endpoint = rules.interest_url(network, name, wish.key)
    return messages.MakeHook(
        network, INTEREST + name, endpoint, tuple(wish.types), tuple(wish.metadata)
    )


def hooked(turn: messages.Turn, message: messages.Hooked) -> None:
    """Store an adapter's answer to a request for a subscription.

    If a form of the subscription to everything is refused, the next form is tried. An answer about
    another form than the current one is late and is ignored.
    """
    if message.form.startswith(INTEREST):
        if message.accepted:
            # Remembered, so that it is requested once. An adapter that accepts it without listing
            # it would otherwise get another one with each comparison.
            turn.tx.put(rows.HOOKS, f"{message.network}|{message.form.removeprefix(INTEREST)}", "1")
        return
    hooks = rows.get_hooks(turn.tx, message.network)
    if (
        hooks is None
        or message.accepted is None
        or hooks.form >= len(FORMS)
        or FORMS[hooks.form] != message.form
    ):
        return
    if message.accepted:
        _put(turn, message.network, hooks._replace(answer=ACCEPTED))
        turn.emit(messages.List(message.network))
    else:
        _try_form(turn, message.network, hooks._replace(form=hooks.form + 1, answer=0))


def subscribe(turn: messages.Turn, request: messages.Subscribe) -> None:
    """Store a client's subscription and request it from every adapter, unless an equal one exists.

    Equal subscriptions have the same types, metadata, endpoint and secret, in any order. The reply
    names the existing or new subscription. It has the code `too-many` if there are too many, or if
    the index, which every event reads, would become too long.
    """
    key = "equal|" + _equality(request)
    known = turn.tx.get(rows.INTERESTS, key)
    if known is not None:
        turn.emit(messages.Reply(value=known, new=False))
        return
    name = request.fresh
    types = list(request.types)
    metadata = list(request.metadata)
    index = [*rows.get_index(turn.tx), (name, types, metadata, turn.now)]
    if len(index) > turn.rules.most_subscriptions:
        most = f"{turn.rules.most_subscriptions:,} subscriptions"
        turn.emit(messages.Reply("too-many", f"there are {most}, the most that are allowed"))
        return
    if rows.index_size(index) > turn.rules.most_index_bytes:
        most = f"{turn.rules.most_index_bytes:,} bytes"
        turn.emit(
            messages.Reply("too-many", f"types and metadata of all subscriptions exceed {most}")
        )
        return
    interest = rows.Interest(
        types, metadata, request.endpoint, request.secret, request.key, turn.now
    )
    turn.tx.put(rows.INTERESTS, key, name)
    rows.put_interest(turn.tx, name, interest)
    rows.put_index(turn.tx, index)
    for network in turn.rules.networks:
        turn.emit(for_interest(turn.rules, network, name, interest))
    turn.emit(messages.Reply(value=name))


def _equality(request: messages.Subscribe | rows.Interest) -> str:
    """Return the digest by which equal subscriptions are found."""
    fields = (
        sorted(set(request.types)),
        sorted(set(request.metadata)),
        request.endpoint,
        request.secret,
    )
    return blake2_256(json.dumps(fields).encode()).hex()


def unsubscribe(turn: messages.Turn, request: messages.Unsubscribe) -> None:
    """End a client's subscription.

    The adapters' side of it is removed by the next comparison, which is due at once.
    """
    interest = rows.get_interest(turn.tx, request.subscription)
    if interest is None:
        turn.emit(messages.Reply("not-found"))
        return
    _leave_index(turn, request.subscription, interest)
    turn.tx.delete(rows.SUBSCRIPTIONS, request.subscription)
    turn.emit(messages.Reply())


def _leave_index(turn: messages.Turn, subscription: str, interest: rows.Interest) -> None:
    """Stop matching events with a subscription, and let every adapter be compared now."""
    turn.tx.delete(rows.INTERESTS, "equal|" + _equality(interest))
    rows.put_index(
        turn.tx, [entry for entry in rows.get_index(turn.tx) if entry[0] != subscription]
    )
    for network in turn.rules.networks:
        turn.tx.delete(rows.HOOKS, f"{network}|{subscription}")
        hooks = rows.get_hooks(turn.tx, network)
        if hooks is not None:
            rows.put_hooks(turn.tx, network, hooks, turn.now)


def posted(turn: messages.Turn, message: messages.Posted) -> None:
    """Apply the result of a notification (ID-41).

    Only a status 2xx marks the event as delivered. Status 410 ends the subscription. Everything
    else is repeated after a growing wait, until the job has failed too often and becomes a dead
    letter.
    """
    target = rows.to_subscription(message.subscription)
    done = rows.notified(message.subscription)
    if turn.tx.has(done, message.id):
        return
    if message.status is not None and 200 <= message.status < 300:
        commit(turn.tx, done, message.id)
        jobs.unbury(turn, target, message.id)
        jobs.finish(turn, target, message.id)
        return
    # `release` fails if the lease has lapsed and another process has claimed the notification.
    job = rows.get_job(turn.tx, target, message.id)
    if job is None or not release(turn.tx, done, message.id, turn.rules.owner):
        return
    reason = f"status {message.status}"
    if message.status is None:
        reason = message.cause or "no answer"
    job = job._replace(tries=job.tries + 1, until=0, reason=reason)
    wait = jobs.post_backoff(turn, message.subscription, message.id, job.tries)
    # A subscriber may ask for more time, but not for more than the longest wait.
    wait = max(wait, min(message.retry_after, turn.rules.most_backoff))
    job = job._replace(due=turn.now + wait)
    rows.put_job(turn.tx, target, message.id, job)
    if message.status == GONE:
        _end(turn, message.subscription)
    if message.status == GONE or job.tries >= turn.rules.most_failures:
        jobs.bury(turn, target, message.id, reason)


def _end(turn: messages.Turn, subscription: str) -> None:
    """Deactivate a subscription whose subscriber answered with status 410.

    It is still listed, unlike a subscription that its client has ended.
    """
    interest = rows.get_interest(turn.tx, subscription)
    if interest is not None and interest.active:
        _leave_index(turn, subscription, interest)
        rows.put_interest(turn.tx, subscription, interest._replace(active=0))
        turn.note("subscription-ended", subscription)


def redrive(turn: messages.Turn, request: messages.Redrive) -> None:
    """Try a dead letter again, as if it had not been tried before.

    The reply has the code `not-found`, or `gone` if the event, network or subscription no longer
    exists.
    """
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
