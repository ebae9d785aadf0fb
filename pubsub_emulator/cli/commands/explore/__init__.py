"""`pubsub explore`."""
