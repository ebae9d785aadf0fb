"""The subscriber: orders events, runs the handler, and asks for replays of missing events."""
