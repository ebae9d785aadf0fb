"""Places in object stores (Amazon S3, Google Cloud Storage and the like), by obstore.

obstore finds credentials in environment variables and, on Amazon's machines, in the metadata
service. If `AWS_PROFILE` names a profile, boto3 reads it.
"""

import contextlib
import io
import os
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from importlib import import_module
from typing import IO, Any, Final, cast
from urllib.parse import urlsplit

from pubsub_emulator.spark_audit.history.address import StorageError
from pubsub_emulator.spark_audit.history.storage import MOST_HELD, Held, RemoteStore, Stamp

SCHEMES: Final = {"s3": "S3Store", "s3a": "S3Store", "gs": "GCSStore", "gcs": "GCSStore"}
"""The classes of obstore by the scheme of an address."""
_TIMEOUTS: Final = {"connect_timeout": "10s", "timeout": "60s"}
_RETRIES: Final = {"max_retries": 3, "retry_timeout": timedelta(seconds=15)}
"""By default, obstore would retry a request for three minutes."""


class ObjectStore(RemoteStore):
    """A place in a bucket. If several writers create the same file, only one succeeds."""

    def __init__(self, uri: str, bucket: Any, base: str, held: Held | None = None) -> None:
        super().__init__(uri, held)
        self._bucket = bucket
        self._base = base
        self._client = import_module("obstore")

    @staticmethod
    def connect(uri: str) -> "ObjectStore":
        """Return the store of an address, with a bucket as the environment configures it.

        It does not send a request yet. Raises `StorageError`.
        """
        parts = urlsplit(uri)
        try:
            bucket = _bucket(parts.scheme, parts.netloc)
        except ModuleNotFoundError:
            raise StorageError(
                f"{uri} needs obstore: `pip install pubsub-emulator[audit]`"
            ) from None
        except (OSError, ValueError, import_module("obstore.exceptions").BaseError) as error:
            raise StorageError(f"{uri}: {str(error).splitlines()[0]}") from None
        return ObjectStore(uri, bucket, parts.path.strip("/"))

    def holding(self, held: Mapping[str, bytes] | None = None) -> "ObjectStore":
        """Return a store for the same place that caches small files."""
        return ObjectStore(self.uri, self._bucket, self._base, held=dict(held or {}))

    def fetch(self, path: str) -> IO[bytes]:
        """Open a file. It is read in ranges, unless it is small and this store caches files."""
        with self._plain_errors(path):
            if self.holds:
                response = self._client.get(self._bucket, self._full(path))
                if response.meta["size"] <= MOST_HELD:
                    return io.BytesIO(bytes(response.bytes()))
                return self._in_ranges(path, response.meta["size"])
            return self._in_ranges(path, self._head(path)["size"])

    def _in_ranges(self, path: str, size: int) -> IO[bytes]:
        # In typeshed, `RawIOBase` is not an `IO[bytes]`.
        return cast("IO[bytes]", _ObjectFile(self, path, size))

    def read(self, path: str, limit: int | None = None) -> bytes:
        """Return the content of a file with one request."""
        if self.holds:
            return super().read(path, limit)
        with self._plain_errors(path):
            response = self._client.get(self._bucket, self._full(path))
            if limit is not None and response.meta["size"] > limit:
                raise OSError(f"{path} has more than {limit} bytes")
            return bytes(response.bytes())

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Return `length` bytes of a file, from `start` on. Raises `OSError`."""
        with self._plain_errors(path):
            data = self._client.get_range(
                self._bucket, self._full(path), start=start, length=length
            )
            return bytes(data)

    def clear(self, folder: str) -> None:
        """Remove all files below a folder, a thousand with each request."""
        with self._plain_errors(folder):
            for metas in self._client.list(self._bucket, self._full(folder)):
                self._client.delete(self._bucket, [meta["path"] for meta in metas])

    def stamp(self, path: str) -> Stamp | None:
        """Return size and time of a file as the storage states them."""
        try:
            with self._plain_errors(path):
                return _stamp(self._head(path))
        except FileNotFoundError:
            return None

    def walk(self, folder: str = "") -> dict[str, Stamp]:
        """Return all files below a folder."""
        prefix_length = len(self._base) + 1 if self._base else 0
        stamps: dict[str, Stamp] = {}
        with self._plain_errors(folder):
            for metas in self._client.list(self._bucket, self._full(folder) or None):
                stamps.update((meta["path"][prefix_length:], _stamp(meta)) for meta in metas)
        return dict(sorted(stamps.items()))

    def names(self, folder: str) -> list[str]:
        """Return the sorted names of the files in a folder."""
        with self._plain_errors(folder):
            listed = self._client.list_with_delimiter(self._bucket, self._full(folder) or None)
        return sorted(meta["path"].rpartition("/")[2] for meta in listed["objects"])

    def put_new(self, path: str, data: bytes) -> bool:
        """Upload a file on the condition that it does not exist."""
        exceptions = import_module("obstore.exceptions")
        with self._plain_errors(path):
            try:
                self._client.put(self._bucket, self._full(path), data, mode="create")
            except exceptions.AlreadyExistsError:
                return False
        return True

    def put(self, path: str, data: bytes) -> None:
        """Upload a file. It becomes visible at the end of the upload."""
        with self._plain_errors(path):
            self._client.put(self._bucket, self._full(path), data)

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""
        with self._plain_errors(path), contextlib.suppress(FileNotFoundError):
            self._client.delete(self._bucket, self._full(path))

    def exists(self, folder: str = "") -> bool:
        """Return whether there is anything below the folder."""
        with self._plain_errors(folder):
            listed = self._client.list(self._bucket, self._full(folder) or None, chunk_size=1)
            return any(len(metas) for metas in listed)

    def _head(self, path: str) -> Any:
        return self._client.head(self._bucket, self._full(path))

    def _full(self, path: str) -> str:
        return "/".join(part for part in (self._base, path) if part)

    @contextlib.contextmanager
    def _plain_errors(self, path: str) -> Iterator[None]:
        """Turn errors into `OSError` with one line and without a server's additions."""
        exceptions = import_module("obstore.exceptions")
        try:
            yield
        except exceptions.AlreadyExistsError:
            raise
        except (OSError, exceptions.BaseError) as error:
            # The first line, without the XML document of the server's response.
            message = str(error).splitlines()[0].partition(": <?xml")[0]
            if not message.startswith(path):
                message = f"{path}: {message}"
            kind = FileNotFoundError if isinstance(error, FileNotFoundError) else OSError
            raise kind(message) from None


