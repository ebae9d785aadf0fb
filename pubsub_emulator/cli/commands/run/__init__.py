"""`pubsub run`."""
