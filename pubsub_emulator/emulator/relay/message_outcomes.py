"""The outcomes of upward messages, on chain as events and off chain with all details.

The event `XcmPallet::Attempted` precedes `MessageQueue::Processed` and says which instruction
failed. XCM cannot express the pallet's error that caused a `PublishFailed`. Observers find it in
the block's record (PS-21, PS-71).
"""

from functools import partial
from typing import Annotated, Final, TypeVar

from pubsub_emulator.primitives.scale import Codec, Reader
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.primitives.values import value_type
from pubsub_emulator.runtime.framework.events import deposit, event
from pubsub_emulator.runtime.framework.pallet import Event, Pallet
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.xcm import Execution, Incomplete, Outcome
from pubsub_emulator.xcm.description import describe
from pubsub_emulator.xcm.schema import XcmCodec, XcmReader

T = TypeVar("T")

PALLET: Final = Pallet("XcmPallet", 99, "pallet_xcm", "Messages to parachains.")


def read_xcm(codec: XcmCodec[T], reader: Reader) -> T:
    """Read the next value of an XCM type, with the nesting limits of XCM."""
    inner = XcmReader(reader.data, reader.pos)
    value = codec.read(inner)
    reader.pos = inner.pos
    return value


outcome_codec: Final[Codec[Outcome]] = Codec(
    "Outcome", Outcome.codec.encode, partial(read_xcm, Outcome.codec), describe(Outcome.codec)
)


@event(PALLET, 0)
class Attempted(Event):
    """A message ran and one of its instructions failed.

    The next event is the message queue's event about it.
    """

    outcome: Annotated[Outcome, outcome_codec]


@value_type
class MessageExecution:
    """A message that was executed in a block."""

    para: ParaId
    """The parachain that sent it."""
    id: Hash
    """The BLAKE2-256 hash of the message."""
    execution: Execution
    """The outcome, with the causes of failures."""


def note_execution(storage: Storage, para: ParaId, message: Hash, execution: Execution) -> None:
    """Record the outcome of a message. Emits `Attempted` if it did not complete."""
    storage.log.append(MessageExecution(para, message, execution))
    if isinstance(execution.outcome, Incomplete):
        deposit(storage, Attempted(execution.outcome))


def executions(storage: Storage) -> tuple[MessageExecution, ...]:
    """Return the messages executed in this block so far, in order."""
    return tuple(entry for entry in storage.log if isinstance(entry, MessageExecution))
