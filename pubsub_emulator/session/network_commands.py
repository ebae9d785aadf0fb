"""Commands that change the network: publish, subscribe, cheat, order.

They take effect in the next steps.
"""

import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pubsub_emulator.collator.cheats import STRATEGIES
from pubsub_emulator.files.pages import Line, Shown
from pubsub_emulator.files.untrusted import parse_json
from pubsub_emulator.primitives.draws import MILLION
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.pallet_subscriber.config import (
    RuntimeSpec,
    Subscriptions,
    merge_subscriptions,
)
from pubsub_emulator.session.answers import CHOSEN, COUNTED
from pubsub_emulator.session.command import (
    CommandError,
    SessionCommand,
    command,
    hexadecimal,
    number,
    unknown,
)
from pubsub_emulator.session.session import Session

NETWORK: Final[list[SessionCommand]] = []

PUBLISHER_ID: Final = "a publisher's id is a whole number"


def _subscriber(session: Session, text: str) -> ParaId:
    """Return the id of a parachain that can subscribe. Raises `CommandError`."""
    para = session.para(text)
    if para not in session.subscribers:
        raise CommandError(f"{para} only publishes and cannot subscribe")
    return para


@command(
    NETWORK,
    "publish PARA:publisher KEY VALUE [TTL]",
    "publish 1000 DOT/USD 7.42",
    "publish 1000 1000/3 0x00ff 25",
    changes=True,
)
def _publish(
    session: Session, publisher: str, name: str, text: str, lifetime: str = "0"
) -> Iterator[Shown]:
    """Have a parachain publish a key.

    TTL is in relay blocks; without one, or with 0, the entry does not expire.
    Key 3 of a scenario's publisher 1000 has the name 1000/3.
    """
    para = session.para(publisher)
    key = session.key(name)
    data = hexadecimal(text, "a value") if text.startswith("0x") else text.encode()
    ttl = number(lifetime, "TTL is a number of relay blocks, 0 for no expiry")
    height = session.number
    session.ask("pubsub_publish", para, hexed(key), hexed(data), ttl)
    life = f"valid for {counted(ttl, 'block')}" if ttl else "no expiry"
    sent = f"sent in relay block {height + 1}, executed in {height + 2}"
    yield Line(
        f"{para} publishes {session.key_name(key)} ({counted(len(data), 'byte')}, {life}): {sent}"
    )
    if len(data) > session.facts.max_value_length:
        yield Line(
            "the relay chain will refuse this value: the limit is"
            f" {session.facts.max_value_length:,} bytes"
        )
    if not any(
        key in session.spec(subscriber).subscriptions.get(para, ())
        for subscriber in session.subscribers
    ):
        name = shlex.quote(session.key_name(key))
        reader = next(
            (subscriber for subscriber in session.subscribers if subscriber != para), "SUBSCRIBER"
        )
        yield Line(
            f"no parachain subscribes to this key; `subscribe {reader} {para} {name}` has it"
            " delivered"
        )


@command(
    NETWORK,
    "delete PUBLISHER KEY…",
    "delete 1000 DOT/USD",
    "delete 2000 2000/0 2000/1",
    changes=True,
)
def _delete(session: Session, publisher: str, *names: str) -> Iterator[Shown]:
    """Delete keys of a publisher, as its manager or, for a system parachain, as root."""
    para = session.para(publisher)
    keys = [session.key(text) for text in names]
    session.ask("pubsub_delete", para, [hexed(key) for key in keys])
    yield Line(
        f"{counted(len(keys), 'key')} of {para} will be deleted in relay block {session.number + 1}"
    )


