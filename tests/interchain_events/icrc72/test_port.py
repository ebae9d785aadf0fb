"""The HTTP interface: who is let in, what is certified, and how long it waits."""

import asyncio
import io
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any

import cbor2
import pytest
from aiohttp.test_utils import TestClient, TestServer
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256K1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from support.wat import canister

from interchain_events.icrc72.ic.candid.did import parse_types
from interchain_events.icrc72.ic.candid.encode import Encoder
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import SECOND
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal, self_authenticating
from interchain_events.icrc72.ic.wasm.canister import WasmCanister
from interchain_events.icrc72.port import envelope as requests
from interchain_events.icrc72.port import server
from interchain_events.icrc72.port.agent import Certified, read_certificate
from interchain_events.icrc72.port.authority import hash_of
from interchain_events.icrc72.port.hash_tree import digest, leaf, separated, witness
from interchain_events.icrc72.port.server import Port
from interchain_events.icrc72.scenario import Run
from interchain_events.icrc72.scenario_file import parse
from pubsub_emulator.serving.guard import LOCAL

NOW = 10**18
CANISTER = Principal(bytes(7) + b"\1\1\1")
SCENARIO = """
subnets = 2
rounds = 10
broadcasters = [0, 1]
"""
PROXY = Encoder(parse_types("(principal, text, blob)"))


class Key:
    """A user's key: Ed25519, or secp256k1."""

    def __init__(self, kind: str = "ed25519") -> None:
        self._key = (
            Ed25519PrivateKey.generate() if kind == "ed25519" else generate_private_key(SECP256K1())
        )
        self.der = self._key.public_key().public_bytes(
            Encoding.DER, PublicFormat.SubjectPublicKeyInfo
        )
        self.who = self_authenticating(self.der)

    def sign(self, domain: str, content: object) -> bytes:
        message = separated(domain) + hash_of(content)
        if isinstance(self._key, Ed25519PrivateKey):
            return self._key.sign(message)
        parts = decode_dss_signature(self._key.sign(message, ECDSA(SHA256())))
        return b"".join(each.to_bytes(32, "big") for each in parts)


def content_of(
    sender: bytes = ANONYMOUS, expiry: int = NOW + SECOND, **more: object
) -> dict[str, Any]:
    call = {
        "request_type": "call",
        "canister_id": bytes(CANISTER),
        "method_name": "m",
        "arg": b"DIDL\0\0",
    }
    return {**call, "sender": bytes(sender), "ingress_expiry": expiry, **more}


def signed(key: Key, **more: object) -> dict[str, Any]:
    content = content_of(key.who, **more)
    return {
        "content": content,
        "sender_pubkey": key.der,
        "sender_sig": key.sign("ic-request", content),
    }


def delegated(owner: Key, session: Key, **more: object) -> dict[str, Any]:
    delegation = {"pubkey": session.der, "expiration": NOW + SECOND, **more}
    signature = owner.sign("ic-request-auth-delegation", delegation)
    envelope = signed(owner)
    envelope["sender_sig"] = session.sign("ic-request", envelope["content"])
    return {**envelope, "sender_delegation": [{"delegation": delegation, "signature": signature}]}


def test_the_hash_of_a_request_is_that_of_the_specification() -> None:
    content = {"request_type": "call", "canister_id": bytes.fromhex("00000000000004d2")}
    content |= {"method_name": "hello", "arg": bytes.fromhex("4449444c00fd2a")}
    assert (
        hash_of(content).hex() == "8781291c347db32a9d8c10eb62b710fce5a93be676474c42babc74c51858f94b"
    )


@pytest.mark.parametrize("tagged", [False, True])
@pytest.mark.parametrize("kind", ["ed25519", "secp256k1"])
def test_who_signed_is_the_sender(kind: str, tagged: bool) -> None:
    key = Key(kind)
    envelope: object = signed(key)
    read = requests.read_request(
        cbor2.dumps(cbor2.CBORTag(55799, envelope) if tagged else envelope), "call", NOW
    )
    assert (read.sender, read.canister, read.method) == (key.who, CANISTER, "m")


