"""The checks of signed extrinsics, and their execution.

The first check that fails decides:

    decode ► address ► birth block ► metadata mode ► signature ► signer ► nonce
    ► room in the block ► fee ► call

A refused extrinsic changes nothing. An extrinsic whose call fails is part of the block: it pays,
and the nonce increases. A call that raises anything but a `DispatchError` makes its extrinsic
invalid, as a panic does in Rust.
"""

from dataclasses import dataclass
from typing import Final

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.signatures import verify
from pubsub_emulator.primitives.types import U64_MAX, AccountId, Hash
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.accounts.extrinsic import (
    Extra,
    Implicit,
    SignedExtrinsic,
    UndecodableExtrinsic,
    decode,
    payload,
)
from pubsub_emulator.runtime.accounts.transaction_payment import TransactionFeePaid, fee_of
from pubsub_emulator.runtime.balances import Balances, Fortitude, Preservation
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.calls import CallTable
from pubsub_emulator.runtime.framework.dispatch import DispatchOutcome
from pubsub_emulator.runtime.framework.events import deposit
from pubsub_emulator.runtime.framework.origin import OtherAddress, Signed
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.system import BASE_WEIGHT, AccountInfo
from pubsub_emulator.runtime.framework.validity import (
    Invalidity,
    InvalidTransaction,
    Room,
    ValidTransaction,
)
from pubsub_emulator.trie import TrieError

TRANSACTION_VERSION: Final = 1
_ZERO_ACCOUNT: Final = AccountId(bytes(32))
"""The account that `CheckNonZeroSender` refuses."""


@dataclass(frozen=True, slots=True)
class Signing:
    """The parameters of a chain for checking extrinsics."""

    calls: CallTable
    balances: Balances
    spec_version: int
    transaction_version: int = TRANSACTION_VERSION
    signatures: bool = True
    """Whether signatures are checked.

    A dry run of an unsigned extrinsic does not need it.
    """


