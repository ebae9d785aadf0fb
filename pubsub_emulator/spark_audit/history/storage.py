"""Storage of histories and audits: a local folder, or a place in an object store (AU-12).

    runs/history  file:///data/history    a path, relative to the working directory or absolute,
                                          or its URI
    s3://bucket/key  s3a://…              Amazon S3 and servers with the same protocol
    gs://bucket/key                       Google Cloud Storage
    hdfs://host:port/path                 Hadoop; needs libhdfs

A file is complete as soon as others can see it (locally by a hard link, elsewhere at the end of an
upload), and is not renamed after that. Files that stay are named by their content. Credentials come
from the environment (`AWS_PROFILE` and the like) and are refused in an address.
"""

import contextlib
import io
import os
import secrets
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import IO, Final, TypeVar
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from pubsub_emulator.spark_audit.history.address import (
    Address,
    StorageError,
    canonical_uri,
    is_remote,
    local_path,
)

MOST_HELD: Final = 32 * 1_048_576
"""The maximum number of bytes of files that a store holds in memory for a task."""
_REQUESTS: Final = 16
"""The maximum number of simultaneous requests to a server."""


T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Stamp:
    """Size and time of a file. If both are unchanged, the file is most likely unchanged."""

    size: int
    """Bytes."""
    time: int
    """The last change, in nanoseconds since 1970."""


Held = dict[str, bytes]
"""Contents of files by path."""
Seen = tuple[str, int, int]
"""A file in a folder: its name, its size, and its time as in `Stamp`."""


class Store(ABC):
    """A place with files.

    Paths are relative, with `/`. The caller must check paths that come from a history or a user.
    """

    uri: str
    """The address by which other processes find the place, which is an absolute path or a URI."""

    @abstractmethod
    def open(self, path: str) -> IO[bytes]:
        """Open a file for reading at any position. Raises `OSError`."""

    @abstractmethod
    def stamp(self, path: str) -> Stamp | None:
        """Return size and time of a file, `None` if it does not exist. Raises `OSError`."""

    @abstractmethod
    def walk(self, folder: str = "") -> dict[str, Stamp]:
        """Return the stamps of all files below a folder, at any depth and including hidden ones.

        If the folder does not exist, there are no files.
        """

    def folders(self, folder: str) -> Iterator[tuple[str, list[Seen]]]:
        """Yield the files that `walk` would return, one folder after another.

        A history may have millions of files, which need not be in memory together.
        """
        by_folder: dict[str, list[Seen]] = {}
        for path, stamp in self.walk(folder).items():
            parent, _, name = path.rpartition("/")
            by_folder.setdefault(parent, []).append((name, stamp.size, stamp.time))
        yield from by_folder.items()

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """Return the sorted names of the files directly in a folder.

        If the folder does not exist, there are no files.
        """

    @abstractmethod
    def put_new(self, path: str, data: bytes) -> bool:
        """Write a file unless it exists, and return whether it was written. Raises `OSError`.

        If several writers use the same path at the same time, only one of them gets `True`.
        """

    def put_same(self, path: str, data: bytes) -> bool:
        """Write a file whose name depends on its content, unless it exists.

        Returns whether it was written. Two writers may both get `True`, which does no harm, because
        they write the same bytes. Raises `OSError`.
        """
        return self.put_new(path, data)

    @abstractmethod
    def put(self, path: str, data: bytes) -> None:
        """Write a file, replacing an existing one. Raises `OSError`.

        Readers see either the old file or the new one, not a mixture.
        """

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file if it exists. Raises `OSError`."""

    @abstractmethod
    def exists(self, folder: str = "") -> bool:
        """Return whether a folder exists. In an object store, it exists if it contains files."""

    def clear(self, folder: str) -> None:
        """Remove all files below a folder. Raises `OSError`."""
        for path in self.walk(folder):
            self.remove(path)

    def holding(self, held: Mapping[str, bytes] | None = None) -> "Store":
        """Return a store for the same place that may cache files. Use it for one task only.

        A remote store then keeps small files in memory after the first read. `held` has the
        contents of files that were read before, by path.
        """
        del held
        return self

    def each(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield the result of `work` for each item, in order.

        A remote store works on several items at the same time, because most of the time is latency.
        """
        return map(work, items)

    def read(self, path: str, limit: int | None = None) -> bytes:
        """Return the content of a file.

        Raises `OSError` if it cannot be read or has more than `limit` bytes.
        """
        with self.open(path) as file:
            data = file.read() if limit is None else file.read(limit + 1)
        if limit is not None and len(data) > limit:
            raise OSError(f"{path} has more than {limit} bytes")
        return bytes(data)

    def __str__(self) -> str:
        return self.uri


