"""Why a pool does not take an extrinsic, in the codes and words of a Substrate node."""

from typing import Final

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.framework.validity import Invalidity, InvalidTransaction

_WORDS: Final = {
    Invalidity.CALL: "Transaction call is not expected",
    Invalidity.PAYMENT: "Inability to pay some fees (e.g. account balance too low)",
    Invalidity.FUTURE: "Transaction will be valid in the future",
    Invalidity.STALE: "Transaction is outdated",
    Invalidity.BAD_PROOF: "Transaction has a bad signature",
    Invalidity.ANCIENT_BIRTH_BLOCK: "Transaction has an ancient birth block",
    Invalidity.EXHAUSTS_RESOURCES: "Transaction would exhaust the block limits",
    Invalidity.BAD_MANDATORY: "A call was labelled as mandatory, but resulted in an Error.",
    Invalidity.BAD_SIGNER: "Invalid signing address",
    Invalidity.CANNOT_LOOKUP: "CannotLookup",
    Invalidity.NO_UNSIGNED_VALIDATOR: "NoUnsignedValidator",
}


class Refused(PubsubError):
    """An extrinsic that a pool does not take: JSON-RPC code, message and data."""

    def __init__(self, code: int, message: str, data: str | None = None) -> None:
        super().__init__(message if data is None else f"{message}: {data}")
        self.code = code
        self.message = message
        self.data = data


def of_format(detail: str) -> Refused:
    """Bytes that are no extrinsic."""
    return Refused(1001, f"Extrinsic has invalid format: {detail}")


def of_validity(error: InvalidTransaction) -> Refused:
    """One that the runtime does not accept."""
    words = _WORDS[error.why]
    if error.why.unknown:
        return Refused(1011, "Unknown Transaction Validity", f'"{words}"')
    return Refused(1010, "Invalid Transaction", words)


def of_known(name: Hash) -> Refused:
    """One that is in the pool."""
    return Refused(1013, "Transaction Already Imported", f"[{hexed(name)}]")


def of_priority(old: int, new: int) -> Refused:
    """One whose place another holds with the same or a higher priority."""
    why = "The transaction has too low priority to replace another transaction already in the pool."
    return Refused(1014, f"Priority is too low: ({old} vs {new})", why)


def of_limit() -> Refused:
    """One that a full pool has no room for."""
    return Refused(1016, "Immediately Dropped", "The transaction couldn't enter the pool because of the limit")
