"""The blocks that a node stores, and which of them are best and final.

    moments   the newest relay blocks with everything built for them, including forks
    views     an immutable view of each chain: genesis, best, final, blocks by height
    pins      counts of clients that still need a block after it has left the window

The window is the range of relay blocks that are stored. Only one thread changes a timeline. A
change replaces `views` with one assignment, so that readers in other threads always see a
consistent view.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain as chained
from typing import Final

from pubsub_emulator.emulator.network.records import BlockRecord
from pubsub_emulator.node.chain.block import Chain, Moment, StoredBlock
from pubsub_emulator.primitives.errors import DefensiveFailure, PubsubError
from pubsub_emulator.primitives.types import Hash, RelayBlockNumber

HISTORY: Final = 4096
"""The number of relay blocks that are stored by default."""
_REMEMBERED: Final = 16_384
"""The number of hashes of discarded blocks that are stored, to tell them from unknown hashes."""


class ImpossibleTimeline(PubsubError):
    """A window of blocks that is too short for the finality."""


class CannotRewind(PubsubError):
    """A block that the timeline cannot be rewound to."""


@dataclass(frozen=True, slots=True, eq=False)
class ChainView:
    """One chain at one time."""

    chain: Chain
    genesis: StoredBlock
    best: StoredBlock
    final: StoredBlock
    """The newest final block."""
    since: int
    """The height that the final block had at the start, or after the last rewind."""
    heights: Mapping[int, StoredBlock]
    """Blocks by height. The timeline extends this mapping, so that it can contain blocks after
    `best`. Use `at_height`.
    """

    def at_height(self, number: int) -> StoredBlock | None:
        """Return the best chain's block of a height, or `None` if it is not stored.

        Height 0 always returns the first block, whose hash extrinsics are signed for. A forked
        chain's first block is higher.
        """
        if not number:
            return self.genesis
        return self.heights.get(number) if 0 <= number <= self.best.number else None


@dataclass(frozen=True, slots=True, eq=False)
class ChainAdvance:
    """The progress of one chain in a step or rewind."""

    view: ChainView
    new: tuple[StoredBlock, ...]
    """New blocks, in order."""
    finalized: tuple[StoredBlock, ...]
    """Blocks that became final, in ascending order."""
    before: StoredBlock
    """The best block before the step or rewind."""


@dataclass(frozen=True, slots=True, eq=False)
class Advance:
    """The changes of a step or a rewind.

    Its dictionaries and lists are caches that the readers of the step share. Each is filled by the
    first reader that needs it.
    """

    moment: Moment
    chains: Mapping[Chain, ChainAdvance]
    rewound: bool = False
    """Whether it is a rewind."""
    left: tuple[StoredBlock, ...] = ()
    """Blocks that a rewind removed from the best chains."""
    texts: dict[Hash, str] = field(default_factory=dict)
    """Headers as JSON, by block hash."""
    column: list[str] = field(default_factory=list)
    """The moment as a column of the live page, as JSON."""
    changes: dict[Hash, Mapping[bytes, bytes | None]] = field(default_factory=dict)
    """Changed keys of blocks' top tries with their new values, by block hash."""


