"""Answers of nodes are read as they come, checked against each other, and refused with their place."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.node_data import (
    PRICES,
    STATIC,
    answers,
    child_request,
    header_answer,
    hexed,
    priced,
    proof_answer,
    proven,
    read_request,
)

from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.pubsub import derive_child_key
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.spark_audit.real_proofs.attribution import TOP, attribute
from pubsub_emulator.spark_audit.real_proofs.node_data import NodeDataError, read_node_data, root_of

ROOT = Path(__file__).resolve().parents[2]
MAINNET = sorted((ROOT / "examples" / "mainnet").glob("*.json"))
NETWORK = priced()
HEADER = NETWORK.relay.header
AT = HEADER.hash()
PROOF = proven(NETWORK.relay.state, STATIC, {})
CHILD = derive_child_key(ParaId(1000))


def write(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_the_files_that_come_as_an_example_are_what_the_emulator_answers() -> None:
    for name, documents in answers(NETWORK).items():
        text = (ROOT / "examples" / "node_data" / name).read_text(encoding="utf-8")
        found = [json.loads(line) for line in text.splitlines()] if name.endswith("l") else [json.loads(text)]
        assert found == documents, name


@pytest.mark.parametrize(
    "path", [path for path in MAINNET if path.stem != "moonbeam-devnode-115"], ids=lambda p: p.stem
)
def test_a_real_header_has_the_hash_that_its_chain_knows_it_by(path: Path, tmp_path: Path) -> None:
    data = json.loads(path.read_bytes())
    header = Header.decode(bytes.fromhex(data["parentHead"][2:]))
    [read] = read_node_data([write(tmp_path / "header.json", header_answer(header))]).headers
    assert (hexed(read.hash), read.number, read.state_root) == (data["parentHash"], header.number, header.state_root)


def test_what_stands_deepest_was_asked_for_and_what_stands_on_its_way_was_not() -> None:
    """Entries of other parachains lie in the nodes above; the block was one of parachain 2004."""
    data = json.loads((ROOT / "examples" / "mainnet" / "moonbeam-11728459.json").read_bytes())
    nodes = [bytes.fromhex(node[2:]) for node in data["trieNodes"]]
    found = attribute(Hash(bytes.fromhex(data["relayParentStorageRoot"][2:])), nodes, absences=True)
    asked = [part.name for part in found.parts if part.kind == "key"]
    for item in ("Hrmp.HrmpIngressChannelsIndex", "Hrmp.HrmpEgressChannelsIndex", "Paras.Heads"):
        assert [name for name in asked if name.startswith(item)] == [f"{item}(2004)"]


def test_header_and_proof_may_come_in_any_form(tmp_path: Path) -> None:
    header, proof = header_answer(HEADER), proof_answer(AT, PROOF)
    forms: list[Any] = [
        header,
        header["result"],
        {**header, "result": {"block": {"header": header["result"], "extrinsics": []}}},
        {**header["result"], "number": HEADER.number},
        {**header["result"], "number": f"0x{HEADER.number:08x}"},
        [header],
    ]
    for at, form in enumerate(forms):
        [read] = read_node_data([write(tmp_path / f"{at}.json", form)]).headers
        assert (read.hash, read.number, read.state_root) == (AT, HEADER.number, HEADER.state_root)
    for at, form in enumerate([proof, proof["result"], [header, proof]]):
        data = read_node_data([write(tmp_path / f"proof{at}.json", form)])
        [found] = data.proofs
        assert (found.at, found.nodes) == (AT, tuple(PROOF))
    [bare] = read_node_data([write(tmp_path / "bare.json", proof["result"]["proof"])]).proofs
    assert (bare.at, bare.nodes) == (None, tuple(PROOF))


def test_a_request_says_what_its_answer_was_asked_for(tmp_path: Path) -> None:
    lines = [
        read_request(STATIC, AT, 7),
        child_request(CHILD, PRICES, AT, 8),
        proof_answer(AT, PROOF, 8),
        proof_answer(AT, PROOF, 7),
        proof_answer(AT, PROOF, 9),
    ]
    path = tmp_path / "session.jsonl"
    path.write_text("".join(json.dumps(line) + "\n\n" for line in lines), encoding="utf-8")
    asked = [proof.requested for proof in read_node_data([path]).proofs]
    assert asked == [{CHILD: PRICES}, {TOP: STATIC}, None]


def test_a_proof_belongs_to_the_header_with_its_block_s_hash(tmp_path: Path) -> None:
    other = NETWORK.relay.blocks[1].header
    files = [
        write(tmp_path / "other.json", header_answer(other)),
        write(tmp_path / "proof.json", proof_answer(AT, PROOF)),
        write(tmp_path / "header.json", header_answer(HEADER)),
    ]
    data = read_node_data(files)
    assert root_of(data.proofs[0], data.headers) == HEADER.state_root
    with pytest.raises(
        NodeDataError, match=f"the proof is of block {hexed(AT)}, but the header is that of .* .block 1,"
    ):
        root_of(data.proofs[0], data.headers[:1])
    with pytest.raises(NodeDataError, match="no header names the state root"):
        root_of(data.proofs[0], [])
    [nameless] = read_node_data([write(tmp_path / "bare.json", proof_answer(None, PROOF))]).proofs
    assert root_of(nameless, data.headers[1:]) == HEADER.state_root
    with pytest.raises(NodeDataError, match="the proof names no block, and there are 2 headers"):
        root_of(nameless, data.headers)


GOOD = header_answer(HEADER)["result"]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"id": 1, "error": {"code": -32000, "message": "UnknownBlock"}}, "error -32000: UnknownBlock"),
        ({"id": 1, "error": "busy"}, "error busy"),
        ({"id": 1, "result": None}, "the node's answer is empty"),
        ({"id": 1, "result": "0x00"}, "neither a header nor a read proof"),
        ({"id": 1, "result": {"peers": 3}}, r"neither a header .* has peers"),
        ({"proof": []}, r"x.json.proof: not a list of trie nodes"),
        ({"proof": "0x00"}, r"x.json.proof: not a list of trie nodes"),
        ({"proof": ["0x00", "00"]}, r"x.json.proof\[1\] is '00', not a 0x string"),
        ({"proof": ["0x0"]}, r"x.json.proof\[0\] is not hex"),
        ({"at": "0x00", "proof": ["0x00"]}, r"x.json.at has 1 bytes, not 32"),
        ({**GOOD, "stateRoot": "0x00"}, "x.json: stateRoot has 1 bytes, not 32"),
        ({**GOOD, "number": "twelve"}, "x.json: number is 'twelve', not a number"),
        ({**GOOD, "number": True}, "x.json: number is 'True', not a number"),
        ({**GOOD, "number": 2**32}, "x.json: number is '4294967296', not a number"),
        ({**GOOD, "digest": {}}, "x.json: the header has no digest.logs"),
        ({**GOOD, "digest": {"logs": [1]}}, r"x.json: digest.logs\[0\] is '1', not a 0x string"),
        ({**GOOD, "parentHash": None}, "x.json: parentHash is 'None', not a 0x string"),
        (
            {"id": 1, "method": "state_getReadProof", "params": ["0x00"]},
            "params of state_getReadProof do not name keys",
        ),
        (
            {"id": 1, "method": "state_getChildReadProof", "params": ["0x00", ["0x00"]]},
            r"params\[0\] is not the storage key of a default child trie",
        ),
        (17, "neither a header nor a read proof"),
    ],
)
def test_what_is_no_answer_is_refused_with_its_place(document: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(NodeDataError, match=said):
        read_node_data([write(tmp_path / "x.json", document)])


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"{", "x.json: not JSON"),
        (b'{"proof": ["0x00"]}\n{', "x.json:2: not JSON"),
        (b"\xff", "x.json: not UTF-8 at byte 0"),
        (b"", "x.json: not JSON"),
    ],
)
def test_a_file_that_is_not_json_is_refused_with_its_line(raw: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(raw)
    with pytest.raises(NodeDataError, match=said):
        read_node_data([path])
