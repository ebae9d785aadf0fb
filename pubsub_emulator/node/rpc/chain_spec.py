"""`chainSpec_v1_*`, `rpc_methods`, and what `system_*` says of a node that has no peers."""

from typing import Final

from pubsub_emulator.node.rpc.call import Call
from pubsub_emulator.node.rpc.method import Json, Methods
from pubsub_emulator.node.rpc.node import CLIENT, PROPERTIES
from pubsub_emulator.primitives.hexadecimal import hexed

methods: Final = Methods()
method = methods.method


@method("rpc_methods")
def rpc_methods(call: Call) -> Json:
    """Every name that may be called here."""
    allowed = (name for name, found in call.node.methods.items() if call.session is not None or not found.live)
    return {"methods": sorted(allowed)}


@method("chainSpec_v1_chainName")
def chain_name(call: Call) -> Json:
    """The chain's name."""
    return call.node.chain_name(call.chain)


@method("chainSpec_v1_genesisHash")
def genesis_hash(call: Call) -> Json:
    """The hash of block 0."""
    return hexed(call.view.genesis.hash)


@method("chainSpec_v1_properties")
def properties(_call: Call) -> Json:
    """Address format and token."""
    return PROPERTIES


@method("system_name")
def system_name(_call: Call) -> Json:
    """The client's name."""
    return CLIENT


@method("system_version")
def system_version(call: Call) -> Json:
    """The client's version."""
    return call.node.version


@method("system_chain")
def system_chain(call: Call) -> Json:
    """The chain's name."""
    return call.node.chain_name(call.chain)


@method("system_chainType")
def system_chain_type(_call: Call) -> Json:
    """A chain for development."""
    return "Development"


@method("system_properties")
def system_properties(_call: Call) -> Json:
    """Address format and token."""
    return PROPERTIES


@method("system_health")
def system_health(_call: Call) -> Json:
    """Always in sync, without peers."""
    return {"peers": 0, "isSyncing": False, "shouldHavePeers": False}


@method("system_syncState")
def system_sync_state(call: Call) -> Json:
    """The genesis and the present block of the chain."""
    best = call.view.best.number
    return {"startingBlock": 0, "currentBlock": best, "highestBlock": best}


@method("system_peers")
def system_peers(_call: Call) -> Json:
    """No peers."""
    return []


@method("system_nodeRoles")
def system_node_roles(_call: Call) -> Json:
    """An authority: it builds blocks."""
    return ["Authority"]
