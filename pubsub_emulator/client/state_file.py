"""A whole state in a file with the format in which nodes export it, a raw chain specification.

    {"genesis": {"raw": {"top": {"0x…": "0x…"}, "childrenDefault": {"0x…": {"0x…": "0x…"}}}}}

`polkadot export-state` and `pubsub export-state` write such files. A file names neither the block
nor the state root. The root is computed from the entries in layout version 1, and the block's
number is the value of `System.Number`. Child roots in the file may be those of layout version 0.
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
    """Return the state in a file. Raises `BadFork` with the file and the field."""
    raw = read_json(path, MOST_BYTES, BadFork)
    for name in ("genesis", "raw"):
        raw = raw.get(name) if isinstance(raw, dict) else None
    if not isinstance(raw, dict):
        raise BadFork(f"{path}: genesis.raw: missing, so this is not an exported state")
    top = _entries(f"{path}: genesis.raw.top", raw.get("top"))
    children = _children(f"{path}: genesis.raw.childrenDefault", raw.get("childrenDefault") or {})
    # Child roots are computed again, and those in the file are only compared with them.
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

    The file appears only when it is complete. Raises `StateUnavailable`, `BadNode`, `OSError`, or
    `BadFork` if it would have more than `MOST_BYTES`.
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
        for index, (key, _) in enumerate(fork.state.top.items(CHILD_STORAGE_PREFIX)):
            child = key.removeprefix(CHILD_STORAGE_PREFIX)
            file.write(f'{"," if index else ""}\n"{hexed(child)}": ')
            count += _write(file, fork.state.child_entries(child))
        file.write("}}}}\n")
    return count


class _Bounded:
    """A text file of ASCII characters, whose size is limited to `MOST_BYTES`."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._left = MOST_BYTES

    def write(self, text: str) -> None:
        """Write a text. Raises `BadFork` if the file becomes too large."""
        self._left -= len(text)
        if self._left < 0:
            raise BadFork(
                f"the state takes more than {MOST_BYTES:,} bytes, the limit for such a file"
            )
        self._file.write(text)


def _write(file: _Bounded, entries: Iterator[tuple[bytes, bytes]]) -> int:
    """Write entries as a JSON object and return their number."""
    count = 0
    for key, value in entries:
        file.write(f'{"," if count else "{"}\n"{hexed(key)}": "{hexed(value)}"')
        count += 1
    file.write("}" if count else "{}")
    return count


def _children(place: str, table: object) -> dict[bytes, dict[bytes, bytes]]:
    """Return the entries of child tries by storage key.

    `place` names the table in errors. Raises `BadFork`.
    """
    if not isinstance(table, dict):
        raise BadFork(f"{place}: not a table")
    children = {}
    for name, rows in table.items():
        key = _bytes(f"{place}: a key", name)
        if len(child_root_key(key)) > LONGEST_KEY:
            raise BadFork(f"{place}: a key of {counted(len(key), 'byte')}")
        children[key] = _entries(f"{place}.{name[:40]}", rows)
    return children


def _entries(place: str, table: object) -> dict[bytes, bytes]:
    """Return the entries of one trie.

    `place` names the table in errors. Raises `BadFork`.
    """
    if not isinstance(table, dict):
        raise BadFork(f"{place}: missing, or not a table")
    entries = {}
    for name, value in table.items():
        key = _bytes(f"{place}: a key", name)
        if len(key) > LONGEST_KEY:
            raise BadFork(f"{place}: a key of {counted(len(key), 'byte')}")
        # Two different names can be the same key, since digits have two cases.
        if key in entries:
            raise BadFork(f"{place}: {name[:80]} occurs twice")
        entries[key] = _bytes(f"{place}.{name[:80]}", value)
    return entries


def _bytes(place: str, text: object) -> bytes:
    """Return the bytes of hexadecimal digits after 0x. Raises `BadFork`."""
    if not isinstance(text, str) or not text.startswith("0x"):
        raise BadFork(f"{place}: {str(text)[:40]!r} is not a 0x string")
    try:
        return bytes.fromhex(text[2:])
    except ValueError:
        raise BadFork(f"{place}: {text[:40]!r} is not hex") from None
