"""The conformance kit over HTTP: an agent judges as the trial in the network does, and refuses a
replica that lies.
"""

import gzip
import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.icrc72 import wrong_roles
from support.icrc72.replica import Replica, replica
from support.icrc72.wrong_roles import WRONG
from support.plumbing.command import pubsub
from support.plumbing.snapshots import Snapshot
from support.plumbing.transcript import Transcript

from interchain_events.icrc72.conformance.probes import Verdict
from interchain_events.icrc72.conformance.remote import visit
from interchain_events.icrc72.conformance.rules import rules_of
from interchain_events.icrc72.ic.principal import Principal, canister_id
from interchain_events.icrc72.port import agent
from interchain_events.icrc72.port.agent import (
    MOST_DEPTH,
    MOST_RANGES,
    OLDEST,
    Agent,
    AgentError,
    number,
    read_certificate,
)
from interchain_events.icrc72.port.authority import Authority, cbor, nat
from interchain_events.icrc72.port.envelope import MOST_ITEMS, BadRequest, read_cbor
from interchain_events.icrc72.port.hash_tree import witness
from interchain_events.icrc72.port.server import Port
from interchain_events.icrc72.scenario import Run

PLACES = {
    "orchestrator": "orchestrator",
    "broadcaster": "broadcaster 0",
    "publisher": "prices",
    "subscriber": "desk",
}


def tried(role: str, change: Callable[[Run], None] = lambda _run: None) -> list[Verdict]:
    """The verdicts on the canister of a role in a replica."""
    with replica(change) as there:
        who = there.who[PLACES[role]]
        code: Any = there.port.network.canister(who)
        handled = (lambda: list(code.data)) if role == "subscriber" else None
        caller = Agent(there.url, who, there.who["proxy"], pause=0.05)
        verdicts, note = visit(role, caller, None, "org.example.price", handled)
        assert not note
        return verdicts


def instead(role: str, make: Callable[[Principal], Any]) -> Callable[[Run], None]:
    """Have a wrong canister in a role, before the first round."""

    def change(run: Run) -> None:
        other = "broadcaster 0" if role == "orchestrator" else "orchestrator"
        run.network.reinstall(run.who[PLACES[role]], make(run.who[other]))

    return change


def broken(verdicts: list[Verdict]) -> list[str]:
    return [each.rule for each in verdicts if not each.holds]


@pytest.mark.parametrize(
    ("role", "met"),
    [
        ("orchestrator", 24),
        ("broadcaster", 6),
        ("publisher", 2),
        ("subscriber", 4),
    ],
)
def test_honest_roles_break_nothing_and_all_other_rules_are_reported_untested(
    role: str, met: int
) -> None:
    verdicts = tried(role)
    assert broken(verdicts) == []
    assert sorted(each.rule for each in verdicts) == sorted(rules_of(role))
    assert sum(each.shown > 0 for each in verdicts) == met


MADE = {
    "subscriber: always traps": (wrong_roles.role("subscriber", wrong_roles.trapping()), "IC-4"),
    **WRONG,
}


@pytest.mark.parametrize(
    "name",
    [
        "orchestrator: takes any publication",
        "orchestrator: cancels what is over",
        "broadcaster: answers Ok to anybody",
        "subscriber: takes everybody for a broadcaster",
        "subscriber: tells no statistics",
        "subscriber: always traps",
        "publisher: believes a stranger's alert",
    ],
)
def test_a_wrong_role_breaks_the_same_rules_as_in_the_network(name: str) -> None:
    """The probes are those of the trials there, which meet every wrong role."""
    role, (make, *rules) = name.partition(":")[0], MADE[name]
    assert {*rules} <= {*broken(tried(role, instead(role, make)))}


def test_who_lets_no_user_in_is_queried_and_the_proxy_is_named() -> None:
    with replica() as there:
        verdicts, note = visit("orchestrator", Agent(there.url, there.who["orchestrator"]))
    assert sorted(each.rule for each in verdicts if each.shown) == ["IC-35a", "IC-35a pages"]
    assert f"IC0406: refused at inspect; the canister {there.who['proxy'].text} (proxy)" in note


# Replicas that lie

CANISTER = Principal(bytes(7) + b"\1\1\1")
NOW = 10**18


def test_a_certificate_proves_its_part_of_the_state_but_not_its_absence() -> None:
    for subnet, path in ((0, (b"a", b"x")), (1, (b"b",)), (2, (b"c",))):
        authority = Authority(b"seed", 3)
        canister = Principal(authority.subnets[subnet].first)
        shown = read_certificate(
            authority.certify(subnet, NOW, {b"a": {b"x": b"1"}, b"b": b"2"}, [path]),
            authority.root_key,
            canister,
            NOW,
        )
        assert shown.subnet == authority.subnets[subnet].id
        assert [shown.value(b"a", b"x"), shown.value(b"b"), shown.value(b"c")].count(None) == 3 - (
            subnet < 2
        )


