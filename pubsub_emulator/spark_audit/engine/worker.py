"""A worker process of the pool: a task a line on its standard input, an answer a line on what was its standard output.

    {"unit": "module:function", "task": text, "out": address, "rules": as `engine.rules` names them}
        ►   {"share": …} at times, how much is done, then {"receipt": …} or {"error": "…"}

It ends when its input does, so it never outlives who started it. What a unit prints goes to standard error.
"""

import json
import os
import signal
import sys
from importlib import import_module

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.spark_audit.engine.memory import give_back, spare
from pubsub_emulator.spark_audit.engine.pace import heard_by
from pubsub_emulator.spark_audit.engine.rules import choose_named


def main() -> None:
    """Answer until the input ends."""
    spare()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it decides when it ends
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(answer: dict[str, object]) -> None:
        try:
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
        except BrokenPipeError:  # whoever started this process is gone; no unit may take that for an error of its own
            os._exit(1)

    for line in sys.stdin:
        request = json.loads(line)
        module, _, name = request["unit"].partition(":")
        try:
            choose_named(request["rules"])
            with heard_by(lambda share: say({"share": share})):
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
