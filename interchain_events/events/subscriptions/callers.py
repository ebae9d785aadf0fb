"""The callers of a server: everyone, or only the bearers of its tokens.

Limits are counted by the caller's name. That is the name of the token, or the caller's address if
everyone may call.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from interchain_events.events.errors import EventsError
from pubsub_emulator.primitives.hashing import token_hash
from pubsub_emulator.serving.guard import is_loopback

_DIGITS: Final = 64
"""The number of hexadecimal digits of a SHA-256 hash."""


class CallersError(EventsError):
    """Raised if a file of tokens cannot be used, or if strangers could call the server."""


class UnknownCaller(EventsError):
    """Raised if a caller has no token of this server."""


@dataclass(frozen=True, slots=True)
class Callers:
    """The callers that a server accepts."""

    names: Mapping[bytes, str] | None = None
    """The names of the bearers by the hashes of their tokens, `None` if everyone may call."""

    def name(self, authorization: str, address: str) -> str:
        """Return the name of a caller.

        `authorization` is the value of the header or metadata of that name, and `address` is the
        caller's address. Raises `UnknownCaller`.
        """
        if self.names is None:
            return address
        scheme, _, token = authorization.partition(" ")
        name = None
        if scheme.lower() == "bearer":
            name = self.names.get(token_hash(token.strip()))
        if name is None:
            raise UnknownCaller("a bearer token of this server is needed")
        return name


EVERYBODY: Final = Callers()
"""The callers of a server that anyone may call."""


def read_callers(path: Path | None) -> Callers:
    """Return the callers in a file, or `EVERYBODY` without a file.

    Each line has a name and the SHA-256 hash of the caller's token in hexadecimal. Empty lines and
    lines that begin with `#` are ignored. Raises `CallersError`, and `OSError` if the file cannot
    be read.
    """
    if path is None:
        return EVERYBODY
    names: dict[bytes, str] = {}
    for number, line in enumerate(
        path.read_text(encoding="utf-8", errors="replace").splitlines(), 1
    ):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, digest = line.strip().rpartition(" ")
        try:
            key = bytes.fromhex(digest) if len(digest) == _DIGITS else b""
        except ValueError:
            key = b""
        if not name.strip() or not key:
            raise CallersError(f"{path}:{number}: not a name and the SHA-256 of a token")
        names[key] = name.strip()
    if not names:
        raise CallersError(f"{path}: there is no token")
    return Callers(names)


def check_reach(host: str, callers: Callers, *, has_tls: bool, is_open: bool) -> None:
    """Raise `CallersError` if a server would be unprotected.

    A server that others can reach must have TLS and tokens, unless `is_open` allows everything.
    """
    if not (is_open or is_loopback(host) or (has_tls and callers.names is not None)):
        raise CallersError(
            f"others can reach {host}; give --tls-certificate, --tls-key and --tokens, or --open"
        )
