"""The distributor's subscriptions on adapters (ID-32), and the clients' on the distributor (ID-40).

On each adapter, the distributor has at most one subscription to everything, in the first of the
`FORMS` that works, and one for each client's subscription (an "interest"). After an error or a
change of settings an adapter may have others. So each adapter is asked regularly for its
subscriptions, and differences are repaired.
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
    """Make the comparison of every adapter and the read of every log due, as a process starts.

    `LogCursor.reading` is reset, because the read of an earlier process is lost.
    """
    for network in turn.rules.networks:
        hooks = rows.get_hooks(turn.tx, network) or rows.Hooks(message.keys[network])
        rows.put_hooks(turn.tx, network, hooks, due=turn.now)
        cursor = rows.get_cursor(turn.tx, network)._replace(reading=0)
        rows.put_cursor(turn.tx, network, cursor, due=turn.now)


def hooks_due(turn: messages.Turn, network: str) -> None:
    """Ask an adapter for its subscriptions. `listed` will compare them.

    The row of a network that is no longer in the settings is deleted.
    """
    hooks = rows.get_hooks(turn.tx, network)
    if hooks is None or network not in turn.rules.networks:
        turn.tx.delete(rows.HOOKS, network)
        return
    _put(turn, network, hooks)
    turn.emit(messages.ListHooks(network))


def _put(turn: messages.Turn, network: str, hooks: rows.Hooks) -> None:
    """Write an adapter's row, so that its subscriptions are compared after `Rules.silence`."""
    rows.put_hooks(turn.tx, network, hooks, due=turn.now + turn.rules.silence)


def listed(turn: messages.Turn, message: messages.Listed) -> None:
    """Compare an adapter's subscriptions with the intended ones, and repair the differences.

    Missing subscriptions are requested. Superfluous and duplicate ones of the distributor are
    removed, those of others are ignored. If the subscription to everything was accepted but is not
    listed, its form does not work on this adapter, and the next form is tried.
    """
    hooks = rows.get_hooks(turn.tx, message.network)
    if message.hooks is None or hooks is None:
        return
    endpoint = turn.rules.hook_url(message.network, hooks.key)
    wanted = {endpoint, *_compare_interests(turn, message)}
    endpoints: set[str] = set()
    for hook in message.hooks:
        is_needed = hook.endpoint in wanted and hook.endpoint not in endpoints
        # Without the adapter's name for a subscription, it cannot be removed.
        is_removable = hook.subscription != "" and turn.rules.ours(message.network, hook.endpoint)
        if is_removable and not is_needed:
            turn.emit(messages.DropHook(message.network, hook.subscription))
        endpoints.add(hook.endpoint)
    if endpoint in endpoints:
        if hooks.answer != LISTED:
            _put(turn, message.network, hooks._replace(answer=LISTED))
    else:
        form = hooks.form
        if hooks.answer == ACCEPTED:
            # The adapter accepted this form, but does not list it.
            form += 1
        _try_form(turn, message.network, hooks._replace(form=form, answer=0))


def _try_form(turn: messages.Turn, network: str, hooks: rows.Hooks) -> None:
    """Request a subscription in the form `hooks.form`, or emit a note if all forms have failed."""
    _put(turn, network, hooks)
    if hooks.form < len(FORMS):
        endpoint = turn.rules.hook_url(network, hooks.key)
        turn.emit(messages.MakeHook(network, FORMS[hooks.form], endpoint))
    else:
        turn.note("no-hook", network)


def _compare_interests(turn: messages.Turn, message: messages.Listed) -> set[str]:
    """Request the clients' subscriptions that an adapter neither lists nor has accepted before.

    Returns the URLs of the webhooks of all active subscriptions of clients.
    """
    existing = {hook.endpoint for hook in message.hooks or ()}
    wanted: set[str] = set()
    for subscription, *_ in rows.get_index(turn.tx):
        interest = rows.get_interest(turn.tx, subscription)
        if interest is None:
            continue
        endpoint = turn.rules.interest_url(message.network, subscription, interest.key)
        wanted.add(endpoint)
        accepted = turn.tx.get(rows.HOOKS, f"{message.network}|{subscription}")
        if endpoint not in existing and accepted is None:
            turn.emit(for_interest(turn.rules, message.network, subscription, interest))
    return wanted


def for_interest(
    rules: Rules, network: str, name: str, interest: rows.Interest | messages.Subscribe
) -> messages.MakeHook:
    """Return the effect that subscribes on an adapter for one client's subscription."""
    return messages.MakeHook(
        network,
        INTEREST + name,
        endpoint=rules.interest_url(network, name, interest.key),
        types=tuple(interest.types),
        metadata=tuple(interest.metadata),
    )


def hooked(turn: messages.Turn, message: messages.Hooked) -> None:
    """Store an adapter's answer to a `MakeHook`.

    If it refuses a form of the subscription to everything, the next form is tried. Late answers,
    about another form than the current one, are ignored.
    """
    if message.form.startswith(INTEREST):
        if message.accepted:
            # Without this row, an adapter that accepts the subscription but does not list it would
            # get another request with each comparison.
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
        turn.emit(messages.ListHooks(message.network))
    else:
        _try_form(turn, message.network, hooks._replace(form=hooks.form + 1, answer=0))


