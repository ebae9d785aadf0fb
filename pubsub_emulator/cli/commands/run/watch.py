"""`pubsub run --watch`: runs again when the scenario or the file of rules changes, and compares with the last run."""

from collections.abc import Callable
from pathlib import Path
from time import sleep
from typing import Final

from pubsub_emulator.cli.base.figures import lines_of, of_run, show_differences
from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.screen import say
from pubsub_emulator.emulator.user_file import read_rules
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.runtime.rules import choose, chosen

_POLL_SECONDS: Final = 0.3


def run_again_and_again(scenario: str, run: Callable[[], Result]) -> Result:
    """Run, and again after each change, until interrupted; the last result. An error is said and waited out."""
    rules = Path(chosen().path) if chosen().path else None
    watched = [path for path in (Path(scenario), rules) if path is not None and path.is_file()]
    if not watched:
        raise PubsubError(f"{scenario}: there is no file to watch")
    seen = _states(watched)
    last = run()
    try:
        while True:
            say(f"watching {', '.join(map(str, watched))}; interrupt to end")
            while seen == _states(watched):
                sleep(_POLL_SECONDS)
            seen = _states(watched)
            try:
                if rules is not None:
                    choose(read_rules(rules))
                result = run()
            except (PubsubError, OSError) as error:
                say(f"pubsub: {error}")
                continue
            lines = lines_of([of_run(last.document), of_run(result.document)])
            show_differences(("last run", "this run"), [line for line in lines if line.differs])
            last = result
    except KeyboardInterrupt:
        return last


def _states(paths: list[Path]) -> list[bytes | None]:
    """The contents of the files; `None` for one that an editor is replacing."""
    return [path.read_bytes() if path.is_file() else None for path in paths]
