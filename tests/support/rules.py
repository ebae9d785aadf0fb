"""A file of rules, and a small scenario on which it makes a difference."""

CAP = """
from pubsub_emulator import rule


@rule
def lifetime(ttl, para, size, now):
    return min(ttl or 3, 3)
"""

SCENARIO = """
name = "small"
seed = "small"
relay_blocks = 12

[[publishers]]
paras = [1000]
keys = 4
value_size = 40
update_rate = 0.2

[[subscribers]]
name = "reader"
para = 2000
subscribe = [{ publishers = [1000], keys = 4 }]
"""
