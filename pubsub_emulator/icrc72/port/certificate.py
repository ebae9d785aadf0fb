"""Certificates of others: what a subnet signed whose key is the root key, or is certified by it."""

from typing import Final, NamedTuple

from py_arkworks_bls12381 import GT, G1Point, G2Point

from pubsub_emulator.icrc72.ic.canister import SECOND
from pubsub_emulator.icrc72.ic.principal import Principal, self_authenticating
from pubsub_emulator.icrc72.port.authority import BLS_DER, point_of
from pubsub_emulator.icrc72.port.envelope import BadRequest, Fields, read_cbor
from pubsub_emulator.icrc72.port.hash_tree import digest, leaf, leaves, shown

MOST_DEPTH: Final = 300
"""Containers in each other of a certificate: two for each fork and label of its tree."""
MOST_RANGES: Final = 10_000
"""Ranges of canister ids that a subnet has."""
OLDEST: Final = 5 * 60 * SECOND
"""Nanoseconds by which the time of an answer and that of who reads it may differ."""


class Certified(NamedTuple):
    """The part of a subnet's state that a certificate shows."""

    subnet: bytes
    """The id of the subnet."""
    tree: object

    def value(self, *path: bytes) -> bytes | None:
        """The value at a path; `None` where there is none, or the certificate does not say."""
        return leaf(self.tree, *path)


def read_certificate(data: bytes, root_key: bytes, canister: Principal, now: int) -> Certified:
    """Verify a certificate about a canister at a time (ns). Raises `BadRequest`."""
    certificate = Fields(read_cbor(data, MOST_DEPTH), "the certificate")
    subnet, key = self_authenticating(root_key), root_key
    if certificate.has("delegation"):
        given = certificate.map("delegation")
        subnet = given.principal("subnet_id")
        above = Fields(read_cbor(given.blob("certificate"), MOST_DEPTH), "the delegation's certificate")
        if above.has("delegation"):
            raise BadRequest("the certificate of a delegation is delegated itself")
        tree = _signed(above, root_key)
        key = leaf(tree, b"subnet", subnet, b"public_key") or b""
        shards = shown(tree, b"canister_ranges", subnet)
        if not _holds([*leaves(shown(tree, b"subnet", subnet, b"canister_ranges")), *leaves(shards)], canister):
            raise BadRequest(f"the certificate is of subnet {subnet.text}, which does not have {canister.text}")
    found = Certified(subnet, _signed(certificate, key))
    check_time(number(found.value(b"time") or b""), now)
    return found


def check_time(time: int, now: int) -> None:
    """Raises `BadRequest` for an answer that is not of now (ns)."""
    if abs(time - now) > OLDEST:
        raise BadRequest(f"the answer is of {time} ns, it is {now} ns now")


def number(leb128: bytes) -> int:
    """The natural of its LEB128."""
    return sum((each & 127) << 7 * at for at, each in enumerate(leb128))


def _holds(ranges: list[bytes], canister: Principal) -> bool:
    for raw in ranges:
        for each in Fields({"ranges": read_cbor(raw, MOST_DEPTH)}, "a subnet").list("ranges", MOST_RANGES):
            match each:
                case [bytes(low), bytes(high)] if low <= canister <= high:
                    return True
    return False


def _signed(certificate: Fields, key: bytes) -> object:
    """The tree, whose hash the key signed."""
    tree = certificate.values.get("tree")
    point = key.removeprefix(BLS_DER)
    try:
        message = point_of(digest(tree))
        signature = G1Point.from_compressed_bytes(certificate.blob("signature"))
        holds = key != point and GT.pairing(signature, G2Point()) == GT.pairing(
            message, G2Point.from_compressed_bytes(point)
        )
    except ValueError as error:
        raise BadRequest(f"the certificate does not verify: {error}") from error
    if not holds:
        raise BadRequest("the certificate does not verify: neither the root key nor a key it delegates to signed it")
    return tree
