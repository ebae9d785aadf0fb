"""How many callbacks are about entries that had expired before the subscriber saw them?"""

from pubsub_emulator import rule


@rule
def deliver(para, key, left):
    return left is None or left > 0
