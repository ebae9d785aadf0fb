"""The stores of events, for the tests of this room."""

from support.events.event_stores import any_log, database_place, log, opened, store

__all__ = ["any_log", "database_place", "log", "opened", "store"]
