"""`pubsub icrc72`."""
