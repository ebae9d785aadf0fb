"""The HTTP interface: who is let in, what is certified, and how long it waits."""

import asyncio
import io
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any, cast

import cbor2
import pytest
import wasmtime
from aiohttp.test_utils import TestClient, TestServer
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256K1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from support.icrc72.wat import canister

from interchain_events.icrc72.ic.candid.did import parse_types
from interchain_events.icrc72.ic.candid.encode import Encoder
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import SECOND, Answer, Ticket
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal, self_authenticating
from interchain_events.icrc72.ic.wasm.canister import WasmCanister
from interchain_events.icrc72.port import envelope as requests
from interchain_events.icrc72.port import hash_tree, server
from interchain_events.icrc72.port import proxy as proxies
from interchain_events.icrc72.port.agent import Certified, read_certificate
from interchain_events.icrc72.port.authority import hash_of
from interchain_events.icrc72.port.envelope import read_request
from interchain_events.icrc72.port.hash_tree import digest, leaf, separated, witness
from interchain_events.icrc72.port.proxy import Proxy, Received
from interchain_events.icrc72.port.requests import STAY, Requests
from interchain_events.icrc72.port.server import Port
from interchain_events.icrc72.scenario import Run
from interchain_events.icrc72.scenario_file import parse
from pubsub_emulator.serving.guard import LOCAL, Names

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
    [
        [[b"a"]] * requests.MOST_PATHS,
        [[b"a"] * requests.MOST_LABELS],
    ],
    ids=["as many paths", "as many labels"],
)
def test_a_path_at_its_limits_is_read(paths: list[list[bytes]]) -> None:
    envelope = {"content": content_of(request_type="read_state", paths=paths)}
    assert requests.read_request(cbor2.dumps(envelope), "read_state", NOW).paths == tuple(
        tuple(each) for each in paths
    )


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(
            requests.MOST_DELEGATIONS,
            id="at the limit",
        ),
        pytest.param(
            requests.MOST_DELEGATIONS + 1,
            id="beyond the limit",
        ),
    ],
)
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
        return signed(key, expiry=self.port._clock() + SECOND, **more)

    async def read(
        self, key: Key, canister: Principal, *paths: list[bytes], version: str = "v3"
    ) -> tuple[int, Any]:
        more = {
            "request_type": "read_state",
            "paths": list(paths),
            "expiry": self.port._clock() + SECOND,
        }
        status, told = await self.post(
            f"{version}/canister/{canister.text}/read_state", signed(key, **more)
        )
        return status, self.verified(told, canister) if status == 200 else told

    def verified(self, told: Any, canister: Principal) -> Certified:
        return read_certificate(
            told["certificate"], self.port.authority.root_key, canister, self.port._clock()
        )


def play(
    story: Callable[[Agent], Awaitable[None]], scenario: str = SCENARIO, names: Names = LOCAL
) -> None:
    async def played() -> None:
        run = Run(parse(scenario, "port"), modules=lambda _model, _who: WasmCanister(canister()))
        run.network.make = WasmCanister
        # A clock that stands still: requests would expire while a slow machine signs them.
        port = Port(run, names, clock=lambda: NOW)
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


COUNTER = wasmtime.wat2wasm("""(module
  (import "ic0" "msg_reply" (func $reply))
  (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
  (memory 1)
  (func (export "canister_update add")
    (i32.store (i32.const 0) (i32.add (i32.load (i32.const 0)) (i32.const 1)))
    (call $append (i32.const 0) (i32.const 4))
    (call $reply))
  (func (export "canister_query get") (call $append (i32.const 0) (i32.const 4)) (call $reply)))
""")
"""Counts the calls of `add`."""


def counters(port: Port) -> tuple[Principal, Principal]:
    """Two canisters that count calls."""
    first, second = (port.network.create(0, WasmCanister(COUNTER)) for _ in range(2))
    return first, second


def counted(port: Port, who: Principal) -> int:
    return int.from_bytes(port.network.query(ANONYMOUS, who, "get", b"").data, "little")