def test_a_session_key_signs_for_its_owner_where_the_delegation_says_so() -> None:
    owner, session = Key(), Key("secp256k1")
    assert (
        requests.read_request(cbor2.dumps(delegated(owner, session)), "call", NOW).sender
        == owner.who
    )
    here = delegated(owner, session, targets=[bytes(CANISTER)])
    assert requests.read_request(cbor2.dumps(here), "call", NOW).sender == owner.who


def _wrong() -> dict[str, Any]:
    key, other = Key(), Key()
    good, late = signed(key), delegated(key, other, expiration=NOW - 1)
    return {
        "no map": [],
        "not CBOR": b"",
        "no content": {"sender_sig": b""},
        "another kind": {"content": content_of(request_type="query")},
        "ended": {"content": content_of(expiry=NOW)},
        "too far": {"content": content_of(expiry=NOW + requests.LONGEST_STAY + 1)},
        "no natural": {"content": content_of(ingress_expiry=True)},
        "no principal": {"content": content_of(bytes(30))},
        "a null argument": {"content": content_of(arg=None)},
        "a float": {"content": content_of(nonce=0.5)},
        "a tag": {"content": content_of(nonce=cbor2.CBORTag(35, "a+"))},
        "too deep": {"content": content_of(nonce=[[[[[[[[[]]]]]]]]])},
        "anonymous with a key": {"content": content_of(), "sender_pubkey": key.der},
        "no key": {"content": good["content"]},
        "no signature": {**good, "sender_sig": None},
        "changed": {**good, "content": {**good["content"], "method_name": "n"}},
        "signed by another": {**good, "sender_sig": other.sign("ic-request", good["content"])},
        "the key of another": {**good, "sender_pubkey": other.der},
        "for another domain": {**good, "sender_sig": key.sign("ic-response", good["content"])},
        "a delegation that ended": late,
        "a delegation for others": delegated(key, other, targets=[b"other"]),
        "a delegation by another": {
            **delegated(other, key),
            "content": good["content"],
            "sender_pubkey": key.der,
        },
        "a delegation of a float": (
            delegated(key, other) | {"sender_delegation": [{"delegation": {"expiration": 0.5}}]}
        ),
        "no DER": {
            **good,
            "content": content_of(self_authenticating(b"key")),
            "sender_pubkey": b"key",
        },
    }


@pytest.mark.parametrize("what", list(_wrong()))
def test_what_is_no_request_or_is_not_signed_is_refused(what: str) -> None:
    body = _wrong()[what]
    with pytest.raises(requests.BadRequest):
        requests.read_request(body if isinstance(body, bytes) else cbor2.dumps(body), "call", NOW)


@pytest.mark.parametrize(
    "paths",
    [[[b"a"]] * requests.MOST_PATHS, [[b"a"] * requests.MOST_LABELS]],
    ids=["as many paths", "as many labels"],
)
def test_a_path_at_its_limits_is_read(paths: list[list[bytes]]) -> None:
    envelope = {"content": content_of(request_type="read_state", paths=paths)}
    assert requests.read_request(cbor2.dumps(envelope), "read_state", NOW).paths == tuple(
        tuple(each) for each in paths
    )


@pytest.mark.parametrize("count", [requests.MOST_DELEGATIONS, requests.MOST_DELEGATIONS + 1])
def test_a_chain_of_delegations_has_a_limit(count: int) -> None:
    keys = [Key() for _ in range(count + 1)]
    envelope = signed(keys[0])
    envelope["sender_sig"] = keys[-1].sign("ic-request", envelope["content"])
    chain = [delegated(owner, session)["sender_delegation"][0] for owner, session in pairwise(keys)]
    body = cbor2.dumps({**envelope, "sender_delegation": chain})
    if count > requests.MOST_DELEGATIONS:
        with pytest.raises(
            requests.BadRequest, match="sender_delegation is not a list of up to 20"
        ):
            requests.read_request(body, "call", NOW)
    else:
        assert requests.read_request(body, "call", NOW).sender == keys[0].who


def test_a_path_is_a_list_of_labels() -> None:
    long, many = [b"a"] * (requests.MOST_LABELS + 1), [[]] * (requests.MOST_PATHS + 1)
    for paths in ([b"time"], [["time"]], [long], many, b"time"):
        envelope = {"content": content_of(request_type="read_state", paths=paths)}
        with pytest.raises(requests.BadRequest):
            requests.read_request(cbor2.dumps(envelope), "read_state", NOW)


