"""What if both kinds of messages share all that is left of a block, downward ones first?"""

from pubsub_emulator import rule


@rule
def message_limit(max_pov, remaining):
    return min(max_pov // 6, remaining)


@rule
def horizontal_room(max_pov, remaining, downward):
    return max(min(2 * (max_pov // 6), remaining) - downward, 0)
