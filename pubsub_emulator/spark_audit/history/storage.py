"""Storage of histories and audits: a folder here or a place in an object store, addressed by path or URI (AU-12).

    runs/history  file:///data/history    a path, relative to the working directory or absolute, or its URI
    s3://bucket/key  s3a://…              Amazon S3 and servers that speak its protocol
    gs://bucket/key                       Google Cloud Storage
    hdfs://host:port/path                 Hadoop; needs libhdfs

Nothing is renamed, and a file appears whole: by a hard link here, by the end of an upload elsewhere. Files that stay
are named by their content. Credentials come from the environment (`AWS_PROFILE` …) and are refused in an address.
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
from pathlib import Path
from typing import IO, Any, Final, TypeVar
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from pubsub_emulator.spark_audit.history.address import Address, StorageError, canonical_uri, is_remote, local_path

_MOST_HELD: Final = 32 * 1_048_576  # bytes of files that a task holds
_REQUESTS: Final = 16  # requests that wait for a server at the same time
_RETRY_SECONDS: Final = 15
"""For a request to Google's storage, which Arrow would repeat for a quarter of an hour, deaf to interrupts."""


T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Stamp:
    """Size in bytes and time of the last change in nanoseconds: what tells cheaply that a file may have changed."""

    size: int
    time: int


Seen = tuple[str, int, int]
"""A file in a folder: its name, and size and time as in `Stamp`."""