# Certificates


def test_a_witness_shows_what_is_asked_and_nothing_else() -> None:
    state = {b"a": {b"x": b"1", b"y": {}}, b"b": b"2", b"d": b"3", b"e": b"4"}
    whole, root = witness(state, [()])
    for paths in ([], [(b"b",)], [(b"a", b"x")], [(b"c",)], [(b"a",), (b"z", b"q")]):
        form, same = witness(state, paths)
        assert same == root == digest(form) == digest(whole)
    form, _ = witness(state, [(b"a", b"x")])
    assert (leaf(form, b"a", b"x"), leaf(form, b"b")) == (b"1", None)
    shown = repr(witness(state, [(b"c",)])[0])
    assert [name in shown for name in ("b'b'", "b'd'")] == [
        True,
        True,
    ]  # neighbours, between which nothing is
    assert [name in shown for name in ("b'2'", "b'e'")] == [False, False]


# The port


class Agent:
    """An agent of the port, without a library of the Internet Computer."""

    def __init__(self, client: TestClient[Any, Any], port: Port) -> None:
        self.client = client
        self.port = port

    async def post(self, path: str, envelope: object, **more: Any) -> tuple[int, Any]:
        headers = {"Content-Type": "application/cbor", **more}
        async with self.client.post(
            f"/api/{path}", data=io.BytesIO(cbor2.dumps(envelope)), headers=headers
        ) as answer:
            body = await answer.read()
            return answer.status, (
                cbor2.loads(body) if answer.content_type == "application/cbor" else body.decode()
            )

    def call(
        self, key: Key, canister: Principal, method: str, arg: bytes, kind: str = "call"
    ) -> dict[str, Any]:
        more = {
            "canister_id": bytes(canister),
            "method_name": method,
            "arg": arg,
            "request_type": kind,
        }
        return signed(key, expiry=time.time_ns() + SECOND, **more)

    async def read(
        self, key: Key, canister: Principal, *paths: list[bytes], version: str = "v3"
    ) -> tuple[int, Any]:
        more = {
            "request_type": "read_state",
            "paths": list(paths),
            "expiry": time.time_ns() + SECOND,
        }
        status, told = await self.post(
            f"{version}/canister/{canister.text}/read_state", signed(key, **more)
        )
        return status, self.verified(told, canister) if status == 200 else told

    def verified(self, told: Any, canister: Principal) -> Certified:
        return read_certificate(
            told["certificate"], self.port.authority.root_key, canister, time.time_ns()
        )


def play(story: Callable[[Agent], Awaitable[None]], scenario: str = SCENARIO) -> None:
    async def played() -> None:
        run = Run(parse(scenario, "port"), modules=lambda _model, _who: WasmCanister(canister()))
        run.network.make = WasmCanister
        port = Port(run, LOCAL)
        async with TestClient(TestServer(port.application())) as client:
            await story(Agent(client, port))

    asyncio.run(played())


def test_a_call_through_the_proxy_ends_in_a_certificate() -> None:
    async def story(agent: Agent) -> None:
        port, key = agent.port, Key()
        arg = PROXY.encode(port.run.who["orchestrator"], "icrc72_no_such", b"DIDL\0\0")
        envelope = agent.call(key, port.proxy, "forward", arg)
        identity = hash_of(envelope["content"])
        path = [b"request_status", identity]
        for version in ("v4", "v3", "v4"):  # the second and third ask for the same request
            status, told = await agent.post(f"{version}/canister/{port.proxy.text}/call", envelope)
            assert (status, told["status"]) == (200, "replied")
            tree = agent.verified(told, port.proxy)
            assert tree.value(*path, b"status") == b"replied"
            assert b"no method" in (tree.value(*path, b"reply") or b"")
        for who, expected in ((key, 200), (Key(), 400)):
            status, _ = await agent.read(who, port.proxy, path)
            assert status == expected

    play(story)


