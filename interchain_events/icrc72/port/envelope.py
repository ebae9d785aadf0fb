"""Reading of requests of strangers, and checking of their signatures.

Requests are CBOR of limited size and depth, signed with Ed25519, or with ECDSA on P-256 or
secp256k1.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple, NoReturn

import cbor2
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

from interchain_events.icrc72.ic.canister import SECOND
from interchain_events.icrc72.ic.errors import IcError
from interchain_events.icrc72.ic.principal import ANONYMOUS, LONGEST, Principal, self_authenticating
from interchain_events.icrc72.port.authority import hash_of
from interchain_events.icrc72.port.hash_tree import Path, separated

MOST_BODY: Final = 3 << 20
"""The most bytes of a request."""
MOST_DEPTH: Final = 8
"""How deep the CBOR of a request is nested."""
MOST_ITEMS: Final = 200_000
"""How many items the CBOR of a request or answer has, those of all levels together.

The smallest items have one byte, and as objects in memory up to a hundred.
"""
MOST_PATHS: Final = 1000
"""How many paths a `read_state` request has."""
MOST_LABELS: Final = 127
"""How many labels a path has."""
MOST_DELEGATIONS: Final = 20
"""How many delegations a request has."""
LONGEST_STAY: Final = 6 * 60 * SECOND
"""The nanoseconds until a request expires: five minutes, and one for differences of clocks."""
_TAGS: Final = (0, 1, 2, 3, 4, 5, 25, 28, 29, 30, 35, 36, 37, 100, 256, 258, 260, 261, 1004, 43000)
"""The tags that the library would interpret. Requests have only the tag for self-described CBOR."""


class BadRequest(IcError):
    """A request or answer is malformed, or was not signed by the key that it names."""


class Request(NamedTuple):
    """A request whose signature was checked."""

    id: bytes
    sender: Principal
    canister: Principal
    """The canister that it is for; empty in a `read_state` request."""
    method: str
    arg: bytes
    paths: tuple[Path, ...]
    """The paths of a `read_state` request."""
    expiry: int
    """The time (ns) until which it is valid."""
    size: int
    """The bytes of its body."""
    targets: frozenset[bytes] | None
    """The canisters that all delegations allow; `None` if no delegation is restricted."""

    def is_for(self, canister: Principal) -> bool:
        """Return whether the delegations of its sender reach to a canister."""
        return self.targets is None or canister in self.targets


def read_request(body: bytes, kind: str, now: int) -> Request:
    """Read and check a request of a kind (`call`, `query` or `read_state`) at a time (ns).

    Raises `BadRequest` if it is malformed, expired or not signed by its sender.
    """
    envelope = Fields(read_cbor(body, MOST_DEPTH), "the envelope")
    content = envelope.map("content")
    if content.text("request_type") != kind:
        raise BadRequest(f"request_type is not {kind!r}, which this address takes")
    expiry = content.nat("ingress_expiry")
    check_expiry(expiry, now)
    try:
        identity = hash_of(content.values)
    except (TypeError, RecursionError) as error:
        raise BadRequest(f"content: {error}") from None
    sender = content.principal("sender")
    reads = kind == "read_state"
    targets = _check_sender(envelope, sender, separated("ic-request") + identity, now)
    request = Request(
        id=identity,
        sender=sender,
        canister=Principal() if reads else content.principal("canister_id"),
        method="" if reads else content.text("method_name"),
        arg=b"" if reads else content.blob("arg"),
        paths=_paths(content) if reads else (),
        expiry=expiry,
        size=len(body),
        targets=targets,
    )
    if not reads and not request.is_for(request.canister):
        raise BadRequest(f"sender_delegation is not for {request.canister.text}")
    return request


def check_expiry(expiry: int, now: int) -> None:
    """Check that a request is valid at the time `now` (ns). Raises `BadRequest`."""
    last = now + LONGEST_STAY
    # Agents look for the first words of this error, and then adjust their clock.
    if not now < expiry <= last:
        raise BadRequest(
            f"Invalid request expiry: ingress_expiry {expiry} is not between {now} and {last}"
        )


class Fields:
    """The fields of a map from a stranger.

    Each method returns a field of one type. It raises `BadRequest` if the field is missing or has
    another type.
    """

    def __init__(self, values: object, place: str) -> None:
        """Read a map; `place` names it in errors. Raises `BadRequest` if it is not a map."""
        if not isinstance(values, Mapping):
            raise BadRequest(f"{place} is not a map")
        self.values: Mapping[object, object] = values
        self._place = place

    def _wrong(self, name: str, wanted: str) -> NoReturn:
        raise BadRequest(f"{self._place}: {name} is not {wanted}")

    def has(self, name: str) -> bool:
        """Return whether there is a field with a value other than null."""
        return self.values.get(name) is not None

    def text(self, name: str) -> str:
        """Return a text."""
        value = self.values.get(name)
        return value if isinstance(value, str) else self._wrong(name, "text")

    def blob(self, name: str) -> bytes:
        """Return bytes."""
        value = self.values.get(name)
        return value if isinstance(value, bytes) else self._wrong(name, "bytes")

    def nat(self, name: str) -> int:
        """Return a natural number of at most 64 bits."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 64:
            return self._wrong(name, "a natural of 64 bits")
        return value

    def list(self, name: str, most: int) -> tuple[object, ...]:
        """Return a list of at most `most` values."""
        value = self.values.get(name)
        if not isinstance(value, (list, tuple)) or len(value) > most:
            return self._wrong(name, f"a list of up to {most}")
        return tuple(value)

    def map(self, name: str) -> "Fields":
        """Return the fields of an inner map."""
        return Fields(self.values.get(name), name)

    def principal(self, name: str) -> Principal:
        """Return a principal."""
        value = self.blob(name)
        return Principal(value) if len(value) <= LONGEST else self._wrong(name, "a principal")