def subscribe(turn: messages.Turn, request: messages.Subscribe) -> None:
    """Store a client's subscription and request it from every adapter, unless an equal one exists.

    Subscriptions are equal if they have the same types and metadata, in any order, and the same
    endpoint and secret. The reply names the existing or new subscription. It has the code
    `too-many` if a limit on the number of subscriptions or on the size of their index is exceeded.
    """
    key = "equal|" + _equality(request)
    existing = turn.tx.get(rows.INTERESTS, key)
    if existing is not None:
        turn.emit(messages.Reply(value=existing, new=False))
        return
    name = request.fresh
    types = list(request.types)
    metadata = list(request.metadata)
    index = [*rows.get_index(turn.tx), (name, types, metadata, turn.now)]
    if len(index) > turn.rules.most_subscriptions:
        most = f"{turn.rules.most_subscriptions:,} subscriptions"
        turn.emit(messages.Reply("too-many", f"the limit of {most} is reached"))
        return
    if rows.index_size(index) > turn.rules.most_index_bytes:
        most = f"{turn.rules.most_index_bytes:,} bytes"
        turn.emit(
            messages.Reply("too-many", f"types and metadata of all subscriptions exceed {most}")
        )
        return
    interest = rows.Interest(
        types,
        metadata,
        request.endpoint,
        secret=request.secret,
        key=request.key,
        created=turn.now,
    )
    turn.tx.put(rows.INTERESTS, key, name)
    rows.put_interest(turn.tx, name, interest)
    rows.put_index(turn.tx, index)
    for network in turn.rules.networks:
        turn.emit(for_interest(turn.rules, network, name, interest))
    turn.emit(messages.Reply(value=name))


def _equality(request: messages.Subscribe | rows.Interest) -> str:
    """Return a digest that is the same for equal subscriptions (see `subscribe`)."""
    fields = (
        sorted(set(request.types)),
        sorted(set(request.metadata)),
        request.endpoint,
        request.secret,
    )
    return blake2_256(json.dumps(fields).encode()).hex()


def unsubscribe(turn: messages.Turn, request: messages.Unsubscribe) -> None:
    """Remove a client's subscription.

    The adapters' subscriptions for it are removed by the next comparison, which is due at once. The
    reply has the code `not-found` if there is no such subscription.
    """
    interest = rows.get_interest(turn.tx, request.subscription)
    if interest is None:
        turn.emit(messages.Reply("not-found"))
        return
    _leave_index(turn, request.subscription, interest)
    turn.tx.delete(rows.SUBSCRIPTIONS, request.subscription)
    turn.emit(messages.Reply())


def _leave_index(turn: messages.Turn, subscription: str, interest: rows.Interest) -> None:
    """Stop matching events with a subscription, and compare every adapter's subscriptions soon."""
    turn.tx.delete(rows.INTERESTS, "equal|" + _equality(interest))
    rows.put_index(
        turn.tx, [entry for entry in rows.get_index(turn.tx) if entry[0] != subscription]
    )
    for network in turn.rules.networks:
        turn.tx.delete(rows.HOOKS, f"{network}|{subscription}")
        hooks = rows.get_hooks(turn.tx, network)
        if hooks is not None:
            rows.put_hooks(turn.tx, network, hooks, due=turn.now)


def posted(turn: messages.Turn, message: messages.Posted) -> None:
    """Apply the result of a notification (ID-41).

    Only a status of 200 to 299 marks the event as delivered. Status 410 ends the subscription.
    After any other result the notification is repeated, with growing waits. After
    `Rules.most_failures` failures the job becomes a dead letter.
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
    # `release` returns false if another process has claimed the notification since, after the lease
    # of this process had lapsed.
    job = rows.get_job(turn.tx, target, message.id)
    if job is None or not release(turn.tx, done, message.id, turn.rules.owner):
        return
    reason = f"status {message.status}"
    if message.status is None:
        reason = message.cause or "no answer"
    job = job._replace(tries=job.tries + 1, until=0, reason=reason)
    wait = jobs.post_backoff(turn, message.subscription, message.id, job.tries)
    # A subscriber may ask for a longer wait, up to the limit.
    wait = max(wait, min(message.retry_after, turn.rules.most_backoff))
    job = job._replace(due=turn.now + wait)
    rows.put_job(turn.tx, target, message.id, job)
    if message.status == GONE:
        _end(turn, message.subscription)
    if message.status == GONE or job.tries >= turn.rules.most_failures:
        jobs.bury(turn, target, message.id, reason)


def _end(turn: messages.Turn, subscription: str) -> None:
    """Deactivate a subscription whose subscriber answered with status 410.

    It remains listed, unlike a subscription that its client has removed.
    """
    interest = rows.get_interest(turn.tx, subscription)
    if interest is not None and interest.active:
        _leave_index(turn, subscription, interest)
        rows.put_interest(turn.tx, subscription, interest._replace(active=0))
        turn.note("subscription-ended", subscription)


def redrive(turn: messages.Turn, request: messages.Redrive) -> None:
    """Replace a dead letter by a new job.

    The reply has the code `not-found` if there is no such dead letter, or `gone` if its event,
    network or subscription no longer exists.
    """
    dead = rows.get_dead(turn.tx, request.letter)
    if dead is None:
        turn.emit(messages.Reply("not-found"))
        return
    kind, _, name = dead.target.partition(":")
    stored = rows.get_event(turn.tx, dead.id)
    interest = rows.get_interest(turn.tx, name) if kind == "s" else None
    if stored is None or (kind == "n" and name not in turn.rules.networks):
        turn.emit(messages.Reply("gone", "the event or the network no longer exists"))
    elif kind == "s" and (interest is None or not interest.active):
        turn.emit(messages.Reply("gone", "the subscription has ended"))
    else:
        turn.tx.delete(rows.DEAD, request.letter)
        jobs.enqueue(turn, dead.target, dead.id, stored.fields().order)
        turn.emit(messages.Reply(value=dead.id))
