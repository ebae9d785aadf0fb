"""Golden vectors of all rooms and distributions: the format of each file, and its cases checked."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Final

from pubsub_emulator.extension import attribute, extensions
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.vectors import Document, Format

MODULES: Final = (
    "pubsub_emulator.trie.vectors",
    "pubsub_emulator.primitives.scale_vectors",
    "pubsub_emulator.primitives.signature_vectors",
    "pubsub_emulator.xcm.vectors",
)
"""The modules of this distribution that declare `FORMATS`."""

_MALFORMED: Final = (
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    StopIteration,
)


@dataclass(slots=True)
class CheckedFile:
    """The result of one file."""

    path: Path
    format: Format
    passed: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)

    def document(self) -> dict[str, object]:
        """Return the result as a JSON object."""
        failed = [{"case": name, "reason": reason} for name, reason in self.failed]
        result = {
            "path": str(self.path),
            "format": self.format.name,
            "passed": self.passed,
            "failed": failed,
        }
        return {**result, "unchecked": list(self.format.unchecked)}


def known_formats() -> list[Format]:
    """Return the formats of all installed distributions. Raises `BadExtension`."""
    formats: list[Format] = []
    for module in MODULES:
        formats += import_module(module).FORMATS
    for extension in extensions():
        for module in extension.vectors:
            formats += attribute(module, "FORMATS", tuple)
    return formats


def check_files(paths: Sequence[Path]) -> list[CheckedFile]:
    """Check files, and all files of folders. Raises `InputError` before anything is checked."""
    formats = known_formats()
    documents = [
        (path, document, _format_of(path, document, formats))
        for path, document in _documents(paths)
    ]
    return [check_document(*arguments) for arguments in documents]


def check_document(path: Path, document: Document, fitting: Format) -> CheckedFile:
    """Check every case of a document. An unreadable case fails."""
    checked = CheckedFile(path, fitting)
    try:
        for name, check in fitting.cases(document):
            try:
                check()
                checked.passed += 1
            except PubsubError as error:
                checked.failed.append((name, str(error)))
            except _MALFORMED as error:
                checked.failed.append((name, f"cannot be read: {type(error).__name__}: {error}"))
    except _MALFORMED as error:
        checked.failed.append(("the file", f"cannot be read: {type(error).__name__}: {error}"))
    return checked


def _documents(paths: Sequence[Path]) -> Iterator[tuple[Path, Document]]:
    """Yield the JSON objects in files and in the files of folders. Raises `InputError`."""
    for path in paths:
        files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
        if not files:
            raise InputError(f"{path}: the folder has no .json file")
        for file in files:
            try:
                document = json.loads(file.read_bytes())
            except (ValueError, RecursionError):
                raise InputError(f"{file}: not JSON") from None
            if not isinstance(document, dict):
                raise InputError(f"{file}: unknown format")
            yield file, document


def _format_of(path: Path, document: Document, formats: Sequence[Format]) -> Format:
    fitting = next((file_format for file_format in formats if file_format.fits(document)), None)
    if fitting is None:
        names = ", ".join(file_format.name for file_format in formats)
        raise InputError(f"{path}: unknown format; known are {names}")
    return fitting
