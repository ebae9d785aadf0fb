"""The base class of caches. It stores nothing, which is the policy `none`."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.config import Keys
from pubsub_emulator.runtime.pallet_subscriber.meter import Meter
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView


class Cache:
    """The cache of one publisher during one walk.

    The walk sets `end` to the end of the current range of keys, and lists the items that it
    resolved in `resolved`. `charges` are the bytes charged so far for reads of the parachain's own
    rows. `saved` are the bytes that the nodes in those rows would have cost in the proof.

    A cache that stores references has for each item:

    places      the nibbles of its key at which to call `covers`, each with the number that the
                cache gives to that place
    alone_from  the nibble from which its leaf can be recognised by hash, without reading it
    """

    keeps_nodes: ClassVar[bool] = False
    """Whether `lookup` may find a node."""
    keeps_references: ClassVar[bool] = False
    """Whether `covers` or `covers_absence` may find resolved items.

    If not, the walk does not call them.
    """

    def __init__(
        self, view: SubscriberView, meter: Meter, para: ParaId, keys: Keys, *, trusted: bool
    ) -> None:
        self.view = view
        self.meter = meter
        self.para = para
        self.keys = keys
        self.trusted = trusted
        self.end = len(keys)
        self.charges = 0
        self.saved = 0
        self.resolved: list[int] = []
        self.places: Sequence[Mapping[int, int]] = ()
        self.alone_from: Sequence[int] = ()

    def charge(self, cost: int) -> None:
        """Charge a read of the parachain's own rows.

        Reads are free if the configuration does not meter them.
        """
        if self.view.spec.meter_cache_reads:
            self.charges += cost
            self.meter.used += cost

    def lookup(self, node_hash: Hash) -> bytes | None:  # noqa: ARG002  # for subclasses
        """Return the bytes of a node of the child trie, or `None`.

        It is called at most once per node, after the stop rule has allowed the read.
        """
        return None

    def covers(self, at: int, place: int, reference: Hash) -> int:  # noqa: ARG002  # for subclasses
        """Return the number of items from `keys[at]` on that are already resolved.

        `reference` is the node above them at `place`, which is inline or has not been read. They
        are resolved if it is the same as when they were last resolved.
        """
        return 0

    def covers_absence(self, at: int, depth: int) -> int:  # noqa: ARG002  # for subclasses
        """Return the number of items from `keys[at]` on that are already resolved.

        This is called instead of `covers` if `keys[at]` diverges from the trie at nibble `depth`.
        """
        return 0

    def store(self, storage: Storage, visited: Mapping[Hash, bytes], *, complete: bool) -> bool:  # noqa: ARG002  # as above
        """Store the result of the walk.

        `complete` says whether the walk visited all nodes on the publisher's paths. Returns `False`
        if the result does not fit. The publisher's root must then be dropped, too.
        """
        return True

    def store_only(self, storage: Storage, nodes: Mapping[Hash, bytes]) -> bool:
        """Store only these nodes, which a rule chose, and forget all others.

        The result is that of `store`.
        """
        return self.store(storage, nodes, complete=False)

    def begin(self) -> None:
        """Read the rows that `store` and `drop` always need.

        It is called at the start of each range if there is room.
        """

    def foresee(self, visited: Mapping[Hash, bytes]) -> None:
        """Read the rows that `store` needs for a complete publisher, as far as there is room."""

    @staticmethod
    def drop(storage: Storage, para: ParaId, keys: Keys) -> None:
        """Drop the cache of a publisher with these subscribed keys."""
