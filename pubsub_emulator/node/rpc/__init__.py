"""The JSON-RPC methods of a node.

A method is a function of a call and its parameters. The package uses no sockets, files or clocks,
so that the methods also work without a server.
"""
