"""`pubsub prove` against recorded answers of Polkadot, and on the other sources."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from aiohttp import web
from click.testing import CliRunner, Result
from support.client.chain_values import REAL, real_metadata
from support.client.recorded_relay import (
    MAINNET,
    RECORDED,
    UNKNOWN_METHOD,
    RelayNode,
    recorded,
    relay_node,
)
from support.plumbing.snapshots import Snapshot
from support.plumbing.transcript import Transcript

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.client import kept_answers, request_states
from pubsub_emulator.client.kept_answers import KeptAnswers
from pubsub_emulator.client.places import url_and_block
from pubsub_emulator.client.storage_names import StorageNames
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.pubsub import derive_child_key, node_cost
from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.primitives.storage_keys import (
    ACTIVE_CONFIG,
    CHILD_STORAGE_PREFIX,
    CURRENT_SLOT,
    item_prefix,
    para_head,
)
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.proving import sources
from pubsub_emulator.proving.names import fixed_names
from pubsub_emulator.runtime.framework import relay_request
from pubsub_emulator.runtime.framework.relay_request import (
    MAX_STORAGE_KEY,
    ChildKey,
    RelayProofRequest,
    TopKey,
)
from pubsub_emulator.runtime.framework.request_proof import (
    RequestProof,
    open_request,
    static_request,
)

SLOT = "Babe.CurrentSlot"
CONFIG = "Configuration.ActiveConfig"
SMALL = """
name = "small"
seed = "small"
relay_blocks = 12
[[publishers]]
paras = [1000]
keys = 4
value_size = 40
[[subscribers]]
para = 2000
subscribe = [{ publishers = [1000], keys = 2 }]
"""


@pytest.fixture
def node() -> Iterator[RelayNode]:
    with relay_node() as running:
        yield running


def run(*words: str) -> Result:
    return CliRunner().invoke(pubsub, ["prove", *words])


def document(*words: str) -> dict[str, Any]:
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def failure(*words: str) -> str:
    result = run(*words)
    assert isinstance(result.exception, PubsubError), result.output
    said = str(result.exception)
    assert "\n" not in said
    return said


@pytest.fixture
def cache(tmp_path: Path) -> tuple[str, str]:
    return "--cache", str(tmp_path / "cache")


@pytest.mark.parametrize("name", RECORDED)
def test_values_of_recorded_proofs_are_those_that_sp_trie_reads(name: str) -> None:
    state = recorded(name)
    keys = tuple(TopKey(key) for key in state.values)
    assert keys
    proof = open_request(state.root, state.nodes, RelayProofRequest(keys))
    assert {cost.asked.key: cost.value for cost in proof.keys} == state.values


def test_the_figures_of_the_page_are_those_of_the_recorded_proof() -> None:
    page = (MAINNET.parents[1] / "docs" / "howto" / "use-keys-to-prove.md").read_text()
    state = recorded(RECORDED[-1])
    names = StorageNames(real_metadata("polkadot-14"))

    def cost(*keys: TopKey) -> RequestProof:
        return open_request(state.root, state.nodes, RelayProofRequest(keys))

    static = static_request(ParaId(2004), lambda key: cost(TopKey(key)).keys[0].value)
    beside = cost(*static.keys)
    assert f"{len(static.keys)} static keys take {len(beside.nodes)} nodes and" in page
    assert f"{beside.size:,}" in page
    for name, alone, more in (
        ("Babe.CurrentSlot", 1_050, 0),
        ("Configuration.ActiveConfig", 1_112, 0),
        ("Babe.EpochIndex", 1_050, 0),
        ("Babe.Randomness", 1_168, 0),
        ("Paras.Heads(2004)", 2_480, 0),
        ("Paras.UpgradeGoAheadSignal(2004)", 1_120, 0),
    ):
        key = TopKey(names.key(name))
        assert cost(key).size == alone
        assert cost(*static.keys, key).size - beside.size == more
        assert f"`{name}`" in page
        assert f"{alone:,}" in page


def test_names_are_resolved_by_the_metadata_of_the_node(
    node: RelayNode, cache: tuple[str, str]
) -> None:
    found = document(node.url, *cache, "--top", SLOT, "--top", CONFIG)
    assert [row["name"] for row in found["keys"]] == [SLOT, CONFIG]
    state = recorded(RECORDED[-1])
    request = RelayProofRequest((TopKey(CURRENT_SLOT), TopKey(ACTIVE_CONFIG)))
    proof = open_request(state.root, state.nodes, request)
    assert found["parts"]["request"]["bytes"] == proof.size
    assert found["parts"]["request"]["nodes"] == len(proof.nodes)
    assert found["request"] == hexed(request.encode())
    assert found["keys"][0]["value_bytes"] == 8
    shares = sum(row["own_bytes"] + row["shared_bytes"] for row in found["keys"])
    assert shares == pytest.approx(proof.size)
    assert "static keys" not in found["parts"]


def test_several_blocks_have_ranges_and_changes_of_paths(
    node: RelayNode, cache: tuple[str, str], tmp_path: Path
) -> None:
    plot = tmp_path / "cost.svg"
    found = document(node.url, *cache, "--top", SLOT, "--blocks", "4", "--plot", str(plot))
    sizes = [row["bytes"] for row in found["blocks"]]
    assert [row["number"] for row in found["blocks"]] == [0, 1, 2, 3]
    assert found["ranges"]["request"]["max"] == max(sizes)
    assert found["ranges"]["request"]["min"] == min(sizes)
    assert found["keys"][0]["path_changes"] == 3
    assert ET.parse(plot).getroot().tag.endswith("svg")  # noqa: S314  # our own file
    part = document(node.url, *cache, "--top", SLOT, "--blocks", "1-2")
    assert part["blocks"] == found["blocks"][1:3]
    newest = document(node.url, *cache, "--top", SLOT, "--blocks", "50")
    assert len(newest["blocks"]) == 4


def test_answers_are_kept_for_the_next_call(
    node: RelayNode, cache: tuple[str, str], tmp_path: Path
) -> None:
    words = (node.url, *cache, "--top", SLOT, "--blocks", "3")
    first = document(*words)
    asked = len(node.calls)
    assert document(*words) == first
    assert node.calls[asked:] == ["chain_getFinalizedHead"]
    asked = len(node.calls)
    document(node.url, "--no-cache", "--top", SLOT)
    assert "state_getReadProof" in node.calls[asked:]
    assert (tmp_path / "cache").stat().st_mode & 0o077 == 0


def test_kept_answers_are_enough_when_the_node_is_stopped(cache: tuple[str, str]) -> None:
    """The block's hash must be given, because only the node knows which block is the newest."""
    with relay_node() as node:
        first = document(node.url, *cache, "--top", SLOT, "--blocks", "2")
        place = f"{node.url}@{first['block']['hash']}"
        words = (place, *cache, "--top", SLOT, "--blocks", "2")
        assert document(*words) == first
    assert document(*words) == first
    # A call that needs more than the kept answers fails, and does not remove them.
    assert "nobody listens" in failure(*words[:-1], "4")
    assert document(*words) == first


