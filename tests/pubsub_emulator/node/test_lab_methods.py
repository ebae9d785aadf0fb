"""Methods of the live page: columns, acts as lines of a session, dry runs; and what they refuse."""

import json
from pathlib import Path
from typing import Any

import pytest

from pubsub_emulator.client.errors import NodeRefused
from pubsub_emulator.emulator.scenario.file import load_bundled, parse_document
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.node.rpc.pubsub_lab import MOST_COLUMNS, MOST_TRIED
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.runtime.rules import Rules
from pubsub_emulator.session import saved
from pubsub_emulator.session.node_api import InProcess
from pubsub_emulator.session.session import Session

KEY = "0x" + "ab" * 32
BEFORE = (
    {"kind": "publish", "para": 1000, "key": KEY, "value": "0x01"},
    {"kind": "register", "para": 2001},
    {"kind": "add_keys", "para": 2000, "publisher": 1000, "keys": [KEY]},
)
PLANNED = {"at_block": 50, "do": [{"kind": "offline", "para": 2000}]}
ACTIONS: tuple[dict[str, Any], ...] = (
    {"kind": "publish", "para": 1000, "key": "price", "value": "0x", "ttl": 3},
    {"kind": "delete", "para": 1000, "keys": [KEY]},
    {"kind": "subscribe", "para": 2000, "items": [[1000, [KEY]]]},
    {"kind": "add_keys", "para": 2000, "publisher": 1000, "keys": ["a", "b"]},
    {"kind": "drop_keys", "para": 2000, "publisher": 1000, "keys": [KEY]},
    {"kind": "drop_keys", "para": 2000, "publisher": 1000},
    {"kind": "request_keys", "para": 2000, "keys": ["0x1234", "child:0x01/0x02"]},
    {"kind": "limit", "para": 2000, "name": "max_pov_size", "value": 8_388_608},
    {"kind": "limit", "para": 2000, "name": "max_trie_depth", "value": 0},
    {"kind": "cheat", "para": 2000, "strategies": ["omit-node"], "rate": 1_000_000},
    {
        "kind": "cheat",
        "para": 2000,
        "strategies": ["omit-node", "add-junk"],
        "collator": 2,
        "rate": 500_000,
    },
    {"kind": "cheat", "para": 2000, "strategies": ["omit-node"], "rate": 500_000},
    {"kind": "honest", "para": 2000},
    {"kind": "register", "para": 2002, "deposit": 7},
    {"kind": "deregister", "para": 2001},
    {"kind": "offline", "para": 2000},
    {"kind": "offline", "para": 2000, "offline": False},
    {"kind": "turn", "para": 1000},
    {"kind": "upward", "para": 1000, "message": "0x00"},
    {"kind": "downward", "para": 2000, "message": "0x00"},
    {"kind": "horizontal", "sender": 1000, "recipient": 2000, "message": "0x00"},
    {"kind": "set_storage", "chain": None, "entries": [["0x1234", "0x5678"]]},
    {"kind": "travel", "slot": 2_000_000},
)


def node() -> InProcess:
    return InProcess(load_bundled("node"), accounts=True)


def test_the_line_of_an_act_does_the_same_in_a_session(tmp_path: Path) -> None:
    made, other = node(), Session.of(load_bundled("node"), accounts=True)

    def do(action: dict[str, Any]) -> None:
        line = made.ask("pubsub_act", action)["line"]
        made.ask("dev_newBlock", {"count": 2})
        for _ in (*other.execute(line), *other.execute("step 2")):
            pass
        assert other.newest("relay").hex() == made.ask("chain_getBlockHash")[2:], action

    for each in BEFORE:
        do(each)
    for action in ACTIONS:
        tried = made.ask("pubsub_tryAct", action)
        do(action)
        assert tried["line"] in made.ask("pubsub_session")["commands"]
    path = tmp_path / "session.json"
    path.write_text(json.dumps(made.ask("pubsub_session")), encoding="utf-8")
    read: list[Session] = []
    for _ in saved.read(path, read):
        pass
    assert read[0].newest("relay") == other.newest("relay")


