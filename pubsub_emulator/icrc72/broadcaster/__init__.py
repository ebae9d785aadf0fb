"""The broadcaster: takes events from publishers and relays, notifies subscribers, relays to other broadcasters."""
