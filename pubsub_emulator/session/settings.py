"""Commands that change a chain's storage, and a subscriber's budgets and policies."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from pubsub_emulator.emulator.runtimes import runtime_of
from pubsub_emulator.emulator.state_diff import key_name
from pubsub_emulator.files.pages import Grid, Line, Shown
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.scale import Codec
from pubsub_emulator.runtime.framework.pallet import AnyItem
from pubsub_emulator.runtime.framework.words import words
from pubsub_emulator.runtime.pallet_subscriber.config import CachePolicy
from pubsub_emulator.session.command import (
    CommandError,
    SessionCommand,
    command,
    hexadecimal,
    number,
)
from pubsub_emulator.session.node_api import RELAY
from pubsub_emulator.session.session import Session
from pubsub_emulator.session.storage_commands import find_item

SETTINGS: Final[list[SessionCommand]] = []

_NUMBERS: Final = ("max_pov_size", "max_cache_bytes", "max_trie_depth", "relay_parent_offset")
_SWITCHES: Final = ("reserve_minimum", "meter_cache_reads")
_FIELDS: Final = ("cache", *_NUMBERS, *_SWITCHES, "handler")


@command(
    SETTINGS,
    "set CHAIN ITEM VALUE…",
    "set relay Broadcaster.PublishedKeys 1000 7",
    "set relay Babe.EpochIndex 12",
    "set relay 0x1234 0x00ff",
    "set 3000 0x1234 nothing",
    changes=True,
)
def _set(session: Session, chain: str, item: str, *texts: str) -> Iterator[Shown]:
    """Set a storage item or a raw key of a chain, or remove it with VALUE `nothing`.

    The KEYs of a map come before the VALUE. A VALUE is a number, yes, no, text for items of bytes,
    or the SCALE encoding as 0x and digits. `storage CHAIN ITEM` and `diff` show what is stored.
    Root makes a call, so proofs and histories stay valid. This needs chains with accounts: `pubsub
    step --accounts SCENARIO`.
    """
    if not session.facts.accounts:
        raise CommandError(
            "`set` needs chains with accounts: start with `pubsub step --accounts SCENARIO`"
        )
    para = None if chain == RELAY else session.para(chain, "a chain is `relay` or a parachain's id")
    key, value = _entry(session, chain, item, texts)
    session.ask("pubsub_setStorage", para, [[hexed(key), None if value is None else hexed(value)]])
    change = "removed" if value is None else f"set to {words(value)}"
    target = f"{key_name(key)} of {'the relay chain' if para is None else para}"
    means = "root" if para is None else "a governance message sent"
    yield Line(f"{target} will be {change} by {means} in relay block {session.number + 1}")


def _entry(
    session: Session, chain: str, name: str, texts: tuple[str, ...]
) -> tuple[bytes, bytes | None]:
    """Return a storage key and its new bytes, `None` to remove the entry.

    Raises `CommandError`.
    """
    *keys, text = texts
    if name.startswith("0x"):
        if keys:
            raise CommandError(f"{keys[0]!r} is one word too many: a raw key takes one VALUE")
        value = None if text == "nothing" else hexadecimal(text, "a stored value")
        return hexadecimal(name, "a storage key"), value
    item = find_item(runtime_of(relay=chain == RELAY).items, name)
    key = _storage_key(session, item, keys)
    if text == "nothing":
        return key, None
    if text.startswith("0x"):
        raw = hexadecimal(text, "a stored value")
        try:
            item.codec.decode(raw)
        except ScaleError as error:
            problem = f"{text} is not the SCALE encoding of a value of {item.name}"
            raise CommandError(f"{problem}: {error}") from error
        return key, raw
    encoded = _encoded(item.codec, [_plain(text), text.encode()])
    if encoded is None:
        raise CommandError(
            f"{text!r} is not a value of {item.name}; give its SCALE encoding as 0x and digits"
        )
    return key, encoded


def _storage_key(session: Session, item: AnyItem, keys: Sequence[str]) -> bytes:
    """Return the storage key of an item at the keys that words name. Raises `CommandError`."""
    parts = item.key_parts
    if len(parts) != len(keys):
        takes = {0: "no KEY", 1: "one KEY"}.get(len(parts), "two KEYs")
        raise CommandError(f"{item.name} takes {takes} before its VALUE, not {len(keys)}")
    full = item.prefix
    for (hasher, codec), text in zip(parts, keys, strict=True):
        raw = hexadecimal(text, "a KEY") if text.startswith("0x") else bytes(session.key(text))
        encoded = _encoded(codec, [_plain(text), raw])
        if encoded is None:
            raise CommandError(f"{text!r} is not a KEY of {item.name}")
        full += hasher.hash(encoded)
    return full


def _plain(text: str) -> int | bool | None:
    """Return a number for digits, and a truth value for `yes` and `no`.

    Returns `None` for other texts.
    """
    if text in {"yes", "no"}:
        return text == "yes"
    digits = text.replace("_", "")
    return int(digits) if digits.isascii() and digits.isdecimal() else None


def _encoded(codec: Codec[Any], meanings: Iterable[object]) -> bytes | None:
    """Return the bytes of the first value that a codec can encode, or `None` if it can encode none.

    `meanings` are the values that a word may stand for. `None` among them is skipped.
    """
    for meaning in meanings:
        if meaning is None:
            continue
        try:
            encoded: bytes = codec.encode(meaning)
            if codec.decode(encoded) == meaning:
                return encoded
        except (PubsubError, TypeError, ValueError, AttributeError, OverflowError):
            continue  # a value of another type
    return None


@command(
    SETTINGS,
    "runtime SUBSCRIBER [FIELD] [VALUE]",
    "runtime 3000",
    "runtime 3000 cache none",
    "runtime 3000 max_pov_size 2097152",
    "runtime 3000 reserve_minimum yes",
    words={"FIELD": _FIELDS},
    changes=True,
)
def _runtime(
    session: Session, subscriber: str, name: str | None = None, text: str | None = None
) -> Iterator[Shown]:
    """Show a subscriber's budget and policies; with FIELD and VALUE, change one.

    Governance sends the subscriber a new runtime. Sizes are bytes; switches are yes or no; a
    max_trie_depth of 0 switches the limit off. docs/scenarios.md says what each field does.
    """
    para = session.para(subscriber, "a subscriber's id is a whole number")
    spec, in_force = session.runtime(para)
    if name is None:
        rows = tuple((field, _shown(getattr(spec, field))) for field in _FIELDS)
        waiting = "" if in_force else " (sent, not in force yet)"
        yield Grid(
            f"runtime {spec.spec_version} of {spec.para_id}{waiting}", ("field", "value"), rows
        )
        yield Line(f"messages and proof share {spec.allowed_pov:,} bytes per block")
        return
    if text is None:
        raise CommandError(f"VALUE is missing: runtime {para} {name} VALUE")
    arrives = session.order_spec(replace(spec, **{name: _value(name, text)}))
    yield Line(f"{para} will run with {name} {text}: {arrives}")


def _shown(value: object) -> str | int:
    """Return the cell of a field's value. Only numbers stay numbers."""
    return value if isinstance(value, int) and not isinstance(value, bool) else words(value)


def _value(name: str, text: str) -> Any:
    """Return the value of a runtime's field that a word stands for. Raises `CommandError`."""
    if name == "cache":
        policies = {policy.value: policy for policy in CachePolicy}
        if text not in policies:
            raise CommandError(f"cache is one of {', '.join(policies)}, not {text!r}")
        return policies[text]
    if name in _SWITCHES:
        if text not in {"yes", "no"}:
            raise CommandError(f"{name} is yes or no, not {text!r}")
        return text == "yes"
    if name in _NUMBERS:
        value = number(text, f"{name} is a whole number")
        # The depth 0 means that there is no limit.
        is_unlimited = name == "max_trie_depth" and value == 0
        return None if is_unlimited else value
    return text
