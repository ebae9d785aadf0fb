"""An agent, which calls canisters of a replica over its HTTP interface.

The agent trusts the root key that the replica shows when it connects. All later answers must be
certified under this key: those to calls by a subnet, and those to queries by a node of it.
"""

import asyncio
import os
import time
from typing import Final, NamedTuple, cast
from urllib.parse import urlsplit

import aiohttp
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from py_arkworks_bls12381 import GT, G1Point, G2Point

from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import SECOND, Answer
from interchain_events.icrc72.ic.errors import CandidError, IcError, NotAdmitted
from interchain_events.icrc72.ic.principal import Principal, self_authenticating
from interchain_events.icrc72.port.authority import BLS_DER, cbor, hash_of, point_of
from interchain_events.icrc72.port.envelope import (
    LONGEST_STAY,
    BadRequest,
    Fields,
    check_signature,
    read_cbor,
)
from interchain_events.icrc72.port.hash_tree import Path, digest, leaf, leaves, separated, shown
from interchain_events.icrc72.port.proxy import AFTER, FORWARD, FORWARDED, RECEIVED

MOST_ANSWER: Final = 8 << 20
"""The most bytes of an answer."""
PATIENCE: Final = 90.0
"""The seconds that a whole answer, from the connection to its last byte, or the end of a call may
take."""
LONGEST_NUMBER: Final = 10
"""The most bytes of a number in a certificate. All have 64 bits, which fit into ten groups of 7."""
MOST_DEPTH: Final = 300
"""How deep the CBOR of a certificate is nested: two levels for each fork and label of its tree."""
MOST_RANGES: Final = 10_000
"""How many ranges of canister ids a subnet may have."""
OLDEST: Final = 5 * 60 * SECOND
"""By how many nanoseconds the time of an answer may differ from ours."""
_PAUSE: Final = 0.3
"""The seconds between two questions whether a call has ended."""
_ANSWER_DEPTH: Final = 8
"""How deep the CBOR of an answer is nested."""
_NO_ROUTE: Final = {404, 405}
"""The HTTP statuses of replicas that do not have a version of the interface."""


class AgentError(IcError):
    """A canister cannot be called as it was named."""


class ReplicaError(AgentError):
    """A replica does not answer, or its answer is malformed or not certified."""

    is_infrastructure = True


class Certified(NamedTuple):
    """The part of a subnet's state that a verified certificate shows."""

    subnet: bytes
    """The id of the subnet."""
    tree: object
    """A hash tree, see `hash_tree`."""

    def value(self, *path: bytes) -> bytes | None:
        """Return the value at a path, or `None` if it is absent or not shown."""
        return leaf(self.tree, *path)


def read_certificate(data: bytes, root_key: bytes, canister: Principal, now: int) -> Certified:
    """Verify a certificate about a canister at the time `now` (ns).

    It is signed by the root subnet, or by a subnet to which that has delegated and whose ranges
    contain the canister. Raises `BadRequest`.
    """
    certificate = Fields(read_cbor(data, MOST_DEPTH), "the certificate")
    subnet = self_authenticating(root_key)
    key = root_key
    if certificate.has("delegation"):
        given = certificate.map("delegation")
        subnet = given.principal("subnet_id")
        above = Fields(
            read_cbor(given.blob("certificate"), MOST_DEPTH), "the delegation's certificate"
        )
        if above.has("delegation"):
            raise BadRequest("the certificate of a delegation is delegated itself")
        tree = _signed_tree(above, root_key)
        key = leaf(tree, b"subnet", subnet, b"public_key") or b""
        shards = shown(tree, b"canister_ranges", subnet)
        if not _in_ranges(
            [*leaves(shown(tree, b"subnet", subnet, b"canister_ranges")), *leaves(shards)], canister
        ):
            raise BadRequest(
                f"the certificate is of subnet {subnet.text}, which does not have {canister.text}"
            )
    certified = Certified(subnet, _signed_tree(certificate, key))
    time = certified.value(b"time")
    if time is None:
        raise BadRequest("the certificate shows no time")
    check_time(number(time), now)
    return certified


