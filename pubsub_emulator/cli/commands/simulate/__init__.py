"""`pubsub simulate`."""
