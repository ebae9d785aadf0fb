"""The command line: `pubsub`. Reads arguments, shows progress, writes results; everything else is done elsewhere."""
