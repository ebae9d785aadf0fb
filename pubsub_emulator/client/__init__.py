"""A JSON-RPC client for any Substrate node, based on asyncio.

    async with connect("ws://127.0.0.1:9944") as rpc:
        node = SubstrateNode(rpc)
        events = await node.events(await node.finalized_head())

errors     the errors of nodes and connections
rpc        `connect`: requests and subscriptions over WebSocket, requests over HTTP; reconnects
answers    answers of nodes as checked, typed values
metadata   metadata V14: the types and items of a chain
decode     SCALE into plain values by these types
encode     plain values into SCALE by these types
node       a chain: headers, storage, events, metadata by runtime
chain      the same for code that is not asynchronous, and extrinsics
fork       states of nodes or files that a network can continue from

storage_names    storage keys by name, and their names
request_states   proofs of requested keys, fetched for some blocks
request_costs    what a request costs in a block, and over several
kept_answers     answers that are kept in a folder for the next call

conform    tests whether a chain follows the rules of publishing
"""

from pubsub_emulator.lazy import face

__getattr__, __dir__ = face(__name__)
