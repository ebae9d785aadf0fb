"""Commands that change the network: publish, subscribe, cheat, order. They take effect in the next steps."""

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from pubsub_emulator.cli.screen.pages import Line, Shown
from pubsub_emulator.cli.session.answers import CHOSEN, COUNTED
from pubsub_emulator.cli.session.arguments import number, value
from pubsub_emulator.cli.session.command import Command, CommandError, Given, Kind, Parameter, near_to
from pubsub_emulator.cli.session.session import Session
from pubsub_emulator.collator.cheats import STRATEGIES
from pubsub_emulator.collator.draws import MILLION
from pubsub_emulator.emulator.untrusted import parse_json
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec, Subscriptions, merge_subscriptions

PUBLISHER_ID: Final = "a publisher's id is a whole number"


def _subscriber(session: Session, text: str) -> ParaId:
    para = session.para(text)
    if para not in session.subscribers:
        raise CommandError(f"{para} is a publisher only and cannot subscribe")
    return para


def _publish(session: Session, given: Given) -> Iterator[Shown]:
    para = session.para(given.one("PARA"))
    key, data = session.key(given.one("KEY")), value(given.one("VALUE"))
    ttl = number(given.maybe("TTL") or "0", "TTL is a number of relay blocks, 0 for no expiry")
    at = session.number
    session.ask("pubsub_publish", para, hexed(key), hexed(data), ttl)
    life = f"valid for {ttl} blocks" if ttl else "no expiry"
    yield Line(
        f"{para} publishes {session.key_name(key)} ({len(data)} bytes, {life}): sent in relay block {at + 1}, "
        f"executed in {at + 2}"
    )
    if len(data) > session.facts.max_value_length:
        yield Line(f"the relay chain will refuse this value: the limit is {session.facts.max_value_length:,} bytes")
    if not any(key in session.spec(each).subscriptions.get(para, ()) for each in session.subscribers):
        name = shlex.quote(session.key_name(key))
        reader = next((each for each in session.subscribers if each != para), "SUBSCRIBER")
        yield Line(f"no parachain subscribes to this key; `subscribe {reader} {para} {name}` has it delivered")


def _delete(session: Session, given: Given) -> Iterator[Shown]:
    para = session.para(given.one("PUBLISHER"))
    keys = [session.key(text) for text in given.many("KEY")]
    session.ask("pubsub_delete", para, [hexed(key) for key in keys])
    yield Line(f"{len(keys)} key{'s' * (len(keys) > 1)} of {para} will be deleted in relay block {session.number + 1}")


def _subscribe(session: Session, given: Given) -> Iterator[Shown]:
    para = _subscriber(session, given.one("SUBSCRIBER"))
    publisher = ParaId(number(given.one("PUBLISHER"), PUBLISHER_ID))
    spec = session.spec(para)
    keys = [session.key(text) for text in given.many("KEY")]
    before = [(each, list(held)) for each, held in spec.subscriptions.items()]
    yield _ordered(session, spec, merge_subscriptions([*before, (publisher, keys)]), publisher)


def _unsubscribe(session: Session, given: Given) -> Iterator[Shown]:
    para = _subscriber(session, given.one("SUBSCRIBER"))
    publisher = ParaId(number(given.one("PUBLISHER"), PUBLISHER_ID))
    spec = session.spec(para)
    held = spec.subscriptions.get(publisher)
    if held is None:
        raise CommandError(f"{para} subscribes to nothing of {publisher}")
    dropped = frozenset(session.key(text) for text in given.many("KEY")) or frozenset(held)
    for key in sorted(dropped.difference(held)):
        raise CommandError(f"{para} does not subscribe to {session.key_name(key)} of {publisher}")
    left = [key for key in held if key not in dropped]
    others = [(each, list(keys)) for each, keys in spec.subscriptions.items() if each != publisher]
    yield _ordered(session, spec, merge_subscriptions([*others, (publisher, left)]), publisher)


def _ordered(session: Session, spec: RuntimeSpec, subscriptions: Subscriptions, publisher: ParaId) -> Line:
    session.order_spec(replace(spec, subscriptions=subscriptions))
    count = len(subscriptions.get(publisher, ()))
    arrives = "takes effect in the parachain block after its arrival"
    return Line(
        f"{spec.para_id} will subscribe to {count} keys of {publisher}: the message is sent in relay block "
        f"{session.number + 1} and {arrives}"
    )


