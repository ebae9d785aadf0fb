"""Callers of a server: everybody, by address, or the bearers of its tokens, by name. Limits count by that name."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pubsub_emulator.events.errors import EventsError
from pubsub_emulator.primitives.hashing import token_hash
from pubsub_emulator.serving.guard import is_loopback

_DIGITS: Final = 64


class CallersError(EventsError):
    """A file of tokens that cannot be used, or a server that strangers could call."""


class UnknownCaller(EventsError):
    """The caller has no token of this server."""


@dataclass(frozen=True, slots=True)
class Callers:
    """The names of tokens' bearers by the hash of the token; `None` where everybody may call."""

    names: Mapping[bytes, str] | None = None

    def name(self, authorization: str, address: str) -> str:
        """The name of a caller, by the header or metadata `authorization`. Raises `UnknownCaller`."""
        if self.names is None:
            return address
        scheme, _, token = authorization.partition(" ")
        found = self.names.get(token_hash(token.strip())) if scheme.lower() == "bearer" else None
        if found is None:
            raise UnknownCaller("a bearer token of this server is needed")
        return found


EVERYBODY: Final = Callers()


def read_callers(path: Path | None) -> Callers:
    """The callers in a file: in each line a name and the SHA-256 of its token in hex. Raises `CallersError`."""
    if path is None:
        return EVERYBODY
    names: dict[bytes, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
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
    """Raises `CallersError` if others can reach a server without TLS, or call it without a token."""
    if not (is_open or is_loopback(host) or (has_tls and callers.names is not None)):
        raise CallersError(f"others can reach {host}; give --tls-certificate, --tls-key and --tokens, or --open")
