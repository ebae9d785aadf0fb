"""Real relay proofs are imported, opened and told apart to the byte, and agree with what sp-trie
reads (AU-9).
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pubsub_emulator.cli.commands.evidence.run import check
from pubsub_emulator.cli.exits import INCOMPLETE
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import node_cost
from pubsub_emulator.primitives.storage_keys import ACTIVE_CONFIG
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.relay_keys import key_name
from pubsub_emulator.runtime.rules import SHIPPED
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.commit import HistoryPart, write_commit
from pubsub_emulator.spark_audit.history.reader import Fault, History
from pubsub_emulator.spark_audit.judge.finding_file import finding_text
from pubsub_emulator.spark_audit.real_proofs.open_proof import (
    ProofError,
    decode_node,
    open_proof,
    path_nodes,
)
from pubsub_emulator.spark_audit.real_proofs.relay_proofs import (
    ImportRefused,
    attribute_inherent,
    import_relay_proofs,
    proof_parts,
    read_relay_proof,
)
from pubsub_emulator.trie import Trie

MAINNET = Path(__file__).resolve().parents[3] / "examples" / "mainnet"
FILES = sorted(MAINNET.glob("*.json"))
TOTALS = {
    "asset-hub-kusama-1100000": (18, 2579),
    "asset-hub-kusama-1800000": (34, 5035),
    "asset-hub-kusama-450000": (14, 2177),
    "asset-hub-kusama-650000": (16, 2369),
    "asset-hub-kusama-960000": (18, 2579),
    "asset-hub-polkadot-10000": (12, 1850),
    "asset-hub-polkadot-3356195": (60, 9988),
    "asset-hub-polkadot-800000": (16, 2498),
    "asset-hub-westend-1800000": (27, 3945),
    "moonbeam-11728459": (160, 21168),
    "moonbeam-devnode-115": (3, 188),
}
"""Nodes, and their bytes with length prefixes."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_byte_of_a_real_proof_is_attributed_once(path: Path) -> None:
    proof = read_relay_proof(path)
    parts = proof_parts(attribute_inherent(proof.relay_root, proof.proof, proof.chain))
    weight = sum(node_cost(len(node)) for node in proof.proof)
    assert (sum(part["nodes"] for part in parts), sum(part["bytes"] for part in parts)) == (
        len(proof.proof),
        weight,
    )
    assert (len(proof.proof), weight) == TOTALS[path.stem]
    assert not [part for part in parts if part["kind"] == "unread"]
    assert not [
        part for part in parts if part["kind"] == "key" and part["name"].startswith("unknown")
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_entry_is_the_one_that_other_readers_find(path: Path) -> None:
    """Against sp-trie's reads of well-known keys and smoldot's list of all entries, both in the
    file.
    """
    data = json.loads(path.read_bytes())
    proof = read_relay_proof(path)
    nodes = proof.nodes()
    entries = open_proof(proof.relay_root, nodes).entries
    for read in data.get("reads_sp_trie", {}).values():
        key = bytes.fromhex(read["key"][2:])
        _path, proven = path_nodes(proof.relay_root, nodes, key)
        if "error" in read:
            assert not proven
        else:
            assert proven
            value = read.get("value")
            assert entries.get(key) == (None if value is None else bytes.fromhex(value[2:]))
    known = data.get("known_entries_smoldot")
    if known is not None:
        listed = {
            bytes.fromhex(key[2:]): None if value is None else bytes.fromhex(value[2:])
            for key, value in known
        }
        assert entries == listed


def test_the_largest_real_proof_is_told_apart_by_name() -> None:
    proof = read_relay_proof(MAINNET / "moonbeam-11728459.json")
    parts = proof_parts(attribute_inherent(proof.relay_root, proof.proof, proof.chain))
    kinds: dict[str, list[int]] = {}
    for part in parts:
        entry = kinds.setdefault(part["kind"], [0, 0])
        entry[0] += part["nodes"]
        entry[1] += part["bytes"]
    assert kinds == {"key": [135, 14460], "neighbour": [0, 0], "shared": [25, 6708]}
    head = next(part for part in parts if part["name"] == "Paras.Heads(2004)")
    assert (head["state"], head["value_bytes"]) == ("value", 654)
    assert sum(part["name"].startswith("Hrmp.HrmpChannels(") for part in parts) == 38


def test_proofs_are_in_the_same_tables_and_an_audit_opens_them(
    tmp_path: Path,
) -> None:
    imported = import_relay_proofs([MAINNET], tmp_path / "history")
    assert (imported.proofs, imported.already_there) == (11, 0)
    history = History.open(tmp_path / "history")
    faults: list[Fault] = []
    rows = list(history.rows(history.files(schema.BLOCKS), faults))
    nodes = {
        (row["network"], row["segment"], row["number"]): row["data"]
        for row in history.rows(history.files(schema.NODES), faults)
    }
    assert not faults
    by_root = {row["relay_root"]: row for row in rows}
    for path in FILES:
        proof = read_relay_proof(path)
        row = by_root[proof.relay_root]
        assert (
            tuple(nodes[row["network"], row["segment"], each] for each in row["proof"])
            == proof.proof
        )
        assert (row["number"], row["block"], row["status"]) == (
            proof.number,
            proof.block,
            "imported",
        )
    result = audit(tmp_path / "history", tmp_path / "out", engine="python")
    assert (result.exit_code, result.candidates, result.judged) == (0, 11, 11)
    assert result.proof_bytes == sum(weight for _nodes, weight in TOTALS.values())
    assert {row["status"] for row in result.chains} == {"opened"}
    parts = list(result.results.rows(schema.PROOF_PARTS))
    assert sum(part["bytes"] for part in parts) == result.proof_bytes


def test_importing_again_adds_only_what_is_new(tmp_path: Path) -> None:
    assert import_relay_proofs(FILES[:4], tmp_path).proofs == 4
    again = import_relay_proofs([MAINNET], tmp_path)
    assert (again.proofs, again.already_there) == (7, 4)
    assert import_relay_proofs([MAINNET], tmp_path).proofs == 0


def _tampered(
    history: Path, change: Callable[[dict[str, Any], list[dict[str, Any]]], None]
) -> None:
    """A proof of which someone changed row or nodes before it was committed, manifests and all."""
    clean = history.with_name("clean")
    import_relay_proofs([MAINNET / "asset-hub-polkadot-10000.json"], clean)
    opened = History.open(clean)
    row = next(opened.rows(opened.files(schema.BLOCKS), []))
    nodes = list(opened.rows(opened.files(schema.NODES), []))
    change(row, nodes)
    headers = list(opened.rows(opened.files(schema.RELAY_HEADERS), []))
    parts = [
        HistoryPart(schema.BLOCKS, [row], "x", row["chain"]),
        HistoryPart(schema.NODES, nodes, "x"),
        HistoryPart(schema.RELAY_HEADERS, headers, "x"),
    ]
    write_commit(history, "polkadot", 0, parts, {row["chain"]: 1})
    shutil.rmtree(clean)


def test_nodes_that_nobody_needs_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def add(row: dict[str, Any], nodes: list[dict[str, Any]]) -> None:
        for junk in (b"junk", b"more junk" * 5):
            row["proof"].append(len(nodes))
            nodes.append({**nodes[0], "number": len(nodes), "hash": blake2_256(junk), "data": junk})
        row["proof"].append(row["proof"][0])

    _tampered(tmp_path / "history", add)
    result = audit(tmp_path / "history", tmp_path / "out", engine="python")
    assert (result.exit_code, result.codes) == (1, {"UnreadNodes": 1})
    unread = [row for row in result.results.rows(schema.PROOF_PARTS) if row["kind"] == "unread"]
    assert [row["nodes"] for row in unread] == [2]
    assert (
        sum(row["bytes"] for row in result.results.rows(schema.PROOF_PARTS)) == result.proof_bytes
    )
    [finding] = result.results.rows(schema.FINDINGS)
    (tmp_path / "finding.json").write_text(finding_text(finding), encoding="utf-8")
    assert check(tmp_path / "finding.json", SHIPPED).code == INCOMPLETE
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines if line.startswith("  shown")] == [
        finding["detail"],
        *(f"unread node 0x{blake2_256(junk).hex()}" for junk in (b"junk", b"more junk" * 5)),
    ]
    assert max(map(len, lines)) < 120