class LocalStore(Store):
    """A folder of this machine, or of a file system that it has mounted."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.abspath(folder))  # noqa: PTH100  # a link in the path stays, as the user wrote it
        self.uri = str(self.folder)

    def open(self, path: str) -> IO[bytes]:
        """Open a regular file.

        Raises `RefusedFile` if a symbolic link leads out of the folder, or if the file is a named
        pipe or the like. A stranger's history may contain such files.
        """
        full = self.folder / path
        if not full.resolve().is_relative_to(_resolved(self.uri)):
            raise RefusedFile(f"{path} leads out of {self.folder} by a symbolic link")
        # Without `O_NONBLOCK`, opening a named pipe would wait for a writer.
        handle = os.open(
            full, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        )
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise RefusedFile(f"{path} is not a regular file")
        return os.fdopen(handle, "rb")

    def stamp(self, path: str) -> Stamp | None:
        """Return size and time of a file, `None` if it does not exist."""
        try:
            status = os.stat(f"{self.uri}/{path}")  # noqa: PTH116  # called for every file of a history, and faster than `Path.stat`
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Stamp(status.st_size, status.st_mtime_ns)

    def walk(self, folder: str = "") -> dict[str, Stamp]:
        """Return all files below a folder. Symbolic links are not followed."""
        stamps: dict[str, Stamp] = {}
        for parent, files in self.folders(folder):
            for name, size, time in sorted(files):
                path = f"{parent}/{name}" if parent else name
                stamps[path] = Stamp(size, time)
        return stamps

    def folders(self, folder: str) -> Iterator[tuple[str, list[Seen]]]:
        """Yield the files of each folder, in the order in which the folders are found."""
        remaining = [folder]
        while remaining:
            current = remaining.pop()
            files: list[Seen] = []
            subfolders: list[str] = []
            try:
                with os.scandir(f"{self.uri}/{current}") as entries:
                    for entry in entries:
                        if entry.is_file(follow_symlinks=False):
                            status = entry.stat(follow_symlinks=False)
                            files.append((entry.name, status.st_size, status.st_mtime_ns))
                        elif entry.is_dir(follow_symlinks=False):
                            subfolders.append(f"{current}/{entry.name}" if current else entry.name)
            except (FileNotFoundError, NotADirectoryError):
                continue
            if files:
                yield current, files
            remaining += sorted(subfolders, reverse=True)

    def names(self, folder: str) -> list[str]:
        """Return the sorted names of the files in a folder."""
        try:
            with os.scandir(self.folder / folder) as entries:
                return sorted(entry.name for entry in entries if entry.is_file())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def put_new(self, path: str, data: bytes) -> bool:
        """Write a temporary file and link it to its name, which fails if the name exists."""
        target = self.folder / path
        if target.exists():
            return False
        with self._written(target, data) as temporary:
            try:
                os.link(temporary, target)
            except FileExistsError:
                return False
            # Some file systems have no hard links.
            except OSError:
                if not _move_new(temporary, target):
                    return False
        _sync_directory(target.parent)
        return True

    def put(self, path: str, data: bytes) -> None:
        """Write a temporary file and move it over the old one."""
        target = self.folder / path
        with self._written(target, data) as temporary:
            temporary.replace(target)
        _sync_directory(target.parent)

    def remove(self, path: str) -> None:
        """Remove a file, and the folders that become empty."""
        target = self.folder / path
        target.unlink(missing_ok=True)
        self._prune(target)

    def exists(self, folder: str = "") -> bool:
        """Return whether the folder exists."""
        return (self.folder / folder).is_dir()

    @contextlib.contextmanager
    def _written(self, target: Path, data: bytes) -> Iterator[Path]:
        """Write a temporary file beside its target, yield its path, and remove it at the end.

        If writing fails, also in the `with` block, folders that are empty are removed as well.
        """
        _make_directories(target.parent)
        temporary = target.with_name(f".{target.name[:64]}.{secrets.token_hex(4)}")
        try:
            try:
                with temporary.open("wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                yield temporary
            finally:
                with contextlib.suppress(OSError):
                    temporary.unlink(missing_ok=True)
        except OSError:
            self._prune(target)
            raise

    def _prune(self, path: Path) -> None:
        """Remove the folders above a file that are empty."""
        for folder in path.parents:
            if folder == self.folder:
                break
            try:
                folder.rmdir()
            except OSError:
                break


class RefusedFile(OSError):
    """A file that is not opened, because it is not a regular file or is outside of the store."""


class RemoteStore(Store):
    """The base of stores on other machines."""

    def __init__(self, uri: str, held: Held | None = None) -> None:
        self.uri = uri
        self._held = held

    @property
    def holds(self) -> bool:
        """Whether the store caches small files that it has read."""
        return self._held is not None

    @abstractmethod
    def fetch(self, path: str) -> IO[bytes]:
        """Open a file, without the cache. Raises `OSError`."""

    def open(self, path: str) -> IO[bytes]:
        """Open a file.

        Usually, the file is read in ranges. In a store from `holding`, a small file is read as a
        whole and cached.
        """
        held = self._held
        if held is not None and path in held:
            return io.BytesIO(held[path])
        file = self.fetch(path)
        if held is None:
            return file
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if size > MOST_HELD:
            return file
        with file:
            data = file.read()
        if sum(map(len, held.values())) + len(data) > MOST_HELD:
            # Emptying the cache is the simplest way to stay within the limit.
            held.clear()
        held[path] = data
        return io.BytesIO(data)

    def each(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield the result of `work` for each item, in order, with several requests at a time."""
        with ThreadPoolExecutor(_REQUESTS) as threads:
            yield from threads.map(work, items)


