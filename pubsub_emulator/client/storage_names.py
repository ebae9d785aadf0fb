"""Names of storage keys, such as `System.Account(5Grw…)`, by a chain's metadata.

Pallet.Item                  an item without keys
Pallet.Item(KEY, …)          an item of a map; keys are numbers, addresses, names of variants,
                             True and False, development accounts such as //Alice, the bytes of
                             an array as 0x…, or the SCALE of any other type as 0x…
:code                        a well-known key, as it is written
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
    Pallet,
    Storage,
    Tuple,
)
from pubsub_emulator.client.metadata import (
    Sequence as SequenceType,
)
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
    """Return a key that is written in digits or is well known, or `None` if it is a name.

    Raises `ClientError`.
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
    """Return pallet, item and key parts of a name. Raises `ClientError`."""
    found = _ITEM.fullmatch(text.strip())
    if found is None:
        raise ClientError(f"{text[:80]!r}: a key is 0x…, Pallet.Item or Pallet.Item(KEY, …)")
    pallet, item, parts = found.groups()
    return pallet, item, [part.strip() for part in parts.split(",")] if parts else []


def development_account(text: str) -> bytes:
    """Return the public key (sr25519) of `//Alice` to `//Ferdie`. Raises `ClientError`."""
    accounts = dict(zip(NAMES, SR25519, strict=True))
    found = accounts.get(text.removeprefix("//"))
    if found is None:
        known = ", ".join(f"//{name}" for name in NAMES)
        raise ClientError(f"{safe(text[:80])}: not a development account, which are {known}")
    return found


class StorageNames:
    """The storage items of a chain by name, and their names by key."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._items = {}
        for pallet in metadata.pallets.values():
            prefix = twox_128(pallet.prefix.encode())
            for name, item in pallet.storage.items():
                self._items[prefix + twox_128(name.encode())] = (pallet, name, item)

    def key(self, text: str) -> bytes:
        """Return the storage key of a name.

        Raises `ClientError` if the chain has no such item, or its keys are others.
        """
        plain = plain_key(text)
        if plain is not None:
            return plain
        pallet_name, name, given = split_name(text)
        pallet, item = self._item(pallet_name, name)
        if len(given) != len(item.hashers):
            raise ClientError(
                f"{pallet_name}.{name} takes {counted(len(item.hashers), 'key')}, not {len(given)}"
            )
        key = twox_128(pallet.prefix.encode()) + twox_128(name.encode())
        for hasher, kind, part in zip(item.hashers, self._key_types(item), given, strict=True):
            try:
                encoded = self._encoded(kind, part)
            except BadAnswer:
                raise
            except ClientError as error:
                raise ClientError(f"{pallet_name}.{name}: {error}") from None
            key += hashed(hasher, encoded)
        return key

    def name(self, key: bytes) -> str | None:
        """Return a key in words, or `None` if it is not one of the chain's items."""
        found = self._items.get(key[:32])
        if found is None:
            return None
        pallet, name, item = found
        if not item.hashers:
            return f"{pallet.name}.{name}" if len(key) == 32 else None
        try:
            parts = self._key_parts(item, key[32:])
        except (ScaleError, BadAnswer):
            return f"{pallet.name}.{name}({hexed(key[32:])})"
        return f"{pallet.name}.{name}({', '.join(parts)})"

    def _item(self, pallet_name: str, name: str) -> tuple[Pallet, Storage]:
        pallet = self._metadata.pallets.get(pallet_name)
        if pallet is None:
            known = ", ".join(sorted(self._metadata.pallets))
            raise ClientError(f"the chain has no pallet {pallet_name}; it has {known}")
        item = pallet.storage.get(name)
        if item is None:
            known = ", ".join(sorted(pallet.storage)) or "none"
            raise ClientError(f"the chain has no storage {pallet_name}.{name}; it has {known}")
        return pallet, item

    def _key_types(self, item: Storage) -> Sequence[int]:
        """Return the types of an item's keys. Several keys stand in a tuple."""
        if item.key is None:
            return ()
        kind = self._metadata.types.get(item.key)
        if len(item.hashers) == 1:
            return (item.key,)
        if isinstance(kind, Tuple) and len(kind.items) == len(item.hashers):
            return kind.items
        raise BadAnswer("the metadata has a map whose keys and hashers differ in number")

    def _encoded(self, kind: int, text: str) -> bytes:
        """Return the SCALE of a part of a name. Raises `ClientError`, `BadAnswer`."""
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
            said = shortened(data, _SHOWN_BYTES)
            raise ClientError(
                f"{said} is not the SCALE of {self._metadata.name_of(kind)}: {error}"
            ) from None
        return data

    def _value(self, kind: int, text: str) -> object:
        """Return the value that a part of a name describes."""
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
        """Return whether values of a type are bytes, perhaps inside structs with one field."""
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

    def _key_parts(self, item: Storage, rest: bytes) -> list[str]:
        """Return the keys of a map's entry. Raises `ScaleError` if a hash hides one."""
        parts: list[str] = []
        for hasher, kind in zip(item.hashers, self._key_types(item), strict=True):
            skipped = CONCATENATING.get(hasher)
            if skipped is None:
                raise ScaleError(f"{hasher} hides the key")
            walk = Walk(self._metadata, rest[skipped:])
            value = read(walk, kind)
            used = skipped + walk.reader.pos
            if hashed(hasher, rest[skipped:used]) != rest[:used]:
                raise ScaleError("the hash of the key is another")
            parts.append(self._shown(kind, value))
            rest = rest[used:]
        if rest:
            raise ScaleError(f"{counted(len(rest), 'byte')} after the keys")
        return parts

    def _shown(self, kind: int, value: object) -> str:
        if isinstance(value, bytes):
            is_account = self._metadata.name_of(kind).endswith("AccountId32")
            return encode_address(AccountId(value)) if is_account else hexed(value)
        if isinstance(value, list):
            return f"[{', '.join(self._shown(-1, part) for part in value)}]"
        return str(value)
