"""Names of keys in requests and proofs: by metadata, or the well-known ones."""

import re
from contextlib import closing
from pathlib import Path
from typing import Final

from pubsub_emulator.client.errors import BadAnswer
from pubsub_emulator.client.metadata import Metadata, parse_metadata
from pubsub_emulator.client.places import is_url
from pubsub_emulator.client.storage_names import StorageNames, plain_key, split_name
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.files.near import near_to
from pubsub_emulator.files.shown import safe
from pubsub_emulator.files.untrusted import read_bytes
from pubsub_emulator.primitives.hashing import twox64_concat
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX, item_prefix
from pubsub_emulator.primitives.types import U32_MAX
from pubsub_emulator.runtime.framework.relay_keys import item_names
from pubsub_emulator.runtime.framework.relay_request import ChildKey, RelayStorageKey, TopKey
from pubsub_emulator.spark_audit.real_proofs.attribution import TOP, child_trie_name, place_name

_ID_DIGITS: Final = re.compile(r"0x[0-9a-fA-F]{8}")
"""A parachain's id as SCALE."""
MOST_METADATA: Final = 16 * 1_048_576
"""The maximum size of a file with metadata, in bytes."""


class OwnNames:
    """Names of the keys of a chain. Without its metadata, the well-known keys have names."""

    def __init__(self, storage: StorageNames | None = None) -> None:
        self._storage = storage
        self._resolved: dict[bytes, str] = {}
        """The names by which the caller asked, by key. They are the only names without metadata."""

    def key(self, text: str) -> bytes:
        """Return the storage key of a name. Raises `ClientError`, `InputError`."""
        if self._storage is not None:
            return self._storage.key(text)
        key = self._well_known(text)
        if not text.startswith("0x"):
            self._resolved[key] = text
        return key

    def _well_known(self, text: str) -> bytes:
        """Return the key of a name, without using metadata."""
        plain = plain_key(text)
        if plain is not None:
            return plain
        pallet, item, parts = split_name(text)
        key = item_prefix(pallet, item)
        for part in parts:
            key += twox64_concat(_para_id(part, text))
        if parts and place_name(TOP, key).startswith("unknown"):
            # Only metadata says how the keys of other maps are hashed.
            otherwise = "give --metadata, which says how its keys are hashed"
            hint = near_to(f"{pallet}.{item}", item_names(), otherwise)
            raise InputError(f"{safe(text[:200])}: {hint}")
        return key

    def top_name(self, key: bytes) -> str:
        """Return a key of the top trie in words."""
        if self._storage is not None and not key.startswith(CHILD_STORAGE_PREFIX):
            name = self._storage.name(key)
            if name is not None:
                return name
        if key.startswith(b":") and key.isascii() and not key.startswith(CHILD_STORAGE_PREFIX):
            text = key.decode()
            if text.isprintable():
                return text
        return self._resolved.get(key) or place_name(TOP, key)

    def name(self, asked: RelayStorageKey) -> str:
        """Return a requested key in words."""
        match asked:
            case TopKey(key):
                return self.top_name(key)
            case ChildKey(storage_key, key):
                return f"{child_trie_name(storage_key)}: 0x{key.hex()}"


def _para_id(part: str, name: str) -> bytes:
    """Return the SCALE encoding of a parachain's id, which is a `part` of a key's `name`.

    Raises `InputError`.
    """
    if _ID_DIGITS.fullmatch(part):
        return unhex(part)
    if part.isascii() and part.isdecimal() and int(part) <= U32_MAX:
        return int(part).to_bytes(4, "little")
    raise InputError(
        f"{safe(name[:200])}: without --metadata, a key of a map is a parachain's id, or its"
        " SCALE as 0x…"
    )


def fixed_names() -> OwnNames:
    """Return the names of the well-known keys."""
    return OwnNames()


def names_from(place: str, seconds: float) -> OwnNames:
    """Return the names that the metadata of a node or in a file gives to keys.

    A file has the metadata as bytes, as 0x and digits, or as a JSON-RPC answer with these digits.
    Raises `InputError`, `ClientError`.
    """
    return OwnNames(StorageNames(_metadata(place, seconds)))


def _metadata(place: str, seconds: float) -> Metadata:
    """Return the metadata of a node or in a file, see `names_from`.

    Raises `InputError`, `ClientError`.
    """
    if is_url(place):
        from pubsub_emulator.client.live_state import BlockingNode
        from pubsub_emulator.client.request_states import ChainStates

        with closing(BlockingNode(place, seconds)) as node:
            states = ChainStates(node)
            return states.metadata(states.block())
    data = read_bytes(Path(place), MOST_METADATA, InputError)
    if not data.startswith(b"meta"):
        # The text of a node's answer has the metadata as 0x and digits in quotation marks.
        text = data.decode("ascii", "replace").strip()
        start = text.find("0x")
        digits = text[start + 2 :].split('"', 1)[0].strip() if start >= 0 else ""
        try:
            data = unhex(digits)
        except ValueError:
            raise InputError(f"{place}: neither metadata nor its digits 0x…") from None
        if not data:
            raise InputError(f"{place}: neither metadata nor its digits 0x…")
    try:
        return parse_metadata(data)
    except BadAnswer as error:
        raise InputError(f"{place}: {error}") from None
