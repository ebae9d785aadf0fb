"""The emulated network of relay chain, parachains and collators, and scenarios that drive it."""
