"""`pubsub inspect`."""
