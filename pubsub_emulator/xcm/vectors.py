"""The format of vectors of XCM v5 messages and locations.

`pubsub vectors check` reads it.
"""

from collections.abc import Iterator
from typing import Any, Final

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.pubsub import PublishedEntry, derive_child_key, publisher_root_key
from pubsub_emulator.primitives.types import ParaId, RelayBlockNumber
from pubsub_emulator.primitives.vectors import Case, Document, Format, cases_of, same
from pubsub_emulator.xcm.instructions import Publish
from pubsub_emulator.xcm.location import Location
from pubsub_emulator.xcm.message import VERSION, decode, encode
from pubsub_emulator.xcm.render import camel, render, to_json


def cases(document: Document) -> Iterator[Case]:
    """Yield a case for each message, location and publish instruction."""
    yield from cases_of([*document["messages"], *document["random_messages"]], _message)
    yield from cases_of(document["locations"], _location)
    yield from cases_of(document["publish_instruction"]["cases"], _publish, "publish")
    yield from cases_of(document.get("published_entries", ()), _entry, "published entry")
    yield from cases_of(document.get("child_storage_keys", ()), _child_key, "child storage key")


def _message(vector: Document) -> None:
    data = unhex(vector["encoded"])
    message = decode(data)
    same("the message, encoded again", encode(message), data)
    same("its hash", bytes(blake2_256(data)), unhex(vector["blake2_256"]))
    same("its value", to_json(message), vector["value"])


def _location(vector: Document) -> None:
    plain = unhex(vector["plain"])
    location = Location.codec.decode(plain)
    same("the location, encoded again", Location.codec.encode(location), plain)
    same("its versioned form", bytes((VERSION,)) + plain, unhex(vector["versioned"]))
    same("its value", render(Location.codec, location), _lower(vector["value"]))


def _publish(vector: Document) -> None:
    data = unhex(vector["encoded"])
    message = tuple(
        Publish(unhex(item["key"]), unhex(item["value"]), item["ttl"]) for item in vector["items"]
    )
    same("the message", encode(message), data)
    same("what is read", decode(data), message)


def _entry(vector: Document) -> None:
    entry = PublishedEntry(
        unhex(vector["value"]), vector["ttl"], RelayBlockNumber(vector["when_inserted"])
    )
    same("the entry", entry.encode(), unhex(vector["encoded"]))


def _child_key(vector: Document) -> None:
    para = ParaId(vector["para_id"])
    same("the storage key", derive_child_key(para), unhex(vector["storage_key"]))
    same("its place in the top trie", publisher_root_key(para), unhex(vector["top_key"]))


def _lower(value: Any) -> Any:
    """Convert a location from polkadot-js's human form to the form of `render`.

    The human form has capitalised variants and a bare `Here`.
    """
    if value == "Here":
        return {"here": None}
    if isinstance(value, dict):
        return {camel(name): _lower(inner) for name, inner in value.items()}
    return [_lower(inner) for inner in value] if isinstance(value, list) else value


_FIELDS: Final = {"messages", "random_messages", "locations", "publish_instruction"}
FORMATS: Final = (
    Format(
        "XCM v5 messages",
        lambda document: {*document} >= _FIELDS,
        cases,
        ("tables", "messages[].human"),
    ),
)