def test_a_signed_call_runs_once_however_many_calls_follow_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "MOST_ROUNDS", 5)

    async def story(agent: Agent) -> None:
        port, key = agent.port, Key()
        who, _ = counters(port)
        port._requests = Requests(2, most=20, answer_bytes=0)
        path = f"v4/canister/{who.text}/call"
        envelope = agent.call(key, who, "add", b"")
        statuses: list[int] = []
        for number in range(25):
            status, _ = await agent.post(path, envelope)
            assert (status, counted(port, who)) == (200, 1)
            other = agent.call(Key(), who, "nothing", b"%d" % number)
            statuses.append((await agent.post(path, other))[0])
        # The victim's is the first of twenty.
        assert statuses == [200] * 19 + [503] * 6
        assert len(port._requests) == 20

    play(story)


def test_a_call_is_forgotten_only_when_it_cannot_be_sent_again() -> None:
    async def story(agent: Agent) -> None:
        port, key = agent.port, Key()
        who, _ = counters(port)
        port._requests = Requests(2, most=1)
        times = [NOW]
        port._clock = lambda: times[-1]
        path = f"v4/canister/{who.text}/call"
        envelope = signed(key, canister_id=bytes(who), method_name="add")
        later = signed(key, canister_id=bytes(who), method_name="add", expiry=NOW + 90 * SECOND)
        assert (await agent.post(path, envelope))[0] == 200
        # A clock that goes back makes nothing valid again.
        for time_, wanted in ((NOW, 503), (NOW + SECOND + STAY, 200), (NOW, 200)):
            times.append(time_)
            assert (await agent.post(path, later))[0] == wanted
            status, words = await agent.post(path, envelope)
            if wanted == 503:
                assert (status, counted(port, who)) == (200, 1)
            else:
                assert (status, counted(port, who)) == (400, 2)
                assert words.startswith("Invalid request expiry")

    play(story)


def test_a_session_reads_no_answers_of_canisters_for_which_it_is_not() -> None:
    async def story(agent: Agent) -> None:
        port, owner, session = agent.port, Key(), Key()
        who, other = counters(port)
        port._clock = lambda: NOW
        envelope = signed(owner, canister_id=bytes(who), method_name="add")
        assert (await agent.post(f"v4/canister/{who.text}/call", envelope))[0] == 200
        path = [b"request_status", hash_of(envelope["content"])]

        async def read(address: Principal, *chain: list[bytes] | None) -> int:
            reading = signed(owner, request_type="read_state", paths=[path])
            keys = [owner, *(Key() for _ in chain[1:]), session]
            links: list[object] = []
            for (by, to), targets in zip(pairwise(keys), chain, strict=True):
                more = {} if targets is None else {"targets": targets}
                links += delegated(by, to, **more)["sender_delegation"]
            reading["sender_sig"] = session.sign("ic-request", reading["content"])
            reading["sender_delegation"] = links
            status, _ = await agent.post(f"v3/canister/{address.text}/read_state", reading)
            return status

        assert await read(who, None) == 200
        assert await read(who, [bytes(who), bytes(other)]) == 200
        assert await read(who, [bytes(other)]) == 400
        assert await read(who, []) == 400
        # Each delegation of the chain restricts it.
        assert await read(who, [bytes(who)], [bytes(other)]) == 400
        assert await read(who, [bytes(other)], [bytes(who)]) == 400
        assert await read(who, [bytes(other)], None) == 400
        # The answer is only at the address of the call.
        assert await read(other, None) == 400
        assert await read(other, [bytes(other)]) == 400

    play(story)


def test_answers_of_the_oldest_calls_are_dropped_and_their_ids_kept() -> None:
    async def story(agent: Agent) -> None:
        port, key = agent.port, Key()
        who, _ = counters(port)
        port._requests = Requests(2, answer_bytes=8)
        envelopes = [agent.call(key, who, "add", b"%d" % number) for number in range(3)]
        for each in envelopes:
            assert (await agent.post(f"v4/canister/{who.text}/call", each))[0] == 200
        paths = [[b"request_status", hash_of(each["content"])] for each in envelopes]
        _, tree = await agent.read(key, who, *paths)
        assert [tree.value(*path, b"status") for path in paths] == [b"done", *[b"replied"] * 2]
        assert tree.value(*paths[0], b"reply") is None
        assert [tree.value(*path, b"reply") for path in paths[1:]] == [
            b"\2\0\0\0",
            b"\3\0\0\0",
        ]

    play(story)


