"""`pubsub diff`."""
