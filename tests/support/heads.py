"""What chains of tests have in common."""

from pubsub_emulator.primitives.header import Header
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.parachain.block import ChainHead


class AtHead:
    """A chain at its head."""

    head: ChainHead

    @property
    def header(self) -> Header:
        return self.head.header

    @property
    def state(self) -> State:
        return self.head.state