def test_blocks_before_one_that_fails_are_kept(cache: tuple[str, str]) -> None:
    """The third proof fails. The next call asks for the proofs of the third and fourth block."""
    asked = 0

    def third_fails(method: str, answer: Any) -> Any:
        nonlocal asked
        asked += method == "state_getReadProof"
        failing = method == "state_getReadProof" and asked == 3
        return "refuse State already discarded" if failing else answer

    with relay_node(RelayNode(fault=third_fails)) as node:
        words = (node.url, *cache, "--top", SLOT, "--blocks", "4")
        assert "the state of block 2" in failure(*words)
        before = len(node.calls)
        assert len(document(*words)["blocks"]) == 4
        assert node.calls[before:].count("state_getReadProof") == 2


def test_a_kept_answer_that_somebody_changed_is_refused_and_removed(
    node: RelayNode, cache: tuple[str, str], tmp_path: Path
) -> None:
    words = (node.url, *cache, "--top", SLOT)
    first = document(*words)
    for file in (tmp_path / "cache").iterdir():
        text = file.read_text()
        if '"proof"' in text:
            file.write_text(text.replace("0", "1"))
    failure(*words)
    assert document(*words) == first


def test_kept_answers_are_limited_in_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Node:
        url = "ws://node"

        def ask(self, _method: str, *params: object) -> object:
            return "x" * 1_000 if params else None

    monkeypatch.setattr(kept_answers, "MOST_KEPT", 5_000)
    kept = KeptAnswers(Node(), tmp_path)
    for number in range(20):
        with kept.accepted():
            kept.ask("chain_getHeader", f"0x{number:064x}")
    sizes = [file.stat().st_size for file in tmp_path.iterdir()]
    assert 3_000 < sum(sizes) <= 5_000
    with kept.accepted():  # more answers in one call than may be kept
        for number in range(20, 40):
            kept.ask("chain_getHeader", f"0x{number:064x}")
    sizes = [file.stat().st_size for file in tmp_path.iterdir()]
    assert 3_000 < sum(sizes) <= 5_000
    monkeypatch.setattr(kept_answers, "MOST_ANSWER", 500)
    with kept.accepted():
        kept.ask("chain_getHeader", f"0x{99:064x}")
    assert len(list(tmp_path.iterdir())) == len(sizes)


