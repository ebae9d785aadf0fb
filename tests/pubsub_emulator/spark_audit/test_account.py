"""The running totals of a network (AU-16), and its tables of collators and subscriptions."""

import json
from dataclasses import replace
from typing import Any

import pytest
from support.runtime.world import COLLATORS, Chain, make_spec, numbered

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.parachain.governance import upgrade
from pubsub_emulator.runtime.parachain.storage import AUTHORITIES
from pubsub_emulator.spark_audit.history.manifest import Commit, canonical_json, digest_of
from pubsub_emulator.spark_audit.history.rows import encode_items
from pubsub_emulator.spark_audit.judge.account import ChainAccount, NetworkAccount
from pubsub_emulator.spark_audit.judge.announced import Announced

Fields = dict[str, Any]


def _receipt(chain: int, segment: int, **changes: object) -> Any:
    """The receipt of a chain's segment of three candidates, of which two were judged."""
    return {
        "chain": chain,
        "segment": segment,
        "kind": "candidates",
        "candidates": 3,
        "judged": 2,
        "complete": True,
        "seam": "closed",
        "genesis": False,
        "start": None,
        "end": None,
        "end_number": None,
        "proof_bytes": 10,
        "findings": [],
        "digests": {"blocks": "ab"},
        **changes,
    }


def test_an_account_of_a_chain_adds_up_its_segments() -> None:
    account = ChainAccount(4, 4)
    first = {"genesis": True, "start": "aa", "end": "bb", "end_number": 9}
    findings = [["error", "X", 2], ["info", "Y", 4], ["error", "Z", 1]]
    account.add(_receipt(1, 4, **first, findings=findings, kind="imported"))
    assert account.imported
    account.add(
        _receipt(1, 5, start="cc", complete=False, seam="mismatch", findings=[["error", "X", 5]])
    )
    account.add(_receipt(1, 6, seam="open", end="dd", end_number=12, kind="imported"))
    assert account == ChainAccount(
        first=4,
        last=4,
        segments=3,
        complete=2,
        candidates=9,
        judged=6,
        proof_bytes=30,
        errors=8,
        imported=False,
        genesis=True,
        start="aa",
        started_in=4,
        end="dd",
        end_number=12,
        incomplete=[5],
        mismatched=[5],
        untied=[6],
    )


def _commit(segment: int, *chains: int) -> Commit:
    return Commit("dev", segment, (), dict.fromkeys(chains, 1), None, f"{segment:064x}")


def test_a_segment_without_a_chain_is_absent_only_between_others() -> None:
    account = NetworkAccount("dev")
    unread = [{"error": "broken"}]
    for segment, judged in enumerate([(1, 2), (1,), (1,), (1, 2), (1,)]):
        # Chain 3 is in one segment that no task judged.
        chains = [_receipt(number, segment) for number in judged]
        told = [3] if segment == 1 else []
        receipts: Any = [
            {"chains": [chain], "unread": unread if segment == 2 else []} for chain in chains
        ]
        account.add(_commit(segment, *told), receipts)
    found = {number: (each.absent, each.since) for number, each in account.chains.items()}
    assert found == {1: ([], []), 2: ([1, 2], [4]), 3: ([1], [2, 3, 4])}
    assert [account.chains[number].segments for number in (1, 2, 3)] == [5, 2, 0]
    assert [account.chains[number].last for number in (1, 2, 3)] == [4, 3, 1]
    assert (account.last, account.segments, account.tasks) == (4, 5, 7)
    assert (account.head, account.manifest) == (_commit(4).digest, _commit(4).name)
    assert account.read_errors == unread
    assert NetworkAccount.from_json(json.loads(json.dumps(account.to_json()))) == account


def test_the_rows_of_an_account_are_a_digest_over_all_segments() -> None:
    """It does not depend on the order in which tasks end."""
    accounts = [NetworkAccount("dev") for _ in range(3)]
    one, two = _receipt(1, 0), _receipt(2, 0)
    other = _receipt(2, 0, digests={"blocks": "cd"})
    for account, chains in zip(accounts, ((one, two), (two, one), (one, other)), strict=True):
        receipts: Any = [{"chains": [chain], "unread": []} for chain in chains]
        account.add(_commit(0), receipts)
    assert accounts[0].rows == accounts[1].rows != accounts[2].rows
    listed = [[1, {"blocks": "ab"}], [2, {"blocks": "ab"}]]
    assert accounts[0].rows == digest_of(canonical_json(["", 0, listed]))


def test_final_findings_are_counted_by_severity_and_code() -> None:
    account = NetworkAccount("dev")
    receipts: Any = [
        {"chains": [_receipt(1, 0, findings=[["error", "X", 2], ["info", "A", 1]])], "unread": []}
    ]
    account.add(_commit(0), receipts)
    folds: Any = [
        {"settled": [["error", "X", 3]], "folder": "one", "unread": [{"error": "e"}]},
        {"settled": [], "folder": "two", "unread": []},
    ]
    account.close_folds(folds)
    assert account.counts == [["error", "X", 5], ["info", "A", 1]]
    assert (account.settled_in, account.folds) == (["one"], folds)
    assert account.read_errors == [{"error": "e"}]
    account.close_folds([])
    assert account.folds == []


