"""A session over a node, for terminals, scripts and Python: `Session` turns lines into pages.

command.py   a command: parameters, help, function
node_api.py  the node: in this process for a scenario, in `remote.py` at a URL
answers.py   the typed answers of a node
session.py   the session: its node, journal, snapshots and branches
stepping.py, network_commands.py, settings.py, inspection.py, storage_commands.py, trials.py,
snapshots.py
             the commands
blocks.py, differences.py
             a block's ledger and the differences of two states as tables
table.py     all of them in one table, with help; `completion.py` completes lines
saved.py     a session in a file

Commands that read events, headers and storage work on any Substrate node. Commands that read
candidates, deliveries and ledgers need a node of `pubsub serve`. Commands that change something
need one that was started with `--dev`.
"""

from pubsub_emulator.session.command import CommandError
from pubsub_emulator.session.session import Session
from pubsub_emulator.session.table import COMMANDS

__all__ = ["COMMANDS", "CommandError", "Session"]
