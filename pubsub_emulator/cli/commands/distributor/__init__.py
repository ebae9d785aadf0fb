"""`pubsub distributor`."""