def test_a_proof_under_another_root_is_reported(tmp_path: Path) -> None:
    def move(row: dict[str, Any], _nodes: list[dict[str, Any]]) -> None:
        row["relay_root"] = row["relay_parent_root"] = bytes(32)

    _tampered(tmp_path / "history", move)
    result = audit(tmp_path / "history", tmp_path / "out", engine="python")
    assert (result.exit_code, result.codes) == (
        5,
        {"UnopenedProof": 1},
    ), "no relay header has that root, either"


def test_a_proof_without_a_key_that_every_parachain_reads_is_reported(tmp_path: Path) -> None:
    """Its runtime would refuse such a block, whatever the file says."""
    whole = read_relay_proof(MAINNET / "asset-hub-polkadot-3356195.json")
    path, proven = path_nodes(whole.relay_root, whole.nodes(), ACTIVE_CONFIG)
    assert proven
    nodes = [
        node for node in GOOD["trieNodes"] if blake2_256(bytes.fromhex(node[2:])) != list(path)[-1]
    ]
    assert len(nodes) == len(GOOD["trieNodes"]) - 1
    given = {name: value for name, value in GOOD.items() if name != "reads_sp_trie"}
    file = tmp_path / "proof.json"
    file.write_text(json.dumps({**given, "trieNodes": nodes}), encoding="utf-8")
    import_relay_proofs([file], tmp_path / "history")
    result = audit(tmp_path / "history", tmp_path / "out", engine="python")
    assert result.exit_code == 1
    assert result.codes["MissingKey"] == 1
    assert [row["status"] for row in result.chains] == ["not verified"]
    (part,) = (
        row
        for row in result.results.rows(schema.PROOF_PARTS)
        if row["name"] == "Configuration.ActiveConfig"
    )
    assert (part["kind"], part["state"], part["nodes"]) == ("key", "not proven", 0)
    assert (
        sum(row["bytes"] for row in result.results.rows(schema.PROOF_PARTS)) == result.proof_bytes
    )


