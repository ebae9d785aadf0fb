"""The HTTP interface of the Internet Computer, for agents: `pubsub icrc72 serve`."""
