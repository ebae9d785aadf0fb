"""`pubsub lab`."""
