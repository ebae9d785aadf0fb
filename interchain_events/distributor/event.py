"""An event, and the forms in which adapters report it (ID-11, ID-22).

Publications of clients are parsed strictly. Notifications and rows of public adapters spell some
fields differently, and may have values that a publication must not have. So they are parsed more
leniently.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from interchain_events.pallets.dome_events.global_id import NoGlobalIdError, global_id
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256

MOST_TYPE: Final = 255
"""The greatest length of an event type, in characters."""
MOST_METADATA: Final = 32
"""The greatest number of an event's metadata."""
MOST_METADATUM: Final = 256
"""The greatest length of one of the metadata, in characters."""
MOST_NUMBER: Final = 2**64 - 1
"""The greatest `id` of an event in a log. Contracts count in 64 bits."""
MOST_TIME: Final = 2**53 - 1
"""The greatest time. JSON numbers up to this one are exact in every language."""

_HASH: Final = re.compile(r"0x[0-9a-fA-F]{64}")
_ADDRESS: Final = re.compile(r"0x[0-9a-fA-F]{40}")
_BLOCK: Final = re.compile(r"0x[0-9a-f]{64}")
NETWORK: Final = re.compile(r"[a-z0-9-]{1,32}")
"""The form of a network's name."""


_CANONICAL: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class BadEventError(PubsubError):
    """Raised if a body is not an event. The message names the field."""


class Event(NamedTuple):
    """The fields of an event that are published.

    Hashes are stored as they were received, and are compared without regard to case.
    """

    event_type: str
    data_location: str
    """The URL of the data, which contains the event's global id."""
    metadata: tuple[str, ...]
    entity: str
    """The hash that identifies the entity, `0x` and 64 hex digits."""
    previous: str
    """The hash of the entity's previous state, `0x` and 64 hex digits."""
    iss: str | None = None
    """The hash that identifies the issuer, `None` if the publication does not name one."""

    @property
    def order(self) -> str:
        """Return the key of the entity whose events must stay in order (ID-37)."""
        return self.entity.lower()

    def body(self) -> dict[str, object]:
        """Return the event as the body of a publication."""
        fields: dict[str, object] = {
            "eventType": self.event_type,
            "dataLocation": self.data_location,
            "relevantMetadata": list(self.metadata),
            "entityId": self.entity,
            "previousEntityHash": self.previous,
        }
        return fields if self.iss is None else {**fields, "iss": self.iss}

    def digest(self) -> str:
        """Return the digest by which contents are compared (ID-22).

        It is the blake2-256 hash, in hexadecimal, of the canonical JSON (RFC 8785) of all fields
        except `iss`, with lowercase hashes.
        """
        return _digest(self)


@lru_cache(4096)
def _digest(event: Event) -> str:
    """Return the digest of an event. It is cached because several steps need it."""
    # `iss` is left out because a network may report another publisher than the publication named.
    lowered = Event(*event[:3], event.entity.lower(), event.previous.lower())
    return blake2_256(_CANONICAL.encode(lowered.body()).encode()).hex()


class Notice(NamedTuple):
    """An event in the log of a network."""

    number: int
    """The event's place in the log, beginning with 1. The network's own `id` begins with 0."""
    time: int
    """The time of the block, in seconds."""
    event: Event
    id: str | None
    """The global id, `None` if the location does not contain one."""
    signer: str
    """The Ethereum address that signed the transaction, empty if the adapter does not report
    it."""
    fault: str = ""
    """The reason why there is no global id, empty if there is one."""
    block: str = ""
    """The block's hash, empty if the adapter does not report it. The hash commits to all earlier
    blocks, so if it is the same, the log is the same up to here."""

    def body(self) -> dict[str, object]:
        """Return the body of a notification, without the field `network`."""
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
        """Return the row with which a query for events is answered.

        It differs from a notification in the name of the entity's field and in the time, which is
        in milliseconds.
        """
        fields = self.body()
        fields["entityId"] = fields.pop("entityIDHash")
        fields["timestamp"] = self.time * 1000
        return fields


def _text(body: Mapping[str, object], name: str, most: int) -> str:
    """Return a field that must be a string of 1 to `most` characters.

    NUL characters and lone surrogates are refused, because stores cannot write them. Raises
    `BadEventError`.
    """
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
    """Return a field that must be `0x` and 64 hex digits. Raises `BadEventError`."""
    value = body.get(name)
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise BadEventError(f"{name}: 0x and 64 hex digits are needed")
    return value


def _metadata(body: Mapping[str, object], *, blank: bool = False) -> tuple[str, ...]:
    """Return the metadata of a body.

    With `blank`, blank strings are accepted: a publication must not have them, but public adapters
    append an empty one. Raises `BadEventError`.
    """
    values = body.get("relevantMetadata")
    if not isinstance(values, list) or len(values) > MOST_METADATA:
        raise BadEventError(
            f"relevantMetadata: a list of at most {MOST_METADATA} strings is needed"
        )
    for value in values:
        if value == "" and blank:
            continue
        _text({"relevantMetadata": value}, "relevantMetadata", MOST_METADATUM)
        if not value.strip() and not blank:
            raise BadEventError("relevantMetadata: has a blank string")
    return tuple(values)