def check_time(time: int, now: int) -> None:
    """Check the time of an answer (ns). Raises `BadRequest` if it is too old or in the future."""
    if abs(time - now) > OLDEST:
        raise BadRequest(f"the answer is of {time} ns, it is {now} ns now")


def number(leb128: bytes) -> int:
    """Return the natural number of 64 bits in unsigned LEB128.

    Raises `BadRequest` if the bytes are no such number, or if bytes follow it.
    """
    if not 0 < len(leb128) <= LONGEST_NUMBER:
        raise BadRequest(f"a number of {len(leb128):,} bytes, not of 1 to {LONGEST_NUMBER}")
    # The last byte of a number is the only one that is below 0x80.
    ends = [byte < 0x80 for byte in leb128]
    if ends != [False] * (len(leb128) - 1) + [True]:
        raise BadRequest("a number does not end where its bytes end")
    value = sum((byte & 0x7F) << 7 * position for position, byte in enumerate(leb128))
    if value >= 1 << 64:
        raise BadRequest("a number has more than 64 bits")
    return value


def _in_ranges(ranges: list[bytes], canister: Principal) -> bool:
    """Return whether a canister is in ranges of ids, which are CBOR lists of pairs of ends."""
    for raw in ranges:
        fields = Fields({"ranges": read_cbor(raw, MOST_DEPTH)}, "a subnet")
        for range_ in fields.list("ranges", MOST_RANGES):
            match range_:
                case [bytes(low), bytes(high)] if low <= canister <= high:
                    return True
    return False


def _signed_tree(certificate: Fields, key: bytes) -> object:
    """Return the tree of a certificate if a BLS key (DER) has signed it. Raises `BadRequest`."""
    tree = certificate.values.get("tree")
    raw = key.removeprefix(BLS_DER)
    try:
        message = point_of(digest(tree))
        signature = G1Point.from_compressed_bytes(certificate.blob("signature"))
        # If nothing was removed, the key does not have the form of a BLS key.
        signer = G2Point.from_compressed_bytes(raw) if raw != key else None
        holds = signer is not None and GT.pairing(signature, G2Point()) == GT.pairing(
            message, signer
        )
    except ValueError as error:
        raise BadRequest(f"the certificate does not verify: {error}") from error
    if not holds:
        raise BadRequest(
            "the certificate does not verify: neither the root key nor a key it delegates to"
            " signed it"
        )
    return tree


