"""Actions on a network between steps, as data. Scenarios and journals contain them."""

import re
from typing import Annotated, Final, Literal

import pydantic

from pubsub_emulator.files.settings import Model
from pubsub_emulator.primitives.draws import MILLION
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hexadecimal import hexed, unhex
from pubsub_emulator.primitives.pubsub import KEY_LENGTH, key_from_name
from pubsub_emulator.primitives.types import U32_MAX, U128_MAX
from pubsub_emulator.runtime.framework.relay_keys import relay_key, relay_key_text
from pubsub_emulator.runtime.framework.relay_request import ChildKey, TopKey
from pubsub_emulator.runtime.pallet_subscriber.config import MAX_EXTRA_KEYS


def _from_hex(value: object) -> object:
    """Convert hexadecimal digits to bytes for pydantic. Other types are left to its own check."""
    if not isinstance(value, str):
        return value
    if re.fullmatch(r"0x(?:[0-9a-fA-F]{2})*", value) is None:
        raise ValueError("bytes are 0x and an even number of hexadecimal digits")
    return unhex(value)


def _from_text(value: object) -> object:
    """Convert text, or hexadecimal digits after 0x, to bytes."""
    if isinstance(value, str) and not value.startswith("0x"):
        return value.encode()
    return _from_hex(value)


def _from_name(value: object) -> object:
    """Convert a key's name or hexadecimal digits to the key."""
    if isinstance(value, str) and not value.startswith("0x"):
        return key_from_name(value)
    key = _from_hex(value)
    if isinstance(key, bytes) and len(key) != KEY_LENGTH:
        raise ValueError(f"a key has {KEY_LENGTH} bytes, not {len(key)}")
    return key


LAST_SLOT: Final = 2**63 // 6_000
"""The latest slot that can be requested. The times of later blocks in milliseconds must still fit
into 64 bits.
"""
_WRITTEN: Final = (
    pydantic.PlainSerializer(hexed, when_used="json"),
    pydantic.WithJsonSchema({"type": "string"}),
)
Hex = Annotated[bytes, pydantic.BeforeValidator(_from_hex), *_WRITTEN]
"""Bytes as `0x` and hexadecimal digits."""
Data = Annotated[bytes, pydantic.BeforeValidator(_from_text), *_WRITTEN]
"""Bytes as `0x` and hexadecimal digits, or text."""
Key = Annotated[bytes, pydantic.BeforeValidator(_from_name), *_WRITTEN]
"""A published key as `0x` and hexadecimal digits, or the name that it is derived from."""
Para = Annotated[int, pydantic.Field(strict=True, ge=0, le=U32_MAX)]


def _from_relay_key(value: object) -> object:
    """Convert the text of a relay key to the key."""
    if not isinstance(value, str):
        return value
    try:
        return relay_key(value)
    except ScaleError as error:
        raise ValueError(str(error)) from None


RelayKey = Annotated[
    TopKey | ChildKey,
    pydantic.BeforeValidator(_from_relay_key),
    pydantic.PlainSerializer(relay_key_text, when_used="json"),
    pydantic.WithJsonSchema({"type": "string"}),
]
"""A relay key as text: `Pallet.Item`, `Paras.Heads(2000)`, `0x…`, or `child:STORAGE_KEY/KEY`."""


class _Action(Model):
    """The base of all actions. It writes `kind` even if defaults are omitted."""

    @pydantic.model_serializer(mode="wrap")
    def _with_kind(self, write: pydantic.SerializerFunctionWrapHandler) -> dict[str, object]:
        return {"kind": type(self).model_fields["kind"].default, **write(self)}


class Publish(_Action):
    """Let a parachain publish a value under a key."""

    kind: Literal["publish"] = "publish"
    para: Para
    key: Key
    value: Data
    ttl: int = 0


class Delete(_Action):
    """Let a publisher's manager delete keys; root does it for a system parachain."""

    kind: Literal["delete"] = "delete"
    para: Para
    keys: tuple[Key, ...]


class Subscribe(_Action):
    """Replace a parachain's subscriptions by (publisher, keys) pairs."""

    kind: Literal["subscribe"] = "subscribe"
    para: Para
    items: tuple[tuple[Para, tuple[Key, ...]], ...]


