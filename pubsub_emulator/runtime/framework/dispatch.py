"""Dispatch of calls, and the reasons for their failures.

A call runs in a storage layer that a failure rolls back (PS-10). `sp_runtime::DispatchError` is one
byte, followed by these fields:

    00 Other   01 CannotLookup   02 BadOrigin   03 Module { u8 pallet index, [u8; 4] error }
    04 ConsumerRemaining   05 NoProviders   06 TooManyConsumers   07 Token(u8)   08 Arithmetic(u8)
    09 Transactional(u8)   0a Exhausted   0b Corruption   0c Unavailable   0d RootNotAllowed
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import update_wrapper
from typing import Annotated, ClassVar, Concatenate, Final, ParamSpec, TypeAlias, TypeVar

from pubsub_emulator.primitives import type_info
from pubsub_emulator.primitives.errors import DefensiveFailure, PubsubError, ScaleError
from pubsub_emulator.primitives.scale import AnyCodec, Codec, Reader
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.runtime.framework.codecs import codec_of
from pubsub_emulator.runtime.framework.pallet import Pallet, PalletError
from pubsub_emulator.runtime.framework.storage import Storage

MAX_LAYERS: Final = 255
"""The maximum nesting of storage layers, beyond which a call fails with `LimitReached`."""


class DispatchError(PubsubError):
    """A call failed and its writes were rolled back.

    Errors are compared by their SCALE bytes.
    """

    DISCRIMINANT: ClassVar[int]

    def __init_subclass__(cls, index: int | None = None) -> None:
        """Set the variant's `index`, which intermediate classes do not have."""
        if index is not None:
            cls.DISCRIMINANT = index

    def encode(self) -> bytes:
        """Return the SCALE bytes of `sp_runtime::DispatchError`."""
        return bytes((self.DISCRIMINANT,))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DispatchError) and self.encode() == other.encode()

    def __hash__(self) -> int:
        return int.from_bytes(self.encode(), "little")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.args))})"


class Other(DispatchError, index=0):
    """A failure with a message, which is not encoded."""


class CannotLookup(DispatchError, index=1):
    """An address names no account."""


class BadOrigin(DispatchError, index=2):
    """The call does not take this origin."""


class ConsumerRemaining(DispatchError, index=4):
    """An account that still has consumers cannot be removed."""


class NoProviders(DispatchError, index=5):
    """An account without providers cannot get a consumer."""


class TooManyConsumers(DispatchError, index=6):
    """An account has no room for another consumer."""


class Exhausted(DispatchError, index=10):
    """A resource, such as block weight, is used up."""


class Corruption(DispatchError, index=11):
    """The state is corrupt."""


class Unavailable(DispatchError, index=12):
    """A required resource is temporarily unavailable."""


class RootNotAllowed(DispatchError, index=13):
    """Root cannot do this."""


class TokenError(IntEnum):
    """`sp_runtime::TokenError`."""

    FundsUnavailable = 0
    OnlyProvider = 1
    BelowMinimum = 2
    CannotCreate = 3
    UnknownAsset = 4
    Frozen = 5
    Unsupported = 6
    CannotCreateHold = 7
    NotExpendable = 8
    Blocked = 9


class ArithmeticError(IntEnum):  # noqa: A001  # the name in sp_arithmetic
    """`sp_arithmetic::ArithmeticError`."""

    Underflow = 0
    Overflow = 1
    DivisionByZero = 2


class TransactionalError(IntEnum):
    """`sp_runtime::TransactionalError`."""

    LimitReached = 0
    NoLayer = 1


class _Detailed(DispatchError):
    """A failure with one more byte of reason."""

    def __init__(self, reason: IntEnum) -> None:
        super().__init__(reason)
        self.reason = reason

    def encode(self) -> bytes:
        """Return the SCALE bytes: the discriminant, the reason."""
        return bytes((self.DISCRIMINANT, self.reason))

    def __str__(self) -> str:
        return f"{type(self).__name__}: {self.reason.name}"


class Token(_Detailed, index=7):
    """A balance operation cannot be done; `reason` is a `TokenError`."""


class Arithmetic(_Detailed, index=8):
    """A result is not in the range of its type; `reason` is an `ArithmeticError`."""


class Transactional(_Detailed, index=9):
    """Storage layers cannot nest further; `reason` is a `TransactionalError`."""


