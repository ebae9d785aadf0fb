"""`pubsub list` and `pubsub clean`: the outputs of this program in a folder, and what is asked."""
