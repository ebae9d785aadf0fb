"""A worker process of the pool.

It reads a task from each line of its standard input and writes lines of answers to its original
standard output:

    {"unit": "module:function", "task": text, "out": address}
        ►   {"share": …}, now and then: the finished share of the task;
            then {"receipt": …} or {"error": "…"}

It ends when its input ends, so it does not outlive the process that started it. Anything that a
unit prints goes to standard error.
"""

import json
import os
import signal
import sys
from importlib import import_module

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.spark_audit.engine.memory import give_back, spare
from pubsub_emulator.spark_audit.engine.pace import listening


def main() -> None:
    """Answer tasks until the input ends."""
    spare()
    # An interrupt from the terminal reaches all processes, but only the one that started the
    # workers decides when they end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Answers go to a copy of standard output, and descriptor 1 becomes standard error, so that
    # prints of a unit cannot get between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(answer: dict[str, object]) -> None:
        try:
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
        # The process that started this one is gone. If the exception were raised, a unit that
        # reports its progress would record it as a fault in its result.
        except BrokenPipeError:
            os._exit(1)

    for line in sys.stdin:
        request = json.loads(line)
        module, _, name = request["unit"].partition(":")
        try:
            with listening(lambda share: say({"share": share})):
                receipt = getattr(import_module(module), name)(request["task"], request["out"])
        except OSError as error:
            say({"error": f"{error.filename or request['out']}: {error.strerror or error}"})
        except PubsubError as error:
            say({"error": str(error)})
        else:
            say({"receipt": receipt})
        give_back()


if __name__ == "__main__":
    main()
