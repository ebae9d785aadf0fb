"""The names of relay keys, and the reading of keys from texts of these forms.

Mmr.RootHash                  a storage value
Paras.Heads(2000)             a map by ParaId, or by two of them
System.Account(5GrwvaEF…)     an account, in SS58 or as 0x and 64 digits
0x1cb6f36e…                   any key of the top trie
child:STORAGE_KEY/KEY         a key of a child trie; each part is hexadecimal after 0x, or text
"""

import re
from functools import lru_cache
from typing import Final

from pubsub_emulator.primitives import ss58, storage_keys
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hashing import blake2_128_concat, twox64_concat
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.runtime.framework.relay_request import (
    MAX_STORAGE_KEY,
    ChildKey,
    RelayStorageKey,
    TopKey,
)

BABE_ITEMS: Final = (
    "AuthorVrfRandomness",
    "Authorities",
    "CurrentSlot",
    "EpochIndex",
    "EpochStart",
    "NextAuthorities",
    "NextRandomness",
    "Randomness",
)
"""The storage items of `Babe` that parachains read."""

_ITEMS: Final[dict[str, tuple[str, ...]]] = {
    "Babe": BABE_ITEMS,
    "Configuration": ("ActiveConfig", "BypassConsistencyCheck", "PendingConfigs"),
    "Dmp": ("DeliveryFeeFactor", "DownwardMessageQueueHeads", "DownwardMessageQueues"),
    "Hrmp": (
        "HrmpChannelContents",
        "HrmpChannelDigests",
        "HrmpChannels",
        "HrmpEgressChannelsIndex",
        "HrmpIngressChannelsIndex",
        "HrmpOpenChannelRequestsList",
        "HrmpWatermarks",
    ),
    "Mmr": ("NumberOfLeaves", "RootHash"),
    "Paras": (
        "FutureCodeHash",
        "Heads",
        "PastCodePruning",
        "PvfActiveVoteList",
        "UpcomingUpgrades",
        "UpgradeGoAheadSignal",
        "UpgradeRestrictionSignal",
    ),
    "System": ("Account", "Number", "ParentHash"),
    "Timestamp": ("DidUpdate", "Now"),
    "Ump": (
        "CounterForOverweight",
        "NeedsDispatch",
        "OverweightCount",
        "RelayDispatchQueueSize",
        "RelayDispatchQueues",
    ),
}
"""Storage items of the relay chain by pallet."""
_STORAGE_VERSION: Final = ":__STORAGE_VERSION__:"
_CAPACITY: Final = b":relay_dispatch_queue_remaining_capacity"
"""The beginning of the keys with the remaining capacity of a parachain's upward queue."""
_PUBLISHER: Final = b"pubsub"
"""The beginning of the storage keys of publishers' child tries, before the ParaId."""
_CHILD: Final = "child:"
_ITEM: Final = re.compile(r"(\w+)\.(\w+)(?:\(([^()]*)\))?")


@lru_cache(maxsize=1)
def _names() -> dict[bytes, str]:
    """Return the names of storage items by the prefixes of their keys."""
    names: dict[bytes, str] = {}
    for pallet, items in _ITEMS.items():
        version = storage_keys.item_prefix(pallet, _STORAGE_VERSION)
        names[version] = f"{pallet}.StorageVersion"
        for item in items:
            names[storage_keys.item_prefix(pallet, item)] = f"{pallet}.{item}"
    return names


def item_names() -> list[str]:
    """Return the names of the storage items that parachains read, such as `Paras.Heads`."""
    return list(_names().values())


def item_name(key: bytes) -> str | None:
    """Return the storage item of a relay key, or `None` if it is not one that parachains read."""
    return _names().get(key[:32])


