"""The role of a subscriber: order, gaps, the handler, and asking for replays."""