class HadoopStore(RemoteStore):
    """A place on Hadoop, by `pyarrow.fs`."""

    def __init__(
        self, uri: str, system: fs.FileSystem, base: str, held: Held | None = None
    ) -> None:
        super().__init__(uri, held)
        self._fs = system
        self._base = base.rstrip("/")

    def holding(self, held: Mapping[str, bytes] | None = None) -> Store:
        """Return a store for the same place that caches small files."""
        return HadoopStore(self.uri, self._fs, self._base, held=dict(held or {}))

    def fetch(self, path: str) -> IO[bytes]:
        """Open a file."""
        with _plain_errors(path):
            return self._fs.open_input_file(self._full(path))  # type: ignore[no-any-return]  # pyarrow has no types

    def clear(self, folder: str) -> None:
        """Remove all files below a folder."""
        with _plain_errors(folder):
            self._fs.delete_dir_contents(self._full(folder), missing_dir_ok=True)

    def stamp(self, path: str) -> Stamp | None:
        """Return size and time of a file as the storage states them."""
        with _plain_errors(path):
            info = self._fs.get_file_info(self._full(path))
        return _stamp(info) if info.type == fs.FileType.File else None

    def walk(self, folder: str = "") -> dict[str, Stamp]:
        """Return all files below a folder."""
        with _plain_errors(folder):
            infos = self._fs.get_file_info(
                fs.FileSelector(self._full(folder), allow_not_found=True, recursive=True)
            )
        return {
            info.path[len(self._base) + 1 :]: _stamp(info)
            for info in sorted(infos, key=lambda info: info.path)
            if info.type == fs.FileType.File
        }

    def names(self, folder: str) -> list[str]:
        """Return the sorted names of the files in a folder."""
        with _plain_errors(folder):
            infos = self._fs.get_file_info(
                fs.FileSelector(self._full(folder), allow_not_found=True)
            )
        return sorted(info.base_name for info in infos if info.type == fs.FileType.File)

    def put_new(self, path: str, data: bytes) -> bool:
        """Upload a file unless it exists.

        Hadoop cannot do both in one step. So a file that another writer creates between the test
        and the upload is overwritten.
        """
        with (
            contextlib.suppress(FileNotFoundError),
            _plain_errors(path),
            self._fs.open_input_file(self._full(path)),
        ):
            return False
        self.put(path, data)
        return True

    def put(self, path: str, data: bytes) -> None:
        """Upload a file. It becomes visible at the end of the upload."""
        full = self._full(path)
        with _plain_errors(path):
            self._fs.create_dir(full.rsplit("/", 1)[0], recursive=True)
            with self._fs.open_output_stream(full) as stream:
                stream.write(data)

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""
        with _plain_errors(path), contextlib.suppress(FileNotFoundError):
            self._fs.delete_file(self._full(path))

    def exists(self, folder: str = "") -> bool:
        """Return whether the folder exists or has files."""
        root = self._full(folder)
        with _plain_errors(folder):
            if self._fs.get_file_info(root).type == fs.FileType.Directory:
                return True
            return bool(self._fs.get_file_info(fs.FileSelector(root, allow_not_found=True)))

    def _full(self, path: str) -> str:
        return f"{self._base}/{path}" if path else self._base


