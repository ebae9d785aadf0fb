"""`pubsub prism`."""