class Agent:
    """A connection to one canister of a replica.

    Calls are signed by a new key, or forwarded by a proxy canister, because roles do not admit
    calls of users (IC-10). All methods raise `AgentError`.
    """

    def __init__(
        self, url: str, canister: Principal, proxy: Principal | None = None, *, pause: float = 3.0
    ) -> None:
        """Connect to a replica, and check that the canister and the proxy exist.

        `pause` is how many seconds `wait` takes. Raises `AgentError`.
        """
        self.url = url.rstrip("/")
        try:
            self._parts = urlsplit(self.url)
            port = self._parts.port
        except ValueError:
            port = 0
        if port == 0 or self._parts.scheme not in {"http", "https"} or not self._parts.hostname:
            raise AgentError(
                f"{url}: the URL of a replica is http:// or https://, a host, and a port"
            )
        self._key = Ed25519PrivateKey.generate()
        self._der = self._key.public_key().public_bytes(
            Encoding.DER, PublicFormat.SubjectPublicKeyInfo
        )
        self._user = self_authenticating(self._der)
        self.canister = canister
        self._proxy = proxy
        self._pause = pause
        self.caller = self._user if proxy is None else proxy
        """The principal that the canister sees as the caller."""
        self.calls = 0
        """The number of calls that were made."""
        self._met: dict[Principal, Certified] = {}
        """For each canister, the certified keys of the nodes of its subnet."""
        _, body = self._http("/api/v2/status")
        try:
            self.root_key = Fields(read_cbor(body, _ANSWER_DEPTH), "the status").blob("root_key")
        except BadRequest as error:
            raise ReplicaError(f"{self.url} is not a replica: {error}") from None
        self._meet(canister)
        if proxy is not None:
            self._meet(proxy)

    def _meet(self, canister: Principal) -> Certified:
        """Return the certified state of a canister's subnet. Raises `AgentError` if it has none."""
        if canister not in self._met:
            controllers = (b"canister", canister, b"controllers")
            certified = self._read_state(canister, ((b"subnet",), controllers))
            if certified.value(*controllers) is None:
                raise AgentError(f"{self.url} has no canister {canister.text}")
            self._met[canister] = certified
        return self._met[canister]

    def call(self, method: str, arg: bytes) -> Answer:
        """Call a method, and wait for the answer.

        Raises `NotAdmitted` if the canister or the replica does not admit the call.
        """
        self.calls += 1
        if self._proxy is None:
            return self._call(self.canister, method, arg)
        reply = self._call(self._proxy, "forward", FORWARD.encode(self.canister, method, arg))
        try:
            answer = cast("Variant[str, object]", FORWARDED.decode(reply.data)[0])
        except CandidError:
            why = reply.message or "forward answers otherwise"
            raise AgentError(f"{self._proxy.text} is not a proxy: {why}") from None
        if answer.tag == "Ok":
            return Answer(cast("bytes", answer.value))
        return Answer(b"", *cast("tuple[int, str]", answer.value))

    def query(self, method: str, arg: bytes) -> Answer:
        """Return the answer to a query, which a node of the canister's subnet has signed."""
        return self._query(self.canister, method, arg)

    def wait(self) -> None:
        """Sleep for a while."""
        time.sleep(self._pause)

    def moment(self) -> str:
        """Return the number of the last call as text."""
        return f"call {self.calls}"

    def heard(self) -> list[str] | None:
        """Return the methods of the proxy that the canister has called, as far as it remembers.

        Returns `None` without a proxy.
        """
        if self._proxy is None:
            return None
        kept = RECEIVED.decode(self._query(self._proxy, "received", AFTER.encode(0)).data)[0]
        return [
            method
            for by, method, _ in cast("tuple[tuple[bytes, str, bytes], ...]", kept)
            if by == self.canister
        ]

    def _query(self, canister: Principal, method: str, arg: bytes) -> Answer:
        """Query a canister, and check the signature of the node."""
        met = self._meet(canister)
        content = self._content("query", canister_id=bytes(canister), method_name=method, arg=arg)
        _, body = self._post(canister, "v2", "query", content)
        try:
            answer = Fields(read_cbor(body, _ANSWER_DEPTH), "the answer")
            replied = answer.text("status") == "replied"
            names = ("reply",) if replied else ("reject_code", "reject_message", "error_code")
            signed = {name: answer.values[name] for name in ("status", *names) if answer.has(name)}
            signature = Fields(answer.list("signatures", 100)[0], "the signature")
            key = met.value(
                b"subnet", met.subnet, b"node", signature.blob("identity"), b"public_key"
            )
            signed |= {"request_id": hash_of(content), "timestamp": signature.nat("timestamp")}
            check_signature(
                key or b"", signature.blob("signature"), separated("ic-response") + hash_of(signed)
            )
            check_time(signature.nat("timestamp"), time.time_ns())
            if replied:
                return Answer(answer.map("reply").blob("arg"))
            return Answer(b"", answer.nat("reject_code"), answer.text("reject_message"))
        except (BadRequest, TypeError, IndexError) as error:
            raise ReplicaError(f"{self.url}: query {method}: {error}") from error

    def _call(self, canister: Principal, method: str, arg: bytes) -> Answer:
        """Call a canister, and ask for the status of the call until it has ended."""
        self._meet(canister)
        more = {
            "canister_id": bytes(canister),
            "method_name": method,
            "arg": arg,
            "nonce": os.urandom(16),
        }
        content = self._content("call", **more)
        # Version 3 waits for the answer. Older replicas only have version 2, which does not.
        status, body = self._post(canister, "v3", "call", content)
        if status in _NO_ROUTE:
            status, body = self._post(canister, "v2", "call", content)
        path = (b"request_status", hash_of(content))
        certified = self._verified(canister, body) if body else None
        ends = time.monotonic() + PATIENCE
        while True:
            state = certified.value(*path, b"status") if certified is not None else None
            if certified is not None and state == b"replied":
                return Answer(certified.value(*path, b"reply") or b"")
            if certified is not None and state == b"rejected":
                return self._rejected(certified, path)
            if state == b"done":
                raise ReplicaError(f"{self.url}: the answer of {method} is no longer kept")
            if time.monotonic() > ends:
                raise ReplicaError(f"{self.url}: {method} has not ended in {PATIENCE:g} s")
            time.sleep(_PAUSE)
            certified = self._read_state(canister, (path,))

    def _rejected(self, certified: Certified, path: Path) -> Answer:
        """Return the reject of a call."""
        words = certified.value(*path, b"reject_message") or b""
        try:
            code = number(certified.value(*path, b"reject_code") or b"")
        except BadRequest as error:
            raise ReplicaError(f"{self.url}: the reject code is not a number: {error}") from error
        return Answer(b"", code, words.decode(errors="backslashreplace"))

    def _verified(self, canister: Principal, body: bytes) -> Certified:
        """Return the verified state in an answer. Raises `NotAdmitted` if it is a rejection."""
        try:
            answer = Fields(read_cbor(body, _ANSWER_DEPTH), "the answer")
            if answer.has("reject_code"):
                raise NotAdmitted(
                    f"{canister.text} refused the call: {answer.text('reject_message')}"
                )
            return read_certificate(
                answer.blob("certificate"), self.root_key, canister, time.time_ns()
            )
        except BadRequest as error:
            raise ReplicaError(f"{self.url}: {error}") from error

    def _read_state(self, canister: Principal, paths: tuple[Path, ...]) -> Certified:
        """Return the verified state at some paths of the canister's subnet."""
        lists = [list(map(bytes, path)) for path in paths]
        content = self._content("read_state", paths=lists)
        _, body = self._post(canister, "v2", "read_state", content)
        return self._verified(canister, body)

    def _content(self, kind: str, **more: object) -> dict[str, object]:
        """Return the content of a request, with sender and expiry."""
        expiry = time.time_ns() + LONGEST_STAY * 2 // 3
        return {"request_type": kind, "sender": bytes(self._user), "ingress_expiry": expiry, **more}

    def _post(
        self, canister: Principal, version: str, kind: str, content: dict[str, object]
    ) -> tuple[int, bytes]:
        """Sign and send a request. Return the HTTP status and the body of the answer."""
        signature = self._key.sign(separated("ic-request") + hash_of(content))
        envelope = {"content": content, "sender_pubkey": self._der, "sender_sig": signature}
        return self._http(f"/api/{version}/canister/{canister.text}/{kind}", cbor(envelope))

    def _http(self, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Send an HTTP request. Return the status and the body, whose size is limited."""
        try:
            status, data = asyncio.run(self._exchange(path, body))
        except (OSError, aiohttp.ClientError) as error:
            # A `TimeoutError`, which is an `OSError`, has no text.
            words = str(error) or f"the whole answer did not come within {PATIENCE:g} s"
            raise ReplicaError(f"no replica answers at {self.url}: {words}") from error
        if len(data) > MOST_ANSWER:
            raise ReplicaError(
                f"{self.url}: {path}: the answer has more than {MOST_ANSWER:,} bytes"
            )
        if status not in {200, 202, *_NO_ROUTE}:
            words = data[:200].decode(errors="backslashreplace").partition("\n")[0]
            # With 400 to 499 the replica blames the request, for example an unknown canister.
            kind = AgentError if 400 <= status < 500 else ReplicaError
            raise kind(f"{self.url}: {path}: {status}: {words}")
        return status, data

    async def _exchange(self, path: str, body: bytes | None) -> tuple[int, bytes]:
        """Send an HTTP request. Return the status and at most `MOST_ANSWER` + 1 bytes of the body.

        The time limit is for all of it: a replica that sends a byte now and then does not keep us.
        """
        async with (
            # A compressed answer could be a thousand times as large as its bytes.
            aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=PATIENCE), auto_decompress=False
            ) as session,
            session.request(
                "GET" if body is None else "POST",
                f"{self.url}{path}",
                data=body,
                headers={"Content-Type": "application/cbor"},
                allow_redirects=False,
            ) as answer,
        ):
            data = bytearray()
            async for piece in answer.content.iter_any():
                data += piece
                if len(data) > MOST_ANSWER:
                    break
            return answer.status, bytes(data)
