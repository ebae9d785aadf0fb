"""`pubsub import-relay-proofs`."""
