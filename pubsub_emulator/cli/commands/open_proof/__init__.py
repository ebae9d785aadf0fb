"""`pubsub open-proof`."""