def open_store(address: Address | Store) -> Store:
    """Return the store of an address, which need not exist yet. Raises `StorageError`."""
    if isinstance(address, Store):
        return address
    if is_remote(address):
        return _remote(canonical_uri(str(address)))
    return LocalStore(local_path(address))


@lru_cache(maxsize=16)
def _remote(uri: str) -> RemoteStore:
    """Connect to a remote store, once for each URI in a process. Raises `StorageError`."""
    # obstore is an optional dependency and takes time to import.
    objects = import_module("pubsub_emulator.spark_audit.history.object_store")
    if urlsplit(uri).scheme in objects.SCHEMES:
        connected: RemoteStore = objects.ObjectStore.connect(uri)
        return connected
    try:
        system, base = fs.FileSystem.from_uri(uri)
    except (pa.ArrowException, OSError) as error:
        raise StorageError(f"{uri}: {str(error).splitlines()[0]}") from None
    return HadoopStore(uri, system, base)


@contextlib.contextmanager
def _plain_errors(path: str) -> Iterator[None]:
    """Turn Arrow's errors into `OSError` with the first line of the message."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise OSError(f"{path}: {str(error).splitlines()[0]}") from None


def _stamp(info: fs.FileInfo) -> Stamp:
    return Stamp(info.size, info.mtime_ns if info.mtime_ns is not None else 0)


def _move_new(temporary: Path, target: Path) -> bool:
    """Move a file to its name unless another file has it, and return whether it was moved.

    Outside of Windows, moving would replace an existing file. So writers lock the folder first.
    """
    if os.name == "nt":
        try:
            temporary.rename(target)
        except FileExistsError:
            return False
        return True
    fcntl = import_module("fcntl")
    handle = os.open(target.parent, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        if target.exists():
            return False
        temporary.replace(target)
    finally:
        # This also ends the lock.
        os.close(handle)
    return True


def _sync_directory(path: Path) -> None:
    """Write a directory's names to the disk, so that they survive a power failure.

    Windows has no way to do that.
    """
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _make_directories(path: Path) -> None:
    """Make a directory and its parents, each of which is written to the disk."""
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        directory.mkdir(exist_ok=True)
        _sync_directory(directory.parent)


@lru_cache(maxsize=16)
def _resolved(folder: str) -> Path:
    """Return a folder without symbolic links. It is cached, because every `open` needs it."""
    return Path(folder).resolve()
