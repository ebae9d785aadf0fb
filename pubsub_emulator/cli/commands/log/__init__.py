"""`pubsub log`."""
