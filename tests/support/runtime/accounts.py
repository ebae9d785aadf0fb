"""Development accounts that sign, and small networks of chains that accept their extrinsics."""

from dataclasses import dataclass
from functools import lru_cache

import coincurve
import sr25519

from pubsub_emulator.emulator.network import Network, NetworkConfig, ParachainConfig
from pubsub_emulator.emulator.network.parachain import Pace
from pubsub_emulator.emulator.relay.runtime import RelayConfig
from pubsub_emulator.primitives import ed25519
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.scale import encode_bytes
from pubsub_emulator.primitives.signatures import Scheme, account_of
from pubsub_emulator.primitives.types import AccountId, Hash, ParaId
from pubsub_emulator.runtime.accounts.chain import ChainRuntime
from pubsub_emulator.runtime.accounts.extrinsic import (
    Era,
    Extra,
    Implicit,
    SignedExtrinsic,
    payload,
)
from pubsub_emulator.runtime.framework import system
from pubsub_emulator.runtime.framework.calls import EncodedCall
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec
from pubsub_emulator.runtime.parachain.accounts import parachain_accounts

MINI_SECRET = bytes.fromhex("fac7959dbfe72f052e5a0c3c8d6530f202b02fd8f9f5ca3580ec8deb7797479e")
"""Of the phrase that all development accounts come from."""
PUBLISHER, SUBSCRIBER = ParaId(1000), ParaId(2000)
KEY = key_from_data(b"price")


@dataclass(frozen=True)
class Signer:
    """An account with its secret."""

    scheme: Scheme
    secret: bytes
    public: bytes

    @property
    def account(self) -> AccountId:
        return account_of(self.scheme, self.public)

    def sign(self, message: bytes) -> bytes:
        if self.scheme is Scheme.ED25519:
            return ed25519.sign(self.secret, message)
        if self.scheme is Scheme.SR25519:
            return bytes(sr25519.sign((self.public, self.secret), message))
        return coincurve.PrivateKey(self.secret).sign_recoverable(blake2_256(message), hasher=None)


def _junction(name: str) -> bytes:
    return encode_bytes(name.encode()).ljust(32, b"\0")


@lru_cache(maxsize=64)
def signer(name: str, scheme: Scheme = Scheme.SR25519) -> Signer:
    """Return the account `//name` below the development phrase."""
    if scheme is Scheme.SR25519:
        pair = sr25519.pair_from_seed(MINI_SECRET)
        chain_code, public, secret = sr25519.hard_derive_keypair((_junction(name), *pair), b"")
        del chain_code
        return Signer(scheme, secret, public)
    tag = b"Ed25519HDKD" if scheme is Scheme.ED25519 else b"Secp256k1HDKD"
    seed = blake2_256(encode_bytes(tag) + MINI_SECRET + _junction(name))
    if scheme is Scheme.ED25519:
        return Signer(scheme, seed, ed25519.public_key(seed))
    return Signer(scheme, seed, coincurve.PrivateKey(seed).public_key.format())


def network(**collators: tuple[tuple[tuple[str, ...], int], ...]) -> Network:
    """Return a network whose chains have accounts.

    It has a publisher that builds on demand, a subscriber, and a relay chain.
    """
    honest = (((), 0), ((), 0))
    return Network(
        NetworkConfig(
            (
                ParachainConfig(
                    RuntimeSpec(PUBLISHER, {}, accounts=True), pace=Pace(on_demand=True)
                ),
                ParachainConfig(
                    RuntimeSpec(SUBSCRIBER, {PUBLISHER: (KEY,)}, accounts=True, handler="store"),
                    collators.get("subscriber", honest),
                ),
            ),
            RelayConfig(accounts=True),
        )
    )


def runtime_of(net: Network, chain: int | None) -> ChainRuntime:
    """Return the runtime of a chain's next block."""
    if chain is None:
        assert net.relay.runtime.accounts is not None
        return net.relay.runtime.accounts
    return parachain_accounts(net.parachain(chain).spec())


def storage_of(net: Network, chain: int | None) -> Storage:
    """Return the newest state of a chain, for reading."""
    return Storage(net.relay.state if chain is None else net.parachain(chain).state)


def call(net: Network, chain: int | None, pallet: str, name: str, *args: object) -> EncodedCall:
    """Return an encoded call of a chain."""
    return runtime_of(net, chain).calls.encode(pallet, name, *args)


def signed(
    net: Network,
    chain: int | None,
    what: EncodedCall,
    who: Signer,
    *,
    nonce: int | None = None,
    tip: int = 0,
    era: Era | None = None,
    genesis: Hash | None = None,
    spec_version: int | None = None,
    mode: int = 0,
) -> bytes:
    """Return the call as an extrinsic that `who` signed for the next block of a chain."""
    storage = storage_of(net, chain)
    head = net.relay.header if chain is None else net.parachain(chain).header
    hashes = dict(system.BLOCK_HASH.items(storage)) | {head.number: head.hash()}
    if nonce is None:
        nonce = system.account(storage, who.account).nonce
    era = Era() if era is None else era
    signing = runtime_of(net, chain).signing
    extra = Extra(era, nonce, tip, mode)
    implicit = Implicit(
        signing.spec_version if spec_version is None else spec_version,
        signing.transaction_version,
        hashes[0] if genesis is None else genesis,
        hashes[era.birth(head.number + 1)],
    )
    signature = who.sign(payload(what.encoded, extra, implicit))
    return SignedExtrinsic(who.account, who.scheme, signature, extra, what, 0).encode()
