"""The outputs in a folder, as tables and as a document."""

from pathlib import Path
from typing import Final

from pubsub_emulator.cli.screen import say, table
from pubsub_emulator.inspection.outputs import Found, Output

_UNITS: Final = ("bytes", "KB", "MB", "GB", "TB")
_SPANS: Final = ((86_400, "day"), (3_600, "hour"), (60, "minute"))


def show_outputs(folder: Path, found: Found, now: float) -> None:
    """Print the table of `pubsub list`."""
    rows = [
        (
            _place(folder, output.path),
            output.kind.value,
            size_words(output.size),
            age_words(now - output.changed),
            output.made_by,
            f"no, {output.kept_for}" if output.kept_for else "yes",
        )
        for output in found.outputs
    ]
    if rows:
        table("", ("path", "kind", "size", "age", "made by", "can be removed"), rows)
    else:
        say(f"{folder}: no outputs of this program")
    if not found.is_whole:
        say(f"{folder} has more than {found.most:,} files and folders; the others were not read")


def _place(folder: Path, path: Path) -> str:
    """Return the path of an output as the user would write it in a folder that is listed."""
    return str(path.relative_to(folder)) if path != folder else str(path)


def document(found: Found) -> dict[str, object]:
    """Return the document of `pubsub list --json`."""
    return {"outputs": [described(output) for output in found.outputs], "whole": found.is_whole}


def described(output: Output) -> dict[str, object]:
    """Return an output as a JSON object."""
    return {
        "path": output.path,
        "kind": output.kind.value,
        "bytes": output.size,
        "changed": output.changed,
        "made_by": output.made_by,
        "removable": not output.kept_for,
        "kept_for": output.kept_for or None,
    }


def size_words(size: int) -> str:
    """Return a size in bytes as text, such as `12.3 MB`."""
    amount = float(size)
    for unit in _UNITS[:-1]:
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} {_UNITS[-1]}"


def age_words(seconds: float) -> str:
    """Return an age in seconds as text, such as `3 days`."""
    for length, name in _SPANS:
        count = int(seconds // length)
        if count >= 1:
            return f"{count:,} {name}" if count == 1 else f"{count:,} {name}s"
    return "just now"
