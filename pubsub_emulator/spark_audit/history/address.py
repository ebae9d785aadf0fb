"""Addresses of histories and audits: paths of this machine, or URIs of places elsewhere (AU-12). Needs no Arrow."""

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pubsub_emulator.primitives.errors import PubsubError

SCHEMES: Final = ("file", "s3", "s3a", "gs", "gcs", "hdfs")
_URI: Final = re.compile(rf"([A-Za-z][A-Za-z0-9+.-]+):/|({'|'.join(SCHEMES)}):", re.IGNORECASE)
"""What looks like a URI, or like one of a known storage whose slashes were forgotten."""

Address = str | Path
"""A path of this machine, or a URI."""


class StorageError(PubsubError):
    """An address that names no place where files can be kept; the message says why."""


def is_remote(address: Address) -> bool:
    """Whether an address is a URI of another kind than `file`."""
    return isinstance(address, str) and _URI.match(address) is not None and not address.lower().startswith("file:/")


def local_path(address: Address) -> Path:
    """The path of an address that is not remote."""
    if isinstance(address, str) and address.lower().startswith("file:/"):
        return Path(unquote(urlsplit(address).path))
    return Path(address)


def canonical_uri(uri: str) -> str:
    """A remote address, checked and in one form. Raises `StorageError`."""
    parts = urlsplit(uri)
    scheme = parts.scheme.lower()
    if scheme not in SCHEMES:
        raise StorageError(f"{uri}: unknown storage {scheme}:; known are {', '.join(SCHEMES)} and paths")
    if "@" in parts.netloc or parts.query or parts.fragment:
        shown = f"{scheme}://{parts.netloc.rsplit('@', 1)[-1]}{parts.path}"
        said = "an address must not contain credentials or options; they come from the environment"
        raise StorageError(f"{shown}: {said}")
    if scheme == "file":
        raise StorageError(f"{uri}: a file's URI is file:/// and its whole path")
    path = parts.path.strip("/")
    if not parts.netloc or (scheme != "hdfs" and not path):
        raise StorageError(f"{uri}: an address needs a bucket or host, and a path in it")
    if any(part in {"", ".", ".."} for part in path.split("/")) and path:
        raise StorageError(f"{uri}: an address has no empty parts, '.' or '..'")
    return f"{scheme}://{parts.netloc}/{path}".rstrip("/")