@dataclass(frozen=True, slots=True)
class CheckedExtrinsic:
    """An extrinsic that may be part of a block.

    If its nonce is ahead of `account_nonce`, it may only be part of a later block.
    """

    extrinsic: SignedExtrinsic
    who: AccountId
    account_nonce: int
    weight: Weight
    """The weight of the call before it runs."""
    fee: int


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The state that `check` reads besides the bytes of an extrinsic and the room in the block."""

    signing: Signing
    genesis: Hash | None
    birth: Hash | None
    """The hash of the birth block."""
    birth_number: int
    account: AccountInfo


def check(signing: Signing, storage: Storage, raw: bytes, room: Room) -> CheckedExtrinsic:
    """Check whether an extrinsic can be part of the block in `storage`.

    Raises `UndecodableExtrinsic`, `InvalidTransaction`, `MissingLibrary`.
    """
    extrinsic = decode(raw, signing.calls)
    if not isinstance(extrinsic, SignedExtrinsic):
        detail = f"nobody signed it, version {extrinsic.version:#04x}"
        raise InvalidTransaction(Invalidity.NO_UNSIGNED_VALIDATOR, detail)
    who = extrinsic.address
    if isinstance(who, OtherAddress):
        raise InvalidTransaction(
            Invalidity.CANNOT_LOOKUP, "only MultiAddress::Id names an account here"
        )
    _check_signature(signing, storage, extrinsic, who)
    if who == _ZERO_ACCOUNT:
        raise InvalidTransaction(Invalidity.BAD_SIGNER)
    nonce = system.account(storage, who).nonce
    if extrinsic.extra.nonce < nonce:
        raise InvalidTransaction(
            Invalidity.STALE, f"nonce {extrinsic.extra.nonce}, the account's is {nonce}"
        )
    weight = signing.calls.weight(extrinsic.call)
    if not room.fits(BASE_WEIGHT + weight, extrinsic.length):
        raise InvalidTransaction(Invalidity.EXHAUSTS_RESOURCES)
    fee = fee_of(extrinsic.length, weight, extrinsic.extra.tip).total
    if fee > signing.balances.reducible_balance(
        storage, who, Preservation.PRESERVE, Fortitude.POLITE
    ):
        raise InvalidTransaction(Invalidity.PAYMENT, f"the account cannot pay {fee}")
    return CheckedExtrinsic(extrinsic, who, nonce, weight, fee)


def _check_signature(
    signing: Signing, storage: Storage, extrinsic: SignedExtrinsic, who: AccountId
) -> None:
    """Check that the block hashes for the signature are stored, and then the signature itself."""
    now = system.block_number(storage)
    birth_number = extrinsic.extra.era.birth(now)
    birth = system.BLOCK_HASH.get(storage, birth_number)
    genesis = system.BLOCK_HASH.get(storage, 0)
    if birth is None or genesis is None:
        raise InvalidTransaction(
            Invalidity.ANCIENT_BIRTH_BLOCK, f"the hash of block {birth_number} is not kept"
        )
    if extrinsic.extra.mode:
        raise InvalidTransaction(
            Invalidity.CANNOT_LOOKUP, "this runtime was built without its metadata's hash"
        )
    implicit = Implicit(signing.spec_version, signing.transaction_version, genesis, birth)
    message = payload(extrinsic.call.encoded, extrinsic.extra, implicit)
    if signing.signatures and not verify(extrinsic.scheme, extrinsic.signature, message, who):
        raise InvalidTransaction(Invalidity.BAD_PROOF)


def validate(signing: Signing, storage: Storage, raw: bytes, room: Room) -> ValidTransaction:
    """Return the validity of an extrinsic for a pool.

    `storage` has the block in which it would be. Raises as `check`.
    """
    checked = check(signing, storage, raw, room)
    extra = checked.extrinsic.extra
    who = checked.who
    now = system.block_number(storage)
    return ValidTransaction(
        priority=priority(extra),
        requires=(_tag(who, extra.nonce - 1),) if extra.nonce > checked.account_nonce else (),
        provides=(_tag(who, extra.nonce),),
        longevity=U64_MAX if not extra.era.period else extra.era.death(now) - now,
    )


def priority(extra: Extra) -> int:
    """Return the priority of an extrinsic in a pool."""
    return min(extra.tip + 1, U64_MAX)


def _tag(who: AccountId, nonce: int) -> bytes:
    return who + nonce.to_bytes(4, "little")


def apply_signed(
    signing: Signing, storage: Storage, index: int, raw: bytes, room: Room
) -> DispatchOutcome:
    """Run an extrinsic as number `index` of the block that has begun in `storage`.

    Raises `InvalidTransaction` and leaves the storage unchanged if the extrinsic is invalid or does
    not decode. Raises `MissingLibrary`. Emits `Withdraw`, the events of the call, `Deposit` of a
    refund, `TransactionFeePaid`, and `ExtrinsicSuccess` or `ExtrinsicFailed`.
    """
    try:
        checked = check(signing, storage, raw, room)
    except UndecodableExtrinsic as error:
        raise InvalidTransaction(Invalidity.CALL, str(error)) from error
    if checked.extrinsic.extra.nonce > checked.account_nonce:
        raise InvalidTransaction(
            Invalidity.FUTURE, f"the account's nonce is {checked.account_nonce}"
        )
    system.note_extrinsic(storage, index)
    with storage.transaction():
        return _run(signing, storage, checked, room)


def _run(
    signing: Signing, storage: Storage, checked: CheckedExtrinsic, room: Room
) -> DispatchOutcome:
    """Charge the fee, run the call, and refund the fee of the unused weight."""
    extrinsic = checked.extrinsic
    who = checked.who
    system.inc_nonce(storage, who)
    signing.balances.withdraw_fee(storage, who, checked.fee)
    try:
        outcome = signing.calls.dispatch(storage, Signed(who), extrinsic.call)
    except PubsubError as error:
        if error.is_infrastructure or isinstance(error, TrieError):
            # The state cannot be read, so the validity of the extrinsic is unknown.
            raise
        raise InvalidTransaction(Invalidity.CALL, str(error)) from error
    weight = outcome.weight
    fee = fee_of(extrinsic.length, weight, extrinsic.extra.tip).total
    signing.balances.refund_fee(storage, who, checked.fee - fee)
    deposit(storage, TransactionFeePaid(who, fee, extrinsic.extra.tip))
    system.note_outcome(storage, outcome.error, BASE_WEIGHT + weight)
    room.use(storage, BASE_WEIGHT + weight, extrinsic.length)
    return outcome
