"""Do entries end on time if lifetimes count slots and not relay blocks?"""

from pubsub_emulator import rule


@rule
def clock(number, slot):
    return slot