def read_cbor(body: bytes, depth: int) -> object:
    """Decode CBOR without tags, nested at most `depth` deep. Raises `BadRequest`."""
    _check_items(body)
    try:
        given = dict.fromkeys(_TAGS, _no_tag)
        decoded: object = cbor2.loads(
            body,
            semantic_decoders=given,
            tag_hook=_no_tag,
            max_depth=depth,
            allow_duplicate_keys=False,
        )
    except (cbor2.CBORDecodeError, TypeError) as error:
        raise BadRequest(f"the body is not CBOR: {error}") from None
    return decoded


def _check_items(body: bytes) -> None:
    """Check the number of items of CBOR before it is decoded. Raises `BadRequest`.

    Anything malformed is left to the decoder.
    """
    at = 0
    for _ in range(MOST_ITEMS):
        if at >= len(body):
            return
        head = body[at]
        at += 1
        length = head & 31
        if 24 <= length < 28:
            width = 1 << length - 24
            length = int.from_bytes(body[at : at + width], "big")
            at += width
        # Only byte strings and texts are followed by as many bytes as their length says.
        if head >> 5 in {2, 3} and head & 31 < 28:
            at += length
    if at < len(body):
        raise BadRequest(f"the body is not CBOR of up to {MOST_ITEMS:,} items")


def _no_tag(_value: object, _immutable: bool) -> NoReturn:
    raise BadRequest("the body is not plain CBOR: it has tags")


def _paths(content: Fields) -> tuple[Path, ...]:
    """Return the paths of a `read_state` request."""
    paths: list[Path] = []
    for path in content.list("paths", MOST_PATHS):
        given = path if isinstance(path, (list, tuple)) else (None,)
        labels = tuple(label for label in given if isinstance(label, bytes))
        if len(labels) != len(given) or len(labels) > MOST_LABELS:
            raise BadRequest(
                f"content: a path is a list of up to {MOST_LABELS} labels, which are bytes"
            )
        paths.append(labels)
    return tuple(paths)


def _check_sender(
    envelope: Fields, sender: Principal, message: bytes, now: int
) -> frozenset[bytes] | None:
    """Check the sender's signature, and the chain of delegations from its key to the signing key.

    Delegations may be restricted to canisters (`targets`). Returns the canisters that all
    restricted delegations allow, or `None` if no delegation is restricted. Raises `BadRequest`.
    """
    if sender == ANONYMOUS:
        if envelope.has("sender_pubkey") or envelope.has("sender_sig"):
            raise BadRequest("the anonymous sender has no key and no signature")
        return None
    key = envelope.blob("sender_pubkey")
    if self_authenticating(key) != sender:
        raise BadRequest(f"sender_pubkey is not the key of {sender.text}")
    targets: frozenset[bytes] | None = None
    if envelope.has("sender_delegation"):
        delegations = envelope.list("sender_delegation", MOST_DELEGATIONS)
        for index, signed_delegation in enumerate(delegations):
            place = f"sender_delegation[{index}]"
            signed = Fields(signed_delegation, place)
            delegation = signed.map("delegation")
            if delegation.nat("expiration") < now:
                raise BadRequest(f"{place} has ended")
            if delegation.has("targets"):
                given = delegation.list("targets", MOST_PATHS)
                allowed = frozenset(target for target in given if isinstance(target, bytes))
                targets = allowed if targets is None else targets & allowed
            try:
                digest = hash_of(delegation.values)
            except TypeError as error:
                raise BadRequest(f"{place}: {error}") from None
            check_signature(
                key, signed.blob("signature"), separated("ic-request-auth-delegation") + digest
            )
            key = delegation.blob("pubkey")
    check_signature(key, envelope.blob("sender_sig"), message)
    return targets


def check_signature(key: bytes, signature: bytes, message: bytes) -> None:
    """Check a signature by a public key in DER. Raises `BadRequest`.

    ECDSA signatures are the two numbers of 32 bytes each, and not DER.
    """
    try:
        public_key = load_der_public_key(key)
    except (ValueError, UnsupportedAlgorithm):
        raise BadRequest("the key is neither Ed25519 nor ECDSA in DER") from None
    try:
        if isinstance(public_key, Ed25519PublicKey):
            public_key.verify(signature, message)
            return
        if isinstance(public_key, EllipticCurvePublicKey) and public_key.curve.name in {
            "secp256k1",
            "secp256r1",
        }:
            halves = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
            public_key.verify(encode_dss_signature(*halves), message, ECDSA(SHA256()))
            return
    except InvalidSignature:
        raise BadRequest("the signature is not one of its key") from None
    raise BadRequest("the key is neither Ed25519 nor ECDSA on P-256 or secp256k1")
