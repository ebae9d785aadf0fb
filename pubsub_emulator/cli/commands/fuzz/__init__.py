"""`pubsub fuzz`."""
