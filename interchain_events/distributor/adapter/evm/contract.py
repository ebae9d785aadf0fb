"""The contract that emits the events: calls to it, its errors and its log entries.

`DomeEvents.sol` is its source, and `DomeEvents.json` is the compiled form. The public contract has
the same call and the same event, but it accepts an id twice.
"""

import json
import re
from importlib import resources
from typing import Final

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError

from interchain_events.distributor.adapter.evm.account import keccak256
from interchain_events.distributor.adapter.evm.node import Log
from interchain_events.distributor.event import (
    MOST_NUMBER,
    MOST_TIME,
    BadEventError,
    Event,
    Notice,
    legacy_notice,
    parse_row,
)
from pubsub_emulator.client.errors import BadAnswer

_MADE: Final[dict[str, str]] = json.loads(
    resources.files(__package__ or "").joinpath("DomeEvents.json").read_text(encoding="utf-8")
)
_CALL: Final = ("bytes32", "address", "bytes32", "bytes32", "string", "string", "string[]")
"""The types of a publication's arguments: publisher, author, entity, previous hash, event type,
location and metadata."""
DATA: Final = ("uint256", "uint256", "address", "bytes", "bytes", "bytes[]")
"""The types of a log entry's data: index, timestamp, author, event type, location and metadata.

Texts are decoded as bytes, because those that others have published need not be UTF-8.
"""
MOST_DATA: Final = 64 * 1024
"""The greatest size of a log entry's data, in bytes. Longer data is not decoded, and the entry is
quarantined."""


def _selector(text: str) -> bytes:
    """Return the selector of a call or error: the first four bytes of its signature's hash."""
    return keccak256(text.encode())[:4]


TOPIC: Final = "0x" + keccak256(f"EventDOMEv1(uint256,uint256,{','.join(_CALL)})".encode()).hex()
"""The topic of the contract's event."""
EMIT: Final = _selector(f"emitNewEvent({','.join(_CALL)})")
"""The selector of a publication."""
_NOBODY: Final = "0x" + "00" * 32
"""The publisher of an event that has no `iss`."""
IS_UNIQUE: Final = _selector("unique()")
"""The data of the call that asks whether the contract refuses an id that it already has."""
_ERRORS: Final = {
    _selector(f"{name}({kinds})").hex(): name
    for name, kinds in (("AlreadyPublished", "uint256"), ("BadGlobalId", ""), ("TooLong", ""))
}
"""The contract's errors by selector, in hexadecimal."""
_ERROR: Final = re.compile(f"0x({'|'.join(_ERRORS)})")


def creation(*, unique: bool) -> bytes:
    """Return the data of the transaction that creates a contract."""
    return bytes.fromhex(_MADE["bytecode"][2:]) + encode(("bool",), (unique,))


def call_data(event: Event, author: str) -> bytes:
    """Return the data of a transaction by which `author` publishes an event."""
    arguments = (
        bytes.fromhex((event.iss or _NOBODY)[2:]),
        author,
        bytes.fromhex(event.entity[2:]),
        bytes.fromhex(event.previous[2:]),
        event.event_type,
        event.data_location,
        list(event.metadata),
    )
    return EMIT + encode(_CALL, arguments)


def gas_of(data: bytes) -> int:
    """Return the gas limit of a publication with this data. Unused gas is not paid for."""
    return 150_000 + 400 * len(data)


def place_of(event_id: str) -> bytes:
    """Return the data of the call that asks for the place of an id in the log."""
    return _selector("placeOf(bytes32)") + keccak256(event_id.encode())


def refusal(data: object) -> str:
    """Return the name of the contract's error in a node's answer to a failed call.

    Returns an empty text if there is none. Nodes report errors in different forms, so the selector
    is searched for anywhere in `data`.
    """
    match = _ERROR.search(data if isinstance(data, str) else json.dumps(data, default=str))
    return "" if match is None else _ERRORS[match[1]]


def read_entry(log: Log, contract: str, place: str, appended: str) -> Notice:
    """Return the notice of a log entry.

    `place` names the answer in errors. `appended` is the element that public adapters append to the
    metadata, and that is removed here. An entry whose event is invalid becomes a notice without id,
    so that it is quarantined.

    Raises `BadAnswer` for an entry that this contract cannot have emitted.
    """
    if log.removed:
        raise BadAnswer(f"{place}: a log entry of a block that was removed by a reorganisation")
    is_ours = "0x" + log.address.hex() == contract.lower()
    if not is_ours or len(log.topics) != 4 or "0x" + log.topics[0].hex() != TOPIC:
        raise BadAnswer(f"{place}: a log entry of another contract or event")
    index = int.from_bytes(log.data[:32])
    time = int.from_bytes(log.data[32:64])
    if len(log.data) < 64 or index >= MOST_NUMBER or time > MOST_TIME // 1000:
        raise BadAnswer(f"{place}: a log entry without a possible index and time")
    block = "0x" + log.block_hash.hex()
    invalid = Notice(
        index + 1,
        time,
        Event("", "", (), entity="", previous=""),
        id=None,
        signer="",
        block=block,
    )
    if len(log.data) > MOST_DATA:
        return invalid._replace(fault=f"malformed: over {MOST_DATA} bytes")
    try:
        _, _, author, kind, location, metadata = decode(DATA, log.data)
        row = {
            "id": index,
            "timestamp": time * 1000,
            "eventType": kind.decode(errors="replace"),
            "dataLocation": location.decode(errors="replace"),
            "relevantMetadata": [value.decode(errors="replace") for value in metadata],
            "entityId": "0x" + log.topics[2].hex(),
            "previousEntityHash": "0x" + log.topics[3].hex(),
            "iss": "0x" + log.topics[1].hex() if any(log.topics[1]) else "",
            "ethereumAddress": author,
            "blockHash": block,
        }
        return legacy_notice(parse_row(row), appended)
    except (DecodingError, OverflowError, BadEventError) as error:
        return invalid._replace(fault=f"malformed: {error}"[:200])
