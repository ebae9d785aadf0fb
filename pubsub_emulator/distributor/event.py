"""An event as it is published, and the forms in which adapters tell of it (ID-11, ID-22)."""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.runtime.pallet_dome_events.global_id import NoGlobalIdError, global_id

MOST_TYPE: Final = 255
MOST_METADATA: Final = 32
MOST_METADATUM: Final = 256
MOST_NUMBER: Final = 2**64 - 1
MOST_TIME: Final = 2**53 - 1

_HASH: Final = re.compile(r"0x[0-9a-fA-F]{64}")
_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{40}")
_BLOCK: Final = re.compile(r"0x[0-9a-f]{64}")
NETWORK: Final = re.compile(r"[a-z0-9-]{1,32}")


_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class BadEventError(PubsubError):
    """A body is not an event; the message names the field."""


class Event(NamedTuple):
    """The fields that are published. Hashes are kept as received and compared without regard to case."""

    event_type: str
    data_location: str
    metadata: tuple[str, ...]
    entity: str
    previous: str
    iss: str | None = None

    @property
    def order(self) -> str:
        """The entity by which events are kept in order (ID-37)."""
        return self.entity.lower()

    def body(self) -> dict[str, object]:
        """The body of a publication."""
        fields: dict[str, object] = {
            "eventType": self.event_type,
            "dataLocation": self.data_location,
            "relevantMetadata": list(self.metadata),
            "entityId": self.entity,
            "previousEntityHash": self.previous,
        }
        return fields if self.iss is None else {**fields, "iss": self.iss}

    def digest(self) -> str:
        """The digest of an event: blake2-256 over the canonical JSON (RFC 8785) of all fields but `iss`."""
        return _digest(self)


@lru_cache(4096)
def _digest(event: Event) -> str:
    lowered = Event(*event[:3], event.entity.lower(), event.previous.lower())
    return blake2_256(_CANONICAL.encode(lowered.body()).encode()).hex()


class Notice(NamedTuple):
    """An event in the log of a network.

    `number` is its place, from 1: a network's own `id`, which counts from 0, and one. `id` is the global id, `None`
    where there is none (`fault` says why). `time` is the block's, in seconds. `block` is the block's hash, empty where
    the adapter does not tell it; as it commits to all blocks before, equal hashes mean equal logs up to here.
    """

    number: int
    time: int
    event: Event
    id: str | None
    signer: str
    fault: str = ""
    block: str = ""

    def body(self) -> dict[str, object]:
        """The body of a notification, without `network`."""
        fields = self.event.body()
        fields["entityIDHash"] = fields.pop("entityId")
        publisher = fields.pop("iss", None)
        body = {
            "id": self.number - 1,
            "timestamp": self.time,
            **fields,
            "publisherAddress": publisher or "",
            "ethereumAddress": self.signer,
        }
        return {**body, "blockHash": self.block} if self.block else body

    def row(self) -> dict[str, object]:
        """An item of a query's answer."""
        fields = self.body()
        fields["entityId"] = fields.pop("entityIDHash")
        fields["timestamp"] = self.time * 1000
        return fields


def _text(body: Mapping[str, object], name: str, most: int) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not 1 <= len(value) <= most:
        raise BadEventError(f"{name}: a string of 1 to {most} characters is needed")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise BadEventError(f"{name}: not Unicode text") from None
    if "\0" in value:
        raise BadEventError(f"{name}: has a NUL character")
    return value


def _hash(body: Mapping[str, object], name: str) -> str:
    value = body.get(name)
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise BadEventError(f"{name}: 0x and 64 hex digits are needed")
    return value


def _metadata(body: Mapping[str, object], *, blank: bool = False) -> tuple[str, ...]:
    """The metadata; blank strings only where others published them, as public adapters append one."""
    values = body.get("relevantMetadata")
    if not isinstance(values, list) or len(values) > MOST_METADATA:
        raise BadEventError(f"relevantMetadata: a list of at most {MOST_METADATA} strings is needed")
    for value in values:
        if value == "" and blank:
            continue
        _text({"relevantMetadata": value}, "relevantMetadata", MOST_METADATUM)
        if not value.strip() and not blank:
            raise BadEventError("relevantMetadata: has a blank string")
    return tuple(values)


