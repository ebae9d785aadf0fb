"""The object in a Cardano transaction's metadata of label 21325: `{"v": 1, "c": [pieces of at most 64 bytes]}`. Pure.

db-sync has metadata as CBOR, a map of the label, and in most databases as JSON too, where bytes are text "0x…". A piece
that is such a text in CBOR counts as bytes, so that a database with JSON and one without give the same objects.
"""

from typing import Final, TypeAlias

from pubsub_emulator.emulator.untrusted import MOST_DEPTH, Unreadable, parse_json
from pubsub_emulator.runtime.pallet_prism.pallet import MOST_OBJECT

LABEL: Final = 21325
MOST_BYTES: Final = 1 << 17
"""Of metadata, as JSON or CBOR: those of a transaction of Cardano, at most 16 KiB, have fewer."""
MOST_PIECE: Final = 64

Metadatum: TypeAlias = "int | bytes | str | list[Metadatum] | dict[object, Metadatum]"


def object_of(json_text: str | None, cbor: bytes) -> bytes:
    """The bytes of the object, none where the metadata has no object of version 1 (PR-1, PR-20).

    `json_text` is the value of the label, `None` where the database has no JSON; `cbor` the map of the label.
    """
    if max(len(json_text or ""), len(cbor)) > MOST_BYTES:
        return b""
    try:
        match _from_cbor(cbor) if json_text is None else parse_json(json_text.encode(), "metadata"):
            case {"v": int(version), "c": [*pieces]} if version == 1 and version is not True:
                whole = b"".join(map(_piece, pieces))
                return whole if len(whole) <= MOST_OBJECT else b""
    except (IndexError, TypeError, ValueError, Unreadable):
        pass
    return b""


def _piece(value: object) -> bytes:
    if isinstance(value, str) and value.startswith("0x") and value.isalnum():
        value = bytes.fromhex(value[2:])
    if not isinstance(value, bytes) or len(value) > MOST_PIECE:
        raise ValueError(value)
    return value


def _from_cbor(raw: bytes) -> object:
    found, end = _item(raw, 0, 0)
    if end != len(raw) or not isinstance(found, dict):
        raise ValueError(end)
    return found.get(LABEL)


def _item(raw: bytes, at: int, depth: int) -> tuple[Metadatum, int]:
    """One item of CBOR and where it ends: integers, bytes, text, arrays and maps, which are all that metadata has."""
    major, info = divmod(raw[at], 32)
    is_open = info == 31 and major > 3
    if major > 5 or (info > 27 and not is_open) or (major > 3 and depth > MOST_DEPTH):
        raise ValueError(raw[at])
    width = 1 << (info - 24) if 24 <= info <= 27 else 0
    size = int.from_bytes(raw[at + 1 : at + 1 + width], "big") if width else info
    at += 1 + width
    if major < 2:
        return (-1 - size if major else size), at
    if major < 4:
        body = raw[at : at + size]
        return (body if major == 2 else body.decode()), at + size
    items: list[Metadatum] = []
    while raw[at] != 0xFF if is_open else len(items) < size * (major - 3):
        found, at = _item(raw, at, depth + 1)
        items.append(found)
    return (items if major == 4 else dict(zip(items[::2], items[1::2], strict=True))), at + is_open