def test_a_sessions_scenario_builds_the_same_blocks_and_ends_with_them() -> None:
    made = node()
    for action in (
        *BEFORE,
        *ACTIONS,
        {"kind": "set_storage", "chain": None, "entries": [["0x1234", None]]},
    ):
        made.ask("pubsub_act", action)
        made.ask("dev_newBlock", {"count": 2})
    made.ask("pubsub_act", {"kind": "honest", "para": 2000})  # waits for a block
    document, said = made.ask("pubsub_sessionScenario")
    simulation = Simulation(parse_document(document, "the session"))
    simulation.run()
    name = made.ask("chain_getBlockHash")
    assert hexed(simulation.network.relay.blocks[-1].header.hash()) == name
    assert said == [f"relay block {simulation.network.number} of this scenario is {name}"]
    assert (
        InProcess(simulation.scenario).ask("pubsub_sessionScenario")[0]["acts"] == document["acts"]
    )


def test_a_scenario_that_plans_more_than_the_session_built_keeps_its_length() -> None:
    made = InProcess(
        parse_document({**load_bundled("node").document(), "acts": [PLANNED]}, "planned")
    )
    made.ask("pubsub_act", {"kind": "offline", "para": 2000})
    made.ask("dev_newBlock", {"count": 3})
    document, _ = made.ask("pubsub_sessionScenario")
    assert document["relay_blocks"] == 100
    assert [each["at_block"] for each in document["acts"]] == [1, 50]


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ({"kind": "add_keys", "para": 1000, "publisher": 1000, "keys": ["a"]}, "only publishes"),
        ({"kind": "add_keys", "para": 2000, "publisher": 7, "keys": ["a"]}, "7"),
        (
            {"kind": "drop_keys", "para": 2000, "publisher": 1000, "keys": ["a"]},
            "does not subscribe",
        ),
        ({"kind": "drop_keys", "para": 2000, "publisher": 7}, "does not subscribe"),
        ({"kind": "offline", "para": 7}, "7"),
        ({"kind": "deregister", "para": 2777}, "a call on the relay chain"),
        ({"kind": "register", "para": 2001, "deposit": 2**127}, "a call on the relay chain"),
        (
            {"kind": "publish", "para": 1000, "key": "a", "value": "0x" + "00" * 2049},
            "message of 1000",
        ),
        ({"kind": "rewind", "relay": "0x00"}, "not an action of a step"),
    ],
)
def test_a_dry_run_says_why_and_changes_nothing(action: dict[str, Any], why: str) -> None:
    made, untouched = node(), node()
    assert why in made.ask("pubsub_tryAct", action)["refused"]
    for each in (made, untouched):
        each.ask("dev_newBlock", {"count": 3})
    assert made.ask("chain_getBlockHash") == untouched.ask("chain_getBlockHash")


@pytest.mark.parametrize(
    ("method", "params", "why"),
    [
        ("pubsub_columns", (1, MOST_COLUMNS + 1), f"from 1 to {MOST_COLUMNS}"),
        ("pubsub_columns", (1, 0), "from 1"),
        (
            "pubsub_tryAct",
            ({"kind": "honest", "para": 2000}, MOST_TRIED + 1),
            f"from 1 to {MOST_TRIED}",
        ),
        ("pubsub_act", ({"kind": "dance"},), "dance"),
        ("pubsub_act", ([],), "action"),
        (
            "pubsub_act",
            ({"kind": "publish", "para": 1000, "key": "0x00", "value": "0x"},),
            "32 bytes",
        ),
        (
            "pubsub_act",
            ({"kind": "publish", "para": 1000, "key": "", "value": "0x"},),
            "a key's name has at least one character",
        ),
        (
            "pubsub_act",
            ({"kind": "add_keys", "para": 2000, "publisher": 1000, "keys": ["a", ""]},),
            "a key's name has at least one character",
        ),
        ("pubsub_publish", (1000, "", "0x00"), "a key's name has at least one character"),
        ("pubsub_act", ({"kind": "register", "para": 2001, "deposit": -1},), "deposit"),
        ("pubsub_act", ({"kind": "register", "para": 2001, "deposit": 2**128},), "deposit"),
    ],
)
def test_what_is_no_act_or_number_is_refused_with_its_place(
    method: str, params: tuple[object, ...], why: str
) -> None:
    with pytest.raises(NodeRefused) as refused:
        node().ask(method, *params)
    assert why in str(refused.value.data)