@pytest.mark.parametrize(
    "limit",
    [
        pytest.param(
            {"waiting": 2},
            id="calls",
        ),
        pytest.param(
            {"waiting_bytes": 600},
            id="bytes",
        ),
    ],
)
def test_calls_under_way_have_a_limit_in_pieces_and_in_bytes(
    limit: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(agent: Agent) -> None:
        port, key = agent.port, Key()
        who, _ = counters(port)
        port._requests = Requests(2, **limit)
        port.network.stop(who)

        async def send(number: int) -> int:
            envelope = agent.call(key, who, "add", b"%d" % number)
            return (await agent.post(f"v2/canister/{who.text}/call", envelope))[0]

        # Two calls leave no room for a third one. Rounds make some, unless there are none.
        monkeypatch.setattr(server, "MOST_ROUNDS", 1)
        assert [await send(number) for number in range(3)] == [202, 202, 503]
        monkeypatch.setattr(server, "MOST_ROUNDS", 3)
        assert [await send(number) for number in range(3, 10)] == [202] * 7

    play(story)


def test_a_certificate_costs_no_more_when_strangers_have_called() -> None:
    """A certificate hashes what it shows and the canisters, and nothing of other calls."""

    async def story(agent: Agent) -> None:
        port, key = agent.port, Key()
        who, _ = counters(port)
        envelope = agent.call(key, who, "add", b"")
        await agent.post(f"v4/canister/{who.text}/call", envelope)
        for number in range(500):
            content = content_of(expiry=NOW + 60 * SECOND, nonce=b"%d" % number)
            request = read_request(cbor2.dumps({"content": content}), "call", NOW)
            port._requests.add(request, who, 0, Ticket(Answer(bytes(1000))))
        hashed = 0
        honest = hash_tree.sha256

        def counting(data: bytes = b"") -> object:
            nonlocal hashed
            hashed += 1
            return honest(data)

        port._requests.settle()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(hash_tree, "sha256", counting)
            _, tree = await agent.read(key, who, [b"request_status", hash_of(envelope["content"])])
        assert tree.value(b"request_status", hash_of(envelope["content"]), b"status") == b"replied"
        assert hashed < 500  # with one hash or more for each call it is above

    play(story)


def test_a_request_id_has_32_bytes() -> None:
    async def story(agent: Agent) -> None:
        port = agent.port
        for length, wanted in ((31, 400), (32, 200), (33, 400)):
            status, _ = await agent.read(Key(), port.proxy, [b"request_status", bytes(length)])
            assert status == wanted

    play(story)


def test_a_proxy_keeps_messages_up_to_limits_of_pieces_and_bytes() -> None:
    proxy = Proxy()

    def receive(size: int) -> None:
        proxy._keep(Received(ANONYMOUS, "m", bytes(size)))

    for _ in range(proxies.MOST_KEPT + 2):
        receive(3)
    assert (len(proxy.received), proxy.dropped) == (proxies.MOST_KEPT, 2)
    receive(proxies.MOST_KEPT_BYTES // 2)
    receive(proxies.MOST_KEPT_BYTES // 2)
    assert [len(each.arg) for each in proxy.received] == [proxies.MOST_KEPT_BYTES // 2]
    answer = proxies.RECEIVED.decode(proxy.query(ANONYMOUS, 0, "received", b"DIDL\0\1\x7d\0"))
    assert len(cast("tuple[object, ...]", answer[0])) == 1
    receive(proxies.MOST_KEPT_BYTES)
    assert (proxy.received, proxy.kept_bytes) == ((), 0)
    assert proxy.dropped == proxies.MOST_KEPT + 5


def test_strangers_meet_the_guard() -> None:
    async def story(agent: Agent) -> None:
        path = f"v4/canister/{agent.port.proxy.text}/call"
        assert (await agent.post(path, {}, Host="evil.example"))[0] == 403
        for origin in ("https://evil.example", "http://localhost:3001"):
            assert (await agent.post(path, {}, Origin=origin))[0] == 403
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

    play(story, names=Names(origins=("http://localhost:3000",)))


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