@command(
    NETWORK, "subscribe SUBSCRIBER PUBLISHER KEY…", "subscribe 3000 1000 DOT/USD", changes=True
)
def _subscribe(
    session: Session, subscriber: str, publisher_text: str, *names: str
) -> Iterator[Shown]:
    """Add keys to a subscriber's subscriptions.

    Governance sends the subscriber a new runtime with its present subscriptions and these.
    """
    para = _subscriber(session, subscriber)
    publisher = ParaId(number(publisher_text, PUBLISHER_ID))
    spec = session.spec(para)
    keys = [session.key(text) for text in names]
    before = [(owner, list(owner_keys)) for owner, owner_keys in spec.subscriptions.items()]
    yield _ordered(session, spec, merge_subscriptions([*before, (publisher, keys)]), publisher)


@command(
    NETWORK,
    "unsubscribe SUBSCRIBER PUBLISHER [KEY…]",
    "unsubscribe 3000 1000 DOT/USD",
    "unsubscribe 3000 1000",
    changes=True,
)
def _unsubscribe(
    session: Session, subscriber: str, publisher_text: str, *names: str
) -> Iterator[Shown]:
    """Remove keys, or all keys of a publisher, from a subscriber's subscriptions."""
    para = _subscriber(session, subscriber)
    publisher = ParaId(number(publisher_text, PUBLISHER_ID))
    spec = session.spec(para)
    subscribed = spec.subscriptions.get(publisher)
    if subscribed is None:
        raise CommandError(f"{para} subscribes to no key of {publisher}")
    dropped = frozenset(subscribed)
    if names:
        dropped = frozenset(session.key(text) for text in names)
    unknown_keys = dropped.difference(subscribed)
    if unknown_keys:
        name = session.key_name(min(unknown_keys))
        raise CommandError(f"{para} does not subscribe to {name} of {publisher}")
    remaining = [key for key in subscribed if key not in dropped]
    others = [
        (owner, list(keys)) for owner, keys in spec.subscriptions.items() if owner != publisher
    ]
    yield _ordered(session, spec, merge_subscriptions([*others, (publisher, remaining)]), publisher)


def _ordered(
    session: Session, spec: RuntimeSpec, subscriptions: Subscriptions, publisher: ParaId
) -> Line:
    """Send a subscriber a runtime with these subscriptions, and say so about one publisher."""
    arrives = session.order_spec(replace(spec, subscriptions=subscriptions))
    count = len(subscriptions.get(publisher, ()))
    return Line(
        f"{spec.para_id} will subscribe to {counted(count, 'key')} of {publisher}: {arrives}"
    )


@command(
    NETWORK,
    "cheat PARA STRATEGY [COLLATOR] [RATE]",
    "cheat 3000 omit-node",
    "cheat 3000 omit-node,stale-root 2 0.5",
    changes=True,
)
def _cheat(
    session: Session,
    para_text: str,
    strategies: str,
    collator_text: str | None = None,
    share: str = "1",
) -> Iterator[Shown]:
    """Replace an honest collator by a cheating one.

    COLLATOR counts from 1; by default it is the collator whose turn is next.
    RATE is the share of its turns in which it cheats, 1 by default. `honest` ends the cheating.
    """
    para = session.para(para_text)
    names = strategies.split(",")
    for name in names:
        if name not in STRATEGIES:
            raise unknown("strategy", name, STRATEGIES, "`strategies` lists all")
    rate = _millionths(share)
    collator = (
        None
        if collator_text is None
        else number(collator_text, "COLLATOR is a whole number, at least 1", 1)
    )
    chosen = session.read(CHOSEN, "pubsub_cheat", para, names, collator, rate / MILLION)
    often = "in each of its turns" if rate == MILLION else f"in {rate / MILLION:.0%} of its turns"
    yield Line(
        f"collator {chosen.collator} of {chosen.collators} of {para} now uses {', '.join(names)},"
        f" {often}"
    )


def _millionths(text: str) -> int:
    """Return a share from 0 to 1 in millionths. Raises `CommandError`."""
    try:
        share = float(text)
    except ValueError:
        # A text that is not a number gets the same error as a number out of range.
        share = -1
    if not 0 <= share <= 1:
        raise CommandError(f"RATE is a share from 0 to 1, not {text!r}")
    return round(share * MILLION)


