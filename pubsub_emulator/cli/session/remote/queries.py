"""Commands that ask a node and change nothing: chains, blocks, ledgers, deliveries, verdicts, collators, storage."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pubsub_emulator.cli.blocks import DELIVERIES, REFUSALS, ledger_pages
from pubsub_emulator.cli.pages import Grid, Line, Shown, words
from pubsub_emulator.cli.session.command import CommandError, Given
from pubsub_emulator.cli.session.inspection import few, habit
from pubsub_emulator.cli.session.remote.blocks import (
    Told,
    block_at,
    delivery_row,
    events_of,
    height_of,
    refusal_row,
    relay_events,
)
from pubsub_emulator.cli.session.remote.connection import RELAY, Remote
from pubsub_emulator.cli.session.session import hexadecimal, number
from pubsub_emulator.cli.session.settings import runtime_fields
from pubsub_emulator.client.errors import NodeRefused
from pubsub_emulator.client.node import DecodedEvent
from pubsub_emulator.emulator.seeded import MILLION
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.parachain.ledger import Ledger, PublisherLedger

METHOD_NOT_FOUND: Final = -32601
MOST_BLOCKS: Final = 256
"""Relay blocks that `verdicts` goes through."""
_FIELDS: Final = (
    ("number", "number"),
    ("parent", "parentHash"),
    ("state root", "stateRoot"),
    ("extrinsics root", "extrinsicsRoot"),
)


def status(remote: Remote, _given: Given) -> Iterator[Shown]:
    """The best and the final block, and one row per parachain if the node is one of `pubsub serve`."""
    final = int(remote.ask("chain_getHeader", remote.ask("chain_getFinalizedHead"))["number"], 16)
    yield Line(f"{remote.name} at {remote.url}: best block {remote.number}, final block {final}")
    try:
        rows = tuple(_status_row(remote, para) for para in remote.paras())
    except NodeRefused as error:
        if error.code != METHOD_NOT_FOUND:
            raise
        yield Line("it is no node of `pubsub serve`: it tells events, storage and headers, and nothing of candidates")
        return
    yield Grid("parachains", ("parachain", "block", "subscribed keys", "collators", "cheating"), rows)


def _status_row(remote: Remote, para: ParaId) -> tuple[str | int, ...]:
    held, authors = remote.ask("pubsub_subscriptions", para), remote.ask("pubsub_collators", para)
    cheating = sum(bool(each["strategies"] and each["rate"]) for each in authors)
    return str(para), held["number"], sum(len(each["keys"]) for each in held["items"]), len(authors), cheating


def headers(remote: Remote, given: Given) -> Iterator[Shown]:
    """The newest header of CHAIN, by default of the relay chain and all parachains."""
    chain = given.maybe("CHAIN")
    names = [RELAY] if chain in {None, RELAY} else []
    names += [str(para) for para in remote.listed(chain)] if chain != RELAY else []
    for name in names:
        found = remote.ask("chain_getHeader", chain=name)
        rows = [(title, str(found[field])) for title, field in _FIELDS]
        rows[0] = "number", str(int(found["number"], 16))
        rows.insert(1, ("hash", str(remote.ask("chain_getBlockHash", int(found["number"], 16), chain=name))))
        yield Grid(f"newest header of {name}", ("field", "value"), tuple(rows))


def events(remote: Remote, given: Given) -> Iterator[Shown]:
    """The events of a block, by default the newest relay block. Raises `CommandError` if CHAIN built nothing valid."""
    chain, height = given.maybe("CHAIN") or RELAY, height_of(remote, given.maybe("BLOCK"))
    if chain == RELAY:
        yield _event_grid(f"events of relay block {height}", relay_events(remote, height))
        return
    para = remote.known(number(chain, "a chain is `relay` or a parachain's id"))
    for each in _valid(remote, para, height):
        title = f"events of block {each['number']} of {para}, in relay block {height}"
        yield _event_grid(title, events_of(remote, chain, each["hash"]))


def _valid(remote: Remote, para: ParaId, height: int) -> list[Mapping[str, Any]]:
    found = [each for each in block_at(remote, height, para).candidates if each["status"] != "rejected"]
    if not found:
        raise CommandError(f"{para} built nothing valid in relay block {height}")
    return found


def _event_grid(title: str, found: list[DecodedEvent]) -> Grid:
    return Grid(title, ("phase", "event"), tuple((each.phase, _event_words(each)) for each in found))


def _event_words(event: DecodedEvent) -> str:
    return f"{event.pallet}.{event.name}({', '.join(f'{name} {words(each)}' for name, each in event.fields.items())})"


def deliveries(remote: Remote, given: Given) -> Iterator[Shown]:
    """One row per delivery in the newest BLOCKS relay blocks, oldest first."""
    blocks = number(given.maybe("BLOCKS") or "10", "BLOCKS is a number of relay blocks from 1 on", 1)
    found = _newest(remote, given.maybe("SUBSCRIBER"), blocks)
    rows = tuple(delivery_row(remote, each) for told in found for each in told.deliveries)
    yield Grid("deliveries", DELIVERIES, rows)


def verdicts(remote: Remote, given: Given) -> Iterator[Shown]:
    """One row per refused block that the node still keeps, oldest first; at most `MOST_BLOCKS` relay blocks back."""
    found = _newest(remote, given.maybe("PARA"), MOST_BLOCKS)
    yield Grid("refused blocks", REFUSALS, tuple(refusal_row(remote, each) for told in found for each in told.refused))


def _newest(remote: Remote, text: str | None, blocks: int) -> list[Told]:
    """The newest blocks that the node keeps, ascending; of one parachain, or of all."""
    para = None if text is None else remote.known(number(text, "a parachain's id is a whole number"))
    newest = remote.number
    found = []
    for height in range(newest, max(newest - blocks, 0), -1):
        try:
            found.append(block_at(remote, height, para))
        except CommandError:
            break
    return found[::-1]


def ledger(remote: Remote, given: Given) -> Iterator[Shown]:
    """Where the bytes of a subscriber's block went. Raises `CommandError` if it built no valid one."""
    para = remote.known(number(given.one("SUBSCRIBER"), "a subscriber's id is a whole number"))
    at = given.maybe("BLOCK")
    if at is None:
        found = remote.ask("pubsub_ledger", para)
        if found is None:
            raise CommandError(f"{para} built no valid block yet")
        height = remote.ask("pubsub_candidate", found["block"])["includedAt"]
        yield from ledger_pages(f"block {found['number']} of {para}, in relay block {height}", _ledger_of(found))
        return
    height = height_of(remote, at)
    for each in _valid(remote, para, height):
        found = remote.ask("pubsub_ledger", para, each["hash"])
        yield from ledger_pages(f"block {found['number']} of {para}, in relay block {height}", _ledger_of(found))


