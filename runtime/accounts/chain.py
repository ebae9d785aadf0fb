"""A chain that takes extrinsics, relay chain or parachain: what clients are told, what its next block takes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from pubsub_emulator.primitives.header import DigestItem, Header
from pubsub_emulator.primitives.types import AccountId
from pubsub_emulator.runtime.accounts import apply
from pubsub_emulator.runtime.accounts.apply import Signing
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.calls import CallTable
from pubsub_emulator.runtime.framework.definitions import RuntimeDefinition
from pubsub_emulator.runtime.framework.dispatch import DispatchOutcome
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.framework.validity import Room, ValidTransaction


class ChainRuntime(Protocol):
    """The runtime of one chain with the profile `accounts`."""

    @property
    def definition(self) -> RuntimeDefinition:
        """What clients are told."""

    @property
    def calls(self) -> CallTable:
        """All its calls."""

    @property
    def signing(self) -> Signing:
        """What extrinsics are checked by."""

    def room(self, storage: Storage) -> Room:
        """What the block that has begun in `storage` has room for."""


def begin(state: State, header: Header, digest: Sequence[DigestItem] = ()) -> Storage:
    """A block that begins after `header`, whose state is `state`; what happens in it is lost."""
    storage = Storage(state.fork())
    system.initialize(storage, header.number + 1, header.hash(), digest)
    return storage


class NextBlock:
    """The block after `header`, whose state is `state`, for whoever asks what it could take."""

    def __init__(self, runtime: ChainRuntime, state: State, header: Header, *, signatures: bool = True) -> None:
        self._signing = runtime.signing if signatures else replace(runtime.signing, signatures=False)
        self._storage = begin(state, header)
        self._room = runtime.room(self._storage)

    def validate(self, raw: bytes) -> ValidTransaction:
        """What a pool has to know of an extrinsic, length included.

        Raises `UndecodableExtrinsic`, `InvalidTransaction`, `MissingLibrary`.
        """
        return apply.validate(self._signing, self._storage, raw, self._room)

    def nonce(self, who: AccountId) -> int:
        """The nonce of the account's next extrinsic."""
        return system.account(self._storage, who).nonce

    def apply(self, raw: bytes) -> DispatchOutcome:
        """Run an extrinsic as the block's first; what it does stays in this block.

        Raises `UndecodableExtrinsic`, `InvalidTransaction`, `MissingLibrary`.
        """
        apply.check(self._signing, self._storage, raw, self._room)
        return apply.apply_signed(self._signing, self._storage, 0, raw, self._room)

    def end(self) -> State:
        """The state with what happened in this block, its events too; nothing else may be asked of it then."""
        system.finalize(self._storage)
        self._storage.commit()
        return self._storage.state
