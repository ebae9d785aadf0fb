"""`pubsub score`."""
