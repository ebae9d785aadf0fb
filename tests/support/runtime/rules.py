"""A file of rules, and a small scenario on which it makes a difference."""

from support.plumbing.scenarios import scenario

CAP = """
from pubsub_emulator import rule


@rule
def lifetime(ttl, para, size, now):
    return min(ttl or 3, 3)
"""

SCENARIO = scenario("rules")
