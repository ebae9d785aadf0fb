"""The object in the metadata of a Cardano transaction, under label 21325 (PR-1).

The metadata is `{"v": 1, "c": [pieces of at most 64 bytes]}`. db-sync stores it as CBOR, a map with
the label as its key. Most databases also have it as JSON, where bytes are text of the form "0x…".
In CBOR such a text also counts as bytes, so that databases with and without JSON give the same
objects.

A map in Cardano's CBOR may have keys of any type, and a key several times. In JSON all keys are
texts: lists and maps begin with a bracket, and bytes and integers consist of digits. So they never
become `v` or `c`. Therefore maps are read as pairs here, only pairs with a text or an integer as
key are stored, and of equal keys the last counts, as in JSON.

Everything here is pure.
"""

from typing import Final, NamedTuple, TypeAlias

from interchain_events.pallets.prism.pallet import MOST_OBJECT
from pubsub_emulator.files.untrusted import MOST_DEPTH, Unreadable, parse_json

LABEL: Final = 21325
"""The label of PRISM's metadata."""
MOST_BYTES: Final = 1 << 17
"""The greatest size of metadata, as JSON or CBOR. A Cardano transaction has at most 16 KiB."""
MOST_PIECE: Final = 64
"""The greatest size of a piece, in bytes."""

_UNSIGNED: Final = 0
_NEGATIVE: Final = 1
_BYTES: Final = 2
_TEXT: Final = 3
_ARRAY: Final = 4
_MAP: Final = 5
"""The major types of CBOR that metadata has."""
_BREAK: Final = 0xFF
"""The byte that ends an item without a stated length."""

Metadatum: TypeAlias = "int | bytes | str | list[Metadatum] | Pairs"


class Pairs(NamedTuple):
    """A map of CBOR whose keys are texts or integers. Pairs with other keys are left out."""

    pairs: tuple[tuple[int | str, "Metadatum"], ...]

    def last(self, key: int | str) -> "Metadatum | None":
        """Return the value of the last pair with a key, `None` if there is none."""
        for known, value in reversed(self.pairs):
            if known == key:
                return value
        return None


def object_of(json_text: str | None, cbor: bytes) -> bytes:
    """Return the bytes of the object, empty if there is no object of version 1 (PR-1, PR-20).

    `json_text` is the value of the label, `None` if the database does not have JSON. `cbor` is the
    map with the label. It is read if the JSON is missing or too long.
    """
    try:
        version, pieces = _parts(json_text, cbor)
        # `True == 1` in Python, but `true` is not a version.
        if type(version) is not int or version != 1 or not isinstance(pieces, list):
            return b""
        whole = b"".join(map(_piece, pieces))
    except (IndexError, TypeError, ValueError, Unreadable):
        return b""
    return whole if len(whole) <= MOST_OBJECT else b""


def _parts(json_text: str | None, cbor: bytes) -> tuple[object, object]:
    """Return the values of the keys `v` and `c`, each `None` if it is absent.

    Raises `ValueError`, `IndexError` or `Unreadable` if the metadata has another form.
    """
    # In the JSON of keys within keys, each level doubles the number of backslashes, so even a short
    # transaction may have very long JSON.
    if json_text is not None and len(json_text) <= MOST_BYTES:
        fields = parse_json(json_text.encode(), "metadata")
        if not isinstance(fields, dict):
            return None, None
        return fields.get("v"), fields.get("c")
    if len(cbor) > MOST_BYTES:
        raise ValueError(len(cbor))
    value = _from_cbor(cbor)
    if not isinstance(value, Pairs):
        return None, None
    return value.last("v"), value.last("c")


def _piece(value: object) -> bytes:
    """Return the bytes of a piece. Raises `ValueError`."""
    if isinstance(value, str) and value.startswith("0x") and value.isalnum():
        value = bytes.fromhex(value[2:])
    if not isinstance(value, bytes) or len(value) > MOST_PIECE:
        raise ValueError(value)
    return value


def _from_cbor(raw: bytes) -> "Metadatum | None":
    """Return the value of the label in CBOR.

    Raises `ValueError` or `IndexError` if the bytes have another form.
    """
    item, end = _item(raw, 0, depth=0)
    if end != len(raw) or not isinstance(item, Pairs):
        raise ValueError(end)
    return item.last(LABEL)