@command(NETWORK, "honest PARA", "honest 3000", changes=True)
def _honest(session: Session, para_text: str) -> Iterator[Shown]:
    """Make all collators of a parachain honest."""
    para = session.para(para_text)
    count = session.read(COUNTED, "pubsub_honest", para).collators
    collators = "the collator" if count == 1 else f"all {count} collators"
    verb = "is" if count == 1 else "are"
    yield Line(f"{collators} of {para} {verb} honest from now on")


@command(
    NETWORK,
    "order SUBSCRIBER CALL PUBLISHER",
    "order 3000 redeliver 1000",
    words={"CALL": ("clear_publisher_cache", "redeliver", "enable_publisher")},
    changes=True,
)
def _order(session: Session, subscriber: str, call: str, publisher_text: str) -> Iterator[Shown]:
    """Send a subscriber a governance call about a publisher."""
    para = _subscriber(session, subscriber)
    publisher = number(publisher_text, PUBLISHER_ID)
    session.ask("pubsub_order", para, call, publisher)
    yield Line(
        f"governance sends {para} the call {call}({publisher}) in relay block {session.number + 1}"
    )


def _do(session: Session, announcement: str, /, **action: object) -> Iterator[Shown]:
    """Have the node do an action of its journal, and yield the announcement."""
    session.ask("pubsub_act", action)
    yield Line(announcement)


@command(NETWORK, "register PUBLISHER [DEPOSIT]", "register 2001", "register 2001 0", changes=True)
def _register(session: Session, publisher: str, deposit: str | None = None) -> Iterator[Shown]:
    """Have root register a publisher, with a deposit of its manager in plancks."""
    para = number(publisher, PUBLISHER_ID)
    options = (
        {}
        if deposit is None
        else {"deposit": number(deposit, "DEPOSIT is a whole number of plancks")}
    )
    announcement = f"root registers {para} as publisher in relay block {session.number + 1}"
    return _do(session, announcement, kind="register", para=para, **options)


@command(NETWORK, "deregister PUBLISHER", "deregister 2001", changes=True)
def _deregister(session: Session, publisher: str) -> Iterator[Shown]:
    """Have root remove a publisher with all that it published."""
    para = number(publisher, PUBLISHER_ID)
    announcement = f"root removes publisher {para} and all that it published"
    return _do(session, announcement, kind="deregister", para=para)


@command(NETWORK, "offline PARA", "offline 3000", changes=True)
def _offline(session: Session, para_text: str) -> Iterator[Shown]:
    """Let the collators of a parachain build nothing."""
    para = session.para(para_text)
    return _do(
        session,
        f"the collators of {para} build nothing until `online {para}`",
        kind="offline",
        para=para,
    )


@command(NETWORK, "online PARA", "online 3000", changes=True)
def _online(session: Session, para_text: str) -> Iterator[Shown]:
    """Let the collators of a parachain build again."""
    para = session.para(para_text)
    return _do(
        session, f"the collators of {para} build again", kind="offline", para=para, offline=False
    )


@command(NETWORK, "turn PARA", "turn 1000", changes=True)
def _turn(session: Session, para_text: str) -> Iterator[Shown]:
    """Let a parachain build for the next relay block, whatever its pace."""
    para = session.para(para_text)
    return _do(
        session, f"{para} may build for relay block {session.number + 1}", kind="turn", para=para
    )


@command(NETWORK, "act ACTION", """act '{"kind":"travel","slot":2000000}'""", changes=True)
def _act(session: Session, text: str) -> Iterator[Shown]:
    """Do an action, written as in the journal of `pubsub serve`.

    For actions without a command: messages, offered extrinsics, whole sets of
    subscriptions.
    """
    action = parse_json(text.encode(), "ACTION", CommandError)
    if not isinstance(action, dict):
        raise CommandError(f"ACTION is an action of a journal as JSON, not {text!r}")
    return _do(session, f"done: {action.get('kind')}", **action)
