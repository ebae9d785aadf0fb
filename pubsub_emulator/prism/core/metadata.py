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
_PIECE: Final = 64

Metadatum: TypeAlias = "int | bytes | str | list[Metadatum] | dict[object, Metadatum] | float | None"


def object_of(json_text: str | None, cbor: bytes) -> bytes:
    """The bytes of the object, none where the metadata has no object of version 1 (PR-1, PR-20).

    `json_text` is the value of the label, `None` where the database has no JSON; `cbor` the map of the label.
    """
    try:
        found = _from_cbor(cbor) if json_text is None else _from_json(json_text)
        return _joined(found)
    except (ValueError, IndexError, Unreadable):
        return b""


def _from_json(text: str) -> object:
    if len(text) > MOST_BYTES:
        raise ValueError(len(text))
    return parse_json(text.encode(), "metadata")


def _from_cbor(raw: bytes) -> object:
    if len(raw) > MOST_BYTES:
        raise ValueError(len(raw))
    found, end = _item(raw, 0, 0)
    if end != len(raw) or not isinstance(found, dict):
        raise ValueError(end)
    return found.get(LABEL)


def _joined(value: object) -> bytes:
    match value:
        case {"v": int(version), "c": [*pieces]} if version == 1 and version is not True:
            whole = b"".join(map(_piece, pieces))
            return whole if len(whole) <= MOST_OBJECT else b""
    return b""


def _piece(value: object) -> bytes:
    if isinstance(value, str) and value.startswith("0x") and value.isascii() and value.isalnum():
        value = bytes.fromhex(value[2:])
    if not isinstance(value, bytes) or len(value) > _PIECE:
        raise ValueError(value)
    return value


def _item(raw: bytes, at: int, depth: int) -> tuple[Metadatum, int]:
    """One item of CBOR and where it ends: integers, bytes, text, arrays and maps, which are all that metadata has.

    Raises `ValueError` for others, `IndexError` where the bytes end too early.
    """
    major, info = divmod(raw[at], 32)
    size, at = _argument(raw, at + 1, info)
    if major > 5 or (major > 3 and depth > MOST_DEPTH) or (size is None and major < 2):
        raise ValueError(raw[at - 1])
    if major < 2:
        return (-1 - (size or 0) if major else size), at
    if major < 4 and size is not None:
        if size > len(raw) - at:
            raise IndexError(size)
        body = raw[at : at + size]
        return (body if major == 2 else body.decode()), at + size
    items: list[Metadatum] = []
    wanted = None if size is None else size * (2 if major == 5 else 1)
    while raw[at] != 0xFF if wanted is None else len(items) < wanted:
        if major < 4 and (raw[at] // 32 != major or raw[at] % 32 == 31):  # pieces of a string have lengths
            raise ValueError(raw[at])
        found, at = _item(raw, at, depth + 1)
        items.append(found)
    at += wanted is None
    if major == 5:
        keys = items[::2]
        if any(isinstance(each, list | dict) for each in keys) or len(keys) * 2 != len(items):
            raise ValueError(at)
        return dict(zip(keys, items[1::2], strict=True)), at
    if major == 4:
        return items, at
    return (b"".join(x for x in items if isinstance(x, bytes)) if major == 2 else "".join(map(str, items))), at


def _argument(raw: bytes, at: int, info: int) -> tuple[int | None, int]:
    """The number in an item's head, `None` for an item of any length."""
    if info < 24:
        return info, at
    if info == 31:
        return None, at
    if info > 27 or len(raw) < at + (width := 1 << (info - 24)):
        raise ValueError(info)
    return int.from_bytes(raw[at : at + width], "big"), at + width