def test_static_keys_are_counted_beside_the_request(
    node: RelayNode, cache: tuple[str, str]
) -> None:
    """The recorded proof is of parachain 2004, so it has all of its static keys."""
    found = document(node.url, *cache, "--top", SLOT, "--para", "2004")
    parts = found["parts"]
    whole = parts["both, shared nodes once"]
    assert whole == parts["static keys"]
    assert parts["static keys"]["nodes"] > 20
    assert parts["request"]["bytes"] < whole["bytes"]


def test_the_request_comes_from_digits_a_file_or_the_parachain(
    node: RelayNode, cache: tuple[str, str], tmp_path: Path
) -> None:
    keys = (TopKey(CURRENT_SLOT), TopKey(ACTIVE_CONFIG))
    wanted = RelayProofRequest(keys).encode()
    node.request = wanted
    file = tmp_path / "request.toml"
    file.write_text(f'top = ["{SLOT}", "{hexed(ACTIVE_CONFIG)}"]\n')
    digits = tmp_path / "request.hex"
    digits.write_text(f"{hexed(wanted)}\n")
    found = [
        document(node.url, *cache, "--request", given)
        for given in (hexed(wanted), str(file), str(digits), node.url)
    ]
    assert all(each == found[0] for each in found)
    assert found[0]["request"] == hexed(wanted)
    joined = document(node.url, *cache, "--request", hexed(wanted), "--top", SLOT)
    assert joined["request"] == hexed(wanted)