class _Head(NamedTuple):
    """The beginning of an item of CBOR."""

    major: int
    """The item's type: integer, negative integer, bytes, text, array or map."""
    size: int
    """The integer, or the number of bytes, items or pairs. -1 if a break ends the item."""
    end: int
    """The offset after the head."""


def _head(raw: bytes, offset: int) -> _Head:
    """Read the head of an item.

    Only the types of metadata are known. Raises `ValueError` or `IndexError` for anything else.
    """
    major, info = divmod(raw[offset], 32)
    if major > _MAP or (info > 27 and not (info == 31 and major >= _BYTES)):
        raise ValueError(raw[offset])
    if info == 31:
        return _Head(major, -1, offset + 1)
    if info < 24:
        return _Head(major, info, offset + 1)
    end = offset + 1 + (1 << (info - 24))
    if end > len(raw):
        raise ValueError(offset)
    return _Head(major, int.from_bytes(raw[offset + 1 : end], "big"), end)


def _item(raw: bytes, offset: int, depth: int) -> tuple["Metadatum", int]:
    """Return an item of CBOR and the offset after it.

    Raises `ValueError` or `IndexError` if there is no item of a metadatum.
    """
    major, size, offset = _head(raw, offset)
    if major == _UNSIGNED:
        return size, offset
    if major == _NEGATIVE:
        return -1 - size, offset
    if major in {_BYTES, _TEXT}:
        whole, offset = _string(raw, offset, major, size)
        return (whole if major == _BYTES else whole.decode()), offset
    # JSON is refused beyond the same depth. Only lists and maps count.
    if depth > MOST_DEPTH:
        raise ValueError(offset)
    items: list[Metadatum] = []
    pairs: list[tuple[int | str, Metadatum]] = []
    count = 0
    # A negative size means that a break ends the items.
    while raw[offset] != _BREAK if size < 0 else count < size:
        count += 1
        if major == _ARRAY:
            value, offset = _item(raw, offset, depth + 1)
            items.append(value)
            continue
        key, offset = _key(raw, offset)
        value, offset = _item(raw, offset, depth + 1)
        if key is not None:
            pairs.append((key, value))
    item: Metadatum = items if major == _ARRAY else Pairs(tuple(pairs))
    # A break is one byte.
    return item, offset + (1 if size < 0 else 0)


def _key(raw: bytes, offset: int) -> tuple[int | str | None, int]:
    """Return a map's key and the offset after it. The key is `None` for bytes, arrays and maps."""
    major = raw[offset] >> 5
    if major in {_UNSIGNED, _NEGATIVE, _TEXT}:
        key, end = _item(raw, offset, 0)
        return (key if isinstance(key, (int, str)) else None), end
    return None, _skipped(raw, offset)


def _skipped(raw: bytes, offset: int) -> int:
    """Return the offset after an item, however deeply it is nested.

    A list or map that is a key is one text in JSON, so `MOST_DEPTH` does not limit its depth. This
    is a loop because recursion would fail.
    """
    # The number of remaining items of each open array or map, -1 if a break ends it.
    left = [1]
    while left:
        if left[-1] == 0:
            left.pop()
            continue
        if left[-1] < 0 and raw[offset] == _BREAK:
            offset += 1
            left.pop()
            continue
        if left[-1] > 0:
            left[-1] -= 1
        major, size, offset = _head(raw, offset)
        if major in {_BYTES, _TEXT}:
            _, offset = _string(raw, offset, major, size)
        elif major in {_ARRAY, _MAP}:
            left.append(2 * size if major == _MAP and size > 0 else size)
    return offset


def _string(raw: bytes, offset: int, major: int, size: int) -> tuple[bytes, int]:
    """Return bytes, or the bytes of a text, and the offset after them.

    Cardano also accepts strings in pieces, ended by a break. Raises `ValueError` or `IndexError`.
    """
    if size >= 0:
        if offset + size > len(raw):
            raise ValueError(offset)
        return raw[offset : offset + size], offset + size
    pieces: list[bytes] = []
    while raw[offset] != _BREAK:
        part, size, offset = _head(raw, offset)
        if part != major or size < 0:
            raise ValueError(offset)
        piece, offset = _string(raw, offset, major, size)
        pieces.append(piece)
    return b"".join(pieces), offset + 1
