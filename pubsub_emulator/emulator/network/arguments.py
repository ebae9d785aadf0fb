"""Checks of the arguments of a network's methods, made before anything is queued."""

from collections.abc import Iterable
from enum import Enum
from typing import NoReturn, TypeVar

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.pubsub import KEY_LENGTH
from pubsub_emulator.primitives.types import U32_MAX, PubsubKey

E = TypeVar("E", bound=Enum)


class BadRequest(PubsubError):
    """An argument that is not valid. The message names it."""


def refuse(reason: str) -> NoReturn:
    """Raise `BadRequest` with this reason."""
    raise BadRequest(reason)


def member(kind: type[E], value: object, argument: str) -> E:
    """Return the member of an enumeration with this value. Raises `BadRequest`."""
    for option in kind:
        if value == option.value:
            return option
    known = ", ".join(str(option.value) for option in kind)
    refuse(f"{argument} is one of {known}, not {value!r}")


def ensure_key(key: object) -> None:
    """Raise `BadRequest` unless `key` has 32 bytes (PS-4)."""
    actual = len(key) if isinstance(key, bytes) else key
    if not isinstance(key, bytes) or actual != KEY_LENGTH:
        refuse(
            f"a key is {KEY_LENGTH} bytes, not {actual!r}; `key_from_data(b'name')` makes one of a"
            " name"
        )


def ensure_keys(keys: object) -> list[PubsubKey]:
    """Return the keys as a list.

    Raises `BadRequest` if there are none, or if one does not have 32 bytes.
    """
    if isinstance(keys, bytes | str) or not isinstance(keys, Iterable):
        refuse("keys come as a list: [key]")
    listed = list(keys)
    if not listed:
        refuse("no keys are given")
    for key in listed:
        ensure_key(key)
    return listed


def ensure_ttl(ttl: object) -> None:
    """Raise `BadRequest` unless `ttl` is a u32 (PS-13)."""
    if not isinstance(ttl, int) or isinstance(ttl, bool) or not 0 <= ttl <= U32_MAX:
        refuse(f"a ttl is a number of relay blocks from 0 (no expiry) to {U32_MAX}, not {ttl!r}")


def ensure_bytes(value: object, argument: str) -> None:
    """Raise `BadRequest` unless `value` is bytes. The message names the argument."""
    if not isinstance(value, bytes):
        refuse(f"a {argument} is bytes, not {value!r}")


def ensure_blocks(blocks: object) -> None:
    """Raise `BadRequest` unless `blocks` is an integer of at least 0."""
    if not isinstance(blocks, int) or isinstance(blocks, bool) or blocks < 0:
        refuse(f"a network steps by 0 or more whole blocks, not by {blocks!r}")


def ensure_accounts(has_accounts: bool, chain: str) -> None:
    """Raise `BadRequest` unless the chain has accounts, which signed extrinsics need."""
    if not has_accounts:
        raise BadRequest(f"{chain} has no accounts and takes no signed extrinsics")
