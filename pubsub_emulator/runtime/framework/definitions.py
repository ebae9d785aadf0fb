"""Definitions of pallets for metadata: their storage items, calls, events, errors and constants.

Nothing is declared twice. A `PalletDefinition` points at the storage items and at the class whose methods are the
calls. Events and errors are those that the pallet registered. Names, codecs and docs are read from these.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from pubsub_emulator.primitives import scale, type_info
from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.scale import Codec
from pubsub_emulator.primitives.type_info import TypeInfo
from pubsub_emulator.runtime.framework.dispatch import CallInfo, errors_of
from pubsub_emulator.runtime.framework.events import Event, events_of
from pubsub_emulator.runtime.framework.items import StorageDoubleMap, StorageMap, StorageValue
from pubsub_emulator.runtime.framework.pallet_indices import PALLET_INDEX

AnyItem = StorageValue[Any, Any] | StorageMap[Any, Any, Any] | StorageDoubleMap[Any, Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Constant:
    """A constant of a pallet: its SCALE value and its meaning."""

    name: str
    info: TypeInfo
    value: bytes
    docs: str = ""


@dataclass(frozen=True, slots=True)
class Item:
    """A storage item and its meaning; `info` describes the value if the codec does not."""

    item: AnyItem
    docs: str = ""
    info: TypeInfo | None = None


@dataclass(frozen=True, slots=True)
class PalletDefinition:
    """One pallet as clients see it; `crate` is the Rust module in the paths of its types."""

    name: str
    crate: str
    storage: tuple[Item, ...] = ()
    calls: type[Any] | None = None
    constants: tuple[Constant, ...] = ()
    hidden_calls: tuple[str, ...] = ()
    """Calls of the class that this chain does not offer."""
    docs: str = ""

    @property
    def index(self) -> int:
        """The pallet's index in the runtime."""
        return PALLET_INDEX[self.name]

    @property
    def events(self) -> tuple[type[Event], ...]:
        """The events that the pallet declares, ascending by variant."""
        return events_of(self.name)

    @property
    def errors(self) -> type[IntEnum] | None:
        """The errors that the pallet declares."""
        return errors_of(self.name)

    def call_infos(self) -> tuple[CallInfo, ...]:
        """The calls, ascending by index."""
        if self.calls is None:
            return ()
        found = (getattr(getattr(self.calls, name), "call_info", None) for name in dir(self.calls))
        infos = [info for info in found if isinstance(info, CallInfo) and info.name not in self.hidden_calls]
        return tuple(sorted(infos, key=lambda info: info.index))


@dataclass(frozen=True, slots=True)
class ApiMethod:
    """A method of a runtime API: its arguments by name, and its result."""

    name: str
    inputs: tuple[tuple[str, TypeInfo], ...]
    output: TypeInfo
    docs: str = ""


@dataclass(frozen=True, slots=True)
class Api:
    """A runtime API."""

    name: str
    version: int
    methods: tuple[ApiMethod, ...]
    docs: str = ""


@dataclass(frozen=True, slots=True)
class RuntimeVersion:
    """`sp_version::RuntimeVersion`; `apis` are (blake2b-64 of the name, version)."""

    spec_name: str
    spec_version: int
    apis: tuple[tuple[bytes, int], ...]
    impl_name: str = "pubsub-emulator"
    authoring_version: int = 0
    impl_version: int = 0
    transaction_version: int = 1
    system_version: int = 1

    def encode(self) -> bytes:
        """SCALE bytes, as `Core_version` answers."""
        return b"".join(
            (
                scale.encode_bytes(self.spec_name.encode()),
                scale.encode_bytes(self.impl_name.encode()),
                scale.u32.encode(self.authoring_version),
                scale.u32.encode(self.spec_version),
                scale.u32.encode(self.impl_version),
                scale.encode_compact(len(self.apis)),
                *(name + scale.u32.encode(version) for name, version in self.apis),
                scale.u32.encode(self.transaction_version),
                bytes((self.system_version,)),
            )
        )


_APIS: Final = type_info.SequenceOf(type_info.TupleOf((type_info.ArrayOf(8, type_info.U8), type_info.U32)))
RUNTIME_VERSION: Final = type_info.struct(
    "sp_version::RuntimeVersion",
    spec_name=type_info.STR,
    impl_name=type_info.STR,
    authoring_version=type_info.U32,
    spec_version=type_info.U32,
    impl_version=type_info.U32,
    apis=type_info.Composite(("Cow",), (type_info.Field(_APIS),), (type_info.Parameter("T", _APIS),)),
    transaction_version=type_info.U32,
    system_version=type_info.U8,
)


@dataclass(frozen=True, slots=True, eq=False)
class RuntimeDefinition:
    """A whole runtime; `crate` is in the paths of its outer types. Compared by identity: it is a key of caches."""

    crate: str
    version: RuntimeVersion
    pallets: tuple[PalletDefinition, ...]
    apis: tuple[Api, ...]
    parachain_origins: bool
    """Whether calls may come from parachains (`ParachainsOrigin`)."""
    hold_reasons: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The reasons for holding balances, by pallet."""

    def pallet(self, name: str) -> PalletDefinition | None:
        """A pallet by name."""
        return next((pallet for pallet in self.pallets if pallet.name == name), None)


def described(codec: Codec[Any]) -> TypeInfo:
    """The description of a codec. Raises `DefensiveFailure` if it has none."""
    if codec.info is None:
        raise DefensiveFailure(f"{codec.name} has no type description")
    return codec.info


def constant(name: str, codec: Codec[Any], value: object, docs: str = "") -> Constant:
    """A constant with the value and the type of a codec."""
    return Constant(name, described(codec), codec.encode(value), docs)
