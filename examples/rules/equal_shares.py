"""Do all publishers arrive sooner if each gets an equal share of what is left of the budget?"""

from pubsub_emulator import rule


@rule
def share(room, para, waiting):
    return room // waiting
