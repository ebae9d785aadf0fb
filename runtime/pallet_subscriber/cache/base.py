"""The interface of a cache, and the policy `none`, which is that interface and nothing else."""

from collections.abc import Mapping
from typing import ClassVar, Final

from primitives.pubsub import KEY_LENGTH
from primitives.types import Hash, ParaId, PubsubKey
from runtime.pallet_subscriber.meter import Meter
from runtime.pallet_subscriber.view import SubscriberView
from runtime.storage import Storage

_NOWHERE: Final[Mapping[int, int]] = {}


class Cache:
    """What is remembered of one publisher, during one walk. This class remembers nothing: policy `none`.

    The walk keeps `end` at the end of the stretch of keys that it is in. `charges` is what reading the parachain's own
    rows was charged so far, `saved` what the nodes found there would have cost in the proof, both in bytes.
    """

    keeps_nodes: ClassVar[bool] = False
    """Whether `lookup` may find anything."""
    keeps_references: ClassVar[bool] = False
    """Whether anything else may: where not, the walk need not say what it meets."""

    __slots__ = ("charges", "end", "keys", "meter", "para", "saved", "trusted", "view")

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

    def charge(self, cost: int) -> None:
        """Bill a read of the parachain's own rows, unless the configuration does not meter them."""
        if self.view.spec.meter_cache_reads:
            self.charges += cost
            self.meter.used += cost

    def lookup(self, node_hash: Hash) -> bytes | None:
        """The bytes of a node of the child trie; called after the stop rule, at most once a node."""
        del node_hash
        return None

    def places(self, at: int) -> Mapping[int, int]:
        """The nibbles of `keys[at]` at which `covers` has something to compare; elsewhere it need not be asked."""
        del at
        return _NOWHERE

    def covers(self, at: int, depth: int, reference: Hash | None, node: bytes) -> int:
        """How many items from `keys[at]` on stand resolved because of what begins at nibble `depth` of that key.

        Called before a child node is read that its parent refers to: by hash, or by the inline `node` itself.
        """
        del at, depth, reference, node
        return 0

    def covers_absence(self, at: int, depth: int) -> int:
        """As `covers`, where `keys[at]` parts from the trie at nibble `depth`."""
        del at, depth
        return 0

    def alone_from(self, at: int) -> int:
        """The nibble from which on the leaf of `keys[at]` may be recognised by its hash, unread."""
        del at
        return 2 * KEY_LENGTH + 1

    def resolved(self, at: int) -> None:
        """The item `keys[at]` was walked to its end."""

    def settle(self, storage: Storage, walked: Mapping[Hash, bytes], *, complete: bool) -> bool:
        """Remember what the walk found; false when that did not fit and the root must be forgotten too."""
        del storage, walked, complete
        return True

    @staticmethod
    def drop(storage: Storage, para: ParaId) -> None:
        """Forget a publisher."""
