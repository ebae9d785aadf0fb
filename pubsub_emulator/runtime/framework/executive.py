"""The building of blocks.

Hooks run in the order of the pallets, and extrinsics run in storage layers. The header commits to
the result.

    initialize  System; then on_initialize of every pallet, in order
    inherents   mandatory: if one fails, there is no block
    extrinsics  each is charged before it runs; one that fails is part of the block, one that does
                not fit is left out
    idle        on_idle of every pallet with the weight that is left, starting with another pallet
                each block
    finalize    on_finalize of every pallet; System writes the events; the overlay is written to
                the tries

The extrinsics root is `blake2_256_ordered_root` in trie layout V0, as in runtimes with
`system_version` 1 such as Polkadot's, whose state is in layout V1.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from pubsub_emulator.primitives.errors import DefensiveFailure, PubsubError
from pubsub_emulator.primitives.header import DigestItem, Header
from pubsub_emulator.primitives.types import U64_MAX, Hash
from pubsub_emulator.primitives.weights import WEIGHT_ZERO, Weight
from pubsub_emulator.runtime.framework import events, system
from pubsub_emulator.runtime.framework.calls import encode_call
from pubsub_emulator.runtime.framework.dispatch import Call, DispatchOutcome, call_info, dispatch
from pubsub_emulator.runtime.framework.events import EventRecord
from pubsub_emulator.runtime.framework.hooks import Hooks, IntegrityError, StateError
from pubsub_emulator.runtime.framework.origin import Origin, Signed, Unsigned, encode_origin
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.validity import InvalidTransaction, Room
from pubsub_emulator.trie import ordered_root

_DISPATCH_AS: Final = b"\x1a\x03"
"""`Utility::dispatch_as`, which encodes calls that no account signs."""
_TWO_SECONDS: Final = Weight(2_000_000_000_000, U64_MAX)
_THREE_QUARTERS: Final = Weight(1_500_000_000_000, U64_MAX)


class ExhaustsResources(PubsubError):
    """The extrinsic does not fit into the weight that the block has left.

    It did not run.
    """


class InherentFailed(PubsubError):
    """A mandatory extrinsic failed, so there is no block; `outcome` has the error."""

    def __init__(self, call: Call, outcome: DispatchOutcome) -> None:
        super().__init__(f"{call.pallet}::{call.name}: {outcome.error!r}")
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class BlockWeights:
    """The weight limits of a block."""

    max_block: Weight = _TWO_SECONDS
    """The limit of the whole block."""
    normal: Weight = _THREE_QUARTERS
    """The limit of extrinsics that are not mandatory."""


@dataclass(frozen=True, slots=True)
class Extrinsic:
    """A call with its origin, which needs no signature because the emulator sets the origin."""

    origin: Origin
    call: Call


@dataclass(frozen=True, slots=True)
class Block:
    """A built block: the header, the encoded extrinsics, the outcome of each, and the events."""

    header: Header
    extrinsics: tuple[bytes, ...]
    outcomes: tuple[DispatchOutcome, ...]
    events: tuple[EventRecord, ...]
    left_out: tuple[Extrinsic, ...] = ()
    refused: tuple[tuple[bytes, InvalidTransaction], ...] = ()
    """Signed extrinsics that could not be part of this block, each with the reason."""


class SignedExtrinsics(Protocol):
    """The part of a chain that runs signed extrinsics."""

    def apply(self, storage: Storage, index: int, raw: bytes, room: Room) -> DispatchOutcome:
        """Run an extrinsic as number `index` of the block.

        Raises `InvalidTransaction`, and then changes nothing.
        """


class NormalRoom:
    """`Room` for extrinsics that are not mandatory.

    It is measured by `System::BlockWeight` and by length in bytes.
    """

    def __init__(self, storage: Storage, weights: BlockWeights, length: int) -> None:
        self._storage = storage
        self._weights = weights
        self._length = length

    def fits(self, weight: Weight, length: int) -> bool:
        """Return whether an extrinsic of this weight and this many bytes fits."""
        used = system.BLOCK_WEIGHT.get(self._storage)
        limits = self._weights
        fits = (used.normal + weight).all_lte(limits.normal) and (used.total() + weight).all_lte(
            limits.max_block
        )
        return fits and length <= self._length

    def use(self, storage: Storage, weight: Weight, length: int) -> None:
        """Count the weight and the bytes that an extrinsic used."""
        self._length -= length
        used = system.BLOCK_WEIGHT.get(storage)
        system.BLOCK_WEIGHT.put(storage, replace(used, normal=used.normal + weight))


class Executive:
    """The executor of blocks over a `Storage` with the pallets of one runtime.

    `pallets` are in the order of their hooks.
    """

    def __init__(
        self,
        pallets: Sequence[Hooks],
        weights: BlockWeights | None = None,
        signed: SignedExtrinsics | None = None,
        normal_length: int = 0,
    ) -> None:
        """Set up the pallets.

        `signed` runs signed extrinsics, of at most `normal_length` bytes in a block. Raises
        `DefensiveFailure` if two pallets have one name.
        """
        self._signed = signed
        self._normal_length = normal_length
        self.pallets = {pallet.pallet.name: pallet for pallet in pallets}
        self.weights = BlockWeights() if weights is None else weights
        if len(self.pallets) != len(pallets):
            raise DefensiveFailure("two pallets have one name")

    def build_block(
        self,
        storage: Storage,
        number: int,
        parent_hash: Hash,
        *,
        digest: Sequence[DigestItem] = (),
        inherents: Iterable[Call] = (),
        extrinsics: Iterable[Extrinsic] = (),
        signed: Iterable[bytes] = (),
    ) -> Block:
        """Build and commit one block, with the `signed` extrinsics last.

        Raises `InherentFailed`. The storage must then be discarded.
        """
        self.initialize_block(storage, number, parent_hash, digest)
        encoded: list[bytes] = []
        outcomes: list[DispatchOutcome] = []
        left_out: list[Extrinsic] = []
        for call in inherents:
            outcomes.append(self.apply_inherent(storage, len(encoded), call))
            encoded.append(self.encode_extrinsic(Extrinsic(Unsigned(), call)))
        for extrinsic in extrinsics:
            try:
                outcome = self.apply_extrinsic(storage, len(encoded), extrinsic)
            except ExhaustsResources:
                left_out.append(extrinsic)
                continue
            outcomes.append(outcome)
            encoded.append(self.encode_extrinsic(extrinsic))
        refused: list[tuple[bytes, InvalidTransaction]] = []
        room = self.room(storage)
        for raw in signed:
            if self._signed is None:
                raise DefensiveFailure("this chain takes no signed extrinsics")
            try:
                outcomes.append(self._signed.apply(storage, len(encoded), raw, room))
            except InvalidTransaction as error:
                refused.append((raw, error))
            else:
                encoded.append(raw)
        header = self.finalize_block(storage, encoded)
        log = tuple(events.records(storage))
        return Block(header, tuple(encoded), tuple(outcomes), log, tuple(left_out), tuple(refused))

    def room(self, storage: Storage) -> "NormalRoom":
        """Return the room that is left in the block that is being built in `storage`."""
        return NormalRoom(storage, self.weights, self._normal_length)

    def initialize_block(
        self, storage: Storage, number: int, parent_hash: Hash, digest: Sequence[DigestItem] = ()
    ) -> None:
        """Begin block `number`; the weight of `on_initialize` counts as mandatory."""
        system.initialize(storage, number, parent_hash, digest)
        for pallet in self.pallets.values():
            used = pallet.on_initialize(storage, number)
            if used is not WEIGHT_ZERO:
                self._use(storage, mandatory=used)

    def apply_inherent(self, storage: Storage, index: int, call: Call) -> DispatchOutcome:
        """Run a mandatory call of the block's author as extrinsic `index`.

        Raises `InherentFailed`.
        """
        system.note_extrinsic(storage, index)
        outcome = dispatch(self.pallets[call.pallet], storage, Unsigned(), call)
        self._use(storage, mandatory=outcome.weight)
        if not outcome.ok:
            raise InherentFailed(call, outcome)
        events.deposit(
            storage, system.ExtrinsicSuccess(system.DispatchEventInfo(outcome.weight, class_=2))
        )
        return outcome

    def apply_extrinsic(
        self, storage: Storage, index: int, extrinsic: Extrinsic
    ) -> DispatchOutcome:
        """Run a call as extrinsic `index`.

        A call that fails is part of the block. Raises `ExhaustsResources` if its weight does not
        fit. Emits `ExtrinsicSuccess` or `ExtrinsicFailed`.
        """
        call = extrinsic.call
        origin = extrinsic.origin
        pallet = self.pallets[call.pallet]
        charged = call_info(pallet, call.name).weight(pallet, *call.args)
        if not self.room(storage).fits(charged, 0):
            raise ExhaustsResources(f"{call.pallet}::{call.name} does not fit into this block")
        system.note_extrinsic(storage, index)
        # On chains with signed extrinsics, only these increment nonces.
        if isinstance(origin, Signed) and self._signed is None:
            system.inc_nonce(storage, origin.account)
        outcome = dispatch(pallet, storage, origin, call)
        self._use(storage, normal=outcome.weight)
        system.note_outcome(storage, outcome.error, outcome.weight)
        return outcome

    def finalize_block(self, storage: Storage, extrinsics: Sequence[bytes]) -> Header:
        """End the block with idle and final hooks, events and commit, and return its header."""
        system.note_applied(storage, len(extrinsics))
        number = system.NUMBER.get(storage)
        self._idle(storage, number)
        for pallet in self.pallets.values():
            pallet.on_finalize(storage, number)
        system.finalize(storage)
        parent = system.PARENT_HASH.get(storage)
        digest = tuple(system.DIGEST.get(storage))
        return Header(parent, number, storage.commit(), ordered_root(extrinsics), digest)

    def integrity_test(self) -> None:
        """Run the integrity test of every pallet.

        Raises one `IntegrityError` with all failures.
        """
        refusals = []
        for name, pallet in self.pallets.items():
            try:
                pallet.integrity_test()
            except IntegrityError as error:
                refusals.append(f"{name}: {error}")
        if refusals:
            raise IntegrityError("; ".join(refusals))

    def try_state(self, storage: Storage) -> None:
        """Check the invariants of every pallet's state.

        Raises one `StateError` with all failures.
        """
        complaints = []
        for pallet in self.pallets.values():
            try:
                pallet.try_state(storage)
            except StateError as error:
                complaints.append(str(error))
        if complaints:
            raise StateError("; ".join(complaints))

    def encode_extrinsic(self, extrinsic: Extrinsic) -> bytes:
        """Return the SCALE bytes of an extrinsic.

        An unsigned one is the bare call, any other one is `Utility::dispatch_as(origin, call)`.
        """
        call = encode_call(self.pallets[extrinsic.call.pallet], extrinsic.call)
        if not isinstance(extrinsic.origin, Unsigned):
            call = _DISPATCH_AS + encode_origin(extrinsic.origin) + call
        return system.encode_extrinsic(call)

    def _idle(self, storage: Storage, number: int) -> None:
        """Share the weight that is left among the pallets.

        The first pallet rotates with the block number, so that each pallet gets weight at times.
        """
        remaining = self.weights.max_block - system.BLOCK_WEIGHT.get(storage).total()
        if not remaining.ref_time or not remaining.proof_size:
            return
        pallets = list(self.pallets.values())
        start = number % len(pallets) if pallets else 0
        for pallet in pallets[start:] + pallets[:start]:
            used = pallet.on_idle(storage, number, remaining)
            if used is WEIGHT_ZERO:
                continue
            if used.any_gt(remaining):
                raise DefensiveFailure(f"{pallet.pallet}::on_idle used {used} of {remaining}")
            remaining -= used
            self._use(storage, mandatory=used)

    @staticmethod
    def _use(
        storage: Storage, *, normal: Weight = WEIGHT_ZERO, mandatory: Weight = WEIGHT_ZERO
    ) -> None:
        if normal == WEIGHT_ZERO and mandatory == WEIGHT_ZERO:
            return
        used = system.BLOCK_WEIGHT.get(storage)
        increased = system.ConsumedWeight(
            used.normal + normal, used.operational, used.mandatory + mandatory
        )
        system.BLOCK_WEIGHT.put(storage, increased)
