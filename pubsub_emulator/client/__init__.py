"""A JSON-RPC client for any Substrate node, under asyncio.

    async with connect("ws://127.0.0.1:9944") as rpc:
        node = SubstrateNode(rpc)
        events = await node.events(await node.finalized_head())

errors     what a node or its absence makes fail
rpc        `connect`: requests and subscriptions over WebSocket, requests over HTTP; reconnects
metadata   metadata V14, as the types and items that decoding needs
decode     SCALE by those types, into plain values and back
conform    a chain held to the rules of publishing
node       a chain: headers, storage, events, metadata by runtime
"""

from pubsub_emulator.primitives.face import face

__getattr__, __dir__ = face(__name__)
