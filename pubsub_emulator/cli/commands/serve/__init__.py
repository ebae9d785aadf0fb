"""`pubsub serve`."""
