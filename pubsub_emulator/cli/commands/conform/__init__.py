"""`pubsub conform`."""
