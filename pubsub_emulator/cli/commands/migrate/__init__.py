"""`pubsub migrate`."""
