"""`pubsub experiment`."""
