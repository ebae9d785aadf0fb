"""Options of a node, and its limits."""

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
APPS: Final = "https://polkadot.js.org"
"""The origin of Polkadot/Substrate Portal, which is always allowed."""


class BadOption(PubsubError):
    """An option has a value that is not possible."""


class Build(Enum):
    """When blocks are built."""

    INSTANT = "instant"
    """When something waits for one."""
    SINGLE = "single"
    """As `INSTANT`, with one extrinsic a step."""
    INTERVAL = "interval"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class Serving:
    """Limits of connections, and how far a client may fall behind."""

    connections: int = 100
    sockets: int = 512
    """Open sockets, those that have not said yet what they want too; more are told so and closed."""
    patience: float = PATIENCE
    """Seconds that a request's head or body may take, and that a socket may be idle between requests."""
    requests: int = 16
    """Requests of one connection that are worked on at once."""
    subscriptions: int = MOST_SUBSCRIPTIONS
    queued: int = 1024
    """Messages that wait for a client."""
    queued_bytes: int = 16 * MEBIBYTE
    silence: float = 20.0
    """Seconds after which a follow that had no event gets one."""
    request: RequestLimits = field(default_factory=RequestLimits)


@dataclass(frozen=True, slots=True)
class Options:
    """All of it; `interval` in milliseconds, `origins` beside those that are always allowed."""

    host: str = "127.0.0.1"
    port: int = PORT
    port_per_chain: bool = False
    build: Build = Build.INSTANT
    interval: int = 6000
    settle: int = 0
    finality: int = 0
    history: int = HISTORY
    dev: bool = False
    unsafe_external: bool = False
    origins: tuple[str, ...] = ()
    serving: Serving = field(default_factory=Serving)

    @property
    def external(self) -> bool:
        """Whether others than this machine can connect."""
        return not is_loopback(self.host)

    @property
    def names(self) -> Names:
        """The names by which the node is called, and the origins of pages that may call it."""
        return Names(self.host, origins=(APPS, *self.origins))

    def check(self) -> None:
        """Raises `BadOption`."""
        if self.external and self.dev and not self.unsafe_external:
            raise BadOption(f"--dev on {self.host} lets everybody rewrite the chains: add --unsafe-external to mean it")
        if self.build is Build.INTERVAL and self.interval < 1:
            raise BadOption(f"an interval is at least 1 ms, not {self.interval}")


def parse_build(text: str) -> tuple[Build, int]:
    """`instant`, `manual` or `interval:MS`. Raises `BadOption`."""
    kind, _, rest = text.partition(":")
    if kind == "interval" and rest.isdecimal() and int(rest) > 0:
        return Build.INTERVAL, int(rest)
    if text in {"instant", "manual"}:
        return Build(text), 0
    raise BadOption(f"blocks are built `instant`, `manual` or `interval:MS`, not {text!r}")
