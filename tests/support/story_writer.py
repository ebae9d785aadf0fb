"""A process that appends numbered blocks to a log and can be killed at any moment: `story_writer.py PLACE BLOCKS`."""

import sys
import time
from contextlib import closing

from support.events import make_block

from pubsub_emulator.eventplane.errors import StoreUnavailable
from pubsub_emulator.eventplane.log.rows import Block
from pubsub_emulator.eventplane.log.sql_store import open_store


def block(number: int) -> Block:
    """The same block whoever makes it."""
    return make_block(number, [(("A.One", "B.Two")[at % 2], {"n": number * 10 + at}) for at in range(number % 4)])


def main(place: str, last: int) -> None:
    """Append what is missing, a block at a time; ask again while the database is away."""
    while True:
        try:
            with closing(open_store(place, "story")) as store:
                for number in range((store.head().anchor or 0) + 1, last + 1):
                    store.append([block(number)])
                    time.sleep(0.01)
        except StoreUnavailable:
            time.sleep(0.1)
        else:
            return


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
