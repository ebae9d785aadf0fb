"""Names of storage keys, such as `System.Account(5Grw…)`, by a chain's metadata.

Pallet.Item                  an item without keys
Pallet.Item(KEY, …)          an entry of a map; a KEY is a number, an address, the name of a
                             variant, True or False, a development account such as //Alice,
                             or 0x… (the bytes of a byte array, or the SCALE of another type)
:code                        a well-known key
0x…                          any key in hexadecimal digits
"""

import re
from collections.abc import Sequence
from typing import Final

from pubsub_emulator.client.decode import Walk, decode, read
from pubsub_emulator.client.encode import encode
from pubsub_emulator.client.errors import BadAnswer, ClientError
from pubsub_emulator.client.hashers import CONCATENATING, hashed
from pubsub_emulator.client.metadata import (
    Array,
    Composite,
    Field,
    Metadata,
    PalletMetadata,
    StorageEntryMetadata,
    Tuple,
)
from pubsub_emulator.client.metadata import (
    Sequence as SequenceType,
)
from pubsub_emulator.files.near import near_to
from pubsub_emulator.files.shown import safe
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import twox_128
from pubsub_emulator.primitives.hexadecimal import hexed, shortened, unhex
from pubsub_emulator.primitives.ss58 import BadAddress, decode_address, encode_address
from pubsub_emulator.primitives.types import AccountId
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.accounts.endowed import NAMES, SR25519

LONGEST_NAME: Final = 4_096
"""The maximum length of a key's name in characters."""
_SHOWN_BYTES: Final = 32
"""The number of bytes of a key that an error repeats."""
_ITEM: Final = re.compile(r"([A-Za-z]\w*)\.([A-Za-z]\w*)(?:\((.*)\))?")


def plain_key(text: str) -> bytes | None:
    """Return the key of `:code` or `0x…`, which need no metadata, or `None` for other names.

    Raises `ClientError` if the text is too long or has other digits.
    """
    if len(text) > LONGEST_NAME:
        raise ClientError(f"a key of {len(text):,} characters; the limit is {LONGEST_NAME:,}")
    if text.startswith(":"):
        return text.encode()
    if not text.startswith("0x"):
        return None
    try:
        return unhex(text)
    except ValueError:
        raise ClientError(f"{text[:80]}: not hexadecimal digits") from None


def split_name(text: str) -> tuple[str, str, list[str]]:
    """Split a name into the pallet, the item and the texts of the keys. Raises `ClientError`."""
    match = _ITEM.fullmatch(text.strip())
    if match is None:
        raise ClientError(f"{text[:80]!r}: a key is 0x…, Pallet.Item or Pallet.Item(KEY, …)")
    pallet, item, keys = match.groups()
    return pallet, item, [key.strip() for key in keys.split(",")] if keys else []


def development_account(text: str) -> bytes:
    """Return the public key (sr25519) of `//Alice` to `//Ferdie`. Raises `ClientError`."""
    accounts = dict(zip(NAMES, SR25519, strict=True))
    account = accounts.get(text.removeprefix("//"))
    if account is None:
        known = ", ".join(f"//{name}" for name in NAMES)
        raise ClientError(f"{safe(text[:80])}: not a development account; those are {known}")
    return account


