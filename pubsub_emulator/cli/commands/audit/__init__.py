"""`pubsub audit`."""
