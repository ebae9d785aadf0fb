"""Executes a user's Python file, and reads the rules in such a file."""

import sys
import traceback
from pathlib import Path
from types import ModuleType

from pubsub_emulator.files.untrusted import MOST_TEXT, read_bytes
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.runtime.rules import MARK, Rules, RulesError, make_rules


def execute(
    path: Path, prefix: str, error: type[PubsubError], source: bytes | None = None
) -> ModuleType:
    """Execute a Python file and return it as a module.

    The module's name begins with `prefix`. `source` replaces the content of the file. Raises
    `error`, whose message names the file, the line and the reason.
    """
    place = str(path.absolute())
    module = ModuleType(f"{prefix}_{path.stem}")
    module.__file__ = place
    # The module is registered as by an import, because dataclasses find a class's module by name.
    sys.modules[module.__name__] = module
    try:
        code = compile(path.read_bytes() if source is None else source, place, "exec")
        exec(code, module.__dict__)  # noqa: S102  # the user names the file to be executed
    except (Exception, SystemExit) as failure:
        # The file can raise any error, or exit. The error names the last line of the file that ran.
        places = [
            frame.lineno
            for frame in traceback.extract_tb(failure.__traceback__)
            if frame.filename == place
        ]
        line: int | None = None
        if isinstance(failure, SyntaxError):
            line = failure.lineno
        elif places:
            line = places[-1]
        where = f", line {line}" if line is not None else ""
        reason = failure.msg if isinstance(failure, SyntaxError) else failure
        raise error(f"{path}{where}: {type(failure).__name__}: {reason}") from failure
    return module


def read_rules(path: Path, digest: bytes | None = None) -> Rules:
    """Return the rules in a file.

    If `digest` is given, the file's content must have that BLAKE2 hash. Raises `RulesError`.
    """
    # The file is read once, so that the executed bytes are those of the digest.
    source = read_bytes(path, MOST_TEXT, RulesError)
    actual = blake2_256(source)
    if digest is not None and actual != digest:
        raise RulesError(
            f"{path}: its digest is 0x{actual.hex()}, not 0x{digest.hex()}: the file was changed"
        )
    module = execute(path, "rules_of", RulesError, source)
    functions = {
        getattr(value, MARK): value for value in vars(module).values() if getattr(value, MARK, None)
    }
    if not functions:
        raise RulesError(f"{path}: the file has no rules, which the decorator `rule` marks")
    if ("encode" in functions) != ("decode" in functions):
        raise RulesError(f"{path}: `encode` and `decode` are replaced together")
    return make_rules(str(path.absolute()), actual, functions)
