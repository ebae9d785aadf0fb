"""All calls of a runtime: how they are decoded, weighed and run.

A call that contains calls (`Utility::batch`, `Sudo::sudo`) declares these arguments as
`runtime_call`. Only a `CallReader` can read them: it has the runtime's table of calls and counts
the nesting of calls.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Final

from pubsub_emulator.primitives.errors import DefensiveFailure, ScaleError
from pubsub_emulator.primitives.scale import Codec, Reader
from pubsub_emulator.primitives.type_info import Named
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.dispatch import (
    Call,
    CallInfo,
    DispatchOutcome,
    call_info,
    calls_of,
    dispatch,
)
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.origin import Origin
from pubsub_emulator.runtime.framework.storage import Storage

MAX_CALL_DEPTH: Final = 32
"""The maximum nesting of calls below the outermost one."""


@dataclass(frozen=True, slots=True)
class EncodedCall(Call):
    """A call with its SCALE bytes."""

    encoded: bytes = b""


class CallReader(Reader):
    """A `Reader` that knows the calls of a runtime."""

    def __init__(self, data: bytes, calls: "CallTable", pos: int = 0) -> None:
        super().__init__(data, pos)
        self.calls = calls
        self.depth = 0


def _encode_call(call: Call) -> bytes:
    if not isinstance(call, EncodedCall):
        raise ScaleError(f"{call.pallet}::{call.name} was not encoded for a runtime")
    return call.encoded


def _read_call(reader: Reader) -> Call:
    if not isinstance(reader, CallReader):
        raise DefensiveFailure("a call inside a call was read without a CallReader")
    if reader.depth >= MAX_CALL_DEPTH:
        raise ScaleError(f"calls nest deeper than {MAX_CALL_DEPTH} at offset {reader.pos}")
    reader.depth += 1
    call = reader.calls.read(reader)
    reader.depth -= 1
    return call


runtime_call: Final[Codec[Call]] = Codec(
    "RuntimeCall", _encode_call, _read_call, Named("RuntimeCall")
)
RuntimeCall = Annotated[Call, runtime_call]
"""A call as an argument of a call."""


def encode_call(pallet: Hooks, call: Call) -> bytes:
    """Return the SCALE bytes of a call: pallet index, call index, arguments."""
    info = call_info(pallet, call.name)
    if len(info.codecs) != len(call.args):
        raise DefensiveFailure(
            f"{call.pallet}::{call.name} takes {len(info.codecs)} arguments, not {len(call.args)}"
        )
    args = b"".join(codec.encode(arg) for codec, arg in zip(info.codecs, call.args, strict=True))
    return bytes((pallet.pallet.index, info.index)) + args


class CallTable:
    """The calls of a runtime, by the indices of pallet and call."""

    def __init__(self, pallets: Iterable[Hooks]) -> None:
        """Collect the calls of `pallets`, the objects that run them."""
        self._by_index: dict[tuple[int, int], tuple[Hooks, CallInfo]] = {}
        self._pallets: dict[str, Hooks] = {}
        for pallet in pallets:
            self._pallets[pallet.pallet.name] = pallet
            for info in calls_of(type(pallet)):
                self._by_index[pallet.pallet.index, info.index] = (pallet, info)

    def read(self, reader: CallReader) -> EncodedCall:
        """Return the next call.

        Raises `ScaleError`.
        """
        start = reader.pos
        pallet = reader.u8()
        index = reader.u8()
        entry = self._by_index.get((pallet, index))
        if entry is None:
            raise ScaleError(f"no call {pallet}.{index} at offset {start}")
        owner, info = entry
        args = tuple([codec.read(reader) for codec in info.codecs])
        return EncodedCall(owner.pallet.name, info.name, args, reader.data[start : reader.pos])

    def decode(self, data: bytes) -> EncodedCall:
        """Return the call that all of `data` encodes.

        Raises `ScaleError`.
        """
        reader = CallReader(data, self)
        call = self.read(reader)
        reader.end()
        return call

    def encode(self, pallet: str, name: str, *args: object) -> EncodedCall:
        """Make a call with its bytes.

        Raises `ScaleError` for an unknown call or arguments that do not fit its types.
        """
        owner = self._pallets.get(pallet)
        if owner is None or not hasattr(getattr(type(owner), name, None), "call_info"):
            raise ScaleError(f"this chain has no call {pallet}::{name}")
        return EncodedCall(pallet, name, args, encode_call(owner, Call(pallet, name, args)))

    def weight(self, call: Call) -> Weight:
        """Return the weight that a call is charged before it runs."""
        pallet = self._pallets[call.pallet]
        info: CallInfo = getattr(type(pallet), call.name).call_info
        return info.weight(pallet, *call.args)

    def dispatch(self, storage: Storage, origin: Origin, call: Call) -> DispatchOutcome:
        """Run a call.

        A `DispatchError` becomes part of the outcome, after the call's writes are rolled back.
        Other exceptions pass through.
        """
        return dispatch(self._pallets[call.pallet], storage, origin, call)
