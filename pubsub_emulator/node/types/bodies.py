"""Extrinsics, calls and events as JSON."""

from typing import Any

from pubsub_emulator.emulator.runtimes import every_runtime
from pubsub_emulator.node.at import At
from pubsub_emulator.node.types import values
from pubsub_emulator.node.types.rows import names_of
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.ss58 import encode_address
from pubsub_emulator.primitives.type_info import Variant, Variants
from pubsub_emulator.runtime.accounts.extrinsic import BareExtrinsic, SignedExtrinsic, decode
from pubsub_emulator.runtime.framework.events import (
    ApplyExtrinsic,
    EventRecord,
    Finalization,
    Initialization,
    Phase,
)
from pubsub_emulator.runtime.framework.origin import OtherAddress
from pubsub_emulator.runtime.framework.storage import Storage


def _variant(info: Variants, index: int) -> Variant:
    """Return a variant of an enum by its index. Raises `ScaleError`."""
    variant = next((variant for variant in info.variants if variant.index == index), None)
    if variant is None:
        raise ScaleError(f"{'::'.join(info.path)} has no variant {index}")
    return variant


def _outer(at: At, name: str, data: bytes) -> dict[str, Any]:
    """Decode a `RuntimeCall` or `RuntimeEvent`.

    `data` has the index of the pallet, the index of the call or event, and its fields. The result
    contains the fields in order (`args`) and also by name (`argObj`). Raises `ScaleError`.
    """
    names = names_of(at)
    outer = names[name]
    reader = Reader(data)
    if not isinstance(outer, Variants):
        raise ScaleError(f"{name} is not an enum")
    pallet = _variant(outer, reader.u8())
    inner = pallet.fields[0].info
    if not isinstance(inner, Variants):
        raise ScaleError(f"{pallet.name} is not an enum")
    variant = _variant(inner, reader.u8())
    args = {
        values.camel(field.name or str(index)): values.read(field.info, reader, names)
        for index, field in enumerate(variant.fields)
    }
    reader.end()
    return {
        "section": values.camel(pallet.name),
        "method": variant.name,
        "args": list(args.values()),
        "argObj": args,
    }


def _phase(phase: Phase) -> object:
    """Return the phase of an event in the form in which clients show this enum."""
    match phase:
        case ApplyExtrinsic(index):
            return {"ApplyExtrinsic": index}
        case Finalization():
            return "Finalization"
        case Initialization():
            return "Initialization"


def decode_events(at: At) -> list[dict[str, object]]:
    """Return the events of a block in order. Raises `ScaleError`."""
    return [event_json(at, record) for record in every_runtime().stored_events(Storage(at.state))]


def event_json(at: At, record: EventRecord) -> dict[str, object]:
    """Return one event with its phase, pallet, name and fields. Raises `ScaleError`."""
    return {"phase": _phase(record.phase), **_outer(at, "RuntimeEvent", record.event.encode())}


def decode_call(at: At, data: bytes) -> dict[str, object]:
    """Return an encoded call with its pallet, its name in camel case, and its arguments.

    Raises `ScaleError`.
    """
    call = _outer(at, "RuntimeCall", data)
    return {**call, "method": values.camel(call["method"])}


def decode_extrinsic(at: At, raw: bytes) -> dict[str, object]:
    """Return the call of an extrinsic and its signer, which is `None` for a bare extrinsic.

    Raises `UndecodableExtrinsic` or `ScaleError`.
    """
    extrinsic = decode(raw, at.runtime.calls)
    match extrinsic:
        case BareExtrinsic():
            return {**decode_call(at, extrinsic.body), "signer": None}
        case SignedExtrinsic():
            address = extrinsic.address
            who = None if isinstance(address, OtherAddress) else encode_address(address)
            return {**decode_call(at, extrinsic.call.encoded), "signer": who}
