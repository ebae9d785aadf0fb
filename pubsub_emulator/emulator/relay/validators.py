"""The validators that seal the headers of a relay chain (UP-12)."""

from collections.abc import Iterable
from typing import Final

from pubsub_emulator.primitives import babe, schnorrkel
from pubsub_emulator.primitives.draws import secret
from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.header import Header

VALIDATORS: Final = 5
"""The number of validators of a network whose relay chain seals its headers."""


def validator_seeds(seed: bytes) -> tuple[bytes, ...]:
    """Return the Sr25519 seeds of a network's validators."""
    return tuple(secret(seed, f"validator/{index}") for index in range(VALIDATORS))


class Validators:
    """The session keys of a relay chain's validators."""

    def __init__(self, seeds: Iterable[bytes]) -> None:
        """Derive the keys."""
        pairs = [schnorrkel.pair(seed) for seed in seeds]
        self._pairs = {pair.public: pair for pair in pairs}
        self.keys = tuple(self._pairs)
        """The public keys, in the order of the seeds."""

    def seal(self, header: Header, key: bytes) -> Header:
        """Return a header with the seal of the validator that has this public key."""
        signer = self._pairs.get(key)
        if signer is None:
            raise DefensiveFailure(f"no validator has the key {key.hex()}")
        signature = schnorrkel.sign(signer, header.hash())
        return Header(
            parent_hash=header.parent_hash,
            number=header.number,
            state_root=header.state_root,
            extrinsics_root=header.extrinsics_root,
            digest=(*header.digest, babe.seal(signature)),
        )