def _number(body: Mapping[str, object], name: str, most: int) -> int:
    value = body.get(name)
    if type(value) is not int or not 0 <= value <= most:
        raise BadEventError(f"{name}: an integer of 0 to {most} is needed")
    return value


def _object(body: object) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        raise BadEventError("the body is not a JSON object")
    return body


def parse_publication(body: object) -> tuple[str, Event]:
    """The global id and the event of a body, without unknown fields. Raises `BadEventError`, `NoGlobalIdError`."""
    fields = _object(body)
    kind, metadata = _text(fields, "eventType", MOST_TYPE), _metadata(fields)
    entity, previous = _hash(fields, "entityId"), _hash(fields, "previousEntityHash")
    iss = None if fields.get("iss") is None else _hash(fields, "iss")
    found = global_id(fields.get("dataLocation"))
    return found, Event(kind, fields["dataLocation"], metadata, entity, previous, iss)


def _first(fields: Mapping[str, object], *names: str) -> str:
    """The value of the first spelling that is present; public adapters use several."""
    return next((name for name in names if name in fields), names[0])


def _notice(fields: Mapping[str, object], time: int) -> Notice:
    publisher = fields.get(_first(fields, "publisherAddress", "origin", "iss"))
    iss = publisher if isinstance(publisher, str) and _HASH.fullmatch(publisher) else None
    signer = fields.get(_first(fields, "ethereumAddress", "authorAddress"))
    address = signer if isinstance(signer, str) and _ADDRESS.fullmatch(signer) else ""
    location = fields.get("dataLocation")
    found, fault = find_id(location)
    kept = location if isinstance(location, str) else ""
    kind, metadata = _text(fields, "eventType", MOST_TYPE), _metadata(fields, blank=True)
    entity = _hash(fields, _first(fields, "entityIDHash", "entityIdHash", "entityId"))
    previous = _hash(fields, "previousEntityHash")
    event = Event(kind, kept if found else kept[:64], metadata, entity, previous, iss)
    return Notice(_number(fields, "id", MOST_NUMBER) + 1, time, event, found, address, fault, block_of(fields))


def find_id(location: object) -> tuple[str | None, str]:
    """The global id of a location, or why it has none."""
    try:
        return global_id(location), ""
    except NoGlobalIdError as error:
        return None, str(error)


def block_of(fields: Mapping[str, object]) -> str:
    """The hash of an event's block, or an empty string if the body has none."""
    block = fields.get("blockHash")
    return block.lower() if isinstance(block, str) and _BLOCK.fullmatch(block.lower()) else ""


def parse_notification(body: object) -> tuple[str | None, Notice]:
    """The network, where it is named, and the notice of a notification's body. Raises `BadEventError`."""
    fields = _object(body)
    network = fields.get("network")
    if network is not None and not (isinstance(network, str) and NETWORK.fullmatch(network)):
        raise BadEventError("network: 1 to 32 of a-z, 0-9 and - are needed")
    return network, _notice(fields, _number(fields, "timestamp", MOST_TIME))


def parse_row(body: object) -> Notice:
    """The notice of an item of a query's answer, whose time is in ms. Raises `BadEventError`."""
    fields = _object(body)
    return _notice(fields, _number(fields, "timestamp", MOST_TIME) // 1000)


def legacy_notice(notice: Notice, chain_id: str) -> Notice:
    """The notice without what public adapters append to the metadata: the chain id, or an empty string (ID-1)."""
    kept = notice.event.metadata
    if kept and kept[-1] in {chain_id, ""}:
        kept = kept[:-1]
    return notice._replace(event=notice.event._replace(metadata=kept))