def test_a_request_for_another_canister_than_its_address_names_is_refused() -> None:
    async def story(agent: Agent) -> None:
        port = agent.port
        envelope = agent.call(Key(), port.proxy, "forward", b"")
        for place in (
            f"canister/{port.run.who['orchestrator'].text}",
            "canister/nobody",
            f"canister/{CANISTER.text}",
        ):
            status, words = await agent.post(f"v4/{place}/call", envelope)
            assert status == 400, words
            assert words.count("\n") == 1
        for paths in (
            [b"canister", bytes(port.run.who["orchestrator"]), b"controllers"],
            [],
            [b"request_status"],
        ):
            status, words = await agent.read(Key(), port.proxy, paths)
            assert (status, "is not read here" in words) == (400, True)

    play(story)


def test_a_port_waits_so_many_rounds_and_keeps_the_answers_of_so_many_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "MOST_ROUNDS", 0)
    monkeypatch.setattr(server, "MOST_REQUESTS", 2)

    async def story(agent: Agent) -> None:
        port, key = agent.port, Key()
        envelopes = [agent.call(key, port.proxy, "forward", arg) for arg in (b"a", b"b", b"c")]
        for each in envelopes:
            assert await agent.post(f"v4/canister/{port.proxy.text}/call", each) == (202, "")
        assert list(port._requests) == [hash_of(each["content"]) for each in envelopes[1:]]

    play(story)


def test_strangers_meet_the_guard() -> None:
    async def story(agent: Agent) -> None:
        path = f"v4/canister/{agent.port.proxy.text}/call"
        assert (await agent.post(path, {}, Host="evil.example"))[0] == 403
        assert (await agent.post(path, {}, Origin="https://evil.example"))[0] == 403
        assert (await agent.post(path, {}, **{"Content-Type": "text/plain"}))[0] == 415
        assert (await agent.post(path, {"content": bytes(requests.MOST_BODY)}))[0] == 413
        async with agent.client.get(
            "/api/v2/status", headers={"Origin": "http://localhost:3000"}
        ) as answer:
            assert cbor2.loads(await answer.read())["root_key"] == agent.port.authority.root_key
            assert answer.headers["Access-Control-Allow-Origin"] == "http://localhost:3000"
        async with agent.client.options(
            f"/api/{path}", headers={"Origin": "http://localhost:3000"}
        ) as answer:
            assert (answer.status, answer.headers["Access-Control-Allow-Headers"]) == (
                204,
                "Content-Type",
            )

    play(story)


def test_a_controller_stops_and_upgrades_its_canister_and_nobody_else_does() -> None:
    key = Key()
    named = (
        '[[canister]]\nname = "own"\nsubnet = 1\nwasm = "own.wasm"\ncontrollers ='
        f' ["{key.who.text}"]\n'
    )
    what = Encoder(parse_types("(record { canister_id : principal })"))
    mode = "variant { install; reinstall; upgrade : opt record {} }"
    fields = f"mode : {mode}; canister_id : principal; wasm_module : blob; arg : blob"
    install = Encoder(parse_types(f"(record {{ {fields} }})"))

    async def story(agent: Agent) -> None:
        port = agent.port
        own = port.run.who["own"]

        async def manage(who: Key, method: str, arg: bytes) -> Any:
            envelope = agent.call(who, Principal(), method, arg)
            _, told = await agent.post(f"v4/canister/{own.text}/call", envelope)
            tree = agent.verified(told, own)
            return tree.value(b"request_status", hash_of(envelope["content"]), b"status")

        before = port.network.canister(own)
        again = install.encode((Variant("upgrade", None), own, canister(), b"DIDL\0\0"))
        assert await manage(Key(), "stop_canister", what.encode((own,))) == b"rejected"
        assert await manage(key, "stop_canister", what.encode((own,))) == b"replied"
        assert await manage(key, "install_code", again) == b"replied"
        assert await manage(key, "start_canister", what.encode((own,))) == b"replied"
        assert port.network.canister(own) is not before
        _, tree = await agent.read(Key(), own, [b"canister", own, b"controllers"])
        assert cbor2.loads(tree.value(b"canister", own, b"controllers") or b"")[0] == key.who
        envelope = agent.call(Key(), Principal(), "raw_rand", b"DIDL\0\0")
        _, told = await agent.post(f"v4/canister/{own.text}/call", envelope)
        assert told["status"] == "non_replicated_rejection"

    play(story, SCENARIO + named)