class AddKeys(_Action):
    """Let a subscriber subscribe to further keys of a publisher."""

    kind: Literal["add_keys"] = "add_keys"
    para: Para
    publisher: Para
    keys: Annotated[tuple[Key, ...], pydantic.Field(min_length=1)]


class DropKeys(_Action):
    """End a subscriber's subscription to keys of a publisher, or to all of them."""

    kind: Literal["drop_keys"] = "drop_keys"
    para: Para
    publisher: Para
    keys: tuple[Key, ...] = ()


class RequestKeys(_Action):
    """Replace the relay keys that a parachain requests besides its subscriptions."""

    kind: Literal["request_keys"] = "request_keys"
    para: Para
    keys: Annotated[tuple[RelayKey, ...], pydantic.Field(max_length=MAX_EXTRA_KEYS)]


class Limit(_Action):
    """Let governance change a limit of a subscriber in bytes; a depth of 0 means no limit."""

    kind: Literal["limit"] = "limit"
    para: Para
    name: Literal["max_pov_size", "max_cache_bytes", "max_trie_depth"]
    value: Para


class Upgrade(_Action):
    """Replace a parachain's runtime; `code` is its spec as SCALE bytes."""

    kind: Literal["upgrade"] = "upgrade"
    para: Para
    code: Hex


class Cheat(_Action):
    """Let a collator cheat in `rate` millionths of its turns; the default is the next author."""

    kind: Literal["cheat"] = "cheat"
    para: Para
    strategies: tuple[str, ...]
    collator: int | None = None
    rate: int = MILLION


class Honest(_Action):
    """Make all collators of a parachain honest."""

    kind: Literal["honest"] = "honest"
    para: Para


class Register(_Action):
    """Let root register a publisher with a deposit in plancks, by default the usual one."""

    kind: Literal["register"] = "register"
    para: Para
    deposit: Annotated[int, pydantic.Field(ge=0, le=U128_MAX)] | None = None


class Deregister(_Action):
    """Let root remove a publisher with everything that it published."""

    kind: Literal["deregister"] = "deregister"
    para: Para


class Offline(_Action):
    """Stop a parachain's collators from building blocks, or let them build again."""

    kind: Literal["offline"] = "offline"
    para: Para
    offline: bool = True


class Upward(_Action):
    """Let a parachain send a message to the relay chain."""

    kind: Literal["upward"] = "upward"
    para: Para
    message: Hex


class Downward(_Action):
    """Let the relay chain send a message to a parachain."""

    kind: Literal["downward"] = "downward"
    para: Para
    message: Hex


class Horizontal(_Action):
    """Let a parachain send a message to another one."""

    kind: Literal["horizontal"] = "horizontal"
    sender: Para
    recipient: Para
    message: Hex


class SetStorage(_Action):
    """Let root write a chain's storage (default: relay chain); keys without a value are removed."""

    kind: Literal["set_storage"] = "set_storage"
    chain: Para | None = None
    entries: tuple[tuple[Hex, Hex | None] | tuple[Hex], ...]


class Travel(_Action):
    """Skip slots, so that the relay chain's next block has a given later slot."""

    kind: Literal["travel"] = "travel"
    slot: int


class Turn(_Action):
    """Let a parachain build in the next step, regardless of its pace."""

    kind: Literal["turn"] = "turn"
    para: Para


class Rewind(_Action):
    """Return to a relay block."""

    kind: Literal["rewind"] = "rewind"
    relay: Hex


class Offer(_Action):
    """Offer signed extrinsics in order to a chain's next block, by default the relay chain's."""

    kind: Literal["offer"] = "offer"
    chain: Para | None = None
    extrinsics: tuple[Hex, ...]


_Ordered = (
    Publish
    | Delete
    | Subscribe
    | AddKeys
    | DropKeys
    | RequestKeys
    | Limit
    | Upgrade
    | Cheat
    | Honest
    | Register
    | Deregister
)
Act = _Ordered | Offline | Upward | Downward | Horizontal | SetStorage | Offer | Travel | Turn
"""The actions that a scenario can contain."""
Action = Act | Rewind
"""The actions that a journal can contain."""
_ByKind = Annotated[Action, pydantic.Field(discriminator="kind")]
action_adapter: pydantic.TypeAdapter[Action] = pydantic.TypeAdapter(
    _ByKind, config=pydantic.ConfigDict(defer_build=True)
)
