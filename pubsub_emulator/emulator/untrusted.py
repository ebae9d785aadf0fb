"""Reading untrusted files: bounded in bytes before they are read, and in depth before they are parsed."""

import json
import re
import tomllib
from pathlib import Path
from typing import Final, NoReturn

from pubsub_emulator.primitives.errors import PubsubError

MEBIBYTE: Final = 1_048_576

MOST_BYTES: Final = 64 * MEBIBYTE
"""The most bytes of a file of evidence: a fixture, a case, a finding, answers of a node."""

MOST_TEXT: Final = MEBIBYTE
"""The most bytes of a file that people write by hand."""

MOST_DEPTH: Final = 64
"""The most levels of nested lists and tables; no format here has more than ten."""

MOST_VALUES: Final = 4 * MEBIBYTE
"""The most values of a JSON document, counted as commas and opening brackets: each is an object of Python."""

_JSON_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[{]|[\]}]', re.DOTALL)
_TOML_TOKEN: Final = re.compile(r"[\[{]|[\]}]")


class Unreadable(PubsubError):
    """A file cannot be read; the message names file and reason."""


def read_bytes(path: Path, most: int = MOST_BYTES, error: type[PubsubError] = Unreadable) -> bytes:
    """The bytes of a file. Reads at most `most` + 1 bytes. Raises `error`."""
    try:
        with path.open("rb") as file:
            data = file.read(most + 1)
    except OSError as failure:
        raise error(f"{path}: {failure.strerror or failure}") from failure
    if len(data) > most:
        raise error(f"{path}: longer than {most:,} bytes, the limit for such a file")
    return data


def read_json(path: Path, most: int = MOST_BYTES, error: type[PubsubError] = Unreadable) -> object:
    """The JSON document in a file. Raises `error` if it is too long, too deep, or not JSON."""
    return parse_json(read_bytes(path, most, error), str(path), error)


def parse_json(data: bytes, place: str, error: type[PubsubError] = Unreadable) -> object:
    """The JSON document in `data`, UTF-8. Raises `error`, whose message begins with `place`."""
    if sum(data.count(each) for each in (b",", b"[", b"{")) > MOST_VALUES:
        raise error(f"{place}: more than {MOST_VALUES:,} values")
    depth = 0
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
        what = failure.msg[:1].lower() + failure.msg[1:]
        raise error(f"{place}: not JSON: line {failure.lineno}, column {failure.colno}: {what}") from None
    except (ValueError, RecursionError) as failure:
        raise error(f"{place}: not JSON: {failure}") from None


def parse_toml(text: str) -> dict[str, object]:
    """The TOML document in `text`. Raises `Unreadable`, the reason alone; brackets in strings count as levels too."""
    depth = 0
    for token in _TOML_TOKEN.finditer(text):
        depth += 1 if token.group() in "[{" else -1 if depth else 0
        if depth > MOST_DEPTH:
            raise Unreadable(f"lists and tables nest deeper than {MOST_DEPTH} levels")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as failure:
        raise Unreadable(f"not TOML: {failure}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")
