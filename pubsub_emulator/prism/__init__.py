"""PRISM: DID operations that a chain anchors, their ledger, and subscriptions to it."""
