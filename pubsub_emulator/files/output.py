"""Output folders that are written completely or not at all."""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from pubsub_emulator.files.errors import InputError
from pubsub_emulator.primitives.errors import PubsubError

MARKER: Final = "summary.json"
"""Marks a folder written by this program."""


@contextmanager
def new_folder(target: Path, *, replace: bool = False, marker: str = MARKER) -> Iterator[Path]:
    """Yield a folder to write to, and rename it to `target` at the end of the context.

    If the context ends with an error, the folder is removed. With `replace`, it may replace an
    earlier output, which has the file `marker`. Raises `InputError` before any work is done if
    something else is at `target`, and `OSError`.
    """
    taken = target.exists() and (not target.is_dir() or any(target.iterdir()))
    if taken and not (replace and (target / marker).is_file()):
        raise InputError(
            f"{target}: the folder exists and is not empty; name another one or remove it"
        )
    target.parent.mkdir(parents=True, exist_ok=True)
    staging = target.with_name(f".{target.name[:64]}-{secrets.token_hex(4)}.part")
    staging.mkdir()
    try:
        yield staging
    except OSError as error:
        # The message names the target instead of the temporary folder.
        if error.filename is not None:
            error.filename = str(error.filename).replace(str(staging), str(target))
        raise
    except PubsubError as error:
        renamed = (
            part.replace(str(staging), str(target)) if isinstance(part, str) else part
            for part in error.args
        )
        error.args = tuple(renamed)
        raise
    else:
        if target.exists():
            old = staging.with_suffix(".old")
            target.rename(old)
            staging.rename(target)
            shutil.rmtree(old, ignore_errors=True)
        else:
            staging.rename(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
