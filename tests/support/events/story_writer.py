"""A process that appends blocks to a log, takes some back, and can be killed: `story_writer.py
PLACE BLOCKS`.
"""

import random
import sys
import time
from contextlib import closing

from support.events.blocks import make_block

from interchain_events.database.errors import StoreUnavailable
from interchain_events.events.log.sql_store import SqlStore, open_store
from interchain_events.events.rows import Block

_MOST_REWINDS = 8


def block(number: int, branch: int, parent: bytes) -> Block:
    """Return a block, which is the same in every process. The branch is the log's epoch."""
    events = [(("A.One", "B.Two")[at % 2], {"n": number * 10 + at}) for at in range(number % 4)]
    return make_block(number, events, branch=branch, parent=parent)


def step(store: SqlStore) -> None:
    """Append the next block, or take some back."""
    head = store.head()
    number = (head.anchor or 0) + 1
    draw = random.Random(f"{head.epoch} {number}")
    if number > 10 and head.epoch < _MOST_REWINDS and draw.random() < 0.08:
        store.rewind(number - draw.randrange(2, 9))
        return
    store.append([block(number, head.epoch, head.hash or bytes(32))])


def main(place: str, last: int) -> None:
    """Append the missing blocks one at a time, and retry while the database is unavailable."""
    while True:
        try:
            with closing(open_store(place, "story")) as store:
                while (store.head().anchor or 0) < last:
                    step(store)
                    time.sleep(0.01)
        except StoreUnavailable:
            time.sleep(0.1)
        else:
            return


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
