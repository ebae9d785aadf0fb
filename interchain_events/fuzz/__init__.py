"""Readers of untrusted input as targets of `pubsub fuzz --target`."""
