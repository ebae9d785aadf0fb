"""Loads a user's strategies from a Python file that makes them with `pubsub_emulator.strategy`."""

import sys
import traceback
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from pubsub_emulator.collator.cheats import Strategy, register_strategy
from pubsub_emulator.primitives.errors import PubsubError


class CheatsError(PubsubError):
    """A file of strategies cannot be used; the message names file, line and reason."""


def load_strategies(path: Path) -> tuple[str, ...]:
    """Execute a file and let commands of this process name the strategies in it; their names.

    Raises `CheatsError` for a file that fails or has none, `StrategyTaken` where a name is another strategy's.
    """
    place = str(path.absolute())
    spec = spec_from_file_location(f"cheats_of_{path.stem}", place)
    if spec is None or spec.loader is None:
        raise CheatsError(f"{path}: not a Python file")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # as an import does: what is defined in it may ask for its module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the file is a stranger's code: whatever it raises is told with the place
        places = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == place]
        line = error.lineno if isinstance(error, SyntaxError) else places[-1] if places else None
        where = f", line {line}" if line is not None else ""
        reason = error.msg if isinstance(error, SyntaxError) else error
        raise CheatsError(f"{path}{where}: {type(error).__name__}: {reason}") from error
    found = [each for each in vars(module).values() if isinstance(each, Strategy)]
    if not found:
        raise CheatsError(f"{path}: no strategy in it; the decorator `strategy` makes them of functions")
    for each in found:
        register_strategy(each)
    return tuple(each.name for each in found)