def test_columns_follow_a_branch_back_to_its_first_block() -> None:
    made = node()
    made.ask("dev_newBlock", {"count": 6})
    left = made.ask("chain_getBlockHash")
    made.ask("dev_setHead", 3)
    made.ask("pubsub_act", {"kind": "offline", "para": 2000})
    made.ask("dev_newBlock", {"count": 3})
    here, there = made.ask("pubsub_columns", 6, 9), made.ask("pubsub_columns", left, 9)
    assert (
        [each["number"] for each in here]
        == [each["number"] for each in there]
        == [6, 5, 4, 3, 2, 1]
    )
    assert [a["hash"] == b["hash"] for a, b in zip(here, there, strict=True)] == [False] * 3 + [
        True
    ] * 3
    assert [len(each["candidates"]) for each in here[:3]] == [0, 0, 0]
    assert all(each["candidates"] for each in there[:3])


def test_a_session_names_the_rules_that_it_was_made_with() -> None:
    assert "rules" not in node().ask("pubsub_session")
    made = InProcess(load_bundled("node"), accounts=True, rules=Rules(b"\1" * 32))
    assert made.ask("pubsub_session")["rules"] == "0x" + "01" * 32
    _, said = made.ask("pubsub_sessionScenario")
    assert "has no field for" in said[0]
    assert said[1:] == [f'rules: "0x{"01" * 32}"']


def test_the_node_remembers_the_names_that_acts_gave_to_keys() -> None:
    made = node()
    act = {"kind": "publish", "para": 1000, "value": "0x00"}
    keys = [
        made.ask("pubsub_act", {**act, "key": key})["action"]["key"]
        for key in ("price", KEY, "k" * 65)
    ]
    assert made.ask("pubsub_keyNames")[-1] == [None, keys[0], "price"]
    made.ask("dev_newBlock", {"count": 3})
    rows = [row for column in made.ask("pubsub_columns", 3, 3) for row in column["published"]]
    assert {row[1]: row[3] for row in rows if row[1] in keys} == {
        keys[0]: "price",
        keys[1]: None,
        keys[2]: None,
    }


def test_a_column_names_few_keys_and_counts_all() -> None:
    made = node()
    for at in range(600):
        made.ask("pubsub_act", {"kind": "publish", "para": 1000, "key": f"{at}", "value": "0x00"})
    made.ask("dev_newBlock", {"count": 12})
    columns = made.ask("pubsub_columns", 12, 12)
    assert sum(each["publishedCount"] for each in columns) >= 600
    assert all(len(each["published"]) <= 512 for each in columns)


def test_a_pruned_proof_is_never_larger_than_the_unpruned_one_beside_it() -> None:
    """Both count the relay chain's own nodes."""
    made = node()
    made.ask("dev_newBlock", {"count": 6})
    candidates = [
        each for column in made.ask("pubsub_columns", 6, 6) for each in column["candidates"]
    ]
    sizes = [
        (each["proofBytes"], each["unprunedBytes"])
        for each in candidates
        if "unprunedBytes" in each
    ]
    assert any(pruned for pruned, _ in sizes)
    assert all(pruned <= unpruned for pruned, unpruned in sizes)
