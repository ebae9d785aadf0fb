"""Chains that accept signed extrinsics, relay chain or parachain.

`ChainRuntime` is the runtime of such a chain, and `NextBlock` tries out extrinsics on top of a
block.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from pubsub_emulator.primitives.header import DigestItem, Header
from pubsub_emulator.primitives.types import AccountId, Hash
from pubsub_emulator.runtime.accounts import apply
from pubsub_emulator.runtime.accounts.apply import CheckedExtrinsic, Circumstances, Signing
from pubsub_emulator.runtime.accounts.extrinsic import Era
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.calls import CallTable
from pubsub_emulator.runtime.framework.definitions import RuntimeDefinition
from pubsub_emulator.runtime.framework.dispatch import DispatchOutcome
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.framework.system import AccountInfo
from pubsub_emulator.runtime.framework.validity import Room, ValidTransaction


class ChainRuntime(Protocol):
    """The runtime of one chain with the profile `accounts`."""

    @property
    def definition(self) -> RuntimeDefinition:
        """Return the definition from which metadata is made."""

    @property
    def calls(self) -> CallTable:
        """Return all calls of the chain."""

    @property
    def signing(self) -> Signing:
        """Return the parameters for checking extrinsics."""

    def room(self, storage: Storage) -> Room:
        """Return the room that is left in the block begun in `storage`."""


def begin(state: State, header: Header, digest: Sequence[DigestItem] = ()) -> Storage:
    """Begin a block after `header`, whose state is `state`, and return its storage.

    The state itself is never changed.
    """
    storage = Storage(state.fork())
    system.initialize(storage, header.number + 1, header.hash(), digest)
    return storage


class NextBlock:
    """The next block after `header`, whose state is `state`, for trying out extrinsics."""

    def __init__(
        self, runtime: ChainRuntime, state: State, header: Header, *, signatures: bool = True
    ) -> None:
        self._signing = (
            runtime.signing if signatures else replace(runtime.signing, signatures=False)
        )
        self._storage = begin(state, header)
        self._room = runtime.room(self._storage)
        self._accounts: dict[AccountId, AccountInfo] = {}
        self._hashes: dict[int, Hash | None] = {}

    def check(self, raw: bytes) -> CheckedExtrinsic:
        """Check a length-prefixed extrinsic, whose nonce may be ahead of the account's.

        Raises as `apply.check`.
        """
        return apply.check(self._signing, self._storage, raw, self._room)

    def circumstances(self, who: AccountId, era: Era) -> Circumstances:
        """Return the state that `check` reads for an extrinsic of this account and era.

        If it is equal for two blocks, so is the result of the check.
        """
        birth = era.birth(system.block_number(self._storage))
        return Circumstances(
            self._signing, self._hash(0), self._hash(birth), birth, self._account(who)
        )

    def validate(self, raw: bytes) -> ValidTransaction:
        """Return the validity of a length-prefixed extrinsic for a pool.

        Raises as `check`.
        """
        return apply.validate(self._signing, self._storage, raw, self._room)

    def nonce(self, who: AccountId) -> int:
        """Return the nonce of the account's next extrinsic."""
        return self._account(who).nonce

    def apply(self, raw: bytes) -> DispatchOutcome:
        """Run an extrinsic as the first of this block, which is not part of the chain.

        Raises as `check`.
        """
        apply.check(self._signing, self._storage, raw, self._room)
        self._accounts.clear()
        return apply.apply_signed(self._signing, self._storage, 0, raw, self._room)

    def end(self) -> State:
        """End the block and return its state, events included.

        The object must not be used afterwards.
        """
        system.finalize(self._storage)
        self._storage.commit()
        return self._storage.state

    def _account(self, who: AccountId) -> AccountInfo:
        if who not in self._accounts:
            self._accounts[who] = system.account(self._storage, who)
        return self._accounts[who]

    def _hash(self, number: int) -> Hash | None:
        if number not in self._hashes:
            self._hashes[number] = system.BLOCK_HASH.get(self._storage, number)
        return self._hashes[number]
