"""Addresses of histories and audits: local paths, or URIs of remote storage (AU-12).

This module does not import Arrow, so that commands can check their arguments quickly.
"""

import re
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from pubsub_emulator.primitives.errors import PubsubError

SCHEMES: Final = ("file", "s3", "s3a", "gs", "gcs", "hdfs")
"""Schemes of URIs that are supported."""
_URI: Final = re.compile(rf"([A-Za-z][A-Za-z0-9+.-]+):/|({'|'.join(SCHEMES)}):", re.IGNORECASE)
"""Text that begins like a URI. For a supported scheme, the colon is enough."""

Address = str | Path
"""A local path, or a URI."""


class StorageError(PubsubError):
    """An address that cannot be used."""


def is_remote(address: Address) -> bool:
    """Return whether an address is a URI of another scheme than `file`."""
    return (
        isinstance(address, str)
        and _URI.match(address) is not None
        and not address.lower().startswith("file:/")
    )


def local_path(address: Address) -> Path:
    """Return the path of an address that is not remote."""
    if isinstance(address, str) and address.lower().startswith("file:/"):
        return Path(unquote(urlsplit(address).path))
    return Path(address)


def canonical_uri(uri: str) -> str:
    """Return a remote address in its canonical form.

    Raises `StorageError` if the scheme is not supported, the URI is incomplete, or it contains
    credentials or options. The message does not repeat these, because addresses are written to logs
    and reports.
    """
    parts = urlsplit(uri)
    scheme = parts.scheme.lower()
    if scheme not in SCHEMES:
        raise StorageError(
            f"{uri}: unknown storage {scheme}:; known are {', '.join(SCHEMES)} and paths"
        )
    if "@" in parts.netloc or parts.query or parts.fragment:
        shown = f"{scheme}://{parts.netloc.rsplit('@', 1)[-1]}{parts.path}"
        error = "an address must not contain credentials or options; they come from the environment"
        raise StorageError(f"{shown}: {error}")
    if scheme == "file":
        raise StorageError(f"{uri}: a file's URI is file:/// and its whole path")
    path = parts.path.strip("/")
    if not parts.netloc or (scheme != "hdfs" and not path):
        raise StorageError(f"{uri}: an address needs a bucket or host, and a path in it")
    if any(part in {"", ".", ".."} for part in path.split("/")) and path:
        raise StorageError(f"{uri}: an address has no empty parts, '.' or '..'")
    return f"{scheme}://{parts.netloc}/{path}".rstrip("/")
