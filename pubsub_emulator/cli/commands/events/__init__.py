"""`pubsub events`."""
