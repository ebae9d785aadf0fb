"""Answers of nodes are read as they come; nodes of their proofs are attributed once each, to what
was asked.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.node.node_data import (
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
from support.plumbing.snapshots import Snapshot

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.pubsub import derive_child_key, node_cost
from pubsub_emulator.primitives.storage_keys import ACTIVE_CONFIG
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.spark_audit.real_proofs.attribution import (
    TOP,
    Attribution,
    attribute,
    attribute_reads,
)
from pubsub_emulator.spark_audit.real_proofs.node_data import NodeDataError, read_node_data, root_of
from pubsub_emulator.spark_audit.real_proofs.open_proof import ProofError
from pubsub_emulator.testing.strategies import keys, values

HERE = Path(__file__).resolve().parents[3]
NETWORK = priced()
STATE = NETWORK.relay.state
ROOT = NETWORK.relay.header.state_root
CHILD = derive_child_key(ParaId(1000))


def ensure_whole(found: Attribution, proof: list[bytes]) -> None:
    """The parts add up to the proof."""
    assert (found.nodes, found.weight) == (len(proof), sum(node_cost(len(node)) for node in proof))
    assert sum(part.weight for part in found.parts) == found.weight


def by_name(found: Attribution) -> dict[str, tuple[str, str | None]]:
    return {part.name: (part.kind, part.state) for part in found.parts if part.key is not None}


def test_a_child_tries_keys_differ_from_the_way_to_its_root() -> None:
    proof = proven(STATE, (), {CHILD: PRICES})
    found = attribute_reads(ROOT, proof, {CHILD: PRICES})
    ensure_whole(found, proof)
    assert by_name(found) == {
        "child trie 1000": ("child trie", "value"),
        **{
            f"child trie 1000: 0x{key.hex()}": ("key", state)
            for key, state in zip(PRICES, ("value", "value", "absent"), strict=True)
        },
    }
    assert found.unread == ()
    root = next(part for part in found.parts if part.kind == "child trie")
    assert root.value == STATE.children[CHILD].root()


def test_what_was_asked_is_told_from_the_proof_alone() -> None:
    proof = proven(STATE, STATIC[:3], {CHILD: PRICES[:2]})
    found = attribute(ROOT, proof, absences=True)
    ensure_whole(found, proof)
    told = by_name(found)
    for name in (
        "Configuration.ActiveConfig",
        "Babe.CurrentSlot",
        "Paras.Heads(3000)",
        "child trie 1000",
    ):
        assert told[name][1] == "value"
        assert told[name][0] != "neighbour", name
    assert found.unread == ()


def test_nodes_that_prove_an_absence_are_not_unread() -> None:
    proof = proven(STATE, STATIC[3:], {})
    assert [part.kind for part in attribute(ROOT, proof, absences=True).parts if part.weight] == [
        "absence"
    ]
    assert len(attribute(ROOT, proof).unread) == len(proof)
    [part] = [
        part
        for part in attribute_reads(ROOT, proof, {TOP: STATIC[3:]}).parts
        if part.key is not None
    ]
    assert (part.name, part.state, part.nodes) == ("Paras.Heads(4000)", "absent", len(proof))


def test_nodes_that_nothing_needs_are_unread_and_repeated_ones_are_paid_for() -> None:
    proof = proven(STATE, (ACTIVE_CONFIG,), {})
    junk = b"\x00junk"
    for found in (
        attribute(ROOT, [*proof, junk, proof[0]], absences=True),
        attribute_reads(ROOT, [*proof, junk, proof[0]], {TOP: (ACTIVE_CONFIG,)}),
    ):
        ensure_whole(found, [*proof, junk, proof[0]])
        assert found.unread == (blake2_256(junk),)
        [unread] = [part for part in found.parts if part.kind == "unread"]
        assert unread.weight == node_cost(len(junk)) + node_cost(len(proof[0]))
    asked_less = attribute_reads(ROOT, proven(STATE, (), {CHILD: PRICES}), {CHILD: PRICES[:1]})
    assert len(asked_less.unread) == 3


def test_nodes_below_possible_storage_are_unplaced_and_not_unread() -> None:
    proof = proven(STATE, (ACTIVE_CONFIG,), {CHILD: PRICES})
    stored = STATE.children[CHILD].root()
    kept = [node for node in proof if blake2_256(node) != stored]
    junk = b"\x00junk"
    found = attribute(ROOT, [*kept, junk], absences=True, cached=True)
    ensure_whole(found, [*kept, junk])
    assert found.unread == (blake2_256(junk),), "too small to be referred to by its hash"
    assert found.unplaced
    assert {*found.unplaced} <= {blake2_256(node) for node in proven(STATE, (), {CHILD: PRICES})}
    assert attribute(ROOT, kept, absences=True).unread == found.unplaced
    assert attribute(ROOT, proof, absences=True, cached=True).unplaced == ()


def test_without_a_publisher_no_node_can_be_below_a_stored_one() -> None:
    proof = [*proven(STATE, (ACTIVE_CONFIG,), {}), bytes(40)]
    found = attribute(ROOT, proof, absences=True, cached=True)
    ensure_whole(found, proof)
    assert (found.unread, found.unplaced) == ((blake2_256(bytes(40)),), ())


def test_a_child_trie_that_is_not_there_has_only_absent_keys() -> None:
    child = derive_child_key(ParaId(1001))
    proof = proven(STATE, (), {child: PRICES})
    found = attribute_reads(ROOT, proof, {child: PRICES})
    ensure_whole(found, proof)
    assert {state for _, state in by_name(found).values()} == {"absent"}


def test_every_missing_node_is_named_with_the_key_that_needs_it() -> None:
    proof = proven(STATE, (), {CHILD: PRICES[:2]})
    for lost in proof:
        kept = [node for node in proof if node != lost]
        with pytest.raises(ProofError, match=blake2_256(lost).hex()):
            attribute_reads(ROOT, kept, {CHILD: PRICES[:2]})


def test_a_proof_of_another_state_is_refused() -> None:
    proof = proven(STATE, (ACTIVE_CONFIG,), {})
    with pytest.raises(ProofError, match="the root node of the storage root, 0000"):
        attribute_reads(Hash(bytes(32)), proof, {TOP: (ACTIVE_CONFIG,)})
    with pytest.raises(ProofError, match="the node of the storage root 0000"):
        attribute(Hash(bytes(32)), proof)


@given(st.data())
def test_any_read_of_any_state_is_attributed_whole_and_read_right(data: st.DataObject) -> None:
    entries = st.dictionaries(keys(), values(200), max_size=12)
    top = data.draw(entries)
    children = {derive_child_key(ParaId(para)): data.draw(entries) for para in (1, 2)}
    state = State.from_entries(
        top.items(), {child: rows.items() for child, rows in children.items() if rows}
    )
    asked = {TOP: data.draw(st.lists(keys(), max_size=4, unique=True))}
    asked.update(
        {child: data.draw(st.lists(keys(), max_size=4, unique=True)) for child in children}
    )
    proof = proven(
        state, asked[TOP], {child: wanted for child, wanted in asked.items() if child != TOP}
    )
    found = attribute_reads(state.root(), proof, asked)
    ensure_whole(found, proof)
    assert found.unread == ()
    read = {(part.trie, part.key): part.value for part in found.parts if part.key is not None}
    for child, wanted in asked.items():
        for key in wanted:
            assert read[child, key] == (top if child == TOP else children[child]).get(key)
    guessed = attribute(state.root(), proof, absences=True)
    ensure_whole(guessed, proof)
    assert guessed.unread == ()


MAINNET = sorted((HERE / "examples" / "mainnet").glob("*.json"))
HEADER = NETWORK.relay.header
AT = HEADER.hash()
PROOF = proven(NETWORK.relay.state, STATIC, {})


def written(path: Path, document: Any) -> Path:
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_the_files_that_come_as_an_example_are_what_the_emulator_answers() -> None:
    for name, documents in answers(NETWORK).items():
        text = (HERE / "examples" / "node_data" / name).read_text(encoding="utf-8")
        found = (
            [json.loads(line) for line in text.splitlines()]
            if name.endswith("l")
            else [json.loads(text)]
        )
        assert found == documents, name


@pytest.mark.parametrize(
    "path", [path for path in MAINNET if path.stem != "moonbeam-devnode-115"], ids=lambda p: p.stem
)
def test_a_real_header_has_the_hash_that_its_chain_knows_it_by(path: Path, tmp_path: Path) -> None:
    data = json.loads(path.read_bytes())
    header = Header.decode(bytes.fromhex(data["parentHead"][2:]))
    [read] = read_node_data([written(tmp_path / "header.json", header_answer(header))]).headers
    assert (hexed(read.hash), read.number, read.state_root) == (
        data["parentHash"],
        header.number,
        header.state_root,
    )


def test_the_deepest_node_was_requested_and_those_on_its_way_were_not() -> None:
    """Entries of other parachains lie in the nodes above; the block was one of parachain 2004."""
    data = json.loads((HERE / "examples" / "mainnet" / "moonbeam-11728459.json").read_bytes())
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
        [read] = read_node_data([written(tmp_path / f"{at}.json", form)]).headers
        assert (read.hash, read.number, read.state_root) == (AT, HEADER.number, HEADER.state_root)
    for at, form in enumerate([proof, proof["result"], [header, proof]]):
        data = read_node_data([written(tmp_path / f"proof{at}.json", form)])
        [found] = data.proofs
        assert (found.at, found.nodes) == (AT, tuple(PROOF))
    [bare] = read_node_data([written(tmp_path / "bare.json", proof["result"]["proof"])]).proofs
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
        written(tmp_path / "other.json", header_answer(other)),
        written(tmp_path / "proof.json", proof_answer(AT, PROOF)),
        written(tmp_path / "header.json", header_answer(HEADER)),
    ]
    data = read_node_data(files)
    assert root_of(data.proofs[0], data.headers) == HEADER.state_root
    with pytest.raises(
        NodeDataError,
        match=f"the proof is of block {hexed(AT)}, but the header is that of .* .block 1,",
    ):
        root_of(data.proofs[0], data.headers[:1])
    with pytest.raises(NodeDataError, match="no header names the state root"):
        root_of(data.proofs[0], [])
    [nameless] = read_node_data([written(tmp_path / "bare.json", proof_answer(None, PROOF))]).proofs
    assert root_of(nameless, data.headers[1:]) == HEADER.state_root
    with pytest.raises(NodeDataError, match="the proof names no block, and there are 2 headers"):
        root_of(nameless, data.headers)


GOOD = header_answer(HEADER)["result"]


NOT_ANSWERS: tuple[Any, ...] = (
    {"id": 1, "error": {"code": -32000, "message": "UnknownBlock"}},
    {"id": 1, "error": "busy"},
    {"id": 1, "result": None},
    {"id": 1, "result": "0x00"},
    {"id": 1, "result": {"peers": 3}},
    {"proof": []},
    {"proof": "0x00"},
    {"proof": ["0x00", "00"]},
    {"proof": ["0x0"]},
    {"at": "0x00", "proof": ["0x00"]},
    {**GOOD, "stateRoot": "0x00"},
    {**GOOD, "number": "twelve"},
    {**GOOD, "number": True},
    {**GOOD, "number": 2**32},
    {**GOOD, "digest": {}},
    {**GOOD, "digest": {"logs": [1]}},
    {**GOOD, "parentHash": None},
    {"id": 1, "method": "state_getReadProof", "params": ["0x00"]},
    {"id": 1, "method": "state_getChildReadProof", "params": ["0x00", ["0x00"]]},
    17,
)
NOT_JSON = (
    b"{",
    b'{"proof": ["0x00"]}\n{',
    b"\xff",
    b"",
)


def test_a_file_that_is_not_an_answer_is_refused_with_its_place(
    tmp_path: Path, snapshot: Snapshot
) -> None:
    path = tmp_path / "x.json"
    cases = []
    for document in NOT_ANSWERS:
        own = document
        if isinstance(document, dict):  # a header without the fields that are right
            own = {
                name: value
                for name, value in document.items()
                if name not in GOOD or GOOD[name] != value
            }
        cases.append((json.dumps(own), json.dumps(document).encode()))
    cases += [(repr(raw), raw) for raw in NOT_JSON]
    texts = []
    for shown, content in cases:
        path.write_bytes(content)
        with pytest.raises(NodeDataError) as refused:
            read_node_data([path])
        texts.append(f"{shown}\n  {refused.value}\n")
    snapshot("not-answers", "\n".join(texts).replace(f"{tmp_path}/", ""))
