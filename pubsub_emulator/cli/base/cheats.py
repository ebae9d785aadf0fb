"""Loads a user's strategies from a Python file that makes them with `pubsub_emulator.strategy`."""

from pathlib import Path

from pubsub_emulator.cli.base.errors import InputError
from pubsub_emulator.collator.cheats import Strategy, register_strategy
from pubsub_emulator.emulator.user_file import execute


def load_strategies(path: Path) -> tuple[str, ...]:
    """Execute a file and let commands of this process name the strategies in it; their names.

    Raises `InputError` for a file that fails or has none, `StrategyTaken` where a name is another strategy's.
    """
    module = execute(path, "cheats_of", InputError)
    found = [each for each in vars(module).values() if isinstance(each, Strategy)]
    if not found:
        raise InputError(f"{path}: no strategy in it; the decorator `strategy` makes them of functions")
    for each in found:
        register_strategy(each)
    return tuple(each.name for each in found)
