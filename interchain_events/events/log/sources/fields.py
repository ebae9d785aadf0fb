"""The kind and the fields of an emulated event, in the form that clients decode from metadata.

So a log written by the emulator equals one that is read from a node (EV-4). The underscore at the
end of names that Python reserves (`from_`, `class_`) is removed. Integers that stand for a variant
are written as that variant.
"""

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum, IntEnum
from functools import lru_cache
from typing import Any, Final, cast

from interchain_events.events.errors import SourceError
from interchain_events.events.values import Value, canonical
from pubsub_emulator.emulator.runtimes import every_runtime
from pubsub_emulator.runtime.balances.types import HoldReason
from pubsub_emulator.runtime.framework.dispatch import DispatchError, ModuleError
from pubsub_emulator.runtime.framework.pallet import Event
from pubsub_emulator.runtime.framework.system import DispatchEventInfo
from pubsub_emulator.runtime.pallet_subscriber.meter import DisableReason
from pubsub_emulator.runtime.relay.message_queue.types import MessageError
from pubsub_emulator.xcm.outcome import Complete, Incomplete, InstructionError, XcmError
from pubsub_emulator.xcm.outcome import Error as XcmFailure

_CLASSES: Final = ("Normal", "Operational", "Mandatory")
_PAYS: Final = ("Yes", "No")


def kind_of(event: Event) -> str:
    """Return the kind of an event, `Pallet.Variant`."""
    return f"{event.PALLET}.{type(event).__name__}"


def fields_of(event: Event) -> dict[str, Value]:
    """Return the fields of an event by name. Raises `SourceError` for a type without a form."""
    return {
        name: make(getattr(event, attribute))
        for name, attribute, make in _makers(cast("Any", type(event)))
    }


@lru_cache(maxsize=1_024)
def _makers(kind: type[Event]) -> tuple[tuple[str, str, Callable[[Any], Value]], ...]:
    """Return the name, the attribute and the conversion of each field of a class of events."""
    return tuple(
        (name.rstrip("_"), name, _BY_CODEC.get(codec.name, value_of)) for name, codec in kind.CODECS
    )


def value_of(value: object) -> Value:
    """Return the value of a field in its JSON form. Raises `SourceError` if its type has none."""
    match value:
        case DispatchError():
            return _dispatch_error(value)
        case DispatchEventInfo(weight, class_, pays):
            return {"weight": value_of(weight), "class": _CLASSES[class_], "pays_fee": _PAYS[pays]}
        case HoldReason(index, variant):
            pallet = every_runtime().pallets.get(index)
            names = () if pallet is None else pallet.hold_reasons
            return {str(pallet or index): names[variant] if variant < len(names) else str(variant)}
        case MessageError(kind, required):
            return kind.name if required is None else {kind.name: value_of(required)}
        case DisableReason():
            return value.value
        case Complete(used):
            return {"Complete": {"used": value_of(used)}}
        case Incomplete(used, error):
            return {"Incomplete": {"used": value_of(used), "error": value_of(error)}}
        case XcmFailure(inner):
            return {"Error": value_of(inner)}
        case InstructionError(index, error):
            return {"index": index, "error": value_of(error)}
        case XcmError(kind, detail):
            return kind.name if detail is None else {kind.name: value_of(detail)}
        case Enum():
            return value.name
        case _ if is_dataclass(value):
            return {
                field.name.rstrip("_"): value_of(getattr(value, field.name))
                for field in fields(value)
            }
        case list() | tuple():
            return [value_of(item) for item in value]
        case None | bool() | int() | str() | bytes():
            return canonical(value)
        case _:
            raise SourceError(f"an event field cannot be a {type(value).__name__}")


_BY_CODEC: Final[dict[str, Callable[[Any], Value]]] = {
    "AggregateMessageOrigin": lambda para: {"Ump": {"Para": int(para)}},
    "DispatchResult": lambda error: (
        {"Ok": None} if error is None else {"Err": _dispatch_error(error)}
    ),
}
"""Conversions by codec, for codecs whose Python values lack a part of the SCALE type."""


def _dispatch_error(error: DispatchError) -> Value:
    """Return the value of a dispatch error in the form that clients decode from metadata."""
    if isinstance(error, ModuleError):
        return {
            "Module": {
                "index": error.pallet.index,
                "error": "0x" + int(error.error).to_bytes(4, "little").hex(),
            }
        }
    reason = getattr(error, "reason", None)
    name = type(error).__name__
    return {name: reason.name} if isinstance(reason, IntEnum) else name
