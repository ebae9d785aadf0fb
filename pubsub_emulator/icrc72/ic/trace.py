"""Events of the network for its observers (IC-12); canisters cannot see them."""

from typing import NamedTuple, Protocol

from pubsub_emulator.icrc72.ic.principal import Principal


class Happening(NamedTuple):
    """One thing that happened.

    `kind` is `send`, `execute`, `answer` (a response is executed), `respond`, `refuse`, `reject`, `trap`, `timer`,
    `heartbeat`, `install`, `stop`, `stopped`, `start`, `upgrade`, `uninstall` or `ingress`.
    """

    round: int
    kind: str
    number: int  # the call's number; 0 where there is none
    sender: Principal
    receiver: Principal
    method: str
    data: bytes
    code: int = 0


class Observer(Protocol):
    """An observer of a network."""

    def happened(self, happening: Happening) -> None:
        """Called in order, for everything that happens."""


class Recorder:
    """An observer that keeps everything."""

    def __init__(self) -> None:
        self.happenings: list[Happening] = []

    def happened(self, happening: Happening) -> None:
        """Append it to the list."""
        self.happenings.append(happening)
