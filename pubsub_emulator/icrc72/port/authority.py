"""The keys of subnets, drawn from the seed: BLS for certificates, the first is the root; one of a node for queries."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

import cbor2
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_arkworks_bls12381 import G1Point, G2Point, Scalar

from pubsub_emulator.icrc72.ic.candid.encode import leb128
from pubsub_emulator.icrc72.ic.principal import CANISTERS_OF_A_SUBNET, Principal, canister_id, self_authenticating
from pubsub_emulator.icrc72.port.hash_tree import Path, State, separated, witness
from pubsub_emulator.primitives.hashing import blake2_256

BLS_DER: Final = bytes.fromhex("308182301d060d2b0601040182dc7c0503010201060c2b0601040182dc7c05030201036100")
_ORDER: Final = 0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001
_SELF_DESCRIBED: Final = 55799


def cbor(value: object) -> bytes:
    """Self-described CBOR."""
    return cbor2.dumps(cbor2.CBORTag(_SELF_DESCRIBED, value))


def nat(number: int) -> bytes:
    """A natural as LEB128."""
    out = bytearray()
    leb128(number, out)
    return bytes(out)


def hash_of(value: object) -> bytes:
    """The hash of a request, whatever its encoding. Raises `TypeError` for values that no request has."""
    if isinstance(value, Mapping):
        return sha256(b"".join(sorted(hash_of(key) + hash_of(each) for key, each in value.items()))).digest()
    if isinstance(value, (list, tuple)):  # the library reads self-described CBOR as tuples
        return sha256(b"".join(map(hash_of, value))).digest()
    if isinstance(value, str):
        return sha256(value.encode()).digest()
    if isinstance(value, bytes):
        return sha256(value).digest()
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return sha256(nat(value)).digest()
    raise TypeError(f"{type(value).__name__} is no value of a request")


def point_of(root: bytes) -> G1Point:
    """The point that a subnet signs for the hash of its state."""
    return G1Point.hash_to_curve(separated("ic-state-root") + root, b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_")


class SubnetKeys:
    """The keys of one subnet, and what they give it: the ids of the subnet and of its node."""

    def __init__(self, seed: bytes, number: int) -> None:
        secret = blake2_256(b"subnet" + number.to_bytes(4, "big") + seed)
        self._bls = Scalar(int.from_bytes(secret, "big") % _ORDER)
        self._node = Ed25519PrivateKey.from_private_bytes(blake2_256(b"node" + secret))
        self.key = BLS_DER + (G2Point() * self._bls).to_compressed_bytes()  # the public key in DER
        self.id = self_authenticating(self.key)
        self.node_key = self._node.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        self.node = self_authenticating(self.node_key)
        ends = canister_id(number, 0), canister_id(number, CANISTERS_OF_A_SUBNET - 1)
        self.first, self.ranges = ends[0], cbor([list(ends)])

    def sign(self, root: bytes) -> bytes:
        """Sign the hash of a state."""
        return (point_of(root) * self._bls).to_compressed_bytes()

    def vouch(self, answer: Mapping[str, object], request: bytes, time: int) -> dict[str, object]:
        """Sign the answer of a query as the node."""
        digest = hash_of({**answer, "request_id": request, "timestamp": time})
        signature = self._node.sign(separated("ic-response") + digest)
        return {"timestamp": time, "signature": signature, "identity": self.node}


class Authority:
    """All subnets."""

    def __init__(self, seed: bytes, subnets: int) -> None:
        self.subnets = [SubnetKeys(seed, number) for number in range(subnets)]

    @property
    def root_key(self) -> bytes:
        """The public key that agents fetch, in DER."""
        return self.subnets[0].key

    def numbered(self, subnet: Principal) -> int | None:
        """The number of the subnet with an id; `None` where there is none."""
        return next((number for number, each in enumerate(self.subnets) if each.id == subnet), None)

    def certify(self, subnet: int, time: int, parts: Mapping[bytes, State], paths: Sequence[Path]) -> bytes:
        """A certificate of a subnet at a time (ns), which shows `paths` of its state; `parts` are its own."""
        certificate = self._signed(subnet, time, parts, paths)
        if subnet:
            who = self.subnets[subnet].id
            shown = ((b"subnet", who, b"public_key"), (b"subnet", who, b"canister_ranges"), (b"canister_ranges", who))
            certificate["delegation"] = {"subnet_id": who, "certificate": cbor(self._signed(0, time, {}, shown))}
        return cbor(certificate)

    def _signed(self, subnet: int, time: int, parts: Mapping[bytes, State], paths: Sequence[Path]) -> dict[str, object]:
        of_all: dict[bytes, State] = {each.id: _about(each) for each in self.subnets}
        ranges: dict[bytes, State] = {each.id: {each.first: each.ranges} for each in self.subnets}
        state = {**parts, b"canister_ranges": ranges, b"subnet": of_all, b"time": nat(time)}
        tree, root = witness(state, [*paths, (b"time",)])
        return {"tree": tree, "signature": self.subnets[subnet].sign(root)}


def _about(keys: SubnetKeys) -> State:
    return {
        b"canister_ranges": keys.ranges,
        b"node": {keys.node: {b"public_key": keys.node_key}},
        b"public_key": keys.key,
    }