def _ledger_of(found: Mapping[str, Any]) -> Ledger:
    return Ledger(
        budget=found["budget"],
        used=found["used"],
        messages_bytes=found["messagesBytes"],
        static_bytes=found["staticBytes"],
        map_charges=found["mapCharges"],
        proof_bytes=found["proofBytes"],
        proof_nodes=found["proofNodes"],
        own_state_bytes=found["ownStateBytes"],
        cache_state_bytes=found["cacheStateBytes"],
        publishers=tuple(
            PublisherLedger(
                para=ParaId(each["para"]),
                unchanged=each["unchanged"],
                complete=each["complete"],
                top_path_bytes=each["topPathBytes"],
                child_node_bytes=each["childNodeBytes"],
                value_bytes=each["valueBytes"],
                cache_charges=each["cacheCharges"],
                row_charges=each["rowCharges"],
                cached_bytes=each["cachedBytes"],
            )
            for each in found["publishers"]
        ),
    )


def subscriptions(remote: Remote, given: Given) -> Iterator[Shown]:
    """One row per publisher and subscriber; an upgrade that was sent and is not in force yet is shown instead."""
    for para in remote.listed(given.maybe("SUBSCRIBER"), subscribers=True):
        held = remote.ask("pubsub_subscriptions", para)
        version, ordered = remote.wanted.get(para, (0, {}))
        waits = version > held["specVersion"]
        items = (
            ordered if waits else {each["publisher"]: [key["key"] for key in each["keys"]] for each in held["items"]}
        )
        yield Grid(
            f"subscriptions of {para}{' (sent, not in force yet)' if waits else ''}",
            ("publisher", "keys", "which"),
            tuple((str(who), len(keys), few(remote, map(unhex, keys))) for who, keys in items.items()),
        )


