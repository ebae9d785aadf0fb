"""The event log: ordered, gap-free, of one network."""
