"""Readers of the event systems as targets of `pubsub fuzz --target`."""

import json
from collections.abc import Callable, Iterable
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from interchain_events.distributor.event import (
    BadEventError,
    parse_notification,
    parse_publication,
    parse_row,
)
from interchain_events.events.filters.codec import from_json, to_json
from interchain_events.events.filters.normal import normalize
from interchain_events.events.subscriptions.cursor import Cursor, decode_cursor, encode_cursor
from interchain_events.prism.core.messages import AddKey, Usage
from interchain_events.prism.core.metadata import object_of
from pubsub_emulator.files.untrusted import parse_json
from pubsub_emulator.laboratory.mutation import target
from pubsub_emulator.primitives.errors import DefensiveFailure

if TYPE_CHECKING:
    from interchain_events.prism.make import Secret, Signed

_SENDER: Final = bytes(range(32))
"""A key that signs mutated operations again."""
_CONTRACT: Final = "0x" + "c0" * 20


def _filters() -> Iterable[bytes]:
    yield b'{"any": true}'
    yield (
        b'{"all": [{"kind": "Balances.*"}, {"not": {"chain": 2000}}, {"one_of": [{"chain":'
        b" null}]}]}"
    )
    for op, value in (
        ("=", 5),
        (">=", -1),
        ("in", [1, "a", True, None]),
        ("prefix", "0x00"),
        ("!=", "b"),
    ):
        yield json.dumps(
            {"field": ["dispatch_info", 0, "weight"], "op": op, "value": value}
        ).encode()


@target("filter", "a filter of events", _filters, "events.filters", text=True)
def _read_filter(data: bytes) -> str:
    part = from_json(parse_json(data, "filter"))
    if from_json(to_json(part)) != part:
        raise DefensiveFailure("a filter reads back as another")
    normalize((part,))
    return type(part).__name__


_TAG: Final = bytes(8)


def _cursors() -> Iterable[bytes]:
    for cursor in (Cursor(1, 0), Cursor(2**32 - 1, 2**64 - 1)):
        yield encode_cursor(cursor, _TAG).encode()


@target("cursor", "a cursor of the event log", _cursors, "events.subscriptions")
def _read_cursor(data: bytes) -> str:
    text = data.decode("latin-1")
    if encode_cursor(decode_cursor(text, _TAG), _TAG) != text:
        raise DefensiveFailure("a cursor has two texts")
    return "read"


def _secret() -> "Secret":
    from interchain_events.prism.make import Secret

    return Secret(_SENDER)


def _operations() -> "list[Signed]":
    """Return operations that create, update and deactivate a DID, and issue and revoke a batch."""
    from interchain_events.prism import make

    key = _secret()
    usages = {
        "master0": Usage.MASTER_KEY,
        "issuing0": Usage.ISSUING_KEY,
        "revoke0": Usage.REVOCATION_KEY,
    }
    created = make.create_did({name: (usage, key) for name, usage in usages.items()})
    more = [AddKey(make.public_key("issuing1", Usage.ISSUING_KEY, key))]
    updated = make.update_did(created.suffix, created.hash, more, "master0", key)
    issued = make.issue_batch(created.suffix, bytes(32), "issuing0", key)
    revoked = make.revoke(issued.batch_id, issued.signed.hash, [bytes(32)], "revoke0", key)
    ended = make.deactivate_did(created.suffix, updated.hash, "master0", key)
    return [created, updated, issued.signed, revoked, ended]


def _objects() -> Iterable[bytes]:
    from interchain_events.prism.make import atala_object

    operations = _operations()
    yield b"\x00" + atala_object(signed.raw for signed in operations)
    for signed in operations:
        yield b"\x01" + signed.operation


@target("prism", "an object, or a signed operation", _objects, "prism")
def _read_object(data: bytes) -> str:
    """Process an anchored object, or an operation with a valid signature.

    The ledger of an operation has the first three operations of `_operations`.
    """
    from interchain_events.prism.core.ledger import MemoryLedger
    from interchain_events.prism.core.process import process, read_object
    from interchain_events.prism.make import atala_object, sign_raw

    ledger = MemoryLedger()
    raw = data[1:]
    if data[:1] == b"\x01":
        earlier = atala_object(signed.raw for signed in _operations()[:3])
        for operation in read_object(earlier) or ():
            process(ledger, operation)
        raw = atala_object([sign_raw(raw, "master0", _secret()).raw])
    outcomes = [process(ledger, operation) for operation in read_object(raw) or ()]
    words = [
        "again" if outcome is None else str(outcome.reason or outcome.type.name)
        for outcome in outcomes[:6]
    ]
    return ", ".join(words) or "nothing"


