"""What may go wrong on the emulated Internet Computer, apart from the rejects that its canisters see."""

from pubsub_emulator.primitives.errors import PubsubError


class IcError(PubsubError):
    """Root of the failures of this room."""


class PrincipalError(IcError):
    """Text or bytes that are no principal (IC-2)."""


class CandidError(IcError):
    """Bytes that are not Candid of the expected type, or a value that has no encoding under its type (IC-11)."""


class DidError(IcError):
    """Text that is not a Candid interface description."""


class Trap(IcError):
    """A canister gives up this execution: all that it did is dropped (IC-4)."""
