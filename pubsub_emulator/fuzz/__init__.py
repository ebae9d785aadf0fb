"""All targets of `pubsub fuzz --target`, and those of readers that need several rooms."""
