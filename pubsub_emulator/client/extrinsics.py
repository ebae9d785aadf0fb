"""Signed extrinsics for the chains of this project, whose signed extensions are known."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from pubsub_emulator.client.node import SubstrateNode
from pubsub_emulator.primitives import ed25519
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_bytes
from pubsub_emulator.primitives.signatures import Scheme, sign_sr25519, sr25519_pair
from pubsub_emulator.primitives.ss58 import encode_address
from pubsub_emulator.primitives.types import AccountId, Hash
from pubsub_emulator.runtime.accounts.extrinsic import (
    Era,
    Extra,
    Implicit,
    SignedExtrinsic,
    payload,
)
from pubsub_emulator.runtime.framework.calls import EncodedCall

_PHRASE: Final = bytes.fromhex("fac7959dbfe72f052e5a0c3c8d6530f202b02fd8f9f5ca3580ec8deb7797479e")
"""The mini secret of the phrase from which all development accounts are derived."""


def development_seed(name: str) -> bytes:
    """Return the Ed25519 seed of the development account `//name`, which is a hard junction."""
    return blake2_256(
        encode_bytes(b"Ed25519HDKD") + _PHRASE + encode_bytes(name.encode()).ljust(32, b"\0")
    )


@dataclass(frozen=True, slots=True)
class Signer:
    """An account that can sign."""

    scheme: Scheme
    account: AccountId
    sign: Callable[[bytes], bytes]
    """Returns the signature of a payload."""


def development_signer(name: str) -> Signer:
    """Return the Sr25519 signer of the development account `//name`. Raises `MissingLibrary`."""
    public, secret = sr25519_pair(_PHRASE, encode_bytes(name.encode()).ljust(32, b"\0"))
    return Signer(Scheme.SR25519, AccountId(public), partial(sign_sr25519, public, secret))


async def signed_extrinsic(node: SubstrateNode, seed: bytes, call: EncodedCall) -> bytes:
    """Return an immortal extrinsic, signed with an Ed25519 seed and the account's next nonce.

    Raises `ClientError`.
    """
    signer = Signer(
        Scheme.ED25519, AccountId(ed25519.public_key(seed)), partial(ed25519.sign, seed)
    )
    return await signed_by(node, signer, call)


async def signed_by(node: SubstrateNode, signer: Signer, call: EncodedCall) -> bytes:
    """Return an immortal extrinsic, signed by `signer` with its next nonce.

    Raises `ClientError`.
    """
    genesis = Hash(await node.genesis_hash())
    version = await node.version()
    extra = Extra(Era(), await node.nonce(encode_address(signer.account)), 0)
    implicit = Implicit(version.spec_version, version.transaction_version, genesis, genesis)
    signature = signer.sign(payload(call.encoded, extra, implicit))
    return SignedExtrinsic(signer.account, signer.scheme, signature, extra, call, 0).encode()
