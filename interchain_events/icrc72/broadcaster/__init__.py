"""The broadcaster: accepts events, notifies subscribers, and relays to other broadcasters."""
