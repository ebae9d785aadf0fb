"""A running network that actions, steps and rewinds change.

A step that fails is undone completely. The class is not thread-safe: only one thread may use it at
a time.
"""

from collections.abc import Callable, Iterable
from copy import copy

from pubsub_emulator.emulator.network import Network, Step
from pubsub_emulator.emulator.network.acting import act
from pubsub_emulator.emulator.network.actions import Action
from pubsub_emulator.emulator.network.arguments import BadRequest
from pubsub_emulator.emulator.network.records import Observer
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.node.chain.block import RELAY, AppliedActs, Chain, Moment, StoredBlock
from pubsub_emulator.primitives.types import RelayBlockNumber

Observers = Callable[[int], Iterable[Observer]]
"""Creates the observers of the blocks until the next rewind.

The argument is 1 at first, and grows by one with each rewind.
"""


class LiveNetwork:
    """A scenario's network that builds blocks on request."""

    def __init__(
        self,
        simulation: Simulation,
        observers: Observers | None = None,
        *,
        keep_snapshots: bool = True,
    ) -> None:
        """Start from a simulation's present block.

        With `keep_snapshots`, each moment has a snapshot to which the network can be rewound.
        """
        self.simulation = simulation
        self.epoch = 1
        """The number of rewinds so far plus one, which is the argument of `observers`."""
        self._observers = observers
        self._keep_snapshots = keep_snapshots
        self._observe()
        self.genesis = self._genesis()
        self._clean = self.network.snapshot()
        """The network right after the last step."""
        self._newest = self.genesis
        """The moment after the last step."""
        self.pending: list[Action] = []
        """Actions applied since the last step, in order."""
        self._acts: AppliedActs | None = None
        """All actions before the last step."""

    @property
    def network(self) -> Network:
        """Return the present network."""
        return self.simulation.network

    def finish(self) -> None:
        """Notify observers that there are no more blocks."""
        self.network.finish()

    # Steps

    def step(self) -> Moment:
        """Build one relay block.

        If an error is raised, the network returns to its state after the last step. The actions
        since then are lost, and callers that still want them must apply them again.
        """
        try:
            step = self.simulation.step()
        except BaseException:
            self.undo()
            raise
        if self.pending:
            self._acts = AppliedActs(step.number - 1, tuple(self.pending), self._acts)
        self.pending = []
        self._clean = self.network.snapshot()
        self._newest = self._moment(step)
        return self._newest

    def undo(self) -> None:
        """Discard all actions since the last step."""
        self.network.restore(self._clean)
        self.pending = []

    def rewind(self, moment: Moment) -> Moment:
        """Return the network to a moment.

        The present observers are finished, and new ones are created. Raises `BadRequest` if the
        moment has no snapshot.
        """
        saved = moment.saved
        if saved is None:
            raise BadRequest(f"the network cannot return to relay block {moment.number}")
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
        """Return an independent network that continues from a moment, without observers.

        Raises `BadRequest` if the moment has no snapshot.
        """
        if moment.saved is None:
            raise BadRequest(f"the network cannot continue from relay block {moment.number}")
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
        """Apply all actions, or leave the network unchanged. Raises as `apply` does."""
        earlier = list(self.pending)
        try:
            return [self.apply(action) for action in todo]
        except BaseException:
            self.undo()
            for action in earlier:
                self.apply(action)
            raise

    def apply(self, action: Action) -> int | None:
        """Apply one action, which takes effect with the next step.

        The result and the errors are those of `acting.act`.
        """
        result = act(self.network, action)
        self.pending.append(action)
        return result

    # Moments

    def _observe(self) -> None:
        """Add the observers of the blocks until the next rewind."""
        if self._observers is not None:
            for observer in self._observers(self.epoch):
                self.network.observe(observer, past=True)

    def _genesis(self) -> Moment:
        """Return the moment of the network's present block, with which its history begins."""
        network = self.network
        first = network.relay.blocks[-1]
        number = RelayBlockNumber(first.header.number)
        relay = StoredBlock(RELAY, first.header, (), first.state, number)
        heads: dict[Chain, StoredBlock] = {RELAY: relay}
        for para, chain in network.parachains.items():
            heads[para] = StoredBlock(para, chain.header, (), chain.state, number)
        return Moment(relay, (), (), heads, network.snapshot() if self._keep_snapshots else None)

    def _moment(self, step: Step) -> Moment:
        """Return the moment after a step.

        Chains without a new block have the same head as in the moment before.
        """
        relay_block = self.network.relay.blocks[-1]
        relay = StoredBlock(
            RELAY, relay_block.header, step.block.extrinsics, relay_block.state, step.number
        )
        blocks = tuple(
            StoredBlock(
                record.chain,
                record.candidate.header,
                record.candidate.body(),
                record.outcome.state,
                step.number,
            )
            for record in step.records
            if record.outcome is not None
        )
        return Moment(
            relay,
            blocks,
            step.records,
            heads={**self._newest.heads, RELAY: relay, **{block.chain: block for block in blocks}},
            saved=self._clean if self._keep_snapshots else None,
            executions=relay_block.executions,
            idle=step.idle,
            acts=self._acts,
        )
