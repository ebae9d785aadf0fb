"""Origins of calls, and the checks of them."""

from dataclasses import dataclass

from pubsub_emulator.primitives.types import AccountId, ParaId
from pubsub_emulator.runtime.framework.dispatch import BadOrigin


@dataclass(frozen=True, slots=True)
class Root:
    """Governance."""


@dataclass(frozen=True, slots=True)
class Signed:
    """An account that signed an extrinsic."""

    account: AccountId


@dataclass(frozen=True, slots=True)
class Parachain:
    """A parachain, proven by the relay chain: `parachains_origin::Origin::Parachain`."""

    para: ParaId


@dataclass(frozen=True, slots=True)
class Unsigned:
    """No origin, as of inherents (`RawOrigin::None`)."""


Origin = Root | Signed | Parachain | Unsigned


def ensure_root(origin: Origin) -> None:
    """Raise `BadOrigin` unless the origin is root."""
    if not isinstance(origin, Root):
        raise BadOrigin


def ensure_signed(origin: Origin) -> AccountId:
    """The account that signed. Raises `BadOrigin` for any other origin."""
    if not isinstance(origin, Signed):
        raise BadOrigin
    return origin.account


def ensure_signed_or_root(origin: Origin) -> None:
    """Raise `BadOrigin` unless the origin is an account or root."""
    if not isinstance(origin, Signed | Root):
        raise BadOrigin


def ensure_unsigned(origin: Origin) -> None:
    """Raise `BadOrigin` unless the origin is `Unsigned`."""
    if not isinstance(origin, Unsigned):
        raise BadOrigin
