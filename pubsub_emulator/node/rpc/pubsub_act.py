"""The `pubsub_*` methods that change the network (`--dev`): publish, subscribe, cheat and more.

Requests that cannot be fulfilled are errors with code 1.
"""

from typing import Final

from pubsub_emulator.emulator.network import actions
from pubsub_emulator.node.rpc.call import RpcCall, attempt
from pubsub_emulator.node.rpc.errors import invalid_params
from pubsub_emulator.node.rpc.method import Json, method
from pubsub_emulator.node.rpc.params import (
    Pair,
    Param,
    hexadecimal,
    list_of,
    pairs_of,
    para,
    pubsub_key,
    text,
    u32,
)
from pubsub_emulator.node.rpc.pubsub_read import KEY, PARA
from pubsub_emulator.primitives.draws import MILLION
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.runtime.framework.relay_keys import relay_key
from pubsub_emulator.runtime.framework.relay_request import RelayStorageKey
from pubsub_emulator.runtime.pallet_subscriber.config import MAX_EXTRA_KEYS
from pubsub_emulator.runtime.parachain.governance import SUBSCRIBER_CALLS, subscriber_call, transact

_QUIET: Final = (actions.Cheat, actions.Honest, actions.Offline)
"""Actions that need no block to take effect."""
Item = tuple[ParaId, tuple[PubsubKey, ...]]
"""A publisher with the keys to subscribe to."""


async def act(call: RpcCall, action: actions.Action) -> int | None:
    """Apply an action before the next step and request a step if the action needs one.

    Returns the result of the action. Raises `RpcError` with code 1.
    """
    (result,) = await attempt(call.node.control.act((action,)))
    if not isinstance(action, _QUIET):
        call.node.control.ask()
    return result


@method(
    "pubsub_publish",
    PARA,
    KEY,
    Param("value", hexadecimal),
    Param("ttl", u32, optional=True),
    unsafe=True,
)
async def publish(
    call: RpcCall, chain: ParaId, key: PubsubKey, value: bytes, ttl: int | None
) -> None:
    """Let a parachain publish a value under a key with its next block."""
    await act(call, actions.Publish(para=chain, key=key, value=value, ttl=ttl or 0))


@method("pubsub_delete", PARA, Param("keys", list_of(pubsub_key)), unsafe=True)
async def delete(call: RpcCall, chain: ParaId, keys: list[PubsubKey]) -> None:
    """Delete keys of a publisher with the next relay block.

    The publisher's manager signs the call; for a system parachain, root makes it.
    """
    await act(call, actions.Delete(para=chain, keys=tuple(keys)))


@method("pubsub_order", PARA, Param("call", text), Param("publisher", para), unsafe=True)
async def order(call: RpcCall, chain: ParaId, name: str, publisher: ParaId) -> None:
    """Let governance send a subscriber a call about a publisher with the next relay block."""
    if name not in SUBSCRIBER_CALLS:
        raise invalid_params(f"call: one of {', '.join(SUBSCRIBER_CALLS)} is expected")
    await act(
        call, actions.Downward(para=chain, message=transact(subscriber_call(name, publisher)))
    )


def _item(value: object) -> Item:
    if not isinstance(value, dict) or value.keys() != {"publisher", "keys"}:
        raise ValueError("an object with publisher and keys is expected")
    return para(value["publisher"]), tuple(list_of(pubsub_key)(value["keys"]))


@method("pubsub_setSubscriptions", PARA, Param("items", list_of(_item)), unsafe=True)
async def set_subscriptions(call: RpcCall, chain: ParaId, items: list[Item]) -> Json:
    """Replace the subscriptions of a parachain and return its new spec version."""
    version = await act(call, actions.Subscribe(para=chain, items=tuple(items)))
    return {"specVersion": version}


def _relay_key(value: object) -> RelayStorageKey:
    try:
        return relay_key(text(value))
    except ScaleError as error:
        raise ValueError(str(error)) from None


@method(
    "pubsub_requestKeys",
    PARA,
    Param("keys", list_of(_relay_key, MAX_EXTRA_KEYS)),
    unsafe=True,
)
async def request_keys(call: RpcCall, chain: ParaId, keys: list[RelayStorageKey]) -> Json:
    """Replace the relay keys that a parachain requests besides its subscriptions.

    A key is `Pallet.Item`, `Paras.Heads(2000)`, `0x` and digits, or `child:STORAGE_KEY/KEY`.
    Returns the parachain's new spec version.
    """
    version = await act(call, actions.RequestKeys(para=chain, keys=tuple(keys)))
    return {"specVersion": version}


@method("pubsub_setRuntime", PARA, Param("code", hexadecimal), unsafe=True)
async def set_runtime(call: RpcCall, chain: ParaId, code: bytes) -> Json:
    """Replace the runtime of a parachain by the SCALE bytes of another spec."""
    version = await act(call, actions.Upgrade(para=chain, code=code))
    return {"specVersion": version}


@method(
    "pubsub_setStorage", Param("chain", para, optional=True), Param("values", pairs_of), unsafe=True
)
async def set_storage(call: RpcCall, chain: ParaId | None, values: list[Pair]) -> None:
    """Write storage of a parachain or of the relay chain with the root origin.

    In the next relay block, the relay chain writes, or sends a message to the parachain.
    """
    await act(call, actions.SetStorage(chain=chain, entries=tuple(values)))


def _share(value: object) -> int:
    """Read a number from 0 to 1 and return it in millionths."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 1:
        raise ValueError("a share from 0 to 1 is expected")
    return round(value * MILLION)


_STRATEGIES: Final = Param("strategies", list_of(text))
_COLLATOR: Final = Param("collator", u32, optional=True)


@method(
    "pubsub_cheat", PARA, _STRATEGIES, _COLLATOR, Param("rate", _share, optional=True), unsafe=True
)
async def cheat(
    call: RpcCall, chain: ParaId, strategies: list[str], collator: int | None, rate: int | None
) -> Json:
    """Replace an honest collator by a cheating one.

    `rate` is the share of its turns in which it cheats. Returns the collator that was chosen.
    """
    share = MILLION if rate is None else rate
    chosen = await act(
        call, actions.Cheat(para=chain, strategies=tuple(strategies), collator=collator, rate=share)
    )
    return {"collator": chosen, "collators": len(call.node.network.parachain(chain).collators)}


@method("pubsub_honest", PARA, unsafe=True)
async def honest(call: RpcCall, chain: ParaId) -> Json:
    """Make all collators of a parachain honest."""
    return {"collators": await act(call, actions.Honest(para=chain))}
