"""`chainSpec_v1_*`, `rpc_methods`, and those `system_*` methods whose answers never change."""

from typing import Final

from pubsub_emulator.node.rpc.call import RpcCall
from pubsub_emulator.node.rpc.method import Json, method
from pubsub_emulator.node.rpc.node import CLIENT, PROPERTIES
from pubsub_emulator.primitives.hexadecimal import hexed


@method("rpc_methods")
def rpc_methods(call: RpcCall) -> Json:
    """Return the names of all methods that can be called over this kind of connection."""
    allowed = (
        name
        for name, declared in call.node.methods.items()
        if call.session is not None or not declared.live
    )
    return {"methods": sorted(allowed)}


@method("system_chain", aliases=("chainSpec_v1_chainName",))
def chain_name(call: RpcCall) -> Json:
    """Return the chain's name."""
    return call.node.chain_name(call.chain)


@method("chainSpec_v1_genesisHash", aliases=("archive_v1_genesisHash",))
def genesis_hash(call: RpcCall) -> Json:
    """Return the hash of the chain's first block."""
    return hexed(call.view.genesis.hash)


@method("system_version")
def system_version(call: RpcCall) -> Json:
    """Return the version of the client software."""
    return call.node.version


@method("system_syncState")
def system_sync_state(call: RpcCall) -> Json:
    """Return the numbers of the first, present and highest blocks."""
    best = call.view.best.number
    return {"startingBlock": 0, "currentBlock": best, "highestBlock": best}


_ALWAYS: Final[dict[str, Json]] = {
    "chainSpec_v1_properties": PROPERTIES,
    "system_properties": PROPERTIES,
    "system_name": CLIENT,
    "system_chainType": "Development",
    "system_health": {"peers": 0, "isSyncing": False, "shouldHavePeers": False},
    "system_peers": [],
    "system_nodeRoles": ["Authority"],
}
"""The constant answers: a development chain has no peers and is always in sync."""


def _declare(name: str, answer: Json) -> None:
    @method(name)
    def always(_call: RpcCall) -> Json:
        return answer


for _name, _answer in _ALWAYS.items():
    _declare(_name, _answer)