def strategy_names(text: str) -> tuple[str, ...]:
    """Strategies with commas between them. Raises `CommandError` for one that does not exist."""
    names = tuple(text.split(","))
    for name in names:
        if name not in STRATEGIES:
            hint = near_to(name, STRATEGIES, "`strategies` lists all")
            raise CommandError(f"no strategy is called {name!r}; {hint}")
    return names


def _cheat(session: Session, given: Given) -> Iterator[Shown]:
    para, names = session.para(given.one("PARA")), strategy_names(given.one("STRATEGY"))
    at, rate = given.maybe("COLLATOR"), share_of(given.maybe("RATE") or "1")
    wanted = None if at is None else number(at, "COLLATOR is a number from 1 on", 1)
    chosen = session.read(CHOSEN, "pubsub_cheat", para, list(names), wanted, rate / MILLION)
    often = "in each of its turns" if rate == MILLION else f"in {rate / MILLION:.0%} of its turns"
    yield Line(f"collator {chosen.collator} of {chosen.collators} of {para} now uses {', '.join(names)}, {often}")


def share_of(text: str) -> int:
    """A share in millionths. Raises `CommandError`."""
    try:
        share = float(text)
    except ValueError:
        share = -1
    if not 0 <= share <= 1:
        raise CommandError(f"RATE is a share from 0 to 1, not {text!r}")
    return round(share * MILLION)


def _honest(session: Session, given: Given) -> Iterator[Shown]:
    para = session.para(given.one("PARA"))
    count = session.read(COUNTED, "pubsub_honest", para).collators
    yield Line(f"all {count} collators of {para} are honest from now on")


def _order(session: Session, given: Given) -> Iterator[Shown]:
    para, publisher = _subscriber(session, given.one("SUBSCRIBER")), number(given.one("PUBLISHER"), PUBLISHER_ID)
    call = given.one("CALL")
    session.ask("pubsub_order", para, call, publisher)
    yield Line(f"governance sends {para} the call {call}({publisher}) in relay block {session.number + 1}")


def _do(session: Session, action: Mapping[str, object], said: str) -> Iterator[Shown]:
    session.ask("pubsub_act", dict(action))
    yield Line(said)


def _register(session: Session, given: Given) -> Iterator[Shown]:
    para, text = number(given.one("PUBLISHER"), PUBLISHER_ID), given.maybe("DEPOSIT")
    deposit = {} if text is None else {"deposit": number(text, "DEPOSIT is a whole number of plancks")}
    said = f"root registers {para} as publisher in relay block {session.number + 1}"
    return _do(session, {"kind": "register", "para": para, **deposit}, said)


def _deregister(session: Session, given: Given) -> Iterator[Shown]:
    para = number(given.one("PUBLISHER"), PUBLISHER_ID)
    return _do(
        session, {"kind": "deregister", "para": para}, f"root removes publisher {para} and all that it published"
    )


def _offline(session: Session, given: Given) -> Iterator[Shown]:
    para = session.para(given.one("PARA"))
    return _do(
        session, {"kind": "offline", "para": para}, f"the collators of {para} build nothing until `online {para}`"
    )


def _online(session: Session, given: Given) -> Iterator[Shown]:
    para = session.para(given.one("PARA"))
    return _do(session, {"kind": "offline", "para": para, "offline": False}, f"the collators of {para} build again")


def _turn(session: Session, given: Given) -> Iterator[Shown]:
    para = session.para(given.one("PARA"))
    return _do(session, {"kind": "turn", "para": para}, f"{para} may build for relay block {session.number + 1}")


def _act(session: Session, given: Given) -> Iterator[Shown]:
    text = given.one("ACTION")
    action = parse_json(text.encode(), "ACTION", CommandError)
    if not isinstance(action, dict):
        raise CommandError(f"ACTION is an action of a journal as JSON, not {text!r}")
    return _do(session, action, f"done: {action.get('kind')}")


_SUBSCRIBER: Final = Parameter("SUBSCRIBER", Kind.SUBSCRIBER)
_PUBLISHER: Final = Parameter("PUBLISHER", Kind.PUBLISHER)
_KEYS: Final = Parameter("KEY", Kind.KEY, many=True)

