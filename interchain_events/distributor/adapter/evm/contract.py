"""The contract of the events: calls to it, its errors and its log entries.

`DomeEvents.sol` is the source, and `DomeEvents.json` is its compiled form. The public contract has
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

The texts are decoded as bytes, because texts that others published need not be UTF-8.
"""
MOST_DATA: Final = 64 * 1024
"""The greatest size of a log entry's data, in bytes. A longer one is quarantined and not
decoded."""


def _selector(text: str) -> bytes:
    """Return the first four bytes of a signature's hash, by which calls and errors are named."""
    return keccak256(text.encode())[:4]


TOPIC: Final = "0x" + keccak256(f"EventDOMEv1(uint256,uint256,{','.join(_CALL)})".encode()).hex()
"""The topic of the contract's event."""
EMIT: Final = _selector(f"emitNewEvent({','.join(_CALL)})")
"""The selector of a publication."""
_NOBODY: Final = "0x" + "00" * 32
"""The publisher of an event that has no `iss`."""
IS_UNIQUE: Final = _selector("unique()")
"""The data of the call that asks whether the contract refuses an id that it has."""
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
    publisher, *hashes = (
        bytes.fromhex(each[2:]) for each in (event.iss or _NOBODY, event.entity, event.previous)
    )
    texts = (event.event_type, event.data_location, list(event.metadata))
    return EMIT + encode(_CALL, (publisher, author, *hashes, *texts))


def gas_of(data: bytes) -> int:
    """Return a limit of the gas for a publication with that data. Unused gas is not paid."""
    return 150_000 + 400 * len(data)


def place_of(event_id: str) -> bytes:
    """Return the data of the call that asks for an id's place in the log."""
    return _selector("placeOf(bytes32)") + keccak256(event_id.encode())


def refusal(data: object) -> str:
    """Return the name of the contract's error in a node's message about a failed call.

    Nodes have different forms for it, so it is searched for. Empty if there is none.
    """
    found = _ERROR.search(data if isinstance(data, str) else json.dumps(data, default=str))
    return "" if found is None else _ERRORS[found[1]]


def read_entry(log: Log, contract: str, place: str, appended: str) -> Notice:
    """Return the notice of a log entry.

    `place` names the answer in errors. `appended` is the element that public adapters append to the
    metadata, and it is removed. An entry without a valid event is quarantined.

    Raises `BadAnswer` for an entry that this contract cannot have emitted.
    """
    ours = "0x" + log.address.hex() == contract.lower() and not log.removed
    if not ours or len(log.topics) != 4 or "0x" + log.topics[0].hex() != TOPIC:
        raise BadAnswer(f"{place}: a log entry of another contract or event")
    index, time = (int.from_bytes(log.data[at : at + 32]) for at in (0, 32))
    if len(log.data) < 64 or index >= MOST_NUMBER or time > MOST_TIME // 1000:
        raise BadAnswer(f"{place}: a log entry without a possible index and time")
    block = "0x" + log.block_hash.hex()
    bad = Notice(
        index + 1,
        time,
        Event("", "", (), "", ""),
        None,
        "",
        f"malformed: over {MOST_DATA} bytes",
        block,
    )
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