class StorageNames:
    """Converts between the names and the storage keys of one chain."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._items: dict[bytes, tuple[PalletMetadata, str, StorageEntryMetadata]] = {}
        """Each item with its pallet and name, by the 32 bytes with which its keys begin."""
        for pallet in metadata.pallets.values():
            prefix = twox_128(pallet.prefix.encode())
            for name, item in pallet.storage.items():
                self._items[prefix + twox_128(name.encode())] = (pallet, name, item)

    def key(self, text: str) -> bytes:
        """Return the storage key of a name.

        Raises `ClientError` if the chain has no such item, or the keys do not have its types.
        """
        plain = plain_key(text)
        if plain is not None:
            return plain
        pallet_name, name, key_texts = split_name(text)
        pallet, item = self._item(pallet_name, name)
        if len(key_texts) != len(item.hashers):
            wanted = counted(len(item.hashers), "key")
            raise ClientError(f"{pallet_name}.{name} takes {wanted}, not {len(key_texts)}")
        key = twox_128(pallet.prefix.encode()) + twox_128(name.encode())
        for hasher, kind, key_text in zip(
            item.hashers, self._key_types(item), key_texts, strict=True
        ):
            try:
                encoded = self._encoded(kind, key_text)
            except BadAnswer:
                raise
            except ClientError as error:
                raise ClientError(f"{pallet_name}.{name}: {error}") from None
            key += hashed(hasher, encoded)
        return key

    def name(self, key: bytes) -> str | None:
        """Return the name of a storage key, or `None` if it does not belong to an item.

        If a map's keys cannot be recovered, they are shown as the bytes after the item's prefix.
        """
        described = self._items.get(key[:32])
        if described is None:
            return None
        pallet, name, item = described
        if not item.hashers:
            return f"{pallet.name}.{name}" if len(key) == 32 else None
        try:
            parts = self._key_parts(item, key[32:])
        except (ScaleError, BadAnswer):
            return f"{pallet.name}.{name}({hexed(key[32:])})"
        return f"{pallet.name}.{name}({', '.join(parts)})"

    def _item(self, pallet_name: str, name: str) -> tuple[PalletMetadata, StorageEntryMetadata]:
        """Return an item with its pallet. Raises `ClientError`, which suggests similar names."""
        pallet = self._metadata.pallets.get(pallet_name)
        if pallet is None:
            pallets = sorted(self._metadata.pallets)
            hint = near_to(pallet_name, pallets, f"it has {', '.join(pallets)}")
            raise ClientError(f"the chain has no pallet {pallet_name}; {hint}")
        item = pallet.storage.get(name)
        if item is None:
            items = sorted(pallet.storage)
            hint = near_to(name, items, f"it has {', '.join(items) or 'none'}")
            raise ClientError(f"the chain has no storage item {pallet_name}.{name}; {hint}")
        return pallet, item

    def _key_types(self, item: StorageEntryMetadata) -> Sequence[int]:
        """Return the type of each key of an item. Raises `BadAnswer` for another number."""
        if item.key is None:
            return ()
        kind = self._metadata.types.get(item.key)
        if len(item.hashers) == 1:
            return (item.key,)
        if isinstance(kind, Tuple) and len(kind.items) == len(item.hashers):
            return kind.items
        raise BadAnswer("the metadata has a map whose keys and hashers differ in number")

    def _encoded(self, kind: int, text: str) -> bytes:
        """Return the SCALE of a key in a name, of type `kind`. Raises `ClientError`."""
        if not text.startswith("0x"):
            return encode(self._metadata, kind, self._value(kind, text))
        try:
            data = unhex(text)
        except ValueError:
            raise ClientError(f"{safe(text[:80])}: not hexadecimal digits") from None
        if self._is_bytes(kind):
            return encode(self._metadata, kind, data)
        try:
            decode(self._metadata, kind, data)
        except ScaleError as error:
            beginning = shortened(data, _SHOWN_BYTES)
            raise ClientError(
                f"{beginning} is not the SCALE of {self._metadata.name_of(kind)}: {error}"
            ) from None
        return data

    def _value(self, kind: int, text: str) -> object:
        """Return the value of a key in a name, in the form that `encode` accepts."""
        if text in {"True", "False"}:
            return text == "True"
        if re.fullmatch(r"-?[0-9]{1,80}", text):
            return int(text)
        if self._is_bytes(kind):
            if text.startswith("//"):
                return development_account(text)
            try:
                return bytes(decode_address(text))
            except BadAddress as error:
                raise ClientError(f"not an address: {error}") from None
        return text

    def _is_bytes(self, kind: int) -> bool:
        """Return whether a type is an array or list of bytes, or a struct around only that."""
        seen: set[int] = set()
        while kind not in seen:
            seen.add(kind)
            match self._metadata.types.get(kind):
                case Composite((Field(_, inner),)):
                    kind = inner
                case Array(item, _) | SequenceType(item):
                    return self._metadata.is_byte(item)
                case _:
                    return False
        return False

    def _key_parts(self, item: StorageEntryMetadata, rest: bytes) -> list[str]:
        """Return the keys of a map as texts. `rest` is a storage key without the item's prefix.

        Raises `ScaleError` if a hasher does not append the key, or the bytes are not such keys.
        """
        parts: list[str] = []
        for hasher, kind in zip(item.hashers, self._key_types(item), strict=True):
            hash_size = CONCATENATING.get(hasher)
            if hash_size is None:
                raise ScaleError(f"{hasher} hides the key")
            walk = Walk(self._metadata, rest[hash_size:])
            value = read(walk, kind)
            used = hash_size + walk.reader.pos
            if hashed(hasher, rest[hash_size:used]) != rest[:used]:
                raise ScaleError("the key has another hash")
            parts.append(self._shown(kind, value))
            rest = rest[used:]
        if rest:
            raise ScaleError(f"{counted(len(rest), 'byte')} after the keys")
        return parts

    def _shown(self, kind: int, value: object) -> str:
        """Return a decoded key as text. Accounts are shown as addresses."""
        if isinstance(value, bytes):
            is_account = self._metadata.name_of(kind).endswith("AccountId32")
            return encode_address(AccountId(value)) if is_account else hexed(value)
        if isinstance(value, list):
            # No type has the number -1, so bytes in a list are shown in hex.
            return f"[{', '.join(self._shown(-1, part) for part in value)}]"
        return str(value)
