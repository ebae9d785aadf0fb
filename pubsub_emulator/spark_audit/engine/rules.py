"""A user's rules on their way to a worker.

Rules are Python code in a file. They travel as the file's path and digest, so that a worker refuses
a file that was changed in the meantime.
"""

from pathlib import Path

from pubsub_emulator.emulator.user_file import read_rules
from pubsub_emulator.runtime.rules import choose, chosen

Named = tuple[str, str] | list[str]
"""Path and digest (in hex) of the rules; both are empty for the rules that this program ships."""


def named_rules() -> Named:
    """Return the rules that are chosen in this process."""
    rules = chosen()
    return rules.path, rules.digest.hex()


def choose_named(named: Named) -> None:
    """Choose the rules that another process named. Raises `RulesError`, `OSError`."""
    path, digest = named
    if digest != chosen().digest.hex():
        choose(read_rules(Path(path), bytes.fromhex(digest)))