def test_too_many_and_too_long_keys_are_refused(
    node: RelayNode, cache: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "0x" + "11" * (MAX_STORAGE_KEY + 1)
    assert "at most" in failure(node.url, *cache, "--top", long)
    request = RelayProofRequest((TopKey(CURRENT_SLOT), TopKey(ACTIVE_CONFIG))).encode()
    assert document(node.url, *cache, "--request", hexed(request))["request"] == hexed(request)
    monkeypatch.setattr(relay_request, "MAX_REQUEST_BYTES", len(request) - 1)
    assert f"at most {len(request) - 1}" in failure(node.url, *cache, "--request", hexed(request))
    most = encode_compact(relay_request.MAX_REQUESTED_KEYS + 1)
    monkeypatch.setattr(relay_request, "MAX_REQUEST_BYTES", 1 << 30)
    many = most + b"\0\4a" * (relay_request.MAX_REQUESTED_KEYS + 1)
    file = Path(cache[1]).with_suffix(".hex")
    file.write_text(hexed(many))
    assert "at most" in failure(node.url, *cache, "--request", str(file))


def test_proofs_of_a_block_are_limited_in_bytes_and_requested_in_pieces(
    node: RelayNode, cache: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (node.url, *cache, "--top", SLOT, "--top", CONFIG)
    size = document(*words)["parts"]["request"]["bytes"]
    monkeypatch.setattr(request_states, "KEYS_AT_ONCE", 1)
    monkeypatch.setattr(request_states, "MOST_PROOF", size)
    before = len(node.calls)
    assert document(*words, "--no-cache")["parts"]["request"]["bytes"] == size
    assert node.calls[before:].count("state_getReadProof") == 2
    monkeypatch.setattr(request_states, "MOST_PROOF", size - 1)
    assert f"proofs of more than {size - 1:,} bytes" in failure(*words, "--no-cache")


FAULTS: dict[str, tuple[Any, str]] = {
    "another header": (
        lambda method, answer: (
            {**answer, "stateRoot": "0x" + "22" * 32} if method == "chain_getHeader" else answer
        ),
        "header of block .* has another hash",
    ),
    "a changed node": (
        lambda method, answer: (
            {"at": "", "proof": [node[:-2] + "00" for node in answer["proof"]]}
            if method == "state_getReadProof"
            else answer
        ),
        "does not have the root",
    ),
    "a node left out": (
        lambda method, answer: (
            {"at": "", "proof": answer["proof"][:-1]} if method == "state_getReadProof" else answer
        ),
        "is incomplete: node .* is missing",
    ),
    "pruned": (
        lambda method, answer: (
            "refuse State already discarded" if method == "state_getReadProof" else answer
        ),
        "does not provide the state of block 3: .*discarded.*archive nodes",
    ),
    "no method": (
        lambda method, answer: UNKNOWN_METHOD if method == "state_getReadProof" else answer,
        "cannot prove states: state_getReadProof: Method not found",
    ),
    "an unknown block": (
        lambda method, answer: None if method == "chain_getHeader" else answer,
        "the node has no block",
    ),
    "slow": (
        lambda method, answer: 5.0 if method == "state_getReadProof" else answer,
        "no answer in time",
    ),
    "stopped": (
        lambda method, answer: (
            web.Response(status=503) if method == "state_getReadProof" else answer
        ),
        "HTTP status 503",
    ),
    "no metadata": (
        lambda method, answer: "0x6d657461" if method == "state_getMetadata" else answer,
        "magic number",
    ),
}


@pytest.mark.parametrize(("fault", "words"), FAULTS.values(), ids=FAULTS)
def test_a_node_that_fails_or_lies_is_reported_in_one_line(
    fault: Any, words: str, cache: tuple[str, str]
) -> None:
    with relay_node(RelayNode(fault=fault)) as node:
        said = failure(node.url, *cache, "--top", SLOT, "--timeout", "1")
        assert re.search(words, said), said
        # A bad answer does not stay.
        node.fault = lambda _method, answer: answer
        assert document(node.url, *cache, "--top", SLOT)["block"]["number"] == 3


REQUESTS = {
    "a number": "top = 5\n",
    "an unknown field": "tops = []\n",
    "a child trie without a name": '[[child]]\ntrie = -1\nkeys = ["0x00"]\n',
    "a key of a child trie that is not hexadecimal": '[[child]]\ntrie = 1000\nkeys = ["zz"]\n',
    "an unknown pallet": 'top = ["Nope.Item"]\n',
    "an unknown item": 'top = ["Babe.Nope"]\n',
    "a map without its key": 'top = ["Paras.Heads"]\n',
    "an id that is too large": 'top = ["Paras.Heads(4294967296)"]\n',
    "an id of two bytes": 'top = ["Paras.Heads(0xd407)"]\n',
    "an id of five bytes": 'top = ["Paras.Heads(0xd407000000)"]\n',
    "an account that is a word": 'top = ["System.Account(abc)"]\n',
    "an account of two bytes": 'top = ["System.Account(0x1234)"]\n',
    "an unknown development account": 'top = ["System.Account(//Zoe)"]\n',
    "an address with a wrong checksum": (
        'top = ["System.Account(5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQZ)"]\n'
    ),
    "words": 'top = ["what is this"]\n',
    "nothing": "",
    "JSON": '{"format": "x",\n "proof": [\n]}\n',
    "an odd number of digits": "0x123",
}
"""Files that `--request` does not take."""
SOURCES = (
    "request.toml --top System.Number",
    "state.json --top System.Number --para 2000",
    "state.json --top System.Number --blocks 2",
    "node --child 0x 0x12",
    f"node --child {hexed(CHILD_STORAGE_PREFIX)} 0x12",
    *(f"node --top 0x12 --blocks={blocks}" for blocks in ("0", "x", "5-3", "1-2-3", "10001", "-1")),
    *(f"node --top 0x12 --metadata metadata-{number}" for number in range(6)),
    *(f"URL@{place} --top {SLOT}" for place in ("x", "", "0x00", "0x" + "1" * 63, "12345678901")),
)
"""Arguments of `prove` that are refused."""
METADATA = (b"<svg>0x1234</svg>", b'"0x1234"', b"meta", b"", b'"0x"', b'{"result": "0xzz"}')


def test_bad_requests_and_sources_are_refused(
    node: RelayNode, transcript: Transcript, snapshot: Snapshot
) -> None:
    folder, prove = transcript.folder, f"pubsub prove {node.url} --cache cache"
    for case, text in REQUESTS.items():
        (folder / "request.toml").write_text(text)
        transcript.note(f"# {case}: {text.strip()}")
        transcript.refuse(f"{prove} --request request.toml")
    (folder / "program").write_bytes(b"\x7fELF\n\x01\x02" * 100)
    transcript.refuse(f"{prove} --request program")
    (folder / "request.toml").write_text('top = ["System.Number"]\n')
    state = {"top": {hexed(item_prefix("System", "Number")): "0x05000000"}, "childrenDefault": {}}
    (folder / "state.json").write_text(json.dumps({"genesis": {"raw": state}}))
    for number, content in enumerate(METADATA):
        (folder / f"metadata-{number}").write_bytes(content)
    calls = list(node.calls)
    for arguments in SOURCES:
        transcript.refuse(f"pubsub prove {arguments.replace('URL', node.url)}")
    transcript.refuse(f"pubsub export-state {node.url}@x state.json")
    assert node.calls == calls
    # The recorded proofs do not have all keys. Their node refuses others, as one that pruned.
    transcript.refuse(f"{prove} --top 'System.Account(0x{'11' * 32})'", code=4)
    snapshot("refused-requests", str(transcript))


# The proof file


def test_a_bad_file_of_a_proof_is_refused(
    node: RelayNode, transcript: Transcript, snapshot: Snapshot
) -> None:
    transcript.run(f"pubsub prove {node.url} --cache cache --top {SLOT} --out proof.json")
    content = json.loads((transcript.folder / "proof.json").read_text())
    changes: tuple[dict[str, object], ...] = (
        {"proof": content["proof"][1:]},
        {"proof": ["zz"]},
        {"proof": 5},
        {"proof": ["0x00"], "request": "0x00"},
        {"request": "0x04"},
        {"format": "x"},
    )
    for change in changes:
        (transcript.folder / "bad.json").write_text(json.dumps({**content, **change}))
        shown = ", ".join(f"{field} changed" for field in change)
        transcript.note(f"# {shown}")
        transcript.refuse(f"pubsub prove --verify bad.json --root {content['root']}")
    for root in ("0x00", "0x112233"):
        transcript.refuse(f"pubsub prove --verify proof.json --root {root}")
    snapshot("refused-proofs", str(transcript))


def test_what_prove_and_open_proof_print(
    node: RelayNode, transcript: Transcript, snapshot: Snapshot
) -> None:
    prove = f"pubsub prove {node.url} --cache cache --top {SLOT}"
    transcript.run(f"{prove} --top 0x{'1c' * 32} --para 2004")
    several = transcript.run(f"{prove} --blocks 50").stdout
    assert not re.search(r"\d\.0\b", several)
    assert not re.search(r" +$", several, re.MULTILINE)
    absent = f"--child 1000 0x{'1f' * 32} --top 'Paras.Heads(4000)'"
    transcript.run(f"pubsub prove node {absent} --blocks 2 --markdown --out proof.json")
    content = json.loads((transcript.folder / "proof.json").read_text())
    transcript.run(f"pubsub prove --verify proof.json --root {content['root']}")
    transcript.run(f"pubsub open-proof proof.json --root {content['root']}")
    bare = {"at": content["at"], "proof": content["proof"]}
    (transcript.folder / "bare.json").write_text(json.dumps(bare))
    transcript.run(f"pubsub open-proof bare.json --root {content['root']}")
    snapshot("prove", str(transcript))


def test_a_proof_file_is_verified_offline(
    node: RelayNode, cache: tuple[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "proof.json"
    result = run(node.url, *cache, "--top", SLOT, "--para", "2004", "--out", str(file))
    assert result.exit_code == 0, result.output
    root = hexed(recorded(RECORDED[-1]).root)
    assert run("--verify", str(file), "--root", root).exit_code == 0
    opened = CliRunner().invoke(pubsub, ["open-proof", str(file), "--root", root])
    assert opened.exit_code == 0, opened.output

    content = json.loads(file.read_text())
    padded = tmp_path / "padded.json"
    padded.write_text(json.dumps({**content, "proof": [*content["proof"], "0x00ff"]}))
    extra = run("--verify", str(padded), "--root", root, "--json")
    assert extra.exit_code == 1
    assert len(json.loads(extra.stdout)["unneeded"]) == 1
    twice = tmp_path / "twice.json"
    twice.write_text(json.dumps({**content, "proof": content["proof"] * 2}))
    assert run("--verify", str(twice), "--root", root).exit_code == 1


# Other sources


def test_a_scenario_is_run_and_its_newest_states_are_proven() -> None:
    found = document(
        "node",
        *("--top", "Paras.Heads(2000)", "--child", "1000", "0x" + "11" * 32),
        *("--para", "2000", "--blocks", "3"),
    )
    assert [row["number"] for row in found["blocks"]] == [98, 99, 100]
    heads, child = found["keys"]
    assert heads["name"] == "Paras.Heads(2000)"
    assert heads["key"] == hexed(para_head(ParaId(2000)))
    assert child["trie"] == hexed(derive_child_key(ParaId(1000)))
    assert child["absent"]
    assert found["parts"]["static keys"]["nodes"] > 0


def test_a_run_has_the_states_that_its_blocks_proved(tmp_path: Path) -> None:
    scenario = tmp_path / "small.toml"
    scenario.write_text(SMALL)
    made = CliRunner().invoke(pubsub, ["run", str(scenario), "--out", str(tmp_path / "run")])
    assert made.exit_code == 0, made.output
    keys = ("--top", SLOT, "--para", "2000")
    found = document(str(tmp_path / "run"), *keys, "--blocks", "3")
    newest = found["block"]["number"]
    assert [row["number"] for row in found["blocks"]] == [newest - 2, newest - 1, newest]
    again = document(str(scenario), *keys, "--blocks", f"{newest - 2}-{newest}")
    assert found == again
    assert "only the keys that its" in failure(
        str(tmp_path / "run"), "--top", SLOT, "--blocks", "12-12"
    )


def test_the_nodes_of_a_history_are_limited_in_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = tmp_path / "small.toml"
    scenario.write_text(SMALL)
    made = CliRunner().invoke(pubsub, ["run", str(scenario), "--out", str(tmp_path / "run")])
    assert made.exit_code == 0, made.output
    monkeypatch.setattr(sources, "MOST_NODES", 1_000)
    assert "more than 1,000 bytes of nodes" in failure(str(tmp_path / "run"), "--top", SLOT)


def test_a_saved_session_is_played(tmp_path: Path) -> None:
    scenario = tmp_path / "small.toml"
    scenario.write_text(SMALL)
    file = tmp_path / "session.json"
    made = CliRunner().invoke(pubsub, ["step", str(scenario)], input=f"step 5\nwrite {file}\n")
    assert made.exit_code == 0, made.output
    found = document(str(file), "--top", SLOT, "--blocks", "2")
    assert found["blocks"] == document(str(scenario), "--top", SLOT, "--blocks", "4-5")["blocks"]


def test_a_state_file_has_one_state(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    number = hexed(item_prefix("System", "Number"))
    top = {"0x1234": "0x00", number: "0x05000000"}
    child = {"0x" + b"crowd".hex(): {"0xaa": "0x" + "bb" * 40}}
    file.write_text(json.dumps({"genesis": {"raw": {"top": top, "childrenDefault": child}}}))
    found = document(str(file), "--top", "0x1234", "--child", "0x" + b"crowd".hex(), "0xaa")
    assert found["block"]["number"] == 5
    assert [row["value_bytes"] for row in found["keys"]] == [1, 40]
    request = RelayProofRequest((TopKey(bytes.fromhex("1234")), ChildKey(b"crowd", b"\xaa")))
    assert found["request"] == hexed(request.encode())


def test_metadata_comes_from_a_file(tmp_path: Path) -> None:
    raw = gzip.decompress((REAL / "polkadot-14.scale.gz").read_bytes())
    file = tmp_path / "metadata.json"
    file.write_text(json.dumps({"jsonrpc": "2.0", "id": 1, "result": hexed(raw)}))
    found = document(
        "node", "--top", "Mmr.RootHash", "--top", "System.Number", "--metadata", str(file)
    )
    assert [row["name"] for row in found["keys"]] == ["Mmr.RootHash", "System.Number"]
    assert [row["absent"] for row in found["keys"]] == [True, False]


def test_prove_and_open_proof_agree_about_sizes(tmp_path: Path) -> None:
    """`open-proof` adds the length of each node, and says so."""
    scenario = tmp_path / "small.toml"
    scenario.write_text(SMALL)
    file = tmp_path / "proof.json"
    absent = "0x" + "11" * 32
    found = document(
        str(scenario),
        *("--top", "Paras.Heads(2000)"),
        *("--child", "1000", absent, "--child", "3000", absent, "--out", str(file)),
    )
    size = found["parts"]["request"]["bytes"]
    nodes = found["parts"]["request"]["nodes"]
    root = found["block"]["root"]
    verified = run("--verify", str(file), "--root", root)
    assert f"by {nodes} nodes, {size:,} bytes without their lengths" in verified.stdout
    opened = CliRunner().invoke(pubsub, ["open-proof", str(file), "--root", root, "--json"])
    (proof,) = json.loads(opened.stdout)["proofs"]
    lengths = [node_cost(len(node) // 2 - 1) for node in json.loads(file.read_text())["proof"]]
    assert proof["node_bytes"] == size
    assert proof["bytes"] == sum(lengths)
    paths = {part["name"]: part["path_bytes"] for part in proof["parts"] if part["key"]}
    for row in found["keys"]:
        # A node has at most two bytes of length here.
        assert row["path_bytes"] < paths[row["name"]] <= row["path_bytes"] + 2 * nodes
    assert "absent" in {part["state"] for part in proof["parts"]}
    shown = CliRunner().invoke(pubsub, ["open-proof", str(file), "--root", root])
    assert f"Without the lengths, the nodes have {size:,} bytes." in shown.stdout


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("Paras.Heads(0xd4070000)", "Paras.Heads(2004)"),
        (
            "System.Account(//Alice)",
            "System.Account(5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY)",
        ),
        (
            "System.Account(0xd43593c715fdd31c61141abd04a99fd6822c8558854ccde39a5684e7a56da27d)",
            "System.Account(5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY)",
        ),
    ],
)
def test_keys_of_maps_are_scale_or_development_accounts(given: str, name: str) -> None:
    names = StorageNames(real_metadata("polkadot-14"))
    assert names.name(names.key(given)) == name


def test_an_id_is_scale_without_metadata_too() -> None:
    names = fixed_names()
    assert names.key("Paras.Heads(0xd0070000)") == para_head(ParaId(2000))
    with pytest.raises(PubsubError, match=r"SCALE as 0x…"):
        names.key("Paras.Heads(0xd007)")


def test_a_key_may_be_empty() -> None:
    found = document("node", "--top", "0x", "--child", "1000", "0x")
    assert [row["key"] for row in found["keys"]] == ["0x", "0x"]


def test_an_error_of_a_node_is_one_short_line(cache: tuple[str, str]) -> None:
    text = "refuse " + "a line\n" * 400 + "\x1b[31m"
    with relay_node(
        RelayNode(fault=lambda method, answer: text if "ReadProof" in method else answer)
    ) as node:
        said = failure(node.url, *cache, "--top", SLOT)
    assert "a line\\na line" in said
    assert "\x1b" not in said
    assert len(said) < 1_500


def test_the_host_after_a_users_name_is_no_block() -> None:
    for place in ("ws://a:b@host.example", "ws://a:b@localhost", "ws://a:b@h:9944", "ws://h/"):
        assert url_and_block(place) == (place, None)
    assert url_and_block("ws://a:b@host:1@17") == ("ws://a:b@host:1", "17")


def test_the_metadata_of_a_parachain_is_recognized(
    node: RelayNode, cache: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "PARACHAIN_PALLET", "Paras")
    assert "this is a parachain's node" in failure(node.url, *cache, "--top", SLOT)


def test_json_is_alone_on_standard_output() -> None:
    result = run("node", "--top", "Paras.Heads(2000)", "--markdown", "--json")
    assert json.loads(result.stdout)["para"] is None
    assert "| part |" in result.stderr