def delegated_twice(authority: Authority) -> bytes:
    lie = cbor2.loads(authority.certify(1, NOW, {}, []))
    inner = cbor2.loads(authority.certify(1, NOW, {}, []))
    return cbor({**lie, "delegation": {**lie["delegation"], "certificate": cbor(inner)}})


def deep(levels: int) -> bytes:
    """A certificate of so many levels of lists, and a map around them."""
    tree: list[object] = [3, b""]
    for _ in range(levels - 1):
        tree = [2, b"", tree]
    return cbor2.dumps({"tree": tree, "signature": b""})


def ranges(count: int) -> bytes:
    authority = Authority(b"seed", 2)
    keys = authority.subnets[1]
    keys.ranges = cbor(
        [[b"\xff", b"\xff"]] * (count - 1) + [[bytes(keys.first), bytes(keys.first)]]
    )
    return authority.certify(1, NOW, {}, [])


def timed(authority: Authority, time: bytes) -> bytes:
    """A certificate of the root subnet whose time has these bytes."""
    tree, root = witness({b"time": time}, [()])
    return cbor({"tree": tree, "signature": authority.subnets[0].sign(root)})


LIES: dict[str, tuple[Callable[[Authority], bytes], str]] = {
    "another's key": (lambda _: Authority(b"other", 1).certify(0, NOW, {}, []), "does not verify"),
    "another value": (
        lambda a: a.certify(0, NOW, {b"x": b"12345"}, [(b"x",)]).replace(b"12345", b"12346"),
        "does not verify",
    ),
    "no signature": (
        lambda a: cbor({**cbor2.loads(a.certify(0, NOW, {}, [])), "signature": b""}),
        "does not verify",
    ),
    "no tree": (
        lambda a: cbor({**cbor2.loads(a.certify(0, NOW, {}, [])), "tree": [5]}),
        "does not verify",
    ),
    "a subnet that does not have it": (lambda a: a.certify(1, NOW, {}, []), "which does not have"),
    "a subnet that delegates on": (delegated_twice, "is delegated itself"),
    "yesterday": (lambda a: a.certify(0, NOW - OLDEST - 1, {}, []), "the answer is of"),
    "no time": (
        lambda a: cbor(
            {"tree": witness({}, [()])[0], "signature": a.subnets[0].sign(witness({}, [()])[1])}
        ),
        "the certificate shows no time",
    ),
    "a time of 2,200 bytes": (lambda a: timed(a, b"\xff" * 2200), "a number of 2,200 bytes"),
    "a time of 65 bits": (lambda a: timed(a, b"\xff" * 9 + b"\2"), "has more than 64 bits"),
    "a time that goes on": (lambda a: timed(a, b"\xff" * 9), "does not end where its bytes end"),
    "bytes behind the time": (lambda a: timed(a, b"\1\1"), "does not end where its bytes end"),
    "many items": (lambda _: cbor2.dumps([0] * MOST_ITEMS), "up to 200,000 items"),
    "a deep tree": (lambda _: deep(MOST_DEPTH), "the body is not CBOR"),
    "many ranges": (lambda _: ranges(MOST_RANGES + 1), "a list of up to 10000"),
    "no map": (lambda _: cbor([]), "is not a map"),
}


@pytest.mark.parametrize("name", LIES)
def test_a_certificate_that_does_not_verify_is_refused(name: str) -> None:
    make, words = LIES[name]
    authority = Authority(b"seed", 2)
    with pytest.raises(BadRequest, match=words):
        read_certificate(make(authority), authority.root_key, CANISTER, NOW)


def test_a_certificate_at_its_limits_is_read() -> None:
    authority = Authority(b"seed", 2)
    first = Principal(authority.subnets[1].first)
    assert (
        read_certificate(ranges(MOST_RANGES), authority.root_key, first, NOW).subnet
        == authority.subnets[1].id
    )
    with pytest.raises(BadRequest, match="does not verify"):  # it was read
        read_certificate(deep(MOST_DEPTH - 1), authority.root_key, first, NOW)


def test_cbor_at_its_limit_of_items_is_read() -> None:
    for body in ([0] * (MOST_ITEMS - 1), [b"a" * 300] * 1000, ["a" * 70_000] * 9):
        assert read_cbor(cbor2.dumps(body), 2) == body
    with pytest.raises(BadRequest, match="items"):
        read_cbor(b"\x9f" + bytes(MOST_ITEMS), 2)


@given(st.integers(0, 2**64 - 1))
def test_a_number_of_64_bits_is_read(value: int) -> None:
    assert number(nat(value)) == value