class Timeline:
    """The stored moments of a network, on the best chain and on forks."""

    def __init__(self, genesis: Moment, history: int = HISTORY, finality: int = 0) -> None:
        """Start with the first block of every chain.

        `history` is the number of relay blocks to store. `finality` is the distance from the best
        to the final relay block. Raises `ImpossibleTimeline` unless 0 <= finality < history.
        """
        if not 0 <= finality < history:
            raise ImpossibleTimeline(
                f"{history} relay blocks of history do not contain a final block {finality} behind"
                " the best"
            )
        self.history = history
        self.finality = finality
        self.genesis = genesis
        self._first = genesis.number
        self._path: dict[int, Moment] = {self._first: genesis}
        """The moments of the best chain by relay height."""
        self._moments: dict[int, list[Moment]] = {self._first: [genesis]}
        """All stored moments by relay height, including forks."""
        self._blocks: dict[Chain, dict[Hash, StoredBlock]] = {chain: {} for chain in genesis.heads}
        """All stored blocks by hash, including forks."""
        self._heights: dict[Chain, dict[int, StoredBlock]] = {chain: {} for chain in genesis.heads}
        """The blocks of the best chains by height."""
        self._pins: dict[Chain, Counter[Hash]] = {chain: Counter() for chain in genesis.heads}
        """The number of pins of each block."""
        self._candidates: dict[Hash, BlockRecord] = {}
        """Judged candidates by hash."""
        self._discarded: deque[Hash] = deque(maxlen=_REMEMBERED)
        """Hashes of blocks that were discarded, the newest last."""
        self._oldest = self._first + 1
        """The lowest relay height of the window, besides the first block."""
        self._outlived: list[StoredBlock] = []
        """Blocks from before the window that are still the best or final ones of their chains."""
        self.newest = genesis
        self._hold(genesis.heads.values())
        self.views = self._views({chain: block.number for chain, block in genesis.heads.items()})

    # Reading

    def block(self, chain: Chain, name: bytes) -> StoredBlock | None:
        """Return a stored block by its hash, or `None`."""
        return self._blocks[chain].get(Hash(name))

    def was_discarded(self, name: bytes) -> bool:
        """Return whether a block with this hash was stored before and then discarded.

        Only the most recent hashes are known.
        """
        return name in self._discarded

    def moment(self, number: int) -> Moment | None:
        """Return the moment of a relay height on the best chain, or `None` if it is not stored."""
        return self._path.get(number)

    def moment_of(self, block: StoredBlock) -> Moment | None:
        """Return the moment that added a block, on any fork, or `None` if it is not stored."""
        for moment in self._moments.get(block.relay_number, ()):
            if moment.relay is block or any(other is block for other in moment.blocks):
                return moment
        return self.genesis if block.relay_number == self._first else None

    def candidate(self, name: bytes) -> BlockRecord | None:
        """Return a judged candidate by its hash, or `None` if it is not stored."""
        return self._candidates.get(Hash(name))

    def moments(self) -> tuple[Moment, ...]:
        """Return the stored moments of the best chain in ascending order."""
        return tuple(self._path[number] for number in sorted(self._path))

    # Changing

    def extend(self, moment: Moment) -> Advance:
        """Add the next moment.

        Raises `DefensiveFailure` if it does not follow the newest one.
        """
        number = moment.number
        if number != self.newest.number + 1:
            raise DefensiveFailure(f"relay block {number} does not follow {self.newest.number}")
        old_views = self.views
        self._path[number] = moment
        self._moments.setdefault(number, []).append(moment)
        self._hold((moment.relay, *moment.blocks), moment.records)
        self.newest = moment
        self.views = self._views({chain: view.since for chain, view in old_views.items()})
        advance = Advance(
            moment, {chain: self._advanced(chain, old_views[chain]) for chain in self.views}
        )
        self._prune(number - self.history)
        return advance

    def rewind(self, moment: Moment) -> Advance:
        """Make a stored moment, which can be on any fork, the newest one.

        The blocks that leave the best chain stay stored as a fork. Raises `CannotRewind` if the
        moments between the best chain and the destination are no longer stored. Without them, the
        final block is only known if `finality` is 0, so that it is the best block.
        """
        branch, joins = self._branch(moment)
        if not joins and self.finality:
            raise CannotRewind(
                f"relay block {moment.number} is stored, but not the blocks that lead to it"
            )
        # The relay height up to which the old and the new best chain are the same.
        if not joins:
            shared = self._first
        elif branch:
            shared = RelayBlockNumber(branch[0].number - 1)
        else:
            shared = moment.number
        old_views = self.views
        removed = (self._path[number] for number in sorted(self._path) if number > shared)
        left = tuple(chained.from_iterable((past.relay, *past.blocks) for past in removed))
        heads = self._path[shared].heads
        self._path = {number: past for number, past in self._path.items() if number <= shared}
        # New mappings replace the old ones, which the views of readers still refer to.
        remaining: dict[Chain, dict[int, StoredBlock]] = {}
        for chain, heights in self._heights.items():
            newest = heads[chain].number
            remaining[chain] = {
                number: block for number, block in heights.items() if number <= newest
            }
        self._heights = remaining
        if not joins:
            # The moment may have left the window, together with the heads of its chains.
            returning = branch[0]
            self._oldest = min(self._oldest, returning.number)
            self._moments.setdefault(returning.number, []).append(returning)
            self._hold(returning.heads.values(), returning.records)
        for branch_moment in branch:
            self._path[branch_moment.number] = branch_moment
            for block in (branch_moment.relay, *branch_moment.blocks):
                self._heights[block.chain][block.number] = block
        self.newest = moment
        self.views = self._views(
            {chain: block.number for chain, block in self._final().heads.items()}
        )
        changed = {
            chain: ChainAdvance(view, new=(), finalized=(), before=old_views[chain].best)
            for chain, view in self.views.items()
        }
        return Advance(moment, changed, rewound=True, left=left)

    def _hold(self, blocks: Iterable[StoredBlock], records: Iterable[BlockRecord] = ()) -> None:
        """Add blocks and candidates to the indices by hash and height."""
        for block in blocks:
            self._blocks[block.chain][block.hash] = block
            self._heights[block.chain][block.number] = block
        for record in records:
            self._candidates[record.candidate.hash()] = record

    def _branch(self, moment: Moment) -> tuple[list[Moment], bool]:
        """Return the moments that lead from the best chain to a stored moment, in ascending order.

        The moment itself is the last one; the moment on the best chain is not included. The second
        value says whether the branch reaches the best chain within the window.
        """
        branch: list[Moment] = []
        current: Moment | None = moment
        while current is not None and self._path.get(current.number) is not current:
            branch.append(current)
            parent = current.relay.header.parent_hash
            candidates = self._moments.get(current.number - 1, ())
            current = next((past for past in candidates if past.relay.hash == parent), None)
        return branch[::-1], current is not None

    def pin(self, block: StoredBlock) -> None:
        """Keep a block stored until `unpin` has been called once for each call of `pin`."""
        self._pins[block.chain][block.hash] += 1

    def unpin(self, block: StoredBlock) -> None:
        """Undo one `pin`. After the last one, a block outside the window is discarded."""
        pins = self._pins[block.chain]
        pins[block.hash] -= 1
        if pins[block.hash] > 0:
            return
        del pins[block.hash]
        # The first blocks are always stored, and blocks in the window are discarded by `_prune`.
        if self._first < block.relay_number < self._oldest:
            self._forget_block(block)

    def _final(self) -> Moment:
        return self._path[max(self.newest.number - self.finality, self._first)]

    def _views(self, since: Mapping[Chain, int]) -> Mapping[Chain, ChainView]:
        """Return the views of all chains at the newest moment.

        `since` has the height of each chain's final block at the start, or after the last rewind.
        """
        best = self.newest.heads
        final = self._final().heads
        return {
            chain: ChainView(
                chain, genesis, best[chain], final[chain], since[chain], self._heights[chain]
            )
            for chain, genesis in self.genesis.heads.items()
        }

    def _advanced(self, chain: Chain, before: ChainView) -> ChainAdvance:
        """Return the progress of a chain in the newest moment, given its view before it."""
        view = self.views[chain]
        finalized = tuple(
            view.heights[number] for number in range(before.final.number + 1, view.final.number + 1)
        )
        new = tuple(
            block for block in (self.newest.relay, *self.newest.blocks) if block.chain == chain
        )
        return ChainAdvance(view, new, finalized, before.best)

    def _prune(self, last: int) -> None:
        """Discard the moments up to relay block `last`.

        The first block, pinned blocks, and the best and final blocks of every chain stay.
        """
        outlived = self._outlived
        self._outlived = []
        for block in outlived:
            self._forget_block(block)
        while self._oldest <= last:
            for moment in self._moments.pop(self._oldest, ()):
                for block in (moment.relay, *moment.blocks):
                    self._forget_block(block)
                for record in moment.records:
                    self._candidates.pop(record.candidate.hash(), None)
            self._path.pop(self._oldest, None)
            self._oldest += 1

    def _forget_block(self, block: StoredBlock) -> None:
        """Discard a block unless it is still needed."""
        if self._pins[block.chain][block.hash]:
            # The last `unpin` discards the block.
            return
        view = self.views[block.chain]
        if block is view.best or block is view.final:
            # Its chain has not built a block for a whole window. The next `_prune` tries again.
            self._outlived.append(block)
            return
        if self._blocks[block.chain].pop(block.hash, None) is not None:
            self._discarded.append(block.hash)
        heights = self._heights[block.chain]
        if heights.get(block.number) is block:
            del heights[block.number]
