"""`pubsub sql`."""
