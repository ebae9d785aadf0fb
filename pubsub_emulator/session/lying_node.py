"""A fuzz target: a terminal session that reads the answers of a lying node."""

from typing import Final

from pubsub_emulator.node.lying_node import reads_a_node
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.session.session import Session

_LINES: Final = (
    "status",
    "publishers",
    "verdicts",
    "collators 2000",
    "subscriptions 2000",
    "ledger 2000",
    "storage 2000",
    "events",
    "keys 1000",
)


@reads_a_node("step")
def _session(url: str) -> str:
    """Run commands that only read on a node, and return the number of pages that they show.

    A refused answer ends one command. More than 50 pages count as 50, because each result is
    an outcome of its own in the statistics of the target.
    """
    session = Session.at(url)
    pages = 0
    try:
        for line in _LINES:
            try:
                pages += sum(1 for _ in session.execute(line))
            except PubsubError:
                continue
    finally:
        session.node.close()
    return f"{min(pages, 50)} pages"
