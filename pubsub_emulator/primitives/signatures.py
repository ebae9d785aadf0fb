"""Signatures of extrinsics in three schemes (`MultiSignature`), and their verification.

    00 Ed25519 [u8; 64] | 01 Sr25519 [u8; 64] | 02 Ecdsa [u8; 65]

Sr25519 and ECDSA need two libraries of the extras `node` and `audit`. They are imported on first
use, and only here.
"""

from collections.abc import Callable
from enum import IntEnum
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

from pubsub_emulator.primitives import ed25519
from pubsub_emulator.primitives.errors import MissingPackage
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import AccountId


class Scheme(IntEnum):
    """Variants of `MultiSignature`."""

    ED25519 = 0
    SR25519 = 1
    ECDSA = 2


LENGTH: Final = {Scheme.ED25519: 64, Scheme.SR25519: 64, Scheme.ECDSA: 65}
"""The length of a signature in bytes."""
MOST_CACHED: Final = 256
"""The length in bytes up to which results for a message are cached.

Extrinsics sign the hash of a payload that is longer than this.
"""


class MissingLibrary(MissingPackage):
    """A library of the extras `node` and `audit` is needed for a signature, but not installed."""


@lru_cache(maxsize=2)
def _library(name: str, package: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        error = MissingLibrary(
            f"{package} is needed for this signature: install the extra `audit` or `node`"
        )
        error.name = name
        raise error from None


def account_of(scheme: Scheme, public: bytes) -> AccountId:
    """Return the account of a public key.

    It is the key itself, or the blake2b-256 of an ECDSA key (33 bytes, compressed).
    """
    return AccountId(blake2_256(public) if scheme is Scheme.ECDSA else public)


def verify(scheme: Scheme, signature: bytes, message: bytes, account: AccountId) -> bool:
    """Return whether `signature` is a signature of `message` by `account`.

    It is `False` for bytes that are not a signature. The last 16,384 results for messages of up to
    `MOST_CACHED` bytes are cached, since pool, author and verifier check the same signatures.
    Raises `MissingLibrary`.
    """
    if len(signature) != LENGTH[scheme]:
        return False
    # The cache holds its messages, so longer ones would take memory without a bound.
    if len(message) > MOST_CACHED:
        return _VERIFY[scheme](signature, message, account)
    return verify_cached(scheme, signature, message, account)


@lru_cache(maxsize=1 << 14)
def verify_cached(scheme: Scheme, signature: bytes, message: bytes, account: AccountId) -> bool:
    """Do the work of `verify`, which alone calls this and limits the size of its arguments."""
    return _VERIFY[scheme](signature, message, account)


def _sr25519(signature: bytes, message: bytes, account: AccountId) -> bool:
    library = _library("sr25519", "py-sr25519-bindings")
    try:
        return bool(library.verify(signature, message, account))
    # The library raises for bytes that are not a signature or not a point of the curve.
    except ValueError:
        return False


def _ecdsa(signature: bytes, message: bytes, account: AccountId) -> bool:
    library = _library("coincurve", "coincurve")
    if signature[64] not in range(4):
        return False
    try:
        key = library.PublicKey.from_signature_and_message(
            signature, blake2_256(message), hasher=None
        )
    # No key can be recovered from the signature.
    except ValueError:
        return False
    return account_of(Scheme.ECDSA, key.format(compressed=True)) == account


_VERIFY: Final[dict[Scheme, Callable[[bytes, bytes, AccountId], bool]]] = {
    Scheme.ED25519: lambda signature, message, account: ed25519.verify(account, message, signature),
    Scheme.SR25519: _sr25519,
    Scheme.ECDSA: _ecdsa,
}


def sr25519_pair(mini_secret: bytes, *junctions: bytes) -> tuple[bytes, bytes]:
    """Return the public and the secret key that hard junctions derive from a seed.

    Each junction has 32 bytes. Raises `MissingLibrary`.
    """
    library = _library("sr25519", "py-sr25519-bindings")
    public, secret = library.pair_from_seed(mini_secret)
    for junction in junctions:
        _, public, secret = library.hard_derive_keypair((junction, public, secret), b"")
    return public, secret


def sign_sr25519(public: bytes, secret: bytes, message: bytes) -> bytes:
    """Return the Sr25519 signature of a message.

    Raises `MissingLibrary`.
    """
    return bytes(_library("sr25519", "py-sr25519-bindings").sign((public, secret), message))
