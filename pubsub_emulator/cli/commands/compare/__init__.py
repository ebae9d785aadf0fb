"""`pubsub compare`."""
