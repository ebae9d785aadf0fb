"""Commands that change the network: publish, subscribe, cheat, order. They take effect in the next steps."""

import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pubsub_emulator.cli.pages import Line, Shown, words
from pubsub_emulator.cli.session.command import Command, CommandError, Given, Kind, Parameter, near_to
from pubsub_emulator.cli.session.session import Session, number, value
from pubsub_emulator.collator.cheats import STRATEGIES
from pubsub_emulator.emulator.network.cheating import make_cheat, make_honest
from pubsub_emulator.emulator.network.parachain import Parachain
from pubsub_emulator.emulator.seeded import MILLION
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec, merge_subscriptions
from pubsub_emulator.runtime.parachain.governance import subscriber_call, transact

PUBLISHER_ID: Final = "a publisher's id is a whole number"


def _para(session: Session, text: str) -> Parachain:
    return session.chain(number(text, "a parachain's id is a whole number"))


def _subscriber(session: Session, text: str) -> Parachain:
    chain = _para(session, text)
    if chain.pace.on_demand:
        raise CommandError(f"{chain.para} is a publisher only and cannot subscribe")
    return chain


def _publish(session: Session, given: Given) -> Iterator[Shown]:
    chain = _para(session, given.one("PARA"))
    key, data = session.key(given.one("KEY")), value(given.one("VALUE"))
    ttl = number(given.maybe("TTL") or "0", "TTL is a number of relay blocks, 0 for no expiry")
    session.network.publish(chain.para, key, data, ttl)
    life = f"valid for {ttl} blocks" if ttl else "no expiry"
    yield Line(
        f"{chain.para} publishes {session.key_name(key)} ({len(data)} bytes, {life}): sent in relay block "
        f"{session.network.number + 1}, executed in {session.network.number + 2}"
    )
    limit = session.network.config.relay.pubsub.max_value_length
    if len(data) > limit:
        yield Line(f"the relay chain will refuse this value: the limit is {limit:,} bytes")
    if not any(key in each.subscriptions.get(chain.para, ()) for each in _specs(session)):
        name = shlex.quote(session.key_name(key))
        reader = next((each.para_id for each in _specs(session) if each.para_id != chain.para), "SUBSCRIBER")
        yield Line(f"no parachain subscribes to this key; `subscribe {reader} {chain.para} {name}` has it delivered")


def _specs(session: Session) -> Iterator[RuntimeSpec]:
    """The runtimes of all subscribers, including ordered upgrades that are not in force yet."""
    paces = ((chain.para, chain.pace) for chain in session.network.parachains.values())
    yield from (session.spec(para) for para, pace in paces if not pace.on_demand)


def _delete(session: Session, given: Given) -> Iterator[Shown]:
    chain = _para(session, given.one("PUBLISHER"))
    keys = [session.key(text) for text in given.many("KEY")]
    session.network.delete(chain.para, keys)
    yield Line(
        f"{len(keys)} key{'s' * (len(keys) > 1)} of {chain.para} will be deleted in relay block {_next(session)}"
    )


def _next(session: Session) -> int:
    return session.network.number + 1


def _subscribe(session: Session, given: Given) -> Iterator[Shown]:
    chain = _subscriber(session, given.one("SUBSCRIBER"))
    publisher = ParaId(number(given.one("PUBLISHER"), PUBLISHER_ID))
    spec = session.spec(chain.para)
    keys = [session.key(text) for text in given.many("KEY")]
    before = [(para, list(held)) for para, held in spec.subscriptions.items()]
    after = merge_subscriptions([*before, (publisher, keys)])
    session.order_spec(replace(spec, subscriptions=after))
    yield Line(f"{chain.para} will subscribe to {len(after[publisher])} keys of {publisher}: {_arrives(session)}")


def _unsubscribe(session: Session, given: Given) -> Iterator[Shown]:
    chain = _subscriber(session, given.one("SUBSCRIBER"))
    publisher = ParaId(number(given.one("PUBLISHER"), PUBLISHER_ID))
    spec = session.spec(chain.para)
    held = spec.subscriptions.get(publisher)
    if held is None:
        raise CommandError(f"{chain.para} subscribes to nothing of {publisher}")
    dropped = frozenset(session.key(text) for text in given.many("KEY")) or frozenset(held)
    for key in sorted(dropped.difference(held)):
        raise CommandError(f"{chain.para} does not subscribe to {session.key_name(key)} of {publisher}")
    kept = [key for key in held if key not in dropped]
    others = [(para, list(keys)) for para, keys in spec.subscriptions.items() if para != publisher]
    session.order_spec(replace(spec, subscriptions=merge_subscriptions([*others, (publisher, kept)])))
    yield Line(f"{chain.para} will subscribe to {len(kept)} keys of {publisher}: {_arrives(session)}")


def _arrives(session: Session) -> str:
    return (
        f"the message is sent in relay block {_next(session)} and takes effect in the parachain block after its arrival"
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
    chain = _para(session, given.one("PARA"))
    names = strategy_names(given.one("STRATEGY"))
    count = len(chain.collators)
    at = given.maybe("COLLATOR")
    wanted = None if at is None else number(at, f"COLLATOR is a number from 1 to {count}", 1)
    rate = share_of(given.maybe("RATE") or "1")
    chosen = make_cheat(session.network, chain.para, names, wanted, rate)
    often = "in each of its turns" if rate == MILLION else f"in {rate / MILLION:.0%} of its turns"
    yield Line(f"collator {chosen} of {count} of {chain.para} now uses {', '.join(names)}, {often}")


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
    chain = _para(session, given.one("PARA"))
    count = make_honest(session.network, chain.para)
    yield Line(f"all {count} collators of {chain.para} are honest from now on")


def _order(session: Session, given: Given) -> Iterator[Shown]:
    chain = _subscriber(session, given.one("SUBSCRIBER"))
    publisher = number(given.one("PUBLISHER"), PUBLISHER_ID)
    call = given.one("CALL")
    session.network.send_downward(chain.para, transact(subscriber_call(call, publisher)))
    yield Line(f"governance sends {chain.para} the call {call}({words(publisher)}) in relay block {_next(session)}")


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
)