class _ObjectFile(io.RawIOBase):
    """A file of a bucket. Each `read` requests a range of it."""

    def __init__(self, store: ObjectStore, path: str, size: int) -> None:
        super().__init__()
        self._store = store
        self._path = path
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(base + offset, 0)
        return self._position

    def readinto(self, buffer: Any) -> int:
        """Read bytes into a buffer and return their number, which is smaller at the end."""
        length = min(len(buffer), self._size - self._position)
        if length <= 0:
            return 0
        buffer[:length] = self._store.read_range(self._path, self._position, length)
        self._position += length
        return length

    def readall(self) -> bytes:
        """Return the rest of the file."""
        return self.read(max(self._size - self._position, 0)) or b""


def _stamp(meta: Mapping[str, Any]) -> Stamp:
    changed: datetime = meta["last_modified"]
    return Stamp(meta["size"], int(changed.timestamp() * 1_000_000) * 1_000)


def _bucket(scheme: str, name: str) -> Any:
    """Return a bucket as the environment configures it. Raises `StorageError`."""
    store = getattr(import_module("obstore.store"), SCHEMES[scheme])
    options: dict[str, Any] = {"client_options": dict(_TIMEOUTS), "retry_config": dict(_RETRIES)}
    if SCHEMES[scheme] == "S3Store":
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        if endpoint:
            options["endpoint"] = endpoint if "://" in endpoint else f"https://{endpoint}"
            options["client_options"]["allow_http"] = endpoint.startswith("http://")
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        options["region"] = region or "us-east-1"
        if "AWS_ACCESS_KEY_ID" not in os.environ and "AWS_PROFILE" in os.environ:
            options["credential_provider"] = _profile_credentials()
    return store(name, **options)


def _profile_credentials() -> Any:
    """Return a provider of the credentials of `AWS_PROFILE`. Raises `StorageError`."""
    try:
        return import_module("obstore.auth.boto3").Boto3CredentialProvider()
    except ModuleNotFoundError:
        raise StorageError(
            "the credentials of AWS_PROFILE need boto3: `pip install boto3`"
        ) from None
