"""A whole state in a file, in the form in which nodes export it: a raw chain specification.

    {"genesis": {"raw": {"top": {"0x…": "0x…"}, "childrenDefault": {"0x…": {"0x…": "0x…"}}}}}

`polkadot export-state` and `pubsub export-state` write such files. A file does not name the block
or the root. The root follows from the entries in layout version 1, and the block's number is the
value of `System.Number`. A stored child root may be that of version 0.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

from pubsub_emulator.files.atomic import whole_file
from pubsub_emulator.files.untrusted import read_json
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.storage_keys import CHILD_STORAGE_PREFIX, child_root_key
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.runtime.framework.fork import BadFork, Fork, state_number
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.trie import state_root
from pubsub_emulator.trie.partial import MAX_KEY

MOST_BYTES: Final = 256 * 1_048_576
"""The maximum size of a file in bytes, read or written. A larger state can be forked from a node,
which is read on demand.
"""
LONGEST_KEY: Final = MAX_KEY
"""The maximum length of a storage key in bytes."""


def read_state(path: Path) -> Fork:
    """Return the state in a file. Raises `BadFork` with file and field."""
    raw = read_json(path, MOST_BYTES, BadFork)
    for name in ("genesis", "raw"):
        raw = raw.get(name) if isinstance(raw, dict) else None
    if not isinstance(raw, dict):
        raise BadFork(f"{path}: genesis.raw: missing, so this is not an exported state")
    top = _entries(f"{path}: genesis.raw.top", raw.get("top"))
    children = _children(f"{path}: genesis.raw.childrenDefault", raw.get("childrenDefault") or {})
    roots = {key: top.pop(key) for key in list(top) if key.startswith(CHILD_STORAGE_PREFIX)}
    state = State.from_entries(top.items(), {key: rows.items() for key, rows in children.items()})
    for key, root in roots.items():
        rows = children.get(key[len(CHILD_STORAGE_PREFIX) :], {})
        if root not in {state.top.get(key), state_root(rows.items(), version=0)}:
            raise BadFork(
                f"{path}: genesis.raw.top: {hexed(key)} is a child root that does not match its"
                " entries in either layout version"
            )
    return Fork(state, state_number(state, str(path)), Hash(bytes(32)), str(path))


def write_state(fork: Fork, path: Path) -> int:
    """Write a whole state to a file and return the number of its entries.

    The file appears when it is complete. Raises `StateUnavailable`, `BadNode`, `OSError`, or
    `BadFork` beyond `MOST_BYTES`.
    """
    with whole_file(path) as whole:
        file = _Bounded(whole)
        file.write(
            f'{{"name": {json.dumps(fork.source)}, "id": "exported-state", "genesis": {{"raw":'
            ' {"top": '
        )
        top = (
            (key, value)
            for key, value in fork.state.top_entries()
            if not key.startswith(CHILD_STORAGE_PREFIX)
        )
        count = _write(file, top)
        file.write(', "childrenDefault": {')
        for at, (key, _) in enumerate(fork.state.top.items(CHILD_STORAGE_PREFIX)):
            child = key.removeprefix(CHILD_STORAGE_PREFIX)
            file.write(f'{"," if at else ""}\n"{hexed(child)}": ')
            count += _write(file, fork.state.child_entries(child))
        file.write("}}}}\n")
    return count


class _Bounded:
    """A text file of at most `MOST_BYTES` ASCII characters. Writing more raises `BadFork`."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._left = MOST_BYTES

    def write(self, text: str) -> None:
        self._left -= len(text)
        if self._left < 0:
            raise BadFork(
                f"the state takes more than {MOST_BYTES:,} bytes, the limit for such a file"
            )
        self._file.write(text)


def _write(file: _Bounded, entries: Iterator[tuple[bytes, bytes]]) -> int:
    """Write entries as a JSON object and return their number."""
    count = 0
    # The loop variable `count` is used after the loop.
    for count, (key, value) in enumerate(entries, start=1):
        file.write(f'{"{" if count == 1 else ","}\n"{hexed(key)}": "{hexed(value)}"')
    file.write("{}" if not count else "}")
    return count


def _children(place: str, found: object) -> dict[bytes, dict[bytes, bytes]]:
    """Return the entries of child tries by storage key. Raises `BadFork`."""
    if not isinstance(found, dict):
        raise BadFork(f"{place}: not a table")
    out = {}
    for name, rows in found.items():
        key = _bytes(f"{place}: a key", name)
        if len(child_root_key(key)) > LONGEST_KEY:
            raise BadFork(f"{place}: a key of {counted(len(key), 'byte')}")
        out[key] = _entries(f"{place}.{name[:40]}", rows)
    return out


def _entries(place: str, found: object) -> dict[bytes, bytes]:
    """Return the entries of an object. Raises `BadFork`."""
    if not isinstance(found, dict):
        raise BadFork(f"{place}: missing, or not a table")
    out = {}
    for name, value in found.items():
        key = _bytes(f"{place}: a key", name)
        if len(key) > LONGEST_KEY:
            raise BadFork(f"{place}: a key of {counted(len(key), 'byte')}")
        if key in out:
            raise BadFork(f"{place}: {name[:80]} occurs twice")
        out[key] = _bytes(f"{place}.{name[:80]}", value)
    return out


def _bytes(place: str, text: object) -> bytes:
    if not isinstance(text, str) or not text.startswith("0x"):
        raise BadFork(f"{place}: {str(text)[:40]!r} is not a 0x string")
    try:
        return bytes.fromhex(text[2:])
    except ValueError:
        raise BadFork(f"{place}: {text[:40]!r} is not hex") from None
