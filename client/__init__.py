"""A JSON-RPC client for any Substrate node: requests, subscriptions, metadata, decoded storage and events."""
