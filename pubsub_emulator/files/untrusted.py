"""Reads untrusted files.

Their size is limited before they are read, and the depth and number of values before they are
parsed. Parsers would otherwise need much more memory than the file, or exceed the recursion limit.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Final, NoReturn

from pubsub_emulator.primitives.errors import PubsubError

MEBIBYTE: Final = 1_048_576
MOST_BYTES: Final = 64 * MEBIBYTE
"""The maximum size in bytes of a file of evidence, such as a fixture, a finding or a node's
answers.
"""
MOST_TEXT: Final = MEBIBYTE
"""The maximum size of a file that people write by hand, in bytes."""
MOST_DEPTH: Final = 64
"""The maximum nesting of lists and tables. All formats of this project need at most ten levels."""
MOST_VALUES: Final = 4 * MEBIBYTE
"""The maximum number of values of a JSON document, counted as commas and opening brackets. It
limits memory, because each value becomes a Python object.
"""
_JSON_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL)
"""A string, or a bracket outside strings."""
_TOML_TOKEN: Final = re.compile(r"[\[{]|[\]}]")
"""A bracket."""


class Unreadable(PubsubError):
    """A file that cannot be read. The message names the file and the reason."""


def read_bytes(path: Path, most: int = MOST_BYTES, error: type[PubsubError] = Unreadable) -> bytes:
    """Return the content of a file of at most `most` bytes.

    Raises `error` if it cannot be read or is longer. At most one byte beyond the limit is read.
    """
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as failure:
        raise error(f"{path}: {failure.strerror or failure}") from failure
    if len(data) > most:
        raise error(f"{path}: longer than {most:,} bytes, the limit for such a file")
    return data


def read_json(path: Path, most: int = MOST_BYTES, error: type[PubsubError] = Unreadable) -> object:
    """Return the JSON document in a file.

    Raises `error` if it is too long, too deep, or not JSON.
    """
    return parse_json(read_bytes(path, most, error), str(path), error)


def parse_json(data: bytes, place: str, error: type[PubsubError] = Unreadable) -> object:
    """Return the JSON document in UTF-8 bytes.

    Raises `error`, whose message begins with `place`.
    """
    if sum(data.count(character) for character in (b",", b"[", b"{")) > MOST_VALUES:
        raise error(f"{place}: more than {MOST_VALUES:,} values")
    depth = 0
    # The expression also matches whole strings, so that brackets inside strings are not counted.
    for token in _JSON_TOKEN.finditer(data):
        first = data[token.start()]
        if first in b"[{":
            depth += 1
            if depth > MOST_DEPTH:
                raise error(f"{place}: lists and tables nest deeper than {MOST_DEPTH} levels")
        elif first in b"]}":
            depth -= 1
    try:
        return json.loads(data.decode(), parse_constant=_refuse_constant)
    except json.JSONDecodeError as failure:
        reason = failure.msg[:1].lower() + failure.msg[1:]
        raise error(
            f"{place}: not JSON: line {failure.lineno}, column {failure.colno}: {reason}"
        ) from None
    except (ValueError, RecursionError) as failure:
        raise error(f"{place}: not JSON: {failure}") from None


def parse_toml(text: str) -> dict[str, object]:
    """Return the TOML document in a text.

    Raises `Unreadable` with only the reason. Brackets inside strings count as levels, too.
    """
    depth = 0
    for token in _TOML_TOKEN.finditer(text):
        if token.group() in "[{":
            depth += 1
        elif depth:
            depth -= 1
        if depth > MOST_DEPTH:
            raise Unreadable(f"lists and tables nest deeper than {MOST_DEPTH} levels")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as failure:
        raise Unreadable(f"not TOML: {failure}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")
