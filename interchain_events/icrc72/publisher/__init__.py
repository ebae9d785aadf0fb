"""The publisher: keeps a log of its events, publishes them, and replays them."""
