"""Executes a user's Python file, and reads the rules in one."""

import sys
import traceback
from pathlib import Path
from types import ModuleType

from pubsub_emulator.emulator.untrusted import MOST_TEXT, read_bytes
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.runtime.rules import MARK, Rules, RulesError, make_rules


def execute(path: Path, prefix: str, error: type[PubsubError], source: bytes | None = None) -> ModuleType:
    """The module that a file makes. Raises `error`, whose message names file, line and reason."""
    place = str(path.absolute())
    module = ModuleType(f"{prefix}_{path.stem}")
    module.__file__ = place
    sys.modules[module.__name__] = module  # as an import does: what is defined in it may ask for its module
    try:
        code = compile(path.read_bytes() if source is None else source, place, "exec")
        exec(code, module.__dict__)  # noqa: S102  # the user names the file to be executed
    except (Exception, SystemExit) as failure:  # a stranger's code: whatever it raises is told with the place
        places = [frame.lineno for frame in traceback.extract_tb(failure.__traceback__) if frame.filename == place]
        line = failure.lineno if isinstance(failure, SyntaxError) else places[-1] if places else None
        where = f", line {line}" if line is not None else ""
        reason = failure.msg if isinstance(failure, SyntaxError) else failure
        raise error(f"{path}{where}: {type(failure).__name__}: {reason}") from failure
    return module


def read_rules(path: Path, digest: bytes | None = None) -> Rules:
    """The rules in a file; what is executed are the bytes of its `digest`, if given. Raises `RulesError`."""
    source = read_bytes(path, MOST_TEXT, RulesError)
    found = blake2_256(source)
    if digest is not None and found != digest:
        raise RulesError(f"{path}: its digest is 0x{found.hex()}, not 0x{digest.hex()}: the file was changed")
    module = execute(path, "rules_of", RulesError, source)
    functions = {getattr(each, MARK): each for each in vars(module).values() if getattr(each, MARK, None)}
    if not functions:
        raise RulesError(f"{path}: no rule in it; the decorator `rule` marks them")
    if ("encode" in functions) != ("decode" in functions):
        raise RulesError(f"{path}: `encode` and `decode` are replaced together")
    return make_rules(str(path.absolute()), found, functions)
