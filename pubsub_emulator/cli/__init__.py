"""The command line `pubsub`: reads arguments, shows progress, writes results."""