class ModuleError(DispatchError, index=3):
    """A pallet's own error."""

    def __init__(self, error: PalletError) -> None:
        super().__init__(error)
        self.error = error

    @property
    def pallet(self) -> Pallet:
        """Return the pallet that declares the error."""
        return self.error.pallet

    @property
    def name(self) -> str:
        """Return the error's name in its pallet."""
        return self.error.name

    def encode(self) -> bytes:
        """Return the SCALE bytes: the discriminant, the pallet's index, the error as u32."""
        return bytes((self.DISCRIMINANT, self.pallet.index)) + int(self.error).to_bytes(4, "little")

    def __repr__(self) -> str:
        return f"ModuleError({self.pallet.name!r}, {self.error!r})"

    def __str__(self) -> str:
        return f"{self.pallet}::{self.name}"


def ensure(condition: object, failure: PalletError | PubsubError) -> None:
    """Raise `failure` unless `condition` is true, as FRAME's `ensure!` does.

    A pallet's error is raised as a `ModuleError`.
    """
    if not condition:
        raise ModuleError(failure) if isinstance(failure, PalletError) else failure


_PLAIN: Final[dict[int, type[DispatchError]]] = {
    kind.DISCRIMINANT: kind
    for kind in DispatchError.__subclasses__()
    if kind not in {_Detailed, ModuleError}
}
_DETAILED: Final[dict[int, tuple[type[_Detailed], type[IntEnum]]]] = {
    7: (Token, TokenError),
    8: (Arithmetic, ArithmeticError),
    9: (Transactional, TransactionalError),
}


class ErrorReader(Reader):
    """A `Reader` that knows the errors of a runtime's pallets by the pallets' indices."""

    def __init__(self, data: bytes, errors: Mapping[int, type[PalletError]]) -> None:
        super().__init__(data)
        self.errors = errors


def read_dispatch_error(reader: Reader) -> DispatchError:
    """Read one `DispatchError`.

    A pallet's own error can be read only from an `ErrorReader`. Raises `ScaleError`.
    """
    start = reader.pos
    tag = reader.u8()
    plain = _PLAIN.get(tag)
    if plain is not None:
        return plain()
    try:
        if tag == ModuleError.DISCRIMINANT:
            if not isinstance(reader, ErrorReader):
                raise DefensiveFailure("a pallet's error was read without an ErrorReader")
            return ModuleError(reader.errors[reader.u8()](reader.uint(4)))
        failure, reasons = _DETAILED[tag]
        return failure(reasons(reader.u8()))
    except (KeyError, ValueError):
        raise ScaleError(f"unknown dispatch error at offset {start}") from None


def _described_failures() -> type_info.TypeInfo:
    """Describe `sp_runtime::DispatchError` by the classes above."""
    module = type_info.struct(
        "sp_runtime::ModuleError", index=type_info.U8, error=type_info.ArrayOf(4, type_info.U8)
    )
    variants = {
        kind.DISCRIMINANT: type_info.Variant(kind.__name__, kind.DISCRIMINANT)
        for kind in _PLAIN.values()
    }
    variants[ModuleError.DISCRIMINANT] = type_info.Variant(
        "Module", ModuleError.DISCRIMINANT, (type_info.Field(module, type_name="ModuleError"),)
    )
    for index, (kind, reasons) in _DETAILED.items():
        crate = "sp_arithmetic" if reasons is ArithmeticError else "sp_runtime"
        reason = type_info.enum(
            f"{crate}::{reasons.__name__}", *(member.name for member in reasons)
        )
        variants[index] = type_info.Variant(kind.__name__, index, (type_info.Field(reason),))
    return type_info.Variants(
        ("sp_runtime", "DispatchError"), tuple(variants[index] for index in sorted(variants))
    )


dispatch_error: Codec[DispatchError] = Codec(
    "DispatchError", lambda error: error.encode(), read_dispatch_error, _described_failures()
)


Failure = Annotated[DispatchError, dispatch_error]
"""A failure as a field of an event."""


def encode_dispatch_result(error: DispatchError | None) -> bytes:
    """Return the SCALE bytes of `Result<(), DispatchError>`."""
    return b"\x00" if error is None else b"\x01" + error.encode()


def _read_dispatch_result(reader: Reader) -> DispatchError | None:
    return read_dispatch_error(reader) if reader.boolean() else None


_RESULT: Final = type_info.result(type_info.UNIT, _described_failures())
dispatch_result: Codec[DispatchError | None] = Codec(
    "DispatchResult", encode_dispatch_result, _read_dispatch_result, _RESULT
)
"""`Result<(), DispatchError>`: the error, or `None`."""
Result = Annotated[DispatchError | None, dispatch_result]
"""The result of a call as a field of an event."""


