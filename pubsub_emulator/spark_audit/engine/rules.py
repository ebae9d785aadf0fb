"""The chosen rules of a user's on their way to a worker: by path and digest, so that a changed file is refused."""

from pathlib import Path

from pubsub_emulator.emulator.user_file import read_rules
from pubsub_emulator.runtime.rules import choose, chosen

Named = tuple[str, str] | list[str]
"""Path and digest in hex; both empty for the shipped rules."""


def named_rules() -> Named:
    """The rules that are chosen in this process."""
    rules = chosen()
    return rules.path, rules.digest.hex()


def choose_named(named: Named) -> None:
    """Choose the rules that another process named, in this one. Raises `RulesError`, `OSError`."""
    path, digest = named
    if digest != chosen().digest.hex():
        choose(read_rules(Path(path), bytes.fromhex(digest)))
