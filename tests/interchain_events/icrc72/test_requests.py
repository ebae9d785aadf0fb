"""The table of users' calls: what it keeps, for how long, and within which limits."""

import pytest

from interchain_events.icrc72.ic.canister import CANISTER_ERROR, Answer, Ticket
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.port.agent import LONGEST_NUMBER, number
from interchain_events.icrc72.port.authority import nat
from interchain_events.icrc72.port.envelope import BadRequest, Request
from interchain_events.icrc72.port.hash_tree import leaf, witness
from interchain_events.icrc72.port.kept_tree import KeptTree
from interchain_events.icrc72.port.requests import (
    MOST_ANSWER_BYTES,
    MOST_REQUESTS,
    MOST_WAITING,
    MOST_WAITING_BYTES,
    STAY,
    Requests,
)

CANISTER = Principal(bytes(7) + b"\1\1\1")


def request(at: int, *, expiry: int = 100, size: int = 1) -> Request:
    """A call whose id is a number."""
    return Request(
        id=at.to_bytes(32, "big"),
        sender=ANONYMOUS,
        canister=CANISTER,
        method="m",
        arg=b"",
        paths=(),
        expiry=expiry,
        size=size,
        targets=None,
    )


def add(table: Requests, at: int, *, answer: Answer | None = None, **more: int) -> Ticket:
    ticket = Ticket(answer)
    table.add(request(at, **more), CANISTER, 0, ticket)
    return ticket


def status(table: Requests, at: int) -> bytes | None:
    label = at.to_bytes(32, "big")
    return leaf(witness(table.tree(0), [(label,)])[0], label, b"status")


def test_ids_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    # The tree has tests of its own, and needs no time here.
    for name in ("put", "remove"):
        monkeypatch.setattr(KeptTree, name, lambda *_: None)
    table = Requests(1)
    for at in range(MOST_REQUESTS):
        assert not table.is_full()
        add(table, at, answer=Answer(b""), expiry=at)
        if not at % MOST_WAITING:
            table.settle()
    assert table.is_full()
    table.forget(STAY - 1)
    assert table.is_full()
    table.forget(STAY)
    assert (table.is_full(), len(table)) == (False, MOST_REQUESTS - 1)


def test_calls_under_way_have_a_limit_in_pieces() -> None:
    table = Requests(1)
    tickets = []
    for at in range(MOST_WAITING):
        assert not table.is_busy(1)
        tickets.append(add(table, at))
    assert table.is_busy(0)
    tickets[7].answer = Answer(b"")
    table.settle()
    assert not table.is_busy(1)


def test_calls_in_flight_including_expired_ones_are_limited_in_bytes() -> None:
    table = Requests(1)
    assert not table.is_busy(MOST_WAITING_BYTES + 1)
    first = add(table, 1, size=MOST_WAITING_BYTES - 10)
    assert [table.is_busy(10), table.is_busy(11)] == [False, True]
    table.forget(100 + STAY)
    assert (table.get(bytes(31) + b"\1"), table.is_busy(11)) == (None, True)
    first.answer = Answer(b"late")
    table.settle()
    assert not table.is_busy(MOST_WAITING_BYTES)
    assert status(table, 1) is None


def test_answers_have_a_limit_in_bytes_and_free_theirs_when_they_expire() -> None:
    table = Requests(1)
    half = Answer(bytes(MOST_ANSWER_BYTES // 2))
    add(table, 1, answer=half)
    add(table, 2, answer=Answer(b"", CANISTER_ERROR, "x" * (MOST_ANSWER_BYTES // 2)))
    table.settle()
    assert [status(table, at) for at in (1, 2)] == [b"replied", b"rejected"]
    add(table, 3, answer=Answer(b"1"), expiry=200)
    table.settle()
    assert [status(table, at) for at in (1, 2, 3)] == [b"done", b"rejected", b"replied"]
    table.forget(100 + STAY)
    assert [status(table, at) for at in (1, 2, 3)] == [None, None, b"replied"]
    for at in (4, 5):
        add(table, at, answer=half, expiry=300)
        table.settle()
    assert [status(table, at) for at in (3, 4, 5)] == [b"done", b"replied", b"replied"]


@pytest.mark.parametrize(
    "length",
    [
        pytest.param(
            1,
            id="one byte",
        ),
        pytest.param(
            LONGEST_NUMBER,
            id="longest",
        ),
    ],
)
def test_a_number_of_a_certificate_has_a_limit(length: int) -> None:
    assert number(nat((1 << 64) - 1 if length > 1 else 5)) in {5, (1 << 64) - 1}
    with pytest.raises(BadRequest, match="a number of 11 bytes"):
        number(b"\x80" * LONGEST_NUMBER + b"\0")
