"""Units for tests of the pool.

They are in a module so that workers can import them without the tests.
"""

import os
import signal
import time
from pathlib import Path
from typing import Any

from pubsub_emulator.spark_audit.engine import pace


def die_once(text: str, _out: str) -> dict[str, Any]:
    """Kill its process the first time that it is asked for a file."""
    path = Path(text)
    if not path.exists():
        path.write_text("", encoding="utf-8")
        os.kill(os.getpid(), signal.SIGKILL)
    return {"task": text}


def die(_text: str, _out: str) -> dict[str, Any]:
    """Kill its process."""
    os.kill(os.getpid(), signal.SIGKILL)
    return {}


def count_to_four(text: str, _out: str) -> dict[str, Any]:
    """Say how far it is, four times."""
    pace.REPORT_EVERY = float(text)  # in a worker, where nothing of the test's process is known
    for at in range(1, 5):
        pace.report_progress(at, 4)
    return {"task": text}


def end_when_heard(text: str, _out: str) -> dict[str, Any]:
    """Report the whole unit as done, and return once the listener has made the file `text`."""
    pace.REPORT_EVERY = 0.0
    pace.report_progress(1, 1)
    deadline = time.monotonic() + 60
    while not Path(text).exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return {"task": text}


def note_every_error(text: str, _out: str) -> dict[str, Any]:
    """Report progress until that fails, and write the error to the file `text`.

    Judging catches every error in the same way.
    """
    pace.REPORT_EVERY = 0.0
    try:
        while True:
            pace.report_progress(1, 2)
    except Exception as error:  # noqa: BLE001  # as judging does
        Path(text).write_text(repr(error), encoding="utf-8")
    return {"task": text}
