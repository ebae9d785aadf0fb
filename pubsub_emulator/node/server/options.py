"""The options of a node and its limits."""

from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from pubsub_emulator.node.chain.timeline import HISTORY
from pubsub_emulator.node.rpc.dispatch import MEBIBYTE, RequestLimits
from pubsub_emulator.node.rpc.session import MOST_SUBSCRIPTIONS
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.serving.body import PATIENCE
from pubsub_emulator.serving.guard import Names, is_loopback

PORT: Final = 9944
"""The default port, as of a Substrate node."""
APPS: Final = "https://polkadot.js.org"
"""The origin of Polkadot/Substrate Portal, whose pages may always connect."""


class BadOption(PubsubError):
    """An option, or a combination of options, that is not possible."""


class Build(Enum):
    """The modes of building blocks."""

    INSTANT = "instant"
    """A block is built when extrinsics or actions wait."""
    SINGLE = "single"
    """Like `INSTANT`, with one extrinsic per chain and block."""
    INTERVAL = "interval"
    """A block is built at regular times."""
    MANUAL = "manual"
    """Blocks are only built on request."""


@dataclass(frozen=True, slots=True)
class Serving:
    """Limits of connections and of slow clients."""

    connections: int = 100
    """The maximum number of WebSocket connections and POST requests at the same time."""
    sockets: int = 512
    """The maximum number of open sockets, including those that have not sent a request yet. Further
    ones are answered with status 503 and closed.
    """
    patience: float = PATIENCE
    """The maximum time in seconds for the head or body of a request, and for an idle socket between
    two requests.
    """
    requests: int = 16
    """The maximum number of requests of one connection that are processed at the same time."""
    subscriptions: int = MOST_SUBSCRIPTIONS
    """The maximum number of subscriptions of a connection."""
    queued: int = 1024
    """The maximum number of messages that wait for a slow client."""
    queued_bytes: int = 16 * MEBIBYTE
    """The maximum size of these messages in bytes."""
    silence: float = 20.0
    """The time in seconds after which a follow without events sends one."""
    request: RequestLimits = field(default_factory=RequestLimits)
    """Limits of a single request."""


@dataclass(frozen=True, slots=True)
class Options:
    """All options of a node."""

    host: str = "127.0.0.1"
    """The address to listen on."""
    port: int = PORT
    """The port of the relay chain, or 0 for any free port."""
    port_per_chain: bool = False
    """Whether each parachain also has a port of its own, from `port + 1`."""
    build: Build = Build.INSTANT
    """The mode of building blocks."""
    interval: int = 6000
    """Milliseconds between two blocks in the mode `INTERVAL`."""
    settle: int = 0
    """The number of further blocks after each block in the modes `INSTANT` and `SINGLE`. They let
    messages arrive.
    """
    finality: int = 0
    """The distance from the best to the final relay block."""
    history: int = HISTORY
    """The number of relay blocks that are stored."""
    dev: bool = False
    """Whether methods that change the chains are available."""
    unsafe_external: bool = False
    """Whether `dev` is allowed on an address that other machines can reach."""
    origins: tuple[str, ...] = ()
    """Origins of pages that may connect, in addition to those that are always allowed."""
    serving: Serving = field(default_factory=Serving)

    @property
    def external(self) -> bool:
        """Return whether other machines can connect."""
        return not is_loopback(self.host)

    @property
    def names(self) -> Names:
        """Return the host names and page origins that requests may have.

        With `dev`, anyone who can send requests can change everything. A page of another server on
        this machine must then be named in `origins`.
        """
        return Names(self.host, origins=(APPS, *self.origins), local_pages=not self.dev)

    def check(self) -> None:
        """Check the combination of options. Raises `BadOption`."""
        if self.external and self.dev and not self.unsafe_external:
            raise BadOption(
                f"--dev on {self.host} lets everybody rewrite the chains: add --unsafe-external if"
                " that is intended"
            )
        if self.build is Build.INTERVAL and self.interval < 1:
            raise BadOption(f"an interval is at least 1 ms, not {self.interval}")


def parse_build(text: str) -> tuple[Build, int]:
    """Parse `instant`, `manual` or `interval:MS` into a mode and an interval in milliseconds.

    Raises `BadOption`.
    """
    kind, _, rest = text.partition(":")
    if kind == "interval" and rest.isdecimal() and int(rest) > 0:
        return Build.INTERVAL, int(rest)
    if text in {"instant", "manual"}:
        return Build(text), 0
    raise BadOption(f"blocks are built `instant`, `manual` or `interval:MS`, not {text!r}")