def _number(body: Mapping[str, object], name: str, most: int) -> int:
    """Return a field that must be an integer from 0 to `most`. Raises `BadEventError`."""
    value = body.get(name)
    # `isinstance` would accept booleans.
    if type(value) is not int or not 0 <= value <= most:
        raise BadEventError(f"{name}: an integer of 0 to {most} is needed")
    return value


def _object(body: object) -> Mapping[str, Any]:
    """Return a body that must be a JSON object. Raises `BadEventError`."""
    if not isinstance(body, dict):
        raise BadEventError("the body is not a JSON object")
    return body


def parse_publication(body: object) -> tuple[str, Event]:
    """Return the global id and the event of a publication's body. Unknown fields are ignored.

    Raises `BadEventError`, and `NoGlobalIdError` if the location contains no global id.
    """
    fields = _object(body)
    kind = _text(fields, "eventType", MOST_TYPE)
    metadata = _metadata(fields)
    entity = _hash(fields, "entityId")
    previous = _hash(fields, "previousEntityHash")
    iss = None if fields.get("iss") is None else _hash(fields, "iss")
    event_id = global_id(fields.get("dataLocation"))
    event = Event(kind, fields["dataLocation"], metadata, entity=entity, previous=previous, iss=iss)
    return event_id, event


def _spelling(fields: Mapping[str, object], *names: str) -> str:
    """Return the first of several spellings of a field's name that the body has.

    Public adapters use different ones. If the body has none of them, the result is the first, so
    that the error about the missing field names it.
    """
    return next((name for name in names if name in fields), names[0])


def _notice(fields: Mapping[str, object], time: int) -> Notice:
    """Return the notice of a notification or row. `time` is in seconds.

    An event without a global id is not refused, because it has a number in the log and the numbers
    must be complete. Raises `BadEventError`.
    """
    publisher = fields.get(_spelling(fields, "publisherAddress", "origin", "iss"))
    iss = publisher if isinstance(publisher, str) and _HASH.fullmatch(publisher) else None
    signer = fields.get(_spelling(fields, "ethereumAddress", "authorAddress"))
    address = signer if isinstance(signer, str) and _ADDRESS.fullmatch(signer) else ""
    event_id, fault = find_id(fields.get("dataLocation"))
    location = fields.get("dataLocation")
    if not isinstance(location, str):
        location = ""
    if event_id is None:
        # It may have any length, and is only shown to operators.
        location = location[:64]
    kind = _text(fields, "eventType", MOST_TYPE)
    metadata = _metadata(fields, blank=True)
    entity = _hash(fields, _spelling(fields, "entityIDHash", "entityIdHash", "entityId"))
    previous = _hash(fields, "previousEntityHash")
    return Notice(
        _number(fields, "id", MOST_NUMBER) + 1,
        time,
        Event(kind, location, metadata, entity=entity, previous=previous, iss=iss),
        id=event_id,
        signer=address,
        fault=fault,
        block=block_of(fields),
    )


def find_id(location: object) -> tuple[str | None, str]:
    """Return the global id in a location, or `None` and the reason why there is none."""
    try:
        return global_id(location), ""
    except NoGlobalIdError as error:
        return None, str(error)


def block_of(fields: Mapping[str, object]) -> str:
    """Return the hash of an event's block in lower case, empty if the body has none."""
    block = fields.get("blockHash")
    return block.lower() if isinstance(block, str) and _BLOCK.fullmatch(block.lower()) else ""


def parse_notification(body: object) -> tuple[str | None, Notice]:
    """Return the network (`None` if it is not named) and the notice of a notification's body.

    Raises `BadEventError`.
    """
    fields = _object(body)
    network = fields.get("network")
    if network is not None and not (isinstance(network, str) and NETWORK.fullmatch(network)):
        raise BadEventError("network: 1 to 32 of a-z, 0-9 and - are needed")
    return network, _notice(fields, _number(fields, "timestamp", MOST_TIME))


def parse_row(body: object) -> Notice:
    """Return the notice of a row with which an adapter answers a query.

    The row's time is in milliseconds. Raises `BadEventError`.
    """
    fields = _object(body)
    return _notice(fields, _number(fields, "timestamp", MOST_TIME) // 1000)


def legacy_notice(notice: Notice, chain_id: str) -> Notice:
    """Return the notice without the element that public adapters append to the metadata (ID-1).

    They append the chain id or an empty string.
    """
    metadata = notice.event.metadata
    if metadata and metadata[-1] in {chain_id, ""}:
        metadata = metadata[:-1]
    return notice._replace(event=notice.event._replace(metadata=metadata))
