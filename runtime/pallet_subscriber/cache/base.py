"""The interface of a cache, and the policy `none`, which is that interface and nothing else."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from pubsub_emulator.primitives.types import Hash, ParaId, PubsubKey
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.meter import Meter
from pubsub_emulator.runtime.pallet_subscriber.view import SubscriberView


class Cache:
    """What is remembered of one publisher, during one walk. This class remembers nothing: policy `none`.

    The walk keeps `end` at the end of the stretch of keys that it is in, and lists in `resolved` the items that it came
    to the end of. `charges` is what reading the parachain's own rows was charged so far, `saved` what the nodes found
    there would have cost in the proof, both in bytes.

    By item, for a cache that keeps references:

    places      the nibbles of its key at which `covers` is to be asked, with what the cache calls each
    alone_from  the nibble from which on its leaf may be recognised by its hash, unread
    """

    keeps_nodes: ClassVar[bool] = False
    """Whether `lookup` may find anything."""
    keeps_references: ClassVar[bool] = False
    """Whether anything else may: where not, the walk need not say what it meets."""

    __slots__ = (
        "alone_from",
        "charges",
        "end",
        "keys",
        "meter",
        "para",
        "places",
        "resolved",
        "saved",
        "trusted",
        "view",
    )

    def __init__(
        self, view: SubscriberView, meter: Meter, para: ParaId, keys: tuple[PubsubKey, ...], *, trusted: bool
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
        """Bill a read of the parachain's own rows, unless the configuration does not meter them."""
        if self.view.spec.meter_cache_reads:
            self.charges += cost
            self.meter.used += cost

    def lookup(self, node_hash: Hash) -> bytes | None:
        """The bytes of a node of the child trie; called after the stop rule, at most once a node."""
        del node_hash
        return None

    def covers(self, at: int, place: int, reference: Hash) -> int:
        """How many items from `keys[at]` on stand resolved because `reference` is what the trie has at a place above.

        Called before the child node is read that has this hash, or was found in its parent and would have it.
        """
        del at, place, reference
        return 0

    def covers_absence(self, at: int, depth: int) -> int:
        """As `covers`, where `keys[at]` parts from the trie at nibble `depth`."""
        del at, depth
        return 0

    def settle(self, storage: Storage, walked: Mapping[Hash, bytes], *, complete: bool) -> bool:
        """Remember what the walk found; false when that did not fit and the root must be forgotten too."""
        del storage, walked, complete
        return True

    def begin(self) -> None:
        """Read what `settle` and `drop` go by in any case; at the beginning of each stretch, while there is room."""

    def foresee(self, walked: Mapping[Hash, bytes]) -> None:
        """Read what `settle` goes by once the publisher is complete, as far as there is room."""
        del walked

    @staticmethod
    def drop(storage: Storage, para: ParaId, keys: tuple[PubsubKey, ...]) -> None:
        """Forget a publisher, of which these keys are subscribed to."""
