"""What if a block may hash a downward message only where the largest one would not fit?"""

from pubsub_emulator import rule


@rule
def may_hash(full, largest, limit):
    return full + largest > limit
