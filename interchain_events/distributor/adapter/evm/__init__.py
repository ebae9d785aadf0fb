"""The adapter's ledger for EVM chains: the events of a contract, behind a node's JSON-RPC."""
