"""The contract of the events: calls to it, its refusals and its log entries.

`DomeEvents.sol` is the source, `DomeEvents.json` what its compiler makes of it. The public contract has the same call
and the same event, and takes an id twice.
"""

import json
import re
from importlib import resources
from typing import Final

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError

from pubsub_emulator.client.errors import BadAnswer
from pubsub_emulator.distributor.adapter.evm.account import keccak256
from pubsub_emulator.distributor.adapter.evm.node import Log
from pubsub_emulator.distributor.event import (
    MOST_NUMBER,
    MOST_TIME,
    BadEventError,
    Event,
    Notice,
    legacy_notice,
    parse_row,
)

_MADE: Final[dict[str, str]] = json.loads(
    resources.files(__package__ or "").joinpath("DomeEvents.json").read_text(encoding="utf-8")
)
_CALL: Final = ("bytes32", "address", "bytes32", "bytes32", "string", "string", "string[]")
"""The arguments of a publication: publisher, author, entity, previous hash, type, location, metadata."""
DATA: Final = ("uint256", "uint256", "address", "bytes", "bytes", "bytes[]")
"""Not indexed, in order: index, timestamp, author, type, location, metadata. Texts of strangers need not be UTF-8."""
MOST_DATA: Final = 64 * 1024
"""Bytes of a log entry; a longer one is quarantined unread."""


def _selector(text: str) -> bytes:
    return keccak256(text.encode())[:4]


TOPIC: Final = "0x" + keccak256(f"EventDOMEv1(uint256,uint256,{','.join(_CALL)})".encode()).hex()
EMIT: Final = _selector(f"emitNewEvent({','.join(_CALL)})")
_NOBODY: Final = "0x" + "00" * 32
IS_UNIQUE: Final = _selector("unique()")
_ERRORS: Final = {
    _selector(f"{name}({kinds})").hex(): name
    for name, kinds in (("AlreadyPublished", "uint256"), ("BadGlobalId", ""), ("TooLong", ""))
}
_ERROR: Final = re.compile(f"0x({'|'.join(_ERRORS)})")


def creation(*, unique: bool) -> bytes:
    """The data of the transaction that makes a contract."""
    return bytes.fromhex(_MADE["bytecode"][2:]) + encode(("bool",), (unique,))


def call_data(event: Event, author: str) -> bytes:
    """The data of the transaction by which an address publishes an event; without `iss` the publisher is zero."""
    publisher, *hashes = (bytes.fromhex(each[2:]) for each in (event.iss or _NOBODY, event.entity, event.previous))
    texts = (event.event_type, event.data_location, list(event.metadata))
    return EMIT + encode(_CALL, (publisher, author, *hashes, *texts))


def gas_of(data: bytes) -> int:
    """The most gas that publishing takes with that data; what is left over is not paid."""
    return 150_000 + 400 * len(data)


def place_of(event_id: str) -> bytes:
    """The data of a call that asks for the place of an id in the log."""
    return _selector("placeOf(bytes32)") + keccak256(event_id.encode())


def refusal(data: object) -> str:
    """The name of the contract's error in what a node says of a failed call, in its own form; empty if none is."""
    found = _ERROR.search(data if isinstance(data, str) else json.dumps(data, default=str))
    return "" if found is None else _ERRORS[found[1]]


def read_entry(log: Log, contract: str, place: str, appended: str) -> Notice:
    """The notice of a log entry, without what public adapters append to the metadata: `appended` or an empty string.

    Raises `BadAnswer` for what no such contract emits; an event without a valid content is quarantined.
    """
    ours = "0x" + log.address.hex() == contract.lower() and not log.removed
    if not ours or len(log.topics) != 4 or "0x" + log.topics[0].hex() != TOPIC:
        raise BadAnswer(f"{place}: a log entry of another contract or event")
    index, time = (int.from_bytes(log.data[at : at + 32]) for at in (0, 32))
    if len(log.data) < 64 or index >= MOST_NUMBER or time > MOST_TIME // 1000:
        raise BadAnswer(f"{place}: a log entry without a possible index and time")
    block = "0x" + log.block_hash.hex()
    bad = Notice(index + 1, time, Event("", "", (), "", ""), None, "", f"malformed: over {MOST_DATA} bytes", block)
    if len(log.data) > MOST_DATA:
        return bad
    try:
        _, _, author, kind, location, metadata = decode(DATA, log.data)
        row = {
            "id": index,
            "timestamp": time * 1000,
            "eventType": kind.decode(errors="replace"),
            "dataLocation": location.decode(errors="replace"),
            "relevantMetadata": [each.decode(errors="replace") for each in metadata],
            "entityId": "0x" + log.topics[2].hex(),
            "previousEntityHash": "0x" + log.topics[3].hex(),
            "iss": "0x" + log.topics[1].hex() if any(log.topics[1]) else "",
            "ethereumAddress": author,
            "blockHash": block,
        }
        return legacy_notice(parse_row(row), appended)
    except (DecodingError, OverflowError, BadEventError) as error:
        return bad._replace(fault=f"malformed: {error}"[:200])