def test_a_node_under_a_wrong_name_is_a_read_error(tmp_path: Path) -> None:
    def rename(_row: dict[str, Any], nodes: list[dict[str, Any]]) -> None:
        nodes[0]["data"] += b"\x00"

    _tampered(tmp_path / "history", rename)
    result = audit(tmp_path / "history", tmp_path / "out", engine="python")
    assert result.exit_code == 3
    assert any(
        "does not have that hash" in row["error"] for row in result.results.rows(schema.READ_ERRORS)
    )


GOOD: dict[str, Any] = json.loads((MAINNET / "asset-hub-polkadot-3356195.json").read_bytes())


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("chain", None, "chain is 'None', not text"),
        ("block", "12x", "block is '12x', not a number of 32 bits"),
        ("block", 2**32, "block is '4294967296', not a number"),
        ("relayParentNumber", True, "relayParentNumber is 'True', not a number"),
        ("relayParentStorageRoot", "0x12", "relayParentStorageRoot has 1 byte, not 32"),
        ("relayParentStorageRoot", "0x" + "00" * 32, "trieNodes the node of the storage root"),
        ("trieNodes", {}, "trieNodes is '{}', not a list"),
        ("trieNodes", ["0x0", *GOOD["trieNodes"]], r"trieNodes\[0\] is not hex"),
        ("trieNodes", GOOD["trieNodes"][:-2], "reads_sp_trie.* differs from the proof"),
        ("parentHead", "0x00", "parentHead does not hash to parentHash"),
        (
            "downwardMessages",
            [{"sentAt": "1"}],
            r"downwardMessages\[0\].msg is 'None', not a 0x string",
        ),
        ("horizontalMessages", {"abc": []}, "horizontalMessages: sender is 'abc', not a number"),
        (
            "horizontalMessages",
            {"1": [{"data": "0x"}]},
            r"horizontalMessages.1\[0\].sentAt is 'None', not a number",
        ),
        (
            "reads_sp_trie",
            {"x": {"key": "0x00", "value": "0x01"}},
            "reads_sp_trie.x differs from the proof",
        ),
        ("reads_sp_trie", {"x": 1}, "reads_sp_trie.x is '1', not an object"),
    ],
)
def test_a_file_with_untrue_contents_is_refused_by_file_and_field(
    tmp_path: Path, field: str, value: object, reason: str
) -> None:
    path = tmp_path / "proof.json"
    path.write_text(json.dumps({**GOOD, field: value}))
    with pytest.raises(ImportRefused, match=rf"proof\.json: ({reason})"):
        read_relay_proof(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
    ],
)
def test_a_file_that_is_no_json_object_is_refused(
    tmp_path: Path, content: str, reason: str
) -> None:
    path = tmp_path / "proof.json"
    path.write_text(content)
    with pytest.raises(ImportRefused, match=reason):
        read_relay_proof(path)


def test_one_bad_file_keeps_all_of_them_out(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    with pytest.raises(ImportRefused, match=r"bad\.json: chain"):
        import_relay_proofs([*FILES, bad], tmp_path / "history")
    assert not (tmp_path / "history").exists()


def test_child_tries_are_told_apart_from_keys() -> None:
    child = b":child_storage:default:pubsub" + (1000).to_bytes(4, "little")
    trie = Trie.from_entries([(child, b"\x11" * 32), (b"other", b"x" * 40), (b"third", b"y")])
    nodes: dict[Any, bytes] = {}
    trie.prove([child], nodes)
    parts = proof_parts(attribute_inherent(trie.root(), nodes.values(), ParaId(2000)))
    assert [(part["name"], part["state"]) for part in parts if part["kind"] == "child trie"] == [
        ("child trie 1000", "value")
    ]


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "01",
        "0f",
        "41",
        "4101",
        "8000",
        "800100",
        "80010004",
        "2000",
        "c0010004",
        "7f",
        "41ff00",
    ],
)
def test_bytes_that_are_no_node_are_refused(raw: str) -> None:
    with pytest.raises(ProofError):
        decode_node(bytes.fromhex(raw))


def test_names_of_keys_say_pallet_item_and_paras() -> None:
    assert (
        key_name(bytes.fromhex("06de3d8a54d27e44a9d5ce189618f22db4b49d95320d9021994c850f25b8e385"))
        == "Configuration.ActiveConfig"
    )
    assert key_name(b"anything") == "unknown 0x616e797468696e67"


def test_the_proofs_in_the_package_are_those_of_the_examples() -> None:
    bundled = Path(__file__).resolve().parents[3] / "spark_audit" / "mainnet"
    assert {path.name: path.read_bytes() for path in bundled.glob("*.json")} == {
        path.name: path.read_bytes() for path in FILES
    }