def collators(remote: Remote, given: Given) -> Iterator[Shown]:
    """One row per collator: its key, and how often it tries which strategies."""
    rows = tuple(
        (str(para), each["collator"], each["key"], habit(tuple(each["strategies"]), round(each["rate"] * MILLION)))
        for para in remote.listed(given.maybe("PARA"), subscribers=given.maybe("PARA") is None)
        for each in remote.ask("pubsub_collators", para)
    )
    yield Grid("collators", ("parachain", "collator", "key", "tries"), rows)


def runtime(remote: Remote, given: Given) -> Iterator[Shown]:
    """The fields of a subscriber's runtime. Raises `CommandError` for a FIELD, since none can be set over a node."""
    if given.maybe("FIELD") is not None:
        raise CommandError(
            "to change a runtime is for a session over a network of its own; `pubsub step SCENARIO` begins one"
        )
    spec = remote.chain(number(given.one("SUBSCRIBER"), "a subscriber's id is a whole number")).spec()
    yield from runtime_fields(spec)


# What only a node has


def publishers(remote: Remote, _given: Given) -> Iterator[Shown]:
    """One row per para that is registered or has published."""
    yield from shown("publishers", remote.ask("pubsub_publishers")["publishers"])


def candidates(remote: Remote, given: Given) -> Iterator[Shown]:
    """One row per block of PARA that was judged for a relay block, valid or not."""
    para, height = (
        number(given.one("PARA"), "a parachain's id is a whole number"),
        height_of(remote, given.maybe("BLOCK")),
    )
    found = block_at(remote, height, remote.known(para)).candidates
    if not found:
        yield Line(f"no candidate of {para} was judged for relay block {height}")
        return
    yield from shown(f"candidates for relay block {height}", list(found))


def item(remote: Remote, given: Given) -> Iterator[Shown]:
    """The decoded value of `Pallet.Item` in the best state. Raises `CommandError` for a name without a dot."""
    pallet, dot, name = given.one("ITEM").partition(".")
    if not dot:
        raise CommandError(f"a storage item is Pallet.Item, not {given.one('ITEM')!r}")
    keys = [hexadecimal(key, "a key's SCALE bytes") for key in given.many("KEY")]
    node = remote.node(given.one("CHAIN"))

    async def read() -> Any:
        return await node.item(await node.best_head(), pallet, name, *keys)

    yield Line(f"{given.one('ITEM')}: {words(remote.run(read()))}")


def call(remote: Remote, given: Given) -> Iterator[Shown]:
    """The answer to METHOD; a PARAM that is no JSON is sent as a string."""
    params = []
    for each in given.many("PARAM"):
        try:
            params.append(json.loads(each))
        except ValueError:
            params.append(each)
    yield from shown(given.one("METHOD"), remote.ask(given.one("METHOD"), *params))


def _cell(found: object) -> str:
    """Numbers without separators: most are ids and heights, which a user types again."""
    if isinstance(found, int) and not isinstance(found, bool):
        return str(found)
    if isinstance(found, str):
        return found if len(found) <= 70 else f"{found[:66]}…"
    return "" if found is None else _cell(json.dumps(found, ensure_ascii=False))


def shown(title: str, found: Any) -> Iterator[Shown]:
    """JSON as a table: one row per object of a list, or one row per field."""
    if isinstance(found, list) and found and all(isinstance(each, Mapping) for each in found):
        header = tuple(dict.fromkeys(name for each in found for name in each))
        yield Grid(title, header, tuple(tuple(_cell(each.get(name)) for name in header) for each in found))
    elif isinstance(found, Mapping):
        yield Grid(title, ("field", "value"), tuple((name, _cell(each)) for name, each in found.items()))
    else:
        yield Line(f"{title}: {json.dumps(found, ensure_ascii=False)}")
