"""The watched extrinsics of all chains, and the events of their watchers.

A watched extrinsic moves from the pool to a block and to a final block. A rewind can move it back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pubsub_emulator.node.chain.block import Chain, StoredBlock
from pubsub_emulator.node.chain.timeline import Advance, ChainAdvance
from pubsub_emulator.node.pool import PoolChange
from pubsub_emulator.node.rpc.session import RpcSubscription
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import Hash


class Watcher(RpcSubscription):
    """A subscription to the status of one extrinsic."""

    def __init__(self, watches: "Watches", chain: Chain, name: Hash) -> None:
        super().__init__(chain)
        self._watches = watches
        self._name = name

    def closed(self) -> None:
        """Stop watching the extrinsic."""
        self._watches.forget(self.chain, self._name, self)

    def pooled(self, change: PoolChange) -> None:
        """Handle a change of status in the pool.

        After `usurped`, `dropped` and `invalid`, there are no more events.
        """

    def included(self, block: StoredBlock, index: int) -> None:
        """Handle that a best block includes the extrinsic at this index."""

    def finalized(self, block: StoredBlock, index: int) -> None:
        """Handle that a final block includes the extrinsic. This is the last event."""

    def retracted(self, block: StoredBlock) -> None:
        """Handle that the extrinsic's block is no longer on the best chain."""


@dataclass(slots=True)
class Watched:
    """An extrinsic with its watchers."""

    extrinsic: bytes
    watchers: list[Watcher] = field(default_factory=list)
    place: tuple[StoredBlock, int] | None = None
    """The block that includes it and its index there, or `None` while it is in the pool."""


class Watches:
    """All watched extrinsics, by chain and hash."""

    def __init__(self, chains: Iterable[Chain]) -> None:
        self._watched: dict[Chain, dict[Hash, Watched]] = {chain: {} for chain in chains}

    def watch(self, chain: Chain, name: Hash, extrinsic: bytes, watcher: Watcher) -> None:
        """Add a watcher of an extrinsic in the pool."""
        self._watched[chain].setdefault(name, Watched(extrinsic)).watchers.append(watcher)

    def forget(self, chain: Chain, name: Hash, watcher: Watcher) -> None:
        """Remove a watcher."""
        watched = self._watched[chain].get(name)
        if watched is not None and watcher in watched.watchers:
            watched.watchers.remove(watcher)
            if not watched.watchers:
                del self._watched[chain][name]

    def retractable(self, advance: Advance) -> Mapping[Chain, list[bytes]]:
        """Return the watched extrinsics in blocks that a rewind removed, by chain.

        The caller puts those that are still valid back into the pools.
        """
        left = {id(block) for block in advance.left}
        retractable: dict[Chain, list[bytes]] = {}
        for chain, by_hash in self._watched.items():
            retractable[chain] = [
                watched.extrinsic
                for watched in by_hash.values()
                if watched.place is not None and id(watched.place[0]) in left
            ]
        return retractable

    def pooled(self, chain: Chain, changes: Iterable[PoolChange]) -> None:
        """Notify watchers of changes of status in the pool.

        Extrinsics that are already in a block are skipped.
        """
        for change in changes:
            watched = self._watched[chain].get(change.hash)
            if watched is None or watched.place is not None:
                continue
            for watcher in list(watched.watchers):
                watcher.pooled(change)
            if change.kind in {"usurped", "dropped", "invalid"}:
                self._watched[chain].pop(change.hash, None)

    def advanced(self, advance: Advance) -> None:
        """Notify watchers of new, lost and final blocks."""
        for chain, watched in self._watched.items():
            if not watched:
                continue
            if advance.rewound:
                self._retract(watched, advance)
            self._place(watched, advance.chains[chain])

    @staticmethod
    def _retract(watched: Mapping[Hash, Watched], advance: Advance) -> None:
        """Notify the watchers of extrinsics in blocks that a rewind removed."""
        left = {id(block) for block in advance.left}
        for extrinsic in watched.values():
            if extrinsic.place is not None and id(extrinsic.place[0]) in left:
                block = extrinsic.place[0]
                extrinsic.place = None
                for watcher in list(extrinsic.watchers):
                    watcher.retracted(block)

    @staticmethod
    def _place(watched: dict[Hash, Watched], change: ChainAdvance) -> None:
        """Notify the watchers of extrinsics in new and in final blocks."""
        for block in change.new:
            for index, extrinsic in enumerate(block.body):
                included = watched.get(blake2_256(extrinsic))
                if included is not None:
                    included.place = block, index
                    for watcher in list(included.watchers):
                        watcher.included(block, index)
        if change.finalized:
            for name, entry in list(watched.items()):
                if entry.place is not None and entry.place[0].number <= change.view.final.number:
                    del watched[name]
                    for watcher in list(entry.watchers):
                        watcher.finalized(*entry.place)
