"""Units for tests of the pool: found by its workers, who know nothing of the test that asks for them."""

import os
import signal
from pathlib import Path
from typing import Any


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
