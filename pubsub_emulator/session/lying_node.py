"""A fuzz target: a terminal session that reads the answers of a lying node."""

from typing import Final

from pubsub_emulator.node.lying_node import reads_a_node
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.session.session import Session

_LINES: Final = (
    "status publishers verdicts collators_2000 subscriptions_2000 ledger_2000 storage_2000 events"
    " keys_1000"
)


@reads_a_node("step")
def _session(url: str) -> str:
    session = Session.at(url)
    shown = 0
    try:
        for line in _LINES.split():
            try:
                shown += sum(1 for _ in session.execute(line.replace("_", " ")))
            except PubsubError:
                continue
    finally:
        session.node.close()
    return f"{min(shown, 50)} pages"
