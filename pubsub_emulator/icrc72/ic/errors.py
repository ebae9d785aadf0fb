"""Errors of the emulated Internet Computer, apart from the rejects that its canisters see."""

from typing import Final

from pubsub_emulator.primitives.errors import PubsubError

_BITS: Final = 512


class IcError(PubsubError):
    """Root of the failures of this room."""


class PrincipalError(IcError):
    """Text or bytes are not a principal (IC-2)."""


class CandidError(IcError):
    """Bytes are not Candid of the expected type, or a value cannot be encoded as its type (IC-11)."""


class DidError(IcError):
    """Text is not a Candid interface description."""


class Trap(IcError):
    """A canister gives up this execution: all that it did is dropped (IC-4)."""


class NotAdmitted(IcError):
    """A canister, or its subnet, takes no such message of users (IC-10)."""


def shown(number: int) -> str:
    """A number of strangers in words: Candid's have no bound, and Python writes none of over 4,300 digits."""
    return str(number) if number.bit_length() <= _BITS else f"a number of {number.bit_length():,} bits"
