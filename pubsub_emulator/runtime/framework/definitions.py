"""The definition of a runtime for metadata: its version, its pallets, its APIs."""

from dataclasses import dataclass
from typing import Final

from pubsub_emulator.primitives import scale, type_info
from pubsub_emulator.primitives.type_info import TypeInfo
from pubsub_emulator.runtime.framework.hooks import Hooks


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
        """Return the SCALE bytes, the result of `Core_version`."""
        names = scale.encode_bytes(self.spec_name.encode()) + scale.encode_bytes(
            self.impl_name.encode()
        )
        versions = map(
            scale.u32.encode, (self.authoring_version, self.spec_version, self.impl_version)
        )
        apis = (name + scale.u32.encode(version) for name, version in self.apis)
        last = scale.u32.encode(self.transaction_version) + bytes((self.system_version,))
        return b"".join((names, *versions, scale.encode_compact(len(self.apis)), *apis, last))


_APIS: Final = type_info.SequenceOf(
    type_info.TupleOf((type_info.ArrayOf(8, type_info.U8), type_info.U32))
)
RUNTIME_VERSION: Final = type_info.struct(
    "sp_version::RuntimeVersion",
    spec_name=type_info.STR,
    impl_name=type_info.STR,
    authoring_version=type_info.U32,
    spec_version=type_info.U32,
    impl_version=type_info.U32,
    apis=type_info.Composite(
        ("Cow",), (type_info.Field(_APIS),), (type_info.Parameter("T", _APIS),)
    ),
    transaction_version=type_info.U32,
    system_version=type_info.U8,
)


@dataclass(frozen=True, slots=True, eq=False)
class RuntimeDefinition:
    """The definition of a runtime.

    `crate` is in the paths of its outer types. Definitions are compared by identity, because they
    are keys of caches.
    """

    crate: str
    version: RuntimeVersion
    pallets: tuple[Hooks, ...]
    """The pallets, ascending by index."""
    apis: tuple[Api, ...]
    parachain_origins: bool
    """Whether calls may come from parachains (`ParachainsOrigin`)."""
