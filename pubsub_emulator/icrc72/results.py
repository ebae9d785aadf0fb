"""Results of batches: Ok, and the errors that the standards name."""

from typing import Literal, TypeVar

from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72.ic.candid.types import Variant
from pubsub_emulator.icrc72.messages import Err, Error, GenericError, NoDetail, Ok, Results, Told

T = TypeVar("T")


def ok(value: T) -> Ok[T]:
    """A result that is Ok."""
    return Variant("Ok", value)


def err(tag: NoDetail) -> Err:
    """A result that is an error without any detail."""
    return Variant("Err", Variant(tag, None))


def refused(tag: Told, words: str) -> Err:
    """A result that is an error with words."""
    return Variant("Err", Variant(tag, words))


def forbidden(tag: Literal["UnauthorizedPublisher", "UnauthorizedSubscriber"], namespace: str) -> Err:
    """A result for somebody who may not publish in a namespace, or subscribe to it."""
    return Variant("Err", Variant(tag, (namespace,)))


def generic(code: int) -> Err:
    """A result with a code of `keys.CODES`."""
    tag: Literal["GenericError"] = "GenericError"
    return Variant("Err", Variant(tag, GenericError(code, keys.CODES[code])))


def too_many(most: int) -> Err:
    """The last result of a batch of more than `most` items (IC-30)."""
    return refused("GenericBatchError", f"at most {most} items are answered")


def is_ok(results: Results[T] | None) -> bool:
    """True when the first item of a batch was Ok."""
    return results is not None and len(results) > 0 and results[0] is not None and results[0].tag == "Ok"


def words_of(error: Error) -> str:
    """An error as one line."""
    match error:
        case ("GenericError", (code, message)):
            return f"{message} (code {code})"
        case ("UnauthorizedPublisher" | "UnauthorizedSubscriber" as tag, (namespace,)):
            return f"{tag}: {namespace}"
        case _:
            return error.tag if error.value is None else f"{error.tag}: {error.value}"
