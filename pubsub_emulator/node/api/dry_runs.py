"""`DryRunApi`: what a call would do in the next block, with nothing kept.

Result< { Result<PostDispatchInfo, { PostDispatchInfo, DispatchError }>, Vec<event>, Option<message>,
          Vec<(destination, Vec<message>)> }, Error >
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final

from pubsub_emulator.emulator.network.parachain import pack
from pubsub_emulator.node.at import At
from pubsub_emulator.primitives.errors import PubsubError, ScaleError
from pubsub_emulator.primitives.scale import Reader, encode_compact
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.primitives.weights import encode_weight
from pubsub_emulator.runtime.accounts.chain import NextBlock, begin
from pubsub_emulator.runtime.accounts.publisher import Published, sent_upward
from pubsub_emulator.runtime.accounts.utility import origin_caller
from pubsub_emulator.runtime.framework import events, system
from pubsub_emulator.runtime.framework.calls import CallReader
from pubsub_emulator.runtime.framework.dispatch import DispatchOutcome, Other, dispatch_result
from pubsub_emulator.runtime.framework.message_chains import InboundDownwardMessage
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.validity import InvalidTransaction
from pubsub_emulator.runtime.relay.dmp import QUEUES
from pubsub_emulator.xcm import Location, Parachain, Publish
from pubsub_emulator.xcm.location import PARENT
from pubsub_emulator.xcm.message import decode

XCM_VERSION: Final = 5
_VERSION_NOT_KNOWN: Final = b"\x01\x01"  # `Err(VersionedConversionFailed)`


def dry_run_call(at: At, reader: Reader) -> bytes:
    """The answer of `dry_run_call(origin, call, version)`; `reader` is at its arguments. Raises `ScaleError`."""
    runtime = at.runtime
    arguments = CallReader(reader.data, runtime.calls, reader.pos)
    origin, call = origin_caller.read(arguments), runtime.calls.read(arguments)
    version = arguments.uint(4)
    reader.pos = arguments.pos
    if version != XCM_VERSION:
        return _VERSION_NOT_KNOWN
    storage = begin(at.state, at.header)
    system.note_extrinsic(storage, 0)
    before = dict(QUEUES.items(storage))
    try:
        with storage.transaction():
            outcome = runtime.calls.dispatch(storage, origin, call)
    except PubsubError:  # in a block, it would make its extrinsic invalid
        outcome = DispatchOutcome(runtime.calls.weight(call), Other())
    emitted = [event.encode() for event in events.events(storage)]
    forwarded = [*_downward(storage, before), *_upward(storage)]
    return b"\x00" + _encode_outcome(outcome) + _vec(emitted) + b"\x00" + _vec(forwarded)


def dry_run(at: At, extrinsic: bytes) -> bytes:
    """`ApplyExtrinsicResult` of an extrinsic, length first, in the next block. Raises `UndecodableExtrinsic`."""
    try:
        outcome = NextBlock(at.runtime, at.state, at.header).apply(extrinsic)
    except InvalidTransaction as error:
        return b"\x01" + error.encode()
    return b"\x00" + dispatch_result.encode(outcome.error)


def _encode_outcome(outcome: DispatchOutcome) -> bytes:
    info = b"\x01" + encode_weight(outcome.weight) + b"\x00"
    return b"\x00" + info if outcome.error is None else b"\x01" + info + outcome.error.encode()


def _vec(items: list[bytes]) -> bytes:
    return encode_compact(len(items)) + b"".join(items)


def _destination(location: Location, messages: list[bytes]) -> bytes:
    return bytes((XCM_VERSION,)) + Location.codec.encode(location) + _vec(messages)


def _downward(storage: Storage, before: Mapping[ParaId, list[InboundDownwardMessage]]) -> Iterator[bytes]:
    for para, queue in QUEUES.items(storage):
        new = [message.msg for message in queue[len(before.get(para, ())) :]]
        if new:
            yield _destination(Location(0, (Parachain(para),)), new)


def _upward(storage: Storage) -> list[bytes]:
    """The messages that would be sent to the relay chain; one that is no XCM has no place in the answer."""
    messages: list[bytes] = []
    for published, sent in groupby(sent_upward(storage), lambda entry: isinstance(entry, Published)):
        if published:
            messages += pack(Publish(each.key, each.value, each.ttl) for each in sent if isinstance(each, Published))
        else:
            messages += (each.message for each in sent if not isinstance(each, Published) and _is_xcm(each.message))
    return [_destination(PARENT, messages)] if messages else []


def _is_xcm(message: bytes) -> bool:
    try:
        decode(message)
    except ScaleError:
        return False
    return True
