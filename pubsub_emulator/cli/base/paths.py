"""Types of arguments that name files and folders.

A file to write is checked before any work is done. It must not be one of the command's inputs or
another of its outputs, or the second use would destroy the first.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import click

from pubsub_emulator.files.atomic import NOT_A_FILE


class NamedPath(click.Path):
    """A path that is not empty. Python would read an empty text as the current folder."""

    def __init__(
        self, *, exists: bool = False, file_okay: bool = True, dir_okay: bool = True
    ) -> None:
        super().__init__(exists=exists, file_okay=file_okay, dir_okay=dir_okay, path_type=Path)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        """Return the path. An empty name is a usage error."""
        if not os.fspath(value):
            self.fail("the name of the file or folder is empty", param, ctx)
        return super().convert(value, param, ctx)


class NewFile(NamedPath):
    """A file to write, which may replace an older one.

    With `makes_folder`, the command makes the folder that the file is in. Otherwise it must exist.
    """

    def __init__(self, *, makes_folder: bool = False) -> None:
        super().__init__(dir_okay=False)
        self.makes_folder = makes_folder

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        """Return the path, unless no file can be written there."""
        converted = super().convert(value, param, ctx)
        path = Path(os.fsdecode(converted))
        if path.exists() and not path.is_file():
            self.fail(f"{path}: {NOT_A_FILE}", param, ctx)
        folder = Path(os.path.realpath(path)).parent
        if self.makes_folder and not folder.exists():
            return converted
        if not folder.is_dir():
            self.fail(f"{path}: there is no folder {path.parent}", param, ctx)
        if not os.access(folder, os.W_OK | os.X_OK):
            self.fail(f"{path}: files in {path.parent} cannot be written", param, ctx)
        return converted


def check_outputs(ctx: click.Context) -> None:
    """Check that each file to write has a single use in a call. Raises `UsageError`."""
    paths = []
    for param in ctx.command.get_params(ctx):
        paths += [(param, place) for place in _places(ctx.params.get(param.name or ""))]
    for param, out in paths:
        if not isinstance(param.type, NewFile):
            continue
        for other, place in paths:
            if other is not param and _is_same(Path(out), place):
                raise click.UsageError(
                    f"{out}: this file is named twice, for {_name(other)} and for {_name(param)},"
                    " which would replace it",
                    ctx=ctx,
                )


def _places(value: object) -> Iterator[str | Path]:
    """Yield the values of a parameter that may name files."""
    if isinstance(value, (str, Path)):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _places(part)


def _is_same(out: Path, place: str | Path) -> bool:
    """Return whether a file to write is one that another value names.

    A text may also be a name, a key or a URL, so it counts only if it names an existing file.
    """
    try:
        if out.exists():
            return out.samefile(place)
        return isinstance(place, Path) and os.path.realpath(out) == os.path.realpath(place)
    except (OSError, ValueError):
        return False


def _name(param: click.Parameter) -> str:
    """Return a parameter's name as help shows it."""
    if isinstance(param, click.Argument):
        return param.human_readable_name
    return max(param.opts, key=len)
