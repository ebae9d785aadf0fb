"""The part of `XcmPallet` that sends messages to parachains.

It is here because it needs both XCM and the downward queue.
"""

from collections.abc import Callable
from typing import Annotated, Final

from pubsub_emulator.emulator.relay.message_outcomes import PALLET, read_xcm
from pubsub_emulator.primitives import type_info
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Codec, Reader
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.dispatch import DispatchError, ModuleError, dispatchable
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.origin import Origin, Signed, ensure_signed_or_root
from pubsub_emulator.runtime.framework.pallet import PalletError, pallet_errors
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.xcm import Parachain, Xcm
from pubsub_emulator.xcm.instructions import XCM, DescendOrigin
from pubsub_emulator.xcm.location import AccountId32, Location
from pubsub_emulator.xcm.message import encode
from pubsub_emulator.xcm.schema import XcmCodec

VERSION: Final = 5
"""The only version of XCM that is supported."""
_WEIGHT: Final = Weight(150_000_000, 3_610)

Send = Callable[[Storage, ParaId, bytes], None]
"""Queues a downward message. Raises `DispatchError` if the queue does not accept it."""


@pallet_errors(PALLET)
class Error(PalletError):
    """The errors of `pallet_xcm` that occur here."""

    Unreachable = 0, "The destination is no single parachain."
    SendFailure = 1, "The queue of the parachain did not take the message."


def _versioned(name: str, codec: XcmCodec[Xcm] | XcmCodec[Location]) -> Codec[object]:
    """Return a codec for a versioned XCM type: a byte for the version, then the value.

    The version must be 5. Reading any other one raises `ScaleError`.
    """

    def encode_versioned(value: object) -> bytes:
        return bytes((VERSION,)) + codec.encode(value)  # type: ignore[arg-type]  # the codec checks what it is given

    def read(reader: Reader) -> object:
        start = reader.pos
        version = reader.u8()
        if version != VERSION:
            raise ScaleError(f"{name}::V{version} at offset {start} is not supported, only V5")
        return read_xcm(codec, reader)  # type: ignore[misc]  # of either type

    return Codec(name, encode_versioned, read, type_info.Named(name))


versioned_location: Final = _versioned("VersionedLocation", Location.codec)
versioned_xcm: Final = _versioned("VersionedXcm", XCM)
Destination = Annotated[Location, versioned_location]
Message = Annotated[Xcm, versioned_xcm]


class XcmPallet(Hooks):
    """The pallet `pallet_xcm`. `send_downward` queues messages to parachains."""

    pallet = PALLET

    def __init__(self, send_downward: Send) -> None:
        self._send_downward = send_downward

    @dispatchable(0, weight=_WEIGHT)
    def send(
        self, storage: Storage, origin: Origin, dest: Destination, message: Message, /
    ) -> None:
        """Send a message to a parachain: root's as it is, an account's behind `DescendOrigin`.

        Errors: `BadOrigin`; `Unreachable` for any other destination, `SendFailure` when its queue
        does not take it.
        """
        ensure_signed_or_root(origin)
        if dest.parents or len(dest.interior) != 1 or not isinstance(dest.interior[0], Parachain):
            raise ModuleError(Error.Unreachable)
        if isinstance(origin, Signed):
            message = (DescendOrigin((AccountId32(None, origin.account),)), *message)
        try:
            self._send_downward(storage, ParaId(dest.interior[0].inner), encode(message))
        except (DispatchError, ScaleError):
            raise ModuleError(Error.SendFailure) from None
