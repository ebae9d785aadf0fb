"""Signals that end a server of the command line."""

import asyncio
import signal
from contextlib import suppress


def asked_to_end() -> asyncio.Event:
    """Return an event that is set when the program is interrupted or terminated.

    On platforms without signal handlers for event loops the interrupt is raised instead.
    """
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # event loops of Windows take no handlers
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
    return ended
