"""The sealed headers of a random world's relay chain (UP-12).

One world in four has a relay parent offset. Its draws have a stream of their own, so that the
other worlds do not depend on them.
"""

from typing import Final

from pubsub_emulator.primitives import babe, schnorrkel, storage_keys
from pubsub_emulator.primitives.babe import Authority, NextEpoch
from pubsub_emulator.primitives.draws import Draws
from pubsub_emulator.primitives.header import DigestItem, Header
from pubsub_emulator.primitives.types import Hash, RelayBlockNumber, Slot

_EPOCH: Final = 5
"""The length of an epoch in relay blocks. It is short, so that headers often announce an epoch."""
_MAX_OFFSET: Final = 3
"""The largest relay parent offset of a world."""


class SealedTip:
    """The newest headers of a relay chain, and the authorities that seal the next one."""

    def __init__(self, draws: Draws) -> None:
        """Draw the offset and the authorities of the first two epochs."""
        self.offset = draws.between(1, _MAX_OFFSET)
        self._draws = draws
        self._keys: dict[bytes, schnorrkel.Pair] = {}
        self._authorities = self._epoch()
        self._next = self._epoch()
        self._logs: tuple[DigestItem, ...] = ()
        self._headers: list[Header] = []

    @staticmethod
    def drawn(seed: bytes, *, proofs_only: bool) -> "SealedTip | None":
        """Draw whether a world seals its relay headers, and return the tip if it does.

        They are sealed in one of four worlds. If only proofs are judged, they never are.
        """
        draws = Draws(seed, "world/descendants")
        return SealedTip(draws) if not proofs_only and draws.one_in(4) else None

    def _epoch(self) -> tuple[Authority, ...]:
        """Draw the authorities of an epoch, one to three."""
        pairs = [schnorrkel.pair(self._draws.take(32)) for _ in range(self._draws.between(1, 3))]
        self._keys |= {pair.public: pair for pair in pairs}
        return tuple((pair.public, 1) for pair in pairs)

    def begin_block(self, number: RelayBlockNumber) -> None:
        """Begin relay block `number`, perhaps with a new epoch."""
        self._logs = ()
        if number % _EPOCH == 0:
            self._authorities = self._next
            self._next = self._epoch()
            self._logs = (babe.next_epoch_digest(NextEpoch(self._next, bytes(32))),)

    def entries(self) -> dict[bytes, bytes]:
        """Return the authorities as the relay state has them."""
        return {
            storage_keys.AUTHORITIES: babe.authorities.encode(list(self._authorities)),
            storage_keys.NEXT_AUTHORITIES: babe.authorities.encode(list(self._next)),
        }

    def seal(self, number: RelayBlockNumber, state_root: Hash) -> None:
        """End relay block `number` with a header that a drawn authority seals."""
        index = self._draws.below(len(self._authorities))
        parent = self._headers[-1].hash() if self._headers else Hash(bytes(32))
        digest = (babe.pre_digest(Slot(number), index), *self._logs)
        unsealed = Header(
            parent, number, state_root, extrinsics_root=Hash(self._draws.take(32)), digest=digest
        )
        key, _ = self._authorities[index]
        signature = schnorrkel.sign(self._keys[key], unsealed.hash())
        self._headers.append(
            Header(
                parent_hash=parent,
                number=number,
                state_root=state_root,
                extrinsics_root=unsealed.extrinsics_root,
                digest=(*digest, babe.seal(signature)),
            )
        )

    def headers_from(self, number: RelayBlockNumber) -> tuple[Header, ...]:
        """Return the headers of relay block `number` and its descendants."""
        return tuple(header for header in self._headers if header.number >= number)
