"""`pubsub report`."""
