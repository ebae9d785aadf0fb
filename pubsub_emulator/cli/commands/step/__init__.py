"""`pubsub step`."""
