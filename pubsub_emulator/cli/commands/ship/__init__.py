"""`pubsub ship`."""
