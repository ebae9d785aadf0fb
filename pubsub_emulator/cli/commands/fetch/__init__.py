"""`pubsub fetch`."""