def test_a_replica_that_sends_a_byte_now_and_then_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limit is for the whole answer: each byte comes well within it."""
    monkeypatch.setattr(agent, "PATIENCE", 0.5)
    ended = threading.Event()

    def drip(listener: socket.socket) -> None:
        line, _ = listener.accept()
        with line, suppress(OSError):
            line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while not ended.wait(0.02):
                line.sendall(b"0")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        dripping = threading.Thread(target=drip, args=(listener,))
        dripping.start()
        try:
            with pytest.raises(AgentError, match="the whole answer did not come within"):
                Agent(f"http://127.0.0.1:{listener.getsockname()[1]}", CANISTER)
        finally:
            ended.set()
            dripping.join()


def test_a_compressed_answer_is_not_unpacked() -> None:
    # Unpacked, it would be the status of a replica.
    packed = gzip.compress(cbor({"root_key": Authority(b"seed", 1).root_key}))

    def send(listener: socket.socket) -> None:
        line, _ = listener.accept()
        with line:
            head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}"
            line.recv(10_000)
            line.sendall(head.encode() + b"\r\n\r\n" + packed)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        sending = threading.Thread(target=send, args=(listener,))
        sending.start()
        with pytest.raises(AgentError, match="is not a replica: the body is not CBOR"):
            Agent(f"http://127.0.0.1:{listener.getsockname()[1]}", CANISTER)
        sending.join()


def test_an_answer_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    with replica() as there:
        monkeypatch.setattr(agent, "MOST_ANSWER", 100)
        with pytest.raises(AgentError, match="the answer has more than 100 bytes"):
            Agent(there.url, there.who["desk"])


def other_root(port: Port) -> None:
    port.authority.subnets[0].key = Authority(b"other", 1).root_key


def other_node(port: Port) -> None:
    for each in port.authority.subnets:
        each._node = Authority(b"other", 1).subnets[0]._node


def other_status(port: Port) -> None:
    honest = port.authority.certify
    port.authority.certify = lambda *told: honest(*told).replace(b"replied", b"rejected"[1:])  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        (other_root, "does not verify"),
        (other_node, "the signature is not one of its key"),
        (other_status, "does not verify"),
    ],
)
def test_a_replica_that_lies_is_refused_in_one_line(
    lie: Callable[[Port], None], words: str
) -> None:
    def ask(there: Replica) -> None:
        caller = Agent(there.url, there.who["desk"], there.who["proxy"])
        caller.call("icrc72_handle_notification", b"DIDL\0\0")
        caller.query("icrc72_get_subscriber_stats", b"DIDL\0\0")

    with replica() as there:
        ask(there)
        lie(there.port)
        with pytest.raises(AgentError, match=words) as refused:
            ask(there)
        assert "\n" not in str(refused.value)


def test_a_replica_without_the_newer_call_is_polled_with_the_older() -> None:
    with replica() as there:
        caller = Agent(there.url, there.who["orchestrator"], there.who["proxy"])
        honest = caller._http
        asked: list[str] = []

        def old(path: str, body: bytes | None = None) -> tuple[int, bytes]:
            asked.append(path)
            return (404, b"not found") if "/v3/" in path else honest(path, body)

        caller._http = old  # type: ignore[method-assign]
        answer = caller.call("icrc72_get_valid_broadcasters", b"DIDL\0\0")
    assert answer.ok
    assert [path.rpartition("/")[2] for path in asked[-3:]] == ["call", "call", "read_state"]


REFUSED = (
    "--url ftp://127.0.0.1 --orchestrator aaaaa-aa",
    "--url http://127.0.0.1:1 --orchestrator my.wasm",
    "--url http://127.0.0.1:1 --publisher aaaaa-aa --publish x",
    "--publisher my.wasm --proxy aaaaa-aa",
)


def test_options_that_do_not_fit_are_refused(transcript: Transcript, snapshot: Snapshot) -> None:
    for options in REFUSED:
        transcript.refuse(f"pubsub icrc72 conform {options}")
    snapshot("refused-options", str(transcript))


def test_a_replica_that_does_not_answer_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--url", "http://127.0.0.1:1", "--orchestrator", "aaaaa-aa")
    assert pubsub(monkeypatch, "icrc72", "conform", *words) == 4
    assert "no replica answers at http://127.0.0.1:1" in capsys.readouterr().err


def test_the_command_tries_a_canister_and_names_a_missing_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with replica() as there:
        words = ["icrc72", "conform", "--url", there.url, "--broadcaster"]
        ids = there.who["broadcaster 0"].text, there.who["proxy"].text
        assert pubsub(monkeypatch, *words, ids[0], "--proxy", ids[1], "--json") == 0
        told = json.loads(capsys.readouterr().out)
        assert {each["rule"]: each["holds"] for each in told["rules"]}.items() >= {
            "IC-41": True,
            "IC-43": None,
        }.items()
        assert pubsub(monkeypatch, *words, canister_id(1, 999).text) == 2
        assert "there is no canister" in capsys.readouterr().err
