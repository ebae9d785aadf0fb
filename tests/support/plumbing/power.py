"""Disks that lose what was not synced: one for SQLite, one for files that appear whole.

After each change of the disk, a test can take images: states that a power cut may leave. An image
has everything that was synced. Of later writes it has none, all, some, a torn one, or some without
the writes before them.
"""

import itertools
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import apsw
import pytest

SECTOR = 512


@dataclass
class _Change:
    """Bytes written at an offset, or, if `data` is `None`, a file cut to that length."""

    offset: int
    data: bytes | None

    def apply(self, content: bytearray) -> None:
        if self.data is None:
            del content[self.offset :]
            return
        content.extend(bytes(max(0, self.offset - len(content))))
        content[self.offset : self.offset + len(self.data)] = self.data


@dataclass
class SqliteDisk:
    """The files of a database, as its engine wrote and synced them."""

    synced: dict[str, bytearray] = field(default_factory=dict)
    """The synced content of files, by name."""
    waiting: dict[str, list[_Change]] = field(default_factory=dict)
    """Writes that are not synced yet, by the file's name."""
    on_change: Callable[[], None] = lambda: None
    """Called after each change of the disk."""

    def change(self, name: str, change: _Change) -> None:
        """Note a write that is not synced yet."""
        self.synced.setdefault(name, bytearray())
        self.waiting.setdefault(name, []).append(change)
        self.on_change()

    def sync(self, name: str) -> None:
        """Apply the waiting writes of a file to the disk."""
        content = self.synced.setdefault(name, bytearray())
        for change in self.waiting.pop(name, []):
            change.apply(content)
        self.on_change()

    def images(self, rng: random.Random) -> Iterator[dict[str, bytes]]:
        """Yield the states that a power cut may leave now.

        There are seven. In each, unsynced writes are lost in another way.
        """
        for how in range(7 if any(self.waiting.values()) else 1):
            image = {}
            for name, content in self.synced.items():
                left = bytearray(content)
                for change in _survivors(self.waiting.get(name, []), how, rng):
                    change.apply(left)
                image[name] = bytes(left)
            yield image


def _survivors(waiting: list[_Change], how: int, rng: random.Random) -> list[_Change]:
    if how == 0 or not waiting:
        return []
    if how == 1:
        return waiting
    if how in {2, 5}:
        return waiting[: rng.randrange(len(waiting) + 1)]
    if how in {3, 6}:
        return [change for change in waiting if rng.random() < 0.5]
    *whole, last = waiting
    if last.data is None:
        return whole
    return [*whole, _Change(last.offset, last.data[: rng.randrange(0, len(last.data) + 1, SECTOR)])]


class _File(apsw.VFSFile):
    def __init__(self, disk: SqliteDisk, name: str | apsw.URIFilename, flags: list[int]) -> None:
        super().__init__("", name, flags)
        path = name if isinstance(name, str) else name.filename()
        self._disk, self._name = disk, Path(path).name

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802  # SQLite's name
        super().xWrite(data, offset)
        self._disk.change(self._name, _Change(offset, bytes(data)))

    def xTruncate(self, newsize: int) -> None:  # noqa: N802  # SQLite's name
        super().xTruncate(newsize)
        self._disk.change(self._name, _Change(newsize, None))

    def xSync(self, flags: int) -> None:  # noqa: N802  # SQLite's name
        super().xSync(flags)
        self._disk.sync(self._name)


class _System(apsw.VFS):
    def __init__(self, disk: SqliteDisk, name: str) -> None:
        super().__init__(name, "")
        self._disk = disk

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802  # SQLite's name
        return apsw.VFSFile("", name, flags) if name is None else _File(self._disk, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802  # SQLite's
        super().xDelete(filename, syncdir)
        name = Path(filename).name
        self._disk.synced.pop(name, None)
        self._disk.waiting.pop(name, None)
        self._disk.on_change()


class _Connection:
    """The part of a connection that `SqliteDatabase` uses, on a watched file system."""

    def __init__(self, path: str, system: str) -> None:
        self._connection = apsw.Connection(path, vfs=system)
        self.execute = self._connection.execute
        self.executemany = self._connection.executemany
        self.close = self._connection.close

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction


_NAMES = itertools.count()
_SYSTEMS: list[_System] = []


@contextmanager
def sqlite_on(disk: SqliteDisk) -> Iterator[None]:
    """Let databases that are opened in the context write to `disk`."""
    name = f"watched-{next(_NAMES)}"
    _SYSTEMS.append(_System(disk, name))  # SQLite may come back to it as long as the process lives
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", lambda path, **_: _Connection(path, name))
        yield


def laid(image: dict[str, bytes], folder: Path) -> Path:
    """Write the files of an image into a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in image.items():
        if not name.endswith("-shm"):
            (folder / name).write_bytes(content)
    return folder


class FileDisk:
    """A folder whose files are on the disk once they were synced, and their names once their folder
    was.

    `on_change` is called after each change. The names of a folder that was not synced may be there
    or not.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.contents: dict[int, bytes] = {}
        """What is on the disk of each file, by inode."""
        self.names: dict[Path, int] = {}
        """The names that are on the disk, with their inodes."""
        self.folders: set[Path] = {root}
        self.on_change: Callable[[], None] = lambda: None

    def _now(self) -> dict[Path, int]:
        return {path: path.stat().st_ino for path in self.root.rglob("*") if path.is_file()}

    def _synced(self, handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        if path.is_file():
            self.contents[path.stat().st_ino] = path.read_bytes()
        elif path.is_relative_to(self.root):
            self.names = {name: inode for name, inode in self.names.items() if name.parent != path}
            self.names |= {
                entry: entry.stat().st_ino for entry in path.iterdir() if entry.is_file()
            }
            self.folders |= {entry for entry in path.iterdir() if entry.is_dir()}

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch the system's calls that change names and sync."""

        def after(name: str) -> Callable[..., object]:
            original = getattr(os, name)

            def call(*args: object, **options: object) -> object:
                found = original(*args, **options)
                if name == "fsync":
                    self._synced(args[0])  # type: ignore[arg-type]  # a handle
                self.on_change()
                return found

            return call

        with pytest.MonkeyPatch.context() as patch:
            for name in ("fsync", "link", "replace", "unlink", "mkdir", "rmdir"):
                patch.setattr(os, name, after(name))
            yield

    def images(self) -> Iterator[dict[Path, bytes]]:
        """Yield the states that a power cut may leave.

        Either only synced files and names exist, or all names, with the contents that were synced.
        """
        for names in (self.names, self._now()):
            yield {
                name.relative_to(self.root): self.contents.get(inode, b"")
                for name, inode in names.items()
                if names is not self.names or name.parent in self.folders
            }


def lay_files(image: dict[Path, bytes], folder: Path) -> Path:
    """Write the files of an image into a new folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, content in image.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder
