"""What if each kind of messages may take all that is left of a block, as in polkadot-sdk?"""

from pubsub_emulator import rule


@rule
def message_limit(max_pov, remaining):
    return min(max_pov // 6, remaining)


@rule
def horizontal_room(max_pov, remaining, downward):
    return 2 * min(max_pov // 6, remaining) - downward
