"""`pubsub evidence`."""
