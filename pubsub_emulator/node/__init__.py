"""The node: every chain of an emulated network as a JSON-RPC node for the field's own clients."""