NETWORK: Final = (
    Command(
        "publish",
        "Have a parachain publish a key.",
        _publish,
        (
            Parameter("PARA", Kind.PUBLISHER),
            Parameter("KEY", Kind.KEY),
            Parameter("VALUE", Kind.VALUE),
            Parameter("TTL", Kind.NUMBER, optional=True),
        ),
        "TTL is in relay blocks; without one, or with 0, the entry does not expire.\n"
        "Key 3 of a scenario's publisher 1000 has the name 1000/3.",
        ("publish 1000 DOT/USD 7.42", "publish 1000 1000/3 0x00ff 25"),
        changes=True,
    ),
    Command(
        "delete",
        "Delete keys of a publisher, as its manager or, for a system parachain, as root.",
        _delete,
        (_PUBLISHER, _KEYS),
        examples=("delete 1000 DOT/USD", "delete 2000 2000/0 2000/1"),
        changes=True,
    ),
    Command(
        "subscribe",
        "Add keys to a subscriber's subscriptions.",
        _subscribe,
        (_SUBSCRIBER, _PUBLISHER, _KEYS),
        "Governance sends the subscriber a new runtime with its present subscriptions and these.",
        ("subscribe 3000 1000 DOT/USD",),
        changes=True,
    ),
    Command(
        "unsubscribe",
        "Remove keys, or all keys of a publisher, from a subscriber's subscriptions.",
        _unsubscribe,
        (_SUBSCRIBER, _PUBLISHER, Parameter("KEY", Kind.KEY, optional=True, many=True)),
        examples=("unsubscribe 3000 1000 DOT/USD", "unsubscribe 3000 1000"),
        changes=True,
    ),
    Command(
        "cheat",
        "Replace an honest collator by a cheating one.",
        _cheat,
        (
            Parameter("PARA", Kind.PARA),
            Parameter("STRATEGY", Kind.STRATEGY),
            Parameter("COLLATOR", Kind.NUMBER, optional=True),
            Parameter("RATE", Kind.SHARE, optional=True),
        ),
        "COLLATOR counts from 1; by default it is the collator whose turn is next.\n"
        "RATE is the share of its turns in which it cheats, 1 by default. `honest` ends the cheating.",
        ("cheat 3000 omit-node", "cheat 3000 omit-node,stale-root 2 0.5"),
        changes=True,
    ),
    Command(
        "honest",
        "Make all collators of a parachain honest.",
        _honest,
        (Parameter("PARA", Kind.PARA),),
        examples=("honest 3000",),
        changes=True,
    ),
    Command(
        "order",
        "Send a subscriber a governance call about a publisher.",
        _order,
        (
            _SUBSCRIBER,
            Parameter("CALL", Kind.WORD, words=("clear_publisher_cache", "redeliver", "enable_publisher")),
            _PUBLISHER,
        ),
        examples=("order 3000 redeliver 1000",),
        changes=True,
    ),
    Command(
        "register",
        "Have root register a publisher, with a deposit of its manager in plancks.",
        _register,
        (_PUBLISHER, Parameter("DEPOSIT", Kind.NUMBER, optional=True)),
        examples=("register 2001", "register 2001 0"),
        changes=True,
    ),
    Command(
        "deregister",
        "Have root remove a publisher with all that it published.",
        _deregister,
        (_PUBLISHER,),
        examples=("deregister 2001",),
        changes=True,
    ),
    Command(
        "offline",
        "Let the collators of a parachain build nothing.",
        _offline,
        (Parameter("PARA", Kind.PARA),),
        examples=("offline 3000",),
        changes=True,
    ),
    Command(
        "online",
        "Let the collators of a parachain build again.",
        _online,
        (Parameter("PARA", Kind.PARA),),
        examples=("online 3000",),
        changes=True,
    ),
    Command(
        "turn",
        "Let a parachain build for the next relay block, whatever its pace.",
        _turn,
        (Parameter("PARA", Kind.PARA),),
        examples=("turn 1000",),
        changes=True,
    ),
    Command(
        "act",
        "Do an action as the journal of `pubsub serve` has it.",
        _act,
        (Parameter("ACTION", Kind.VALUE),),
        "What the other commands have no words for: messages, offered extrinsics, whole sets of subscriptions.",
        ("""act '{"kind":"travel","slot":2000000}'""",),
        changes=True,
    ),
)
