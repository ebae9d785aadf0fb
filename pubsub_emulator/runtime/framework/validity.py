"""Reasons why an extrinsic cannot be part of a block.

`TransactionValidityError` is two bytes:

00 Invalid  00 Call  01 Payment  02 Future  03 Stale  04 BadProof  05 AncientBirthBlock
            06 ExhaustsResources  08 BadMandatory  0a BadSigner
01 Unknown  00 CannotLookup  01 NoUnsignedValidator
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.scale import Codec
from pubsub_emulator.primitives.structs import struct
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.storage import Storage

VALIDITY: Final = "sp_runtime::transaction_validity"
"""The Rust module of these types."""


class Invalidity(Enum):
    """A `TransactionValidityError` by its bytes."""

    CALL = b"\x00\x00"
    PAYMENT = b"\x00\x01"
    FUTURE = b"\x00\x02"
    STALE = b"\x00\x03"
    BAD_PROOF = b"\x00\x04"
    ANCIENT_BIRTH_BLOCK = b"\x00\x05"
    EXHAUSTS_RESOURCES = b"\x00\x06"
    BAD_MANDATORY = b"\x00\x08"
    BAD_SIGNER = b"\x00\x0a"
    CANNOT_LOOKUP = b"\x01\x00"
    NO_UNSIGNED_VALIDATOR = b"\x01\x01"

    @property
    def unknown(self) -> bool:
        """Return whether it is an `UnknownTransaction`.

        This means that this chain cannot decide whether the extrinsic is valid.
        """
        return self.value[0] == 1


class InvalidTransaction(PubsubError):
    """The extrinsic cannot be part of a block now; `why` is the check that it fails."""

    def __init__(self, why: Invalidity, detail: str = "") -> None:
        name = "".join(word.capitalize() for word in why.name.split("_"))
        super().__init__(f"{name}: {detail}" if detail else name)
        self.why = why

    def encode(self) -> bytes:
        """Return the SCALE bytes of the `TransactionValidityError`."""
        return self.why.value


@dataclass(frozen=True, slots=True)
class ValidTransaction:
    """The validity of an extrinsic for a pool.

    It has the tags that the extrinsic provides and requires, and how long it stays valid.
    """

    priority: int
    requires: tuple[bytes, ...]
    provides: tuple[bytes, ...]
    longevity: int
    propagate: bool = True

    def encode(self) -> bytes:
        """Return the SCALE bytes."""
        return valid_transaction.encode(self)


_tags: Final[Codec[tuple[bytes, ...]]] = scale.vec(scale.bytes_).map("Vec<Vec<u8>>", tuple, list)
valid_transaction: Final[Codec[ValidTransaction]] = struct(
    ValidTransaction,
    scale.u64,
    _tags,
    _tags,
    scale.u64,
    scale.boolean,
    rust=f"{VALIDITY}::ValidTransaction",
)


class Room(Protocol):
    """The room that is left in a block."""

    def fits(self, weight: Weight, length: int) -> bool:
        """Return whether an extrinsic of this weight and this many bytes fits."""

    def use(self, storage: Storage, weight: Weight, length: int) -> None:
        """Count the weight and the bytes that an extrinsic used."""
