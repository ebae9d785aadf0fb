"""The log of an EVM chain: a contract's events behind a node's JSON-RPC."""
