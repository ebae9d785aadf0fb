"""Actions on a running network beside a step, as data: a journal holds them and a replay does them again."""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, TypeAdapter

from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import U32_MAX, U128_MAX


def _from_hex(value: object) -> object:
    if not isinstance(value, str):
        return value
    if not value.startswith("0x"):
        raise ValueError("bytes are hexadecimal digits after 0x")
    return bytes.fromhex(value[2:])


LAST_SLOT: Final = 2**63 // 6_000
"""The last slot that can be wished for: the milliseconds of blocks for ages after it fit 64 bits."""

Hex = Annotated[bytes, BeforeValidator(_from_hex), PlainSerializer(hexed, when_used="json")]
Para = Annotated[int, Field(strict=True, ge=0, le=U32_MAX)]


class _Action(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Publish(_Action):
    """Have a parachain publish a key."""

    kind: Literal["publish"] = "publish"
    para: Para
    key: Hex
    value: Hex
    ttl: int = 0


class Delete(_Action):
    """Have keys of a publisher deleted by its manager, or by root for a system para."""

    kind: Literal["delete"] = "delete"
    para: Para
    keys: tuple[Hex, ...]


class Subscribe(_Action):
    """Give a parachain another set of subscriptions: (publisher, keys) pairs."""

    kind: Literal["subscribe"] = "subscribe"
    para: Para
    items: tuple[tuple[Para, tuple[Hex, ...]], ...]


class AddKeys(_Action):
    """Have a subscriber subscribe to further keys of a publisher."""

    kind: Literal["add_keys"] = "add_keys"
    para: Para
    publisher: Para
    keys: Annotated[tuple[Hex, ...], Field(min_length=1)]


class DropKeys(_Action):
    """End a subscriber's subscription to keys of a publisher, or to all of them."""

    kind: Literal["drop_keys"] = "drop_keys"
    para: Para
    publisher: Para
    keys: tuple[Hex, ...] = ()


class Limit(_Action):
    """Have governance change a limit of a subscriber's runtime, in bytes; a depth of 0 is none."""

    kind: Literal["limit"] = "limit"
    para: Para
    name: Literal["max_pov_size", "max_cache_bytes", "max_trie_depth"]
    value: Para


class Upgrade(_Action):
    """Give a parachain another runtime; `code` is its spec as SCALE bytes."""

    kind: Literal["upgrade"] = "upgrade"
    para: Para
    code: Hex


class Cheat(_Action):
    """Have a collator cheat; `rate` in millionths."""

    kind: Literal["cheat"] = "cheat"
    para: Para
    strategies: tuple[str, ...]
    collator: int | None = None
    rate: int


class Honest(_Action):
    """Make all collators of a parachain honest."""

    kind: Literal["honest"] = "honest"
    para: Para


class Register(_Action):
    """Have root register a publisher, with a deposit of its manager in plancks: the usual one unless given."""

    kind: Literal["register"] = "register"
    para: Para
    deposit: Annotated[int, Field(ge=0, le=U128_MAX)] | None = None


class Deregister(_Action):
    """Have root remove a publisher with all that it published."""

    kind: Literal["deregister"] = "deregister"
    para: Para


class Offline(_Action):
    """Let a parachain's collators build nothing, or let them build again."""

    kind: Literal["offline"] = "offline"
    para: Para
    offline: bool = True


class Upward(_Action):
    """Have a parachain send a message to the relay chain."""

    kind: Literal["upward"] = "upward"
    para: Para
    message: Hex


class Downward(_Action):
    """Have the relay chain send a message to a parachain."""

    kind: Literal["downward"] = "downward"
    para: Para
    message: Hex


class Horizontal(_Action):
    """Have a parachain send a message to another one."""

    kind: Literal["horizontal"] = "horizontal"
    sender: Para
    recipient: Para
    message: Hex


class SetStorage(_Action):
    """Have root write storage of a chain (`None`: the relay chain); no value removes a key."""

    kind: Literal["set_storage"] = "set_storage"
    chain: Para | None
    entries: tuple[tuple[Hex, Hex | None], ...]


class Travel(_Action):
    """Give the relay chain's next block a slot further ahead."""

    kind: Literal["travel"] = "travel"
    slot: int


class Turn(_Action):
    """Let a parachain build in the next step, whatever its pace."""

    kind: Literal["turn"] = "turn"
    para: Para


class Rewind(_Action):
    """Go back to a relay block."""

    kind: Literal["rewind"] = "rewind"
    relay: Hex


class Offer(_Action):
    """Signed extrinsics that the next block of a chain may take, in order."""

    kind: Literal["offer"] = "offer"
    chain: Para | None
    extrinsics: tuple[Hex, ...]


Action = (
    Publish
    | Delete
    | Subscribe
    | AddKeys
    | DropKeys
    | Limit
    | Upgrade
    | Cheat
    | Honest
    | Register
    | Deregister
    | Offline
    | Upward
    | Downward
    | Horizontal
    | SetStorage
    | Travel
    | Turn
    | Rewind
    | Offer
)
action_adapter: TypeAdapter[Action] = TypeAdapter(Annotated[Action, Field(discriminator="kind")])
