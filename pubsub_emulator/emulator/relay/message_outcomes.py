"""Outcomes of upward messages: an event on chain for each that did not run to its end, all details off chain.

`XcmPallet::Attempted`, before `MessageQueue::Processed`, says which instruction failed. The pallet's error behind a
`PublishFailed` has no place in XCM's encoding; observers find it in the block's record (PS-21, PS-71).
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
    """The next value of a type of XCM, which may nest as deep as one of its own reader."""
    inner = XcmReader(reader.data, reader.pos)
    value = codec.read(inner)
    reader.pos = inner.pos
    return value


outcome_codec: Final[Codec[Outcome]] = Codec(
    "Outcome", Outcome.codec.encode, partial(read_xcm, Outcome.codec), describe(Outcome.codec)
)


@event(PALLET, 0)
class Attempted(Event):
    """A message ran and an instruction of it failed; the message queue's event about it comes next."""

    outcome: Annotated[Outcome, outcome_codec]


@value_type
class MessageExecution:
    """A message that ran in this block: its sender, its blake2b-256, and its outcome with the causes of failures."""

    para: ParaId
    id: Hash
    execution: Execution


def note_execution(storage: Storage, para: ParaId, message: Hash, execution: Execution) -> None:
    """Record the outcome of a message. Emits `Attempted` if it did not run to its end."""
    storage.log.append(MessageExecution(para, message, execution))
    if isinstance(execution.outcome, Incomplete):
        deposit(storage, Attempted(execution.outcome))


def executions(storage: Storage) -> tuple[MessageExecution, ...]:
    """The messages that ran in this block so far, in order."""
    return tuple(entry for entry in storage.log if isinstance(entry, MessageExecution))
