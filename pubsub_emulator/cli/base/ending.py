"""Signals that end a server of the command line."""

import asyncio
import signal
from contextlib import suppress


def asked_to_end() -> asyncio.Event:
    """Set when the program is interrupted or terminated; where the platform cannot tell, an
    interrupt is raised.
    """
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # event loops of Windows take no handlers
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
    return ended
