"""`pubsub export-state`."""
