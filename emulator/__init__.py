"""Relay chain, parachains and collators wired into one network: the only room that binds the others together."""
