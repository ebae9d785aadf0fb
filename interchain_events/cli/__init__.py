"""The commands of the event systems."""
