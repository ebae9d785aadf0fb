"""`pubsub tour`."""