def key_name(key: bytes) -> str:
    """Return the readable name of a relay key.

    For example `Hrmp.HrmpChannels(1000, 2004)`, `child trie 1000`, or `unknown 0x…`.
    """
    if key.startswith(storage_keys.CHILD_STORAGE_PREFIX):
        return f"child trie {_child_name(key[len(storage_keys.CHILD_STORAGE_PREFIX) :])}"
    if key.startswith(_CAPACITY):
        para = int.from_bytes(key[len(_CAPACITY) :], "little")
        return f"relay_dispatch_queue_remaining_capacity({para})"
    name = item_name(key)
    if name is None:
        return f"unknown {hexed(key)}"
    if name == "System.Account":
        return f"{name}({hexed(key[48:])})"
    # The keys of maps are hashed by Twox64Concat: 8 bytes of hash, then the SCALE of one or two
    # ParaIds.
    paras = key[40:]
    if not paras:
        return name
    ids = ", ".join(
        str(int.from_bytes(paras[start : start + 4], "little")) for start in range(0, len(paras), 4)
    )
    return f"{name}({ids})"


def _child_name(storage_key: bytes) -> str:
    if storage_key.startswith(_PUBLISHER) and len(storage_key) == len(_PUBLISHER) + 4:
        return str(int.from_bytes(storage_key[len(_PUBLISHER) :], "little"))
    return hexed(storage_key)


def relay_key_name(requested: RelayStorageKey) -> str:
    """Return the readable name of a requested key, for verdicts and tables."""
    if isinstance(requested, TopKey):
        return key_name(requested.key)
    return f"child trie {_child_name(requested.storage_key)}, key {hexed(requested.key)}"


def relay_key_text(requested: RelayStorageKey) -> str:
    """Return the text in hexadecimal digits that `relay_key` reads as this key."""
    if isinstance(requested, TopKey):
        return hexed(requested.key)
    return f"{_CHILD}{hexed(requested.storage_key)}/{hexed(requested.key)}"


def relay_key(text: str) -> RelayStorageKey:
    """Return the key that a text names, in one of the forms of this module's table.

    Raises `ScaleError` for any other text, and for a key that is too long.
    """
    if text.startswith(_CHILD):
        storage_key, slash, key = text[len(_CHILD) :].partition("/")
        if not slash:
            raise ScaleError(f"a key of a child trie is child:STORAGE_KEY/KEY, not {text!r:.80}")
        return ChildKey(_part(storage_key), _part(key))
    if text.startswith("0x"):
        return TopKey(_part(text))
    match = _ITEM.fullmatch(text)
    if match is None:
        raise ScaleError(
            "a relay key is Pallet.Item, Pallet.Item(ParaId), 0x and digits, or"
            f" child:STORAGE_KEY/KEY, not {text!r:.80}"
        )
    pallet, item, argument = match.groups()
    prefix = storage_keys.item_prefix(pallet, item)
    return TopKey(prefix if argument is None else prefix + _map_key(f"{pallet}.{item}", argument))


def _part(text: str) -> bytes:
    """Return the bytes of hexadecimal digits after 0x, or else of the text itself."""
    if not text.startswith("0x"):
        part = text.encode()
    elif re.fullmatch(r"0x(?:[0-9a-fA-F]{2})*", text) is None:
        raise ScaleError(f"bytes are 0x and an even number of hexadecimal digits, not {text!r:.80}")
    else:
        part = bytes.fromhex(text[2:])
    if len(part) > MAX_STORAGE_KEY:
        raise ScaleError(f"{len(part)} bytes; a storage key has at most {MAX_STORAGE_KEY}")
    return part


def _map_key(item: str, argument: str) -> bytes:
    """Return the part of a map's key after the item's prefix."""
    if item == "System.Account":
        return blake2_128_concat(_account(argument))
    ids = b""
    for part in argument.split(","):
        para = part.strip()
        if re.fullmatch(r"[0-9]{1,10}", para) is None or int(para) >= 1 << 32:
            raise ScaleError(f"{item}: a ParaId is a number below 2^32, not {para!r:.40}")
        ids += int(para).to_bytes(4, "little")
    return twox64_concat(ids)


def _account(text: str) -> bytes:
    """Return the account that an address, or hexadecimal digits after 0x, stand for."""
    if text.startswith("0x"):
        account = _part(text)
    else:
        try:
            account = ss58.decode_address(text)
        except ss58.BadAddress as error:
            raise ScaleError(f"System.Account: {error}") from None
    if len(account) != 32:
        raise ScaleError(f"System.Account: an account has 32 bytes, not {len(account)}")
    return account
