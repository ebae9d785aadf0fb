"""The keys of the emulated subnets, and the certificates that they sign.

Each subnet has a BLS key for certificates and one node with an Ed25519 key for queries. All are
drawn from the seed of the network. The first subnet is the root; its key is the root key, and it
delegates to the others.
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

import cbor2
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_arkworks_bls12381 import G1Point, G2Point, Scalar

from interchain_events.icrc72.ic.candid.encode import leb128
from interchain_events.icrc72.ic.principal import (
    CANISTERS_OF_A_SUBNET,
    Principal,
    canister_id,
    self_authenticating,
)
from interchain_events.icrc72.port.hash_tree import Path, State, separated, witness
from pubsub_emulator.primitives.hashing import blake2_256

BLS_DER: Final = bytes.fromhex(
    "308182301d060d2b0601040182dc7c0503010201060c2b0601040182dc7c05030201036100"
)
"""The bytes that precede the 96 bytes of a BLS public key in DER."""
_ORDER: Final = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
"""The order of the groups of BLS12-381."""
_SELF_DESCRIBED: Final = 55799
"""The tag that marks bytes as CBOR."""


def cbor(value: object) -> bytes:
    """Encode a value as self-described CBOR."""
    return cbor2.dumps(cbor2.CBORTag(_SELF_DESCRIBED, value))


def nat(number: int) -> bytes:
    """Return a natural number in unsigned LEB128."""
    out = bytearray()
    leb128(number, out)
    return bytes(out)


def hash_of(value: object) -> bytes:
    """Return the representation-independent hash of a request, which is its id.

    Raises `TypeError` if it contains other values than maps, lists, texts, bytes and naturals.
    """
    if isinstance(value, Mapping):
        return sha256(
            b"".join(sorted(hash_of(key) + hash_of(part) for key, part in value.items()))
        ).digest()
    # The library reads lists in self-described CBOR as tuples.
    if isinstance(value, (list, tuple)):
        return sha256(b"".join(map(hash_of, value))).digest()
    if isinstance(value, str):
        return sha256(value.encode()).digest()
    if isinstance(value, bytes):
        return sha256(value).digest()
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return sha256(nat(value)).digest()
    raise TypeError(f"{type(value).__name__} is not a value of a request")


def point_of(root: bytes) -> G1Point:
    """Return the curve point that a subnet signs for the root hash of its state."""
    return G1Point.hash_to_curve(
        separated("ic-state-root") + root, b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_"
    )


class SubnetKeys:
    """The keys of one subnet, and the ids of the subnet and its node."""

    def __init__(self, seed: bytes, number: int) -> None:
        secret = blake2_256(b"subnet" + number.to_bytes(4, "big") + seed)
        self._bls = Scalar(int.from_bytes(secret, "big") % _ORDER)
        self._node = Ed25519PrivateKey.from_private_bytes(blake2_256(b"node" + secret))
        self.key = BLS_DER + (G2Point() * self._bls).to_compressed_bytes()
        """The BLS public key in DER."""
        self.id = self_authenticating(self.key)
        self.node_key = self._node.public_key().public_bytes(
            Encoding.DER, PublicFormat.SubjectPublicKeyInfo
        )
        self.node = self_authenticating(self.node_key)
        ends = canister_id(number, 0), canister_id(number, CANISTERS_OF_A_SUBNET - 1)
        self.first = ends[0]
        self.ranges = cbor([list(ends)])

    def sign(self, root: bytes) -> bytes:
        """Sign the root hash of a state with the BLS key."""
        return (point_of(root) * self._bls).to_compressed_bytes()

    def vouch(self, answer: Mapping[str, object], request: bytes, time: int) -> dict[str, object]:
        """Return the node's signature of the answer to a query, at a time (ns)."""
        digest = hash_of({**answer, "request_id": request, "timestamp": time})
        signature = self._node.sign(separated("ic-response") + digest)
        return {"timestamp": time, "signature": signature, "identity": self.node}


class Authority:
    """The keys of all subnets."""

    def __init__(self, seed: bytes, subnets: int) -> None:
        self.subnets = [SubnetKeys(seed, number) for number in range(subnets)]

    @property
    def root_key(self) -> bytes:
        """Return the root key in DER, which agents fetch."""
        return self.subnets[0].key

    def numbered(self, subnet: Principal) -> int | None:
        """Return the number of the subnet with this id, or `None`."""
        return next((number for number, keys in enumerate(self.subnets) if keys.id == subnet), None)

    def certify(
        self, subnet: int, time: int, parts: Mapping[bytes, State], paths: Sequence[Path]
    ) -> bytes:
        """Return a certificate of a subnet at a time (ns), which shows `paths` of its state.

        `parts` are the parts of the state that only this subnet has. All subnets but the root
        include a delegation of the root.
        """
        certificate = self._signed(subnet, time, parts, paths)
        if subnet:
            who = self.subnets[subnet].id
            shown = (
                (b"subnet", who, b"public_key"),
                (b"subnet", who, b"canister_ranges"),
                (b"canister_ranges", who),
            )
            certificate["delegation"] = {
                "subnet_id": who,
                "certificate": cbor(self._signed(0, time, {}, shown)),
            }
        return cbor(certificate)

    def _signed(
        self, subnet: int, time: int, parts: Mapping[bytes, State], paths: Sequence[Path]
    ) -> dict[str, object]:
        """Return a signed tree without a delegation. It always shows the time."""
        descriptions: dict[bytes, State] = {keys.id: _about(keys) for keys in self.subnets}
        ranges: dict[bytes, State] = {keys.id: {keys.first: keys.ranges} for keys in self.subnets}
        state = {**parts, b"canister_ranges": ranges, b"subnet": descriptions, b"time": nat(time)}
        tree, root = witness(state, [*paths, (b"time",)])
        return {"tree": tree, "signature": self.subnets[subnet].sign(root)}


def _about(keys: SubnetKeys) -> State:
    """Return the part of the state that describes a subnet."""
    return {
        b"canister_ranges": keys.ranges,
        b"node": {keys.node: {b"public_key": keys.node_key}},
        b"public_key": keys.key,
    }
