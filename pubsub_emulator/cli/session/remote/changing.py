"""Commands that ask a node for something: publish, subscribe, cheat, order, set. It happens with the next steps."""

import shlex
from collections.abc import Iterator, Mapping

from pubsub_emulator.cli.pages import Line, Shown, words
from pubsub_emulator.cli.session.command import CommandError, Given
from pubsub_emulator.cli.session.network_commands import PUBLISHER_ID, share_of, strategy_names
from pubsub_emulator.cli.session.remote.connection import RELAY, Remote
from pubsub_emulator.cli.session.session import number, value
from pubsub_emulator.cli.session.settings import storage_entry
from pubsub_emulator.emulator.seeded import MILLION
from pubsub_emulator.emulator.state_diff import key_name
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import ParaId

_PARA = "a parachain's id is a whole number"


def _para(remote: Remote, text: str) -> ParaId:
    return remote.known(number(text, _PARA))


def publish(remote: Remote, given: Given) -> Iterator[Shown]:
    """Let a parachain publish a value with its next block; says when it is executed and whether anybody subscribes."""
    para = _para(remote, given.one("PARA"))
    key, data = remote.key(given.one("KEY")), value(given.one("VALUE"))
    ttl = number(given.maybe("TTL") or "0", "TTL is a number of relay blocks, 0 for no expiry")
    at = remote.number
    remote.ask("pubsub_publish", para, hexed(key), hexed(data), ttl)
    life = f"valid for {ttl} blocks" if ttl else "no expiry"
    yield Line(
        f"{para} publishes {remote.key_name(key)} ({len(data)} bytes, {life}): sent in relay block {at + 1}, "
        f"executed in {at + 2}"
    )
    readers = remote.listed(None, subscribers=True)
    if not any(hexed(key) in _subscribed(remote, each).get(para, ()) for each in readers):
        reader = next((each for each in readers if each != para), "SUBSCRIBER")
        name = shlex.quote(remote.key_name(key))
        yield Line(f"no parachain subscribes to this key; `subscribe {reader} {para} {name}` has it delivered")


def delete(remote: Remote, given: Given) -> Iterator[Shown]:
    """Delete keys of a publisher in the next relay block."""
    para = _para(remote, given.one("PUBLISHER"))
    keys = [hexed(remote.key(text)) for text in given.many("KEY")]
    at = remote.number + 1
    remote.ask("pubsub_delete", para, keys)
    yield Line(f"{len(keys)} key{'s' * (len(keys) > 1)} of {para} will be deleted in relay block {at}")


def _subscribed(remote: Remote, para: ParaId) -> Mapping[int, list[str]]:
    """What a parachain subscribes to once what was ordered here is in force."""
    held = remote.ask("pubsub_subscriptions", para)
    version, items = remote.wanted.get(para, (0, {}))
    if version > held["specVersion"]:
        return items
    remote.wanted.pop(para, None)
    return {each["publisher"]: [key["key"] for key in each["keys"]] for each in held["items"]}


def _order(remote: Remote, para: ParaId, items: dict[int, list[str]], publisher: int) -> Line:
    at = remote.number + 1
    wanted = [{"publisher": who, "keys": keys} for who, keys in items.items() if keys]
    version = remote.ask("pubsub_setSubscriptions", para, wanted)["specVersion"]
    remote.wanted[para] = version, items
    arrives = f"the message is sent in relay block {at} and takes effect in the parachain block after its arrival"
    return Line(f"{para} will subscribe to {len(items[publisher])} keys of {publisher}: {arrives}")


def subscribe(remote: Remote, given: Given) -> Iterator[Shown]:
    """Add keys to what a subscriber has, by an upgrade of its runtime in the next relay block."""
    para, publisher = _para(remote, given.one("SUBSCRIBER")), number(given.one("PUBLISHER"), PUBLISHER_ID)
    held = _subscribed(remote, para)
    keys = [*held.get(publisher, []), *(hexed(remote.key(text)) for text in given.many("KEY"))]
    yield _order(remote, para, {**held, publisher: list(dict.fromkeys(keys))}, publisher)


def unsubscribe(remote: Remote, given: Given) -> Iterator[Shown]:
    """Remove keys of a publisher, by default all. Raises `CommandError` for one that is not subscribed."""
    para, publisher = _para(remote, given.one("SUBSCRIBER")), number(given.one("PUBLISHER"), PUBLISHER_ID)
    items = _subscribed(remote, para)
    held = items.get(publisher)
    if held is None:
        raise CommandError(f"{para} subscribes to nothing of {publisher}")
    dropped = {hexed(remote.key(text)): text for text in given.many("KEY")} or dict.fromkeys(held, "")
    for key, text in dropped.items():
        if key not in held:
            raise CommandError(f"{para} does not subscribe to {text} of {publisher}")
    yield _order(remote, para, {**items, publisher: [key for key in held if key not in dropped]}, publisher)


def cheat(remote: Remote, given: Given) -> Iterator[Shown]:
    """Make a collator try strategies in a share of its turns, by default the one whose turn is next."""
    para, names = _para(remote, given.one("PARA")), strategy_names(given.one("STRATEGY"))
    at, rate = given.maybe("COLLATOR"), share_of(given.maybe("RATE") or "1")
    wanted = None if at is None else number(at, "COLLATOR is a number from 1 on", 1)
    found = remote.ask("pubsub_cheat", para, list(names), wanted, rate / MILLION)
    often = "in each of its turns" if rate == MILLION else f"in {rate / MILLION:.0%} of its turns"
    yield Line(f"collator {found['collator']} of {found['collators']} of {para} now uses {', '.join(names)}, {often}")


def honest(remote: Remote, given: Given) -> Iterator[Shown]:
    """Make all collators of a parachain honest."""
    para = _para(remote, given.one("PARA"))
    yield Line(f"all {remote.ask('pubsub_honest', para)['collators']} collators of {para} are honest from now on")


def order(remote: Remote, given: Given) -> Iterator[Shown]:
    """Let governance send a subscriber a call about a publisher in the next relay block."""
    para, publisher = _para(remote, given.one("SUBSCRIBER")), number(given.one("PUBLISHER"), PUBLISHER_ID)
    at = remote.number + 1
    remote.ask("pubsub_order", para, given.one("CALL"), publisher)
    yield Line(f"governance sends {para} the call {given.one('CALL')}({publisher}) in relay block {at}")


def set_item(remote: Remote, given: Given) -> Iterator[Shown]:
    """Write or remove one storage item at once; the node builds the blocks that this takes."""
    chain = given.one("CHAIN")
    if chain != RELAY:
        chain = str(_para(remote, chain))
    key, stored = storage_entry(remote, chain, given.one("ITEM"), given.many("VALUE"))
    remote.ask("dev_setStorage", [[hexed(key), None if stored is None else hexed(stored)]], chain=chain)
    said = "removed" if stored is None else f"set to {words(stored)}"
    named = "the relay chain" if chain == RELAY else chain
    yield Line(f"{key_name(key)} of {named} is {said}; the network is at relay block {remote.number}")
