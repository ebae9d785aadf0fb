"""A campaign of stores that lose rows: a story is told once for each of its transactions.

Before that transaction, the store is emptied, becomes an older copy, or is replaced by another
store for a while. The processes keep running. All events must still reach all networks once.
Subscriptions that the store has lost are lost.
"""

from collections import deque
from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple

from interchain_events.distributor.simulation.stories import DistributorStory
from interchain_events.distributor.simulation.world import Copy, World

BACKS: Final = (1, 2, 5, 20, 80)
"""The numbers of transactions by which copies are older."""
TICK: Final = 2_000
"""The interval in ms at which an idle process looks at the store."""
SWAPPED_FOR: Final = 20_000
"""The time in ms for which another store replaces the right one."""


class LossKind(StrEnum):
    """The kind of a loss."""

    EMPTIED = "emptied"
    OLDER = "older"
    SWAPPED = "swapped"


class StoreLoss(NamedTuple):
    """One loss in a story."""

    kind: LossKind
    at: int
    """The number of the transaction before which the loss happens."""
    back: int = 0
    """The number of transactions by which an older copy is older."""

    def __str__(self) -> str:
        """Return the loss in words."""
        by = f" by {self.back} transactions" if self.kind is LossKind.OLDER else ""
        return f"{self.kind}{by} before transaction {self.at}"


class Ending(NamedTuple):
    """The end of a story with a loss."""

    seed: int
    loss: StoreLoss
    surprises: list[str]
    """The violated invariants."""
    noticed: int
    """The number of times that a process noticed the loss."""
    steps: int


class LossStory(DistributorStory):
    """A story whose store loses rows once."""

    def __init__(self, seed: int, loss: StoreLoss, *, calm: bool = True) -> None:
        super().__init__(seed)
        self._loss = loss
        self._copies: deque[Copy] = deque(maxlen=loss.back + 1)
        """The rows before the last transactions."""
        self._aside: Copy | None = None
        """The rows of the right store while another one replaces it."""
        self._other: Copy = {}
        """The rows of the other store."""
        self.calm = self.calm or calm
        self._subscribing = False
        self.happened = False
        """Whether the story was long enough for the loss."""
        self.world.before_step = self._before_step

    def _before_step(self, number: int) -> None:
        """Let the store lose rows before its transaction."""
        watch = self.world.watch
        if self._aside is not None:
            # A process that starts would take the other store for its own.
            if any(process.alive and not process.seat.epochs for process in self.world.processes):
                self._swap_back()
            return
        if self._loss.kind is LossKind.OLDER:
            self._copies.append(watch.copy())
        # A loss can only be noticed by a process that has used the store before.
        remembered = any(process.alive and process.seat.epochs for process in self.world.processes)
        if self._loss.kind is LossKind.SWAPPED and self._subscribing:
            return
        if number < self._loss.at or self.happened or self._loss.at < 0 or not remembered:
            return
        self.happened = True
        match self._loss.kind:
            case LossKind.EMPTIED:
                self.world.lose({})
            case LossKind.OLDER:
                self.world.lose(self._copies[0])
            case LossKind.SWAPPED:
                self._aside = watch.copy()
                self._other = another_store(self.seed)
                watch.restore(self._other)
                self.world.later(SWAPPED_FOR, self._swap_back)
        self._tick()

    def _subscribe(self) -> None:
        """Subscribe at the right store, because a client would try again until it succeeds."""
        self._swap_back()
        self._subscribing = True
        super()._subscribe()
        self._subscribing = False

    def _swap_back(self) -> None:
        """Put the right store back, and check that the other one was not written to."""
        watch = self.world.watch
        if self._aside is None:
            return
        if watch.copy() != self._other:
            watch.surprises.append("another store was written to")
        watch.restore(self._aside)
        self._aside = None
        self._tick()

    def _tick(self) -> None:
        """Make each process look at the store, as idle processes do, now and every `TICK` ms."""
        for process in self.world.processes:
            self.world.tell(process)
        self.world.later(TICK, self._tick)


def another_store(seed: int) -> Copy:
    """Return the rows of the store of another distributor."""
    world = World(seed + 1_000_000)
    world.start()
    world.run(1_000)
    return world.watch.copy()


def tell_with_loss(seed: int, loss: StoreLoss) -> Ending:
    """Tell the story of a seed with a loss."""
    story = LossStory(seed, loss)
    outcome = story.tell()
    return Ending(seed, loss, outcome.surprises, story.world.losses, outcome.steps)


def steps_of(seed: int) -> int:
    """Return the number of transactions of a story without a loss."""
    return LossStory(seed, StoreLoss(LossKind.EMPTIED, -1)).tell().steps


def losses(steps: int) -> Iterator[StoreLoss]:
    """Yield every loss before every transaction of a story with `steps` transactions."""
    for at in range(2, steps + 1):
        yield StoreLoss(LossKind.EMPTIED, at)
        yield StoreLoss(LossKind.SWAPPED, at)
        for back in BACKS:
            if back < at:
                yield StoreLoss(LossKind.OLDER, at, back)
