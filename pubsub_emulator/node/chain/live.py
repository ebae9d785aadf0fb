"""A running network of one thread at a time: actions, steps and rewinds. A step that raises is undone whole."""

from collections.abc import Callable, Iterable
from copy import copy

from pubsub_emulator.emulator.network import Network, Step
from pubsub_emulator.emulator.network.acting import act
from pubsub_emulator.emulator.network.actions import Action
from pubsub_emulator.emulator.network.arguments import BadRequest
from pubsub_emulator.emulator.network.records import Observer
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.node.chain.block import RELAY, Acts, Block, Chain, Moment
from pubsub_emulator.primitives.types import RelayBlockNumber

Observers = Callable[[int], Iterable[Observer]]
"""Makes the observers of a line of blocks; 1 for the first, one more after each rewind."""


class LiveNetwork:
    """A scenario's network that is stepped on request."""

    def __init__(
        self, simulation: Simulation, observers: Observers | None = None, *, keep_snapshots: bool = True
    ) -> None:
        """`keep_snapshots` says whether moments can be gone back to."""
        self.simulation = simulation
        self.epoch = 1
        self._observers = observers
        self._keep_snapshots = keep_snapshots
        self._observe()
        self.genesis = self._genesis()
        self._clean = self.network.snapshot()
        self._newest = self.genesis
        self.pending: list[Action] = []
        """What was applied since the last step, in order."""
        self._acts: Acts | None = None

    @property
    def network(self) -> Network:
        """The network."""
        return self.simulation.network

    def finish(self) -> None:
        """Tell observers that nothing follows."""
        self.network.finish()

    # Steps

    def step(self) -> Moment:
        """Build one relay block. Whatever it raises, the network is as before, without what was asked for since."""
        try:
            step = self.simulation.step()
        except BaseException:
            self.undo()
            raise
        if self.pending:
            self._acts = Acts(step.number - 1, tuple(self.pending), self._acts)
        self.pending = []
        self._clean = self.network.snapshot()
        self._newest = self._moment(step)
        return self._newest

    def undo(self) -> None:
        """Forget what was asked for since the last step."""
        self.network.restore(self._clean)
        self.pending = []

    def rewind(self, moment: Moment) -> Moment:
        """Go back to a moment that has a snapshot; observers of this line end, and new ones begin."""
        saved = moment.saved
        if saved is None:
            raise BadRequest(f"relay block {moment.number} cannot be gone back to")
        self.network.finish()
        self.network.dismiss()
        self.network.restore(saved)
        self.pending = []
        self._acts = moment.acts
        self._clean = saved
        self._newest = moment
        self.epoch += 1
        self._observe()
        return moment

    def branch(self, moment: Moment) -> "LiveNetwork":
        """A network that goes on from a moment by itself, unobserved. Raises `BadRequest` where it cannot."""
        if moment.saved is None:
            raise BadRequest(f"relay block {moment.number} cannot be gone on from")
        branch = copy(self)
        branch.simulation = self.simulation.fork()
        branch._observers = None  # noqa: SLF001  # another object of this class
        branch.network.restore(moment.saved)
        branch._clean = moment.saved  # noqa: SLF001  # another object of this class
        branch._newest = moment  # noqa: SLF001  # another object of this class
        branch.pending = []
        branch._acts = moment.acts  # noqa: SLF001  # another object of this class
        return branch

    # Actions

    def apply_all(self, todo: Iterable[Action]) -> list[int | None]:
        """Apply all of it, or nothing. Raises as `apply`."""
        before = list(self.pending)
        try:
            return [self.apply(action) for action in todo]
        except BaseException:
            self.undo()
            for action in before:
                self.apply(action)
            raise

    def apply(self, action: Action) -> int | None:
        """Do an action; it shows with the next step. Raises and returns as `acting.act`."""
        result = act(self.network, action)
        self.pending.append(action)
        return result

    # Moments

    def _observe(self) -> None:
        for observer in self._observers(self.epoch) if self._observers is not None else ():
            self.network.observe(observer, past=True)

    def _genesis(self) -> Moment:
        network = self.network
        first = network.relay.blocks[-1]
        number = RelayBlockNumber(first.header.number)
        relay = Block(RELAY, first.header, (), first.state, number)
        heads: dict[Chain, Block] = {RELAY: relay}
        for para, chain in network.parachains.items():
            heads[para] = Block(para, chain.header, (), chain.state, number)
        return Moment(relay, (), (), heads, network.snapshot() if self._keep_snapshots else None)

    def _moment(self, step: Step) -> Moment:
        kept = self.network.relay.blocks[-1]
        relay = Block(RELAY, kept.header, step.block.extrinsics, kept.state, step.number)
        blocks = tuple(
            Block(each.chain, each.candidate.header, each.candidate.body(), each.outcome.state, step.number)
            for each in step.records
            if each.outcome is not None
        )
        heads = {**self._newest.heads, RELAY: relay, **{block.chain: block for block in blocks}}
        saved = self._clean if self._keep_snapshots else None
        return Moment(relay, blocks, step.records, heads, saved, kept.executions, step.idle, self._acts)
