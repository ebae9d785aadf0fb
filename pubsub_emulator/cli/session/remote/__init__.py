"""A session over a node that runs elsewhere: the words, tables and help of a session over a network of its own.

connection.py  the session: connections, chains and states as the node tells and proves them
blocks.py      relay blocks with what was judged and delivered for them
building.py, changing.py, queries.py, moments.py   the commands
table.py       all of them, with their help

What reads events and storage works on any Substrate node; what tells of candidates, deliveries and ledgers on a node of
`pubsub serve`; what changes something on one that was started with `--dev`.
"""

from pubsub_emulator.cli.session.remote.connection import Remote
from pubsub_emulator.cli.session.remote.table import COMMANDS, RemoteSession

__all__ = ["COMMANDS", "Remote", "RemoteSession"]
