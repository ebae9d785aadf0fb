"""A worker process of the pool: a task a line on its standard input, an answer a line on what was its standard output.

    {"unit": "module:function", "task": text, "out": address}   ►   {"receipt": …} or {"error": "…"}

It ends when its input does, so it never outlives who started it. What a unit prints goes to standard error.
"""

import json
import os
import signal
import sys
from importlib import import_module

from pubsub_emulator.primitives.errors import PubsubError


def main() -> None:
    """Answer until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it decides when it ends
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        module, _, name = request["unit"].partition(":")
        try:
            receipt = getattr(import_module(module), name)(request["task"], request["out"])
        except OSError as error:
            answer = {"error": f"{error.filename or request['out']}: {error.strerror or error}"}
        except PubsubError as error:
            answer = {"error": str(error)}
        else:
            answer = {"receipt": receipt}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