KEYS = numbered(3)
SUBSCRIBED = {1000: list(KEYS[:2]), 1001: list(KEYS[2:])}


def _keys(number: int, keys: tuple[bytes, ...] = COLLATORS) -> Fields:
    return {"from_block": number, "keys": list(keys)}


def _items(number: int, items: dict[int, list[Any]] | None = None, **changes: object) -> Fields:
    listed = SUBSCRIBED if items is None else items
    rows = [{"publisher": publisher, "keys": keys} for publisher, keys in listed.items()]
    hashed = blake2_256(encode_items(dict(sorted(listed.items()))))
    return {"from_block": number, "items": rows, "hash": hashed, **changes}


@pytest.fixture(scope="module")
def chain() -> Chain:
    return Chain(make_spec(SUBSCRIBED))


def _at(number: int, chain: Chain) -> Header:
    return replace(chain.header, number=number)


def _errors(rows: list[Fields], chain: Chain, start: int = 4, *, first: bool = False) -> list[str]:
    announced = Announced(rows, _at(start, chain), chain.state, first=first)
    for number in (start, start + 1):
        announced.reach(_at(number, chain), chain.state)
    return list(announced.errors())


REVERSED = dict(reversed(SUBSCRIBED.items()))
REPEATED = [{"publisher": name, "keys": keys} for name, keys in SUBSCRIBED.items()]


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("number", [5, 6])
@pytest.mark.parametrize(
    ("keys", "items", "error"),
    [
        ({}, {}, None),
        ({"keys": [COLLATORS[0]]}, {}, "authorities and the state have different collators"),
        ({"keys": [*COLLATORS[::-1]]}, {}, "authorities and the state have different collators"),
        ({}, {"hash": bytes(32)}, "subscriptions and the state differ"),
        ({}, {"items": REPEATED[:1]}, "subscriptions and the state differ"),
        ({}, {"items": REPEATED[::-1]}, "subscriptions and the state differ"),
        ({}, {"items": [*REPEATED, REPEATED[1]]}, "subscriptions and the state differ"),
    ],
)
def test_rows_of_a_segment_are_compared_with_its_states(
    keys: Fields, items: Fields, error: str | None, number: int, chain: Chain, *, first: bool
) -> None:
    """The publishers must be in the state's order, each of them once."""
    rows = [_keys(number) | keys, _items(number) | items]
    if first and number > 5:
        rows += [_keys(5), _items(5)]
    found = _errors(rows, chain, first=first)
    assert found == ([] if error is None else [f"{error} from block {number} on"])


def test_a_row_that_is_missing_repeated_or_never_reached_is_an_error(chain: Chain) -> None:
    assert _errors([], chain) == []
    missing = _errors([], chain, first=True)
    assert [error.partition(",")[0] for error in missing] == [
        "authorities has no row for block 5",
        "subscriptions has no row for block 5",
    ]
    [repeated] = _errors([_keys(5), _keys(5)], chain)
    assert repeated == "authorities or subscriptions have two rows for one block, of 2 rows"
    # Rows about blocks up to the start cannot be checked. The last reached block is 5.
    found = _errors([_keys(4, ()), _items(3), _keys(7), _items(8)], chain)
    assert [error.partition(",")[0] for error in found] == [
        "authorities or subscriptions have a row for block 7",
        "authorities or subscriptions have a row for block 8",
    ]


def _changed(state: State, keys: tuple[bytes, ...] | None, items: dict[int, Any] | None) -> State:
    storage = Storage(state.fork())
    if keys is not None:
        AUTHORITIES.put(storage, keys)
    if items is not None:
        upgrade(storage, make_spec(items, spec_version=2))
    storage.commit()
    return storage.state


@pytest.mark.parametrize("is_listed", [False, True])
def test_each_change_within_a_segment_has_a_row(chain: Chain, *, is_listed: bool) -> None:
    items = {ParaId(1001): list(KEYS)}
    before = chain.state
    after = _changed(before, COLLATORS[:1], items)
    rows = [_keys(6, COLLATORS[:1]), _items(6, items)] if is_listed else []
    announced = Announced(rows, _at(3, chain), before, first=False)
    announced.reach(_at(4, chain), before)
    announced.reach(_at(5, chain), after)
    # A refused candidate leaves the header as it is.
    announced.reach(_at(5, chain), before)
    announced.reach(_at(6, chain), after)
    found = [error.partition(",")[0] for error in announced.errors()]
    if is_listed:
        assert found == []
    else:
        assert found == [
            "authorities has no row for block 6",
            "subscriptions has no row for block 6",
        ]


def test_new_code_with_the_same_subscriptions_needs_no_row(chain: Chain) -> None:
    announced = Announced([], _at(3, chain), chain.state, first=False)
    announced.reach(_at(4, chain), _changed(chain.state, None, SUBSCRIBED))
    assert list(announced.errors()) == []
