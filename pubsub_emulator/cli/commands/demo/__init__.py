"""`pubsub demo`."""
