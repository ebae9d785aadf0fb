"""`pubsub completion`."""