class Store(ABC):
    """A place with files. Paths are relative with `/`; the caller checks those that come from outside."""

    uri: str
    """The place as it is passed on to other processes: an absolute path here, a URI elsewhere."""

    @abstractmethod
    def open(self, path: str) -> IO[bytes]:
        """A file for reading at any position. Raises `OSError`."""

    @abstractmethod
    def stamp(self, path: str) -> Stamp | None:
        """Size and time of a file, `None` if it does not exist. Raises `OSError`."""

    @abstractmethod
    def walk(self, folder: str = "") -> dict[str, Stamp]:
        """All files below a folder, however deep, hidden ones included; none when there is no such folder."""

    def folders(self, folder: str) -> Iterator[tuple[str, list[Seen]]]:
        """As `walk`, one folder after the other: nothing is kept of a history of millions of files."""
        found: dict[str, list[Seen]] = {}
        for path, stamp in self.walk(folder).items():
            parent, _, name = path.rpartition("/")
            found.setdefault(parent, []).append((name, stamp.size, stamp.time))
        yield from found.items()

    @abstractmethod
    def names(self, folder: str) -> list[str]:
        """The names of the files directly in a folder, ascending; none when there is no such folder."""

    @abstractmethod
    def put_new(self, path: str, data: bytes) -> bool:
        """Write a file unless there is one of that name; whether it was written. Raises `OSError`."""

    @abstractmethod
    def put(self, path: str, data: bytes) -> None:
        """Write a file in the place of any other: readers see the old one or the whole new one. Raises `OSError`."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file, if it is there. Raises `OSError`."""

    @abstractmethod
    def exists(self, folder: str = "") -> bool:
        """Whether a folder is there; in an object store, whether there are files below it."""

    def clear(self, folder: str) -> None:
        """Remove all files below a folder. Raises `OSError`."""
        for path in self.walk(folder):
            self.remove(path)

    def holding(self, held: Mapping[str, bytes] | None = None) -> "Store":
        """This place for one task, which may keep what it has read; `held` was read already."""
        del held
        return self

    def each(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """What the work gives for each item, in order; where requests wait for a server, several at a time."""
        return map(work, items)

    def read(self, path: str, most: int | None = None) -> bytes:
        """The whole file. Raises `OSError`, also for a file of more than `most` bytes."""
        with self.open(path) as file:
            data = file.read() if most is None else file.read(most + 1)
        if most is not None and len(data) > most:
            raise OSError(f"{path} has more than {most} bytes")
        return bytes(data)

    def __str__(self) -> str:
        return self.uri


class LocalStore(Store):
    """A folder of this machine, or one that it has mounted."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.abspath(folder))  # noqa: PTH100  # a link in the path stays, as the user wrote it
        self.uri = str(self.folder)

    def open(self, path: str) -> IO[bytes]:
        """A regular file; one that a symbolic link leads to outside of the folder is not there."""
        full = self.folder / path
        if not full.resolve().is_relative_to(_resolved(self.uri)):
            raise RefusedFile(f"{path} leads out of {self.folder} by a symbolic link")
        # Opening a named pipe would wait for a writer.
        handle = os.open(full, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise RefusedFile(f"{path} is not a regular file")
        return os.fdopen(handle, "rb")

    def stamp(self, path: str) -> Stamp | None:
        """Size and time of modification."""
        try:
            found = os.stat(f"{self.uri}/{path}")  # noqa: PTH116  # asked of every file of a history
        except (FileNotFoundError, NotADirectoryError):
            return None
        return Stamp(found.st_size, found.st_mtime_ns)

    def walk(self, folder: str = "") -> dict[str, Stamp]:
        """All files below a folder; symbolic links are not followed."""
        return {
            f"{parent}/{name}" if parent else name: Stamp(size, time)
            for parent, files in self.folders(folder)
            for name, size, time in sorted(files)
        }

    def folders(self, folder: str) -> Iterator[tuple[str, list[Seen]]]:
        """All files below a folder, as they are met."""
        left = [folder]
        while left:
            at = left.pop()
            files: list[Seen] = []
            inside: list[str] = []
            try:
                with os.scandir(f"{self.uri}/{at}") as found:
                    for entry in found:
                        if entry.is_file(follow_symlinks=False):
                            seen = entry.stat(follow_symlinks=False)
                            files.append((entry.name, seen.st_size, seen.st_mtime_ns))
                        elif entry.is_dir(follow_symlinks=False):
                            inside.append(f"{at}/{entry.name}" if at else entry.name)
            except (FileNotFoundError, NotADirectoryError):
                continue
            if files:
                yield at, files
            left += sorted(inside, reverse=True)

    def names(self, folder: str) -> list[str]:
        """The names of files in a folder."""
        try:
            with os.scandir(self.folder / folder) as found:
                return sorted(entry.name for entry in found if entry.is_file())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def put_new(self, path: str, data: bytes) -> bool:
        """Write it under a name of its own, then link it to its name, which fails where there is one."""
        target = self.folder / path
        with self._written(target, data) as temporary:
            try:
                os.link(temporary, target)
            except FileExistsError:
                return False
            except OSError:  # a file system without hard links: nobody but its writer sees it until it is named
                if target.exists():
                    return False
                temporary.replace(target)
        _sync_directory(target.parent)
        return True

    def put(self, path: str, data: bytes) -> None:
        """Write it under a name of its own, then move it over the old one."""
        target = self.folder / path
        with self._written(target, data) as temporary:
            temporary.replace(target)
        _sync_directory(target.parent)

    def remove(self, path: str) -> None:
        """Remove a file, and the folders that it leaves empty."""
        target = self.folder / path
        target.unlink(missing_ok=True)
        self._prune(target)

    def exists(self, folder: str = "") -> bool:
        """Whether the folder is there."""
        return (self.folder / folder).is_dir()

    @contextlib.contextmanager
    def _written(self, target: Path, data: bytes) -> Iterator[Path]:
        _make_directories(target.parent)
        temporary = target.with_name(f".{target.name[:64]}.{secrets.token_hex(4)}")
        try:
            with temporary.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            yield temporary
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            self._prune(target)
            raise
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)

    def _prune(self, path: Path) -> None:
        """Remove the folders on the way to a file that are empty."""
        for folder in path.parents:
            if folder == self.folder:
                break
            try:
                folder.rmdir()
            except OSError:
                break


class RefusedFile(OSError):
    """A file that is not read: no regular one, or reached by a symbolic link out of its place."""


class RemoteStore(Store):
    """A place in an object store or on Hadoop, through `pyarrow.fs`."""

    def __init__(self, uri: str, system: fs.FileSystem, base: str) -> None:
        self.uri = uri
        self._fs = system
        self._base = base.rstrip("/")
        self._held: dict[str, bytes] | None = None

    def open(self, path: str) -> IO[bytes]:
        """A file, read by ranges; where what was read is held, a small one is read whole and once."""
        held = self._held
        if held is not None and path in held:
            return io.BytesIO(held[path])
        with _plain_errors(path):
            file: Any = self._fs.open_input_file(self._full(path))
            if held is None or file.size() > _MOST_HELD:
                return file  # type: ignore[no-any-return]  # pyarrow has no types
            with file:
                data: bytes = file.read()
        if sum(map(len, held.values())) + len(data) > _MOST_HELD:
            held.clear()
        held[path] = data
        return io.BytesIO(data)

    def holding(self, held: Mapping[str, bytes] | None = None) -> Store:
        """The same place; what is read there is held as long as it is."""
        out = RemoteStore(self.uri, self._fs, self._base)
        out._held = dict(held or {})
        return out

    def each(self, work: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """As anywhere, some requests at a time."""
        with ThreadPoolExecutor(_REQUESTS) as threads:
            yield from threads.map(work, items)

    def clear(self, folder: str) -> None:
        """Remove all files below a folder, a thousand by a request."""
        with _plain_errors(folder):
            self._fs.delete_dir_contents(self._full(folder), missing_dir_ok=True)

    def stamp(self, path: str) -> Stamp | None:
        """Size and time as the store tells them."""
        with _plain_errors(path):
            found = self._fs.get_file_info(self._full(path))
        return _stamp(found) if found.type == fs.FileType.File else None

    def walk(self, folder: str = "") -> dict[str, Stamp]:
        """All files below a folder."""
        with _plain_errors(folder):
            found = self._fs.get_file_info(fs.FileSelector(self._full(folder), allow_not_found=True, recursive=True))
        return {
            info.path[len(self._base) + 1 :]: _stamp(info)
            for info in sorted(found, key=lambda info: info.path)
            if info.type == fs.FileType.File
        }

    def names(self, folder: str) -> list[str]:
        """The names of files in a folder."""
        with _plain_errors(folder):
            found = self._fs.get_file_info(fs.FileSelector(self._full(folder), allow_not_found=True))
        return sorted(info.base_name for info in found if info.type == fs.FileType.File)

    def put_new(self, path: str, data: bytes) -> bool:
        """Upload it unless it is there: names are made of contents, so a writer that comes between writes the same."""
        with contextlib.suppress(FileNotFoundError), _plain_errors(path), self._fs.open_input_file(self._full(path)):
            return False  # one request, where asking for size and time looks for a folder of that name as well
        self.put(path, data)
        return True

    def put(self, path: str, data: bytes) -> None:
        """Upload it: it is there, whole, once the upload ends."""
        full = self._full(path)
        with _plain_errors(path):
            if not isinstance(self._fs, fs.S3FileSystem):
                self._fs.create_dir(full.rsplit("/", 1)[0], recursive=True)
            with self._fs.open_output_stream(full) as stream:
                stream.write(data)

    def remove(self, path: str) -> None:
        """Remove a file."""
        with _plain_errors(path), contextlib.suppress(FileNotFoundError):
            self._fs.delete_file(self._full(path))

    def exists(self, folder: str = "") -> bool:
        """Whether anything is below the folder."""
        root = self._full(folder)
        with _plain_errors(folder):
            if self._fs.get_file_info(root).type == fs.FileType.Directory:
                return True
            return bool(self._fs.get_file_info(fs.FileSelector(root, allow_not_found=True)))

    def _full(self, path: str) -> str:
        return f"{self._base}/{path}" if path else self._base


def open_store(address: Address | Store) -> Store:
    """The place that an address names; it need not be there yet. Raises `StorageError`."""
    if isinstance(address, Store):
        return address
    return _remote(canonical_uri(str(address))) if is_remote(address) else LocalStore(local_path(address))


@lru_cache(maxsize=16)
def _remote(uri: str) -> RemoteStore:
    parts = urlsplit(uri)
    try:
        if parts.scheme in {"s3", "s3a"}:
            return RemoteStore(uri, _s3(), f"{parts.netloc}{parts.path}")
        limit = f"?retry_limit_seconds={_RETRY_SECONDS}" if parts.scheme in {"gs", "gcs"} else ""
        system, base = fs.FileSystem.from_uri(uri + limit)
    except (pa.ArrowException, OSError) as error:
        raise StorageError(f"{uri}: {str(error).splitlines()[0]}") from None
    return RemoteStore(uri, system, base)


def _s3() -> fs.S3FileSystem:
    """S3 as the environment sets it up: the endpoint and region by the variables that AWS's own tools read."""
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    # Small files go up in one request instead of three.
    options: dict[str, Any] = {"connect_timeout": 10, "request_timeout": 60, "allow_delayed_open": True}
    if endpoint:
        scheme, _, host = endpoint.rpartition("://")
        options |= {"endpoint_override": host.rstrip("/"), "scheme": scheme or "https"}
    if region or endpoint:
        options["region"] = region or "us-east-1"
    return fs.S3FileSystem(**options)


@contextlib.contextmanager
def _plain_errors(path: str) -> Iterator[None]:
    """Arrow's errors as `OSError`, in one line and without what a server adds."""
    try:
        yield
    except FileNotFoundError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise OSError(f"{path}: {str(error).splitlines()[0]}") from None


def _stamp(info: fs.FileInfo) -> Stamp:
    return Stamp(info.size, info.mtime_ns if info.mtime_ns is not None else 0)


def _sync_directory(path: Path) -> None:
    """Have a directory's names on the disk, where the system knows how."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _make_directories(path: Path) -> None:
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        directory.mkdir(exist_ok=True)
        _sync_directory(directory.parent)


@lru_cache(maxsize=16)
def _resolved(folder: str) -> Path:
    return Path(folder).resolve()
