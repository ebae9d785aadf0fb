"""`pubsub new`."""
