"""The acts of `pubsub tour` on the event systems."""
