"""Exceptions of the emulated Internet Computer.

Rejects that canisters receive are values, not exceptions: see `canister.Answer`.
"""

from typing import Final

from pubsub_emulator.primitives.errors import PubsubError

_BITS: Final = 512
"""Numbers up to this size are shown with all digits."""


class IcError(PubsubError):
    """Base class of the exceptions of this package."""


class PrincipalError(IcError):
    """A text or bytes are not a principal (IC-2)."""


class CandidError(IcError):
    """Bytes are not Candid of the expected type, or a value does not have its type (IC-11)."""


class DidError(IcError):
    """A text is not a Candid interface description (`.did` file), or a type has no definition."""


class Trap(IcError):
    """A canister aborts an execution, and the network undoes everything that it did (IC-4)."""


class ModuleError(IcError):
    """Bytes are not a module that a canister can run."""


class NotAdmitted(IcError):
    """A canister or its subnet does not admit a message from a user (IC-10)."""


def shown(number: int) -> str:
    """Return a number from a message as text for an error.

    Numbers in Candid have any size, and `str` raises `ValueError` above 4,300 digits. Numbers of
    more than 512 bits are therefore described by their size.
    """
    return (
        str(number) if number.bit_length() <= _BITS else f"a number of {number.bit_length():,} bits"
    )
