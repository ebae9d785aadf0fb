"""`pubsub vectors`."""
