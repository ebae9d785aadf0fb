"""The object in the metadata of a Cardano transaction, under label 21325 (PR-1).

The metadata is `{"v": 1, "c": [pieces of at most 64 bytes]}`. db-sync stores it as CBOR, which is a
map of the label. Most databases also have it as JSON, in which bytes are text of the form "0x…".
Such a text counts as bytes in CBOR, too, so that databases with and without JSON give the same
objects. Everything here is pure.
"""

from typing import Final, TypeAlias

from interchain_events.pallets.prism.pallet import MOST_OBJECT
from pubsub_emulator.files.untrusted import MOST_DEPTH, Unreadable, parse_json

LABEL: Final = 21325
"""The label of PRISM's metadata."""
MOST_BYTES: Final = 1 << 17
"""The greatest size of metadata, as JSON or CBOR. That of a Cardano transaction, which has at most
16 KiB, is smaller."""
MOST_PIECE: Final = 64
"""The greatest size of a piece, in bytes."""

Metadatum: TypeAlias = "int | bytes | str | list[Metadatum] | dict[object, Metadatum]"


def object_of(json_text: str | None, cbor: bytes) -> bytes:
    """Return the bytes of the object, empty if there is no object of version 1 (PR-1, PR-20).

    `json_text` is the value of the label, `None` if the database has no JSON. `cbor` is the map of
    the label.
    """
    if max(len(json_text or ""), len(cbor)) > MOST_BYTES:
        return b""
    try:
        match _from_cbor(cbor) if json_text is None else parse_json(json_text.encode(), "metadata"):
            # `True == 1` in Python, but `true` is not a version.
            case {"v": int(version), "c": [*pieces]} if version == 1 and version is not True:
                whole = b"".join(map(_piece, pieces))
                return whole if len(whole) <= MOST_OBJECT else b""
    except (IndexError, TypeError, ValueError, Unreadable):
        pass
    return b""


def _piece(value: object) -> bytes:
    """Return the bytes of a piece. Raises `ValueError`."""
    if isinstance(value, str) and value.startswith("0x") and value.isalnum():
        value = bytes.fromhex(value[2:])
    if not isinstance(value, bytes) or len(value) > MOST_PIECE:
        raise ValueError(value)
    return value


def _from_cbor(raw: bytes) -> object:
    """Return the value of the label in CBOR.

    Raises `ValueError` if the bytes are something else.
    """
    found, end = _item(raw, 0, 0)
    if end != len(raw) or not isinstance(found, dict):
        raise ValueError(end)
    return found.get(LABEL)


def _item(raw: bytes, at: int, depth: int) -> tuple[Metadatum, int]:
    """Return an item of CBOR and the place after it.

    Reads integers, bytes, texts, arrays and maps, which are the only types in metadata. Raises
    `ValueError` or `IndexError` for anything else.
    """
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
