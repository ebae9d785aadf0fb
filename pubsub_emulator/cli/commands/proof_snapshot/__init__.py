"""`pubsub proof-snapshot`."""