def _metadata() -> Iterable[bytes]:
    """Yield CBOR maps with label 21325, and JSON after a zero byte."""
    yield bytes.fromhex("a119534da26176016163824261627841").replace(b"xA", b"\x43cde")
    yield bytes.fromhex("bf19534dbf61639f5f4161ff6430786162ff617601ffff")
    yield b'\x00{"v": 1, "c": ["0x6162", "0x63"]}'


@target("metadatum", "metadata of Cardano, CBOR or JSON", _metadata, "prism")
def _read_metadata(data: bytes) -> str:
    text = data[1:].decode("utf-8", "replace") if data[:1] == b"\0" else None
    return f"{min(len(object_of(text, data)), 9)} bytes"


def _publications() -> Iterable[bytes]:
    event = {
        "name": "a.b",
        "data": {"x": 1},
        "location": "https://example.org/1",
        "metadata": ["00" * 32],
    }
    yield json.dumps({"network": "alpha", "event": event}).encode()
    fields = {
        "eventType": "a.b",
        "dataLocation": "https://example.org/1?hl=0x" + "11" * 32,
        "timestamp": 7,
    }
    fields |= {
        "id": 1,
        "relevantMetadata": [],
        "entityId": "0x" + "22" * 32,
        "previousEntityHash": "0x" + "33" * 32,
    }
    yield json.dumps(fields).encode()
    yield json.dumps({"network": "alpha", **fields}).encode()


@target("publication", "bodies that a distributor is sent", _publications, "distributor", text=True)
def _read_publication(data: bytes) -> str:
    body = parse_json(data, "body")
    results = []
    readers: tuple[Callable[[object], object], ...] = (
        parse_publication,
        parse_notification,
        parse_row,
    )
    for read in readers:
        try:
            read(body)
            results.append("read")
        except BadEventError as error:
            results.append(str(error)[:40])
    return ", ".join(results)


def _settings() -> Iterable[bytes]:
    adapter = b'[adapters.alpha]\nurl = "http://127.0.0.1:1"\nprofile = "legacy"\n'
    adapter += b'chain_id = "1"\nenvironments = ["a"]\n'
    yield (
        b'public_url = "http://127.0.0.1:8090"\nport = 8080\nsince = "now"\nretain = 5\n' + adapter
    )
    token = b'access.tokens = [{ name = "a", sha256 = "' + b"0" * 64 + b'", rights = ["read"] }]\n'
    yield b'public_url = "http://127.0.0.1:8090"\nstore = "redis://127.0.0.1"\n' + token + adapter


@target("distributor-config", "a distributor's settings", _settings, "distributor.service")
def _read_settings(data: bytes) -> str:
    from interchain_events.distributor.service.config import parse_config

    return f"{len(parse_config(data, 'file').adapters)} adapters"


def _entries() -> Iterable[bytes]:
    from eth_abi.abi import encode

    from interchain_events.distributor.adapter.evm.contract import DATA, TOPIC

    texts = ((b"t", b"https://example.org/1?hl=x", [b"sbx"]), (b"", b"\xff" * 40, [b""] * 3))
    for index, event_texts in enumerate(texts):
        entry = {
            "address": _CONTRACT,
            "topics": [TOPIC, *["0x" + "11" * 32] * 3],
            "blockNumber": "0x1",
        }
        data = encode(DATA, (index, 1_700_000_000, "0x" + "33" * 20, *event_texts))
        yield json.dumps(
            {**entry, "data": "0x" + data.hex(), "blockHash": "0x" + "22" * 32}
        ).encode()


@target(
    "evm-entry", "an entry of an EVM contract's log", _entries, "distributor.adapter.evm", text=True
)
def _read_entry(data: bytes) -> str:
    from interchain_events.distributor.adapter.evm.contract import read_entry
    from interchain_events.distributor.adapter.evm.node import LOGS
    from pubsub_emulator.client.answers import read
    from pubsub_emulator.client.errors import BadAnswer

    (entry,) = read(LOGS, [parse_json(data, "entry", BadAnswer)], "node")
    return read_entry(entry, _CONTRACT, "node", "1").fault[:30] or "read"


def _canister_scenarios() -> Iterable[bytes]:
    folder = files("interchain_events.icrc72") / "scenarios"
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if file.name.endswith(".toml"):
            yield file.read_bytes()


@target("canister-scenario", "a scenario of subnets", _canister_scenarios, "icrc72")
def _read_canister_scenario(data: bytes) -> str:
    from interchain_events.icrc72.scenario_file import parse

    return f"{len(parse(data, 'file').subscriber)} subscribers"
