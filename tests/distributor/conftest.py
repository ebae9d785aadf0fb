"""The stores of events, for the tests of this room."""

from support.event_stores import database_place, opened, store

__all__ = ["database_place", "opened", "store"]
