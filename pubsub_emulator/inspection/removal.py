"""Remove an output of this program."""

import secrets
import shutil
from errno import ELOOP

from pubsub_emulator.inspection.outputs import Output, look


def remove(output: Output, now: float) -> bool:
    """Remove an output that `find` has returned. Return whether it was removed.

    An output that was changed since then stays. A folder is renamed first, so that an interruption
    leaves an unfinished output instead of half of a finished one. Raises `OSError`.
    """
    if look(output.path, now) != output:
        return False
    if not output.path.is_dir():
        output.path.unlink()
        return True
    stem = output.path.name[:64]
    doomed = output.path.with_name(f".{stem}-{secrets.token_hex(4)}.old")
    output.path.rename(doomed)
    try:
        shutil.rmtree(doomed)
    except RecursionError as error:
        raise OSError(ELOOP, "its folders are nested too deeply") from error
    return True