S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")
O = TypeVar("O")  # noqa: E741  # the origin


@dataclass(frozen=True, slots=True)
class CallInfo:
    """The declaration of a call: index, argument types and names, weight before dispatch, docs."""

    name: str
    index: int
    codecs: tuple[AnyCodec, ...]
    weight: Callable[..., Weight]
    arguments: tuple[str, ...] = ()
    docs: str = ""


Dispatchable: TypeAlias = Callable[Concatenate[S, Storage, O, P], Weight | None]


def dispatchable(
    index: int, *, weight: Weight | Callable[..., Weight]
) -> Callable[[Dispatchable[S, O, P]], Dispatchable[S, O, P]]:
    """Make a pallet's method `(self, storage, origin, *args)` a call.

    The call runs in its own storage layer. Any exception rolls back its writes and events, and
    reaches the caller.

    The method returns its actual weight, or `None` if that is `weight`. `weight` is a constant or a
    function `(pallet, *args)`. The annotations of `args` name their codecs (`codec_of`). Raises
    `DefensiveFailure` for an annotation that does not name one.
    """

    def make(call: Dispatchable[S, O, P]) -> Dispatchable[S, O, P]:
        def run(
            self: S, storage: Storage, origin: O, /, *args: P.args, **kwargs: P.kwargs
        ) -> Weight | None:
            if storage.depth >= MAX_LAYERS:
                raise Transactional(TransactionalError.LimitReached)
            with storage.transaction():
                return call(self, storage, origin, *args, **kwargs)

        update_wrapper(run, call)
        fixed = weight
        code = call.__code__
        arguments = code.co_varnames[3 : code.co_argcount]
        codecs = tuple(codec_of(call.__annotations__[name]) for name in arguments)
        before = (lambda *_args: fixed) if isinstance(fixed, Weight) else fixed
        info = CallInfo(call.__name__, index, codecs, before, arguments, call.__doc__ or "")
        run.call_info = info  # type: ignore[attr-defined]  # functions take attributes, their type does not say so
        return run

    return make


def with_storage_layer(storage: Storage, action: Callable[[], R]) -> R:
    """Run `action` in a storage layer, which any exception rolls back.

    Raises the exceptions of `action`, and `Transactional(LimitReached)` if too many layers are
    open.
    """
    if storage.depth >= MAX_LAYERS:
        raise Transactional(TransactionalError.LimitReached)
    with storage.transaction():
        return action()


@dataclass(frozen=True, slots=True)
class Call:
    """A call in the form of an extrinsic: `RuntimeCall::Pallet(name { args })`."""

    pallet: str
    name: str
    args: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class DispatchOutcome:
    """The result of a call."""

    weight: Weight
    """The weight that the call took, at most the charged weight."""
    error: DispatchError | None = None
    """The failure, or `None` if the call succeeded."""

    @property
    def ok(self) -> bool:
        """Return whether the call succeeded."""
        return self.error is None


def calls_of(kind: type) -> tuple[CallInfo, ...]:
    """Return the calls of a pallet's class, ascending by index."""
    infos = (getattr(getattr(kind, name), "call_info", None) for name in dir(kind))
    return tuple(
        sorted((info for info in infos if isinstance(info, CallInfo)), key=lambda info: info.index)
    )


def call_info(pallet: object, name: str) -> CallInfo:
    """Return the `CallInfo` of a pallet's call.

    Raises `DefensiveFailure` if it has no call of that name.
    """
    info = getattr(getattr(type(pallet), name, None), "call_info", None)
    if not isinstance(info, CallInfo):
        raise DefensiveFailure(f"{type(pallet).__name__} has no call {name!r}")
    return info


def dispatch(pallet: object, storage: Storage, origin: object, call: Call) -> DispatchOutcome:
    """Run a call.

    A `DispatchError` is part of the result; other exceptions pass through.
    """
    info = call_info(pallet, call.name)
    charged = info.weight(pallet, *call.args)
    try:
        actual: Weight | None = getattr(pallet, call.name)(storage, origin, *call.args)
    except DispatchError as error:
        return DispatchOutcome(charged, error)
    if actual is None:
        return DispatchOutcome(charged)
    return DispatchOutcome(
        Weight(min(actual.ref_time, charged.ref_time), min(actual.proof_size, charged.proof_size))
    )
