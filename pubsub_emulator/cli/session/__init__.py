"""A session over a network, for terminals, scripts and Python: `Session` takes lines and returns pages.

command.py   a command: arguments, help, function
session.py   the session: network, journal, snapshots and branches
stepping.py, network_commands.py, settings.py, inspection.py, storage_commands.py, trials.py, snapshots.py
             the commands
table.py     all of them in one table, with help; `completion.py` completes lines
saved.py     a session in a file
terminal.py  a terminal, or a script on standard input
"""

from pubsub_emulator.cli.session.command import CommandError
from pubsub_emulator.cli.session.session import Session
from pubsub_emulator.cli.session.table import COMMANDS

__all__ = ["COMMANDS", "CommandError", "Session"]
