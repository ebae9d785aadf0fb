"""`pubsub replay`."""
