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

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.client import kept_answers, request_states
from pubsub_emulator.client.kept_answers import KeptAnswers
from pubsub_emulator.client.places import url_and_block
from pubsub_emulator.client.storage_names import StorageNames
from pubsub_emulator.files.errors import InputError
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


def test_the_tables_name_sizes_keys_and_absent_keys(
    node: RelayNode, cache: tuple[str, str]
) -> None:
    result = run(node.url, *cache, "--top", SLOT, "--top", "0x" + "1c" * 32)
    assert result.exit_code == 0, result.output
    assert re.search(r"Babe\.CurrentSlot +8 bytes", result.stdout)
    assert "1 of 2 keys is absent. Without it, the request" in result.stdout
    assert "of 5 MiB" in result.stdout


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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("top = 5\n", r"request\.toml:1: top"),
        ("tops = []\n", r"request\.toml:1: tops"),
        ('[[child]]\ntrie = -1\nkeys = ["0x00"]\n', r"request\.toml:2"),
        ('[[child]]\ntrie = 1000\nkeys = ["zz"]\n', "child.keys: zz: not hexadecimal"),
        ('top = ["Nope.Item"]\n', "no pallet Nope"),
        ('top = ["Babe.Nope"]\n', "no storage Babe.Nope"),
        ('top = ["Paras.Heads"]\n', "Heads takes 1 key, not 0"),
        ('top = ["Paras.Heads(4294967296)"]\n', r"Paras\.Heads: 4294967296 is not a value"),
        ('top = ["System.Account(abc)"]\n', "System.Account: not an address: 'abc'"),
        ('top = ["what is this"]\n', "a key is 0x"),
        ("", "the request has no keys"),
    ],
)
def test_a_bad_request_is_one_line(
    text: str, words: str, node: RelayNode, cache: tuple[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "request.toml"
    file.write_text(text)
    assert re.search(words, failure(node.url, *cache, "--request", str(file)))


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


def test_a_key_that_the_node_cannot_prove_is_an_error(
    node: RelayNode, cache: tuple[str, str]
) -> None:
    """The recorded proofs do not have all keys. Their node refuses others, as one that pruned."""
    assert "does not provide the state" in failure(
        node.url, *cache, "--top", "System.Account(" + "0x" + "11" * 32 + ")"
    )


# The proof file


def test_a_proof_file_is_verified_offline(
    node: RelayNode, cache: tuple[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "proof.json"
    result = run(node.url, *cache, "--top", SLOT, "--para", "2004", "--out", str(file))
    assert result.exit_code == 0, result.output
    root = hexed(recorded(RECORDED[-1]).root)
    good = run("--verify", str(file), "--root", root)
    assert good.exit_code == 0, good.output
    assert "keys are proven" in good.stdout
    opened = CliRunner().invoke(pubsub, ["open-proof", str(file), "--root", root])
    assert opened.exit_code == 0, opened.output
    assert "unread" not in opened.stdout

    content = json.loads(file.read_text())
    padded = tmp_path / "padded.json"
    padded.write_text(json.dumps({**content, "proof": [*content["proof"], "0x00ff"]}))
    extra = run("--verify", str(padded), "--root", root, "--json")
    assert extra.exit_code == 1
    assert len(json.loads(extra.stdout)["unneeded"]) == 1
    twice = tmp_path / "twice.json"
    twice.write_text(json.dumps({**content, "proof": content["proof"] * 2}))
    assert run("--verify", str(twice), "--root", root).exit_code == 1

    for change, words in (
        ({"proof": content["proof"][1:]}, "not every key is proven"),
        ({"proof": ["zz"]}, r"proof\[0\]: zz: not hexadecimal"),
        ({"proof": 5}, "proof: not a list"),
        ({"request": "0x04"}, "request: "),
        ({"format": "x"}, "format: not"),
    ):
        bad = tmp_path / "bad.json"
        bad.write_text(json.dumps({**content, **change}))
        assert re.search(words, failure("--verify", str(bad), "--root", root))
    assert "has 3 bytes" in failure("--verify", str(file), "--root", "0x112233")


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
    assert "one state" in failure(str(file), "--top", "0x1234", "--blocks", "2")
    request = RelayProofRequest((TopKey(bytes.fromhex("1234")), ChildKey(b"crowd", b"\xaa")))
    assert found["request"] == hexed(request.encode())


def test_markdown_has_the_tables() -> None:
    result = run("node", "--top", "Paras.Heads(2000)", "--blocks", "2", "--markdown")
    assert result.exit_code == 0, result.output
    assert "| part | min bytes |" in result.stdout
    assert "| Paras.Heads(2000) |" in result.stdout


def test_metadata_comes_from_a_file(tmp_path: Path) -> None:
    raw = gzip.decompress((REAL / "polkadot-14.scale.gz").read_bytes())
    file = tmp_path / "metadata.json"
    file.write_text(json.dumps({"jsonrpc": "2.0", "id": 1, "result": hexed(raw)}))
    found = document(
        "node", "--top", "Mmr.RootHash", "--top", "System.Number", "--metadata", str(file)
    )
    assert [row["name"] for row in found["keys"]] == ["Mmr.RootHash", "System.Number"]
    assert [row["absent"] for row in found["keys"]] == [True, False]
    bad = tmp_path / "bad.json"
    bad.write_text('{"result": "0xzz"}')
    assert "neither metadata" in failure("node", "--top", "0x12", "--metadata", str(bad))


@pytest.mark.parametrize(
    "words",
    [
        ("node",),
        ("--top", "0x12"),
        ("node", "--top", "0x12", "--root", "0x12"),
        ("node", "--verify", "pyproject.toml", "--root", "0x12"),
        ("node", "--top", "0x12", "--plot", "x.pdf"),
    ],
)
def test_wrong_usage_is_refused(words: tuple[str, ...]) -> None:
    assert run(*words).exit_code == 2


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


def test_open_proof_explains_groups_of_nodes_in_whole_words(tmp_path: Path) -> None:
    file = tmp_path / "proof.json"
    document("node", "--top", "Paras.Heads(4000)", "--out", str(file))
    content = json.loads(file.read_text())
    bare = tmp_path / "bare.json"
    bare.write_text(json.dumps({"at": content["at"], "proof": content["proof"]}))
    opened = CliRunner().invoke(pubsub, ["open-proof", str(bare), "--root", content["root"]])
    assert "on the way to keys that are absent or unchanged" in opened.stdout


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


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("Paras.Heads(0xd407)", "Paras.Heads: 0xd407 is not the SCALE of .*Id: "),
        ("Paras.Heads(0xd407000000)", "0xd407000000 is not the SCALE of .*1 trailing byte"),
        ("System.Account(0x1234)", "System.Account: .*has 32 parts, not 2"),
        ("System.Account(//Zoe)", "//Zoe: not a development account, which are //Alice, "),
        (
            "System.Account(5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQZ)",
            "^System.Account: not an address: '5Grw[^:]*' has a wrong checksum$",
        ),
    ],
)
def test_wrong_keys_of_maps_are_shown_once_and_in_hex(given: str, words: str) -> None:
    names = StorageNames(real_metadata("polkadot-14"))
    with pytest.raises(PubsubError) as caught:
        names.key(given)
    assert re.search(words, str(caught.value)), caught.value


def test_an_id_is_scale_without_metadata_too() -> None:
    names = fixed_names()
    assert names.key("Paras.Heads(0xd0070000)") == para_head(ParaId(2000))
    with pytest.raises(PubsubError, match=r"SCALE as 0x…"):
        names.key("Paras.Heads(0xd007)")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("proof.json", b'{"format": "x",\n "proof": [\n]}\n'),
        ("env", b"\x7fELF\n\x01\x02" * 100),
        ("odd.hex", b"0x123"),
        ("empty.hex", b""),
    ],
)
def test_a_file_that_is_no_request_is_not_shown(name: str, content: bytes, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    said = failure("node", "--request", str(file))
    assert said.startswith(f"{file}: neither a request in hexadecimal digits, nor TOML")


def test_a_request_is_no_source(tmp_path: Path) -> None:
    file = tmp_path / "request.toml"
    file.write_text('top = ["System.Number"]\n')
    assert "this is a request" in failure(str(file), "--top", "System.Number")


def test_a_child_trie_has_a_storage_key_and_keys_may_be_empty() -> None:
    for trie in ("0x", hexed(CHILD_STORAGE_PREFIX)):
        assert "cannot be empty" in failure("node", "--child", trie, "0x12")
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


@pytest.mark.parametrize("at", ["x", "", "0x00", "0x" + "1" * 63, "12345678901"])
def test_a_wrong_block_after_the_url_is_named(at: str, node: RelayNode) -> None:
    said = failure(f"{node.url}@{at}", "--top", SLOT)
    assert f"{at!r} after the @ is neither a block's number nor its hash" in said
    made = CliRunner().invoke(pubsub, ["export-state", f"{node.url}@{at}", "state.json"])
    assert "neither a block's number nor its hash" in str(made.exception)
    assert not node.calls


def test_the_host_after_a_users_name_is_no_block() -> None:
    for place in ("ws://a:b@host.example", "ws://a:b@localhost", "ws://a:b@h:9944", "ws://h/"):
        assert url_and_block(place) == (place, None)
    assert url_and_block("ws://a:b@host:1@17") == ("ws://a:b@host:1", "17")


def test_a_state_of_a_parachain_has_no_static_keys(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    top = {hexed(item_prefix("System", "Number")): "0x05000000"}
    file.write_text(json.dumps({"genesis": {"raw": {"top": top, "childrenDefault": {}}}}))
    said = failure(str(file), "--top", "System.Number", "--para", "2000")
    assert "not the relay chain of parachain 2000" in said


def test_the_metadata_of_a_parachain_is_recognized(
    node: RelayNode, cache: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "PARACHAIN_PALLET", "Paras")
    assert "this is a parachain's node" in failure(node.url, *cache, "--top", SLOT)


def test_fewer_blocks_than_asked_for_are_reported(node: RelayNode, cache: tuple[str, str]) -> None:
    result = run(node.url, *cache, "--top", SLOT, "--blocks", "50")
    assert "only 4 blocks of the 50" in result.stdout
    assert not re.search(r"\d\.0\b", result.stdout)
    assert not re.search(r" +$", result.stdout, re.MULTILINE)


def test_tables_have_whole_keys_to_copy() -> None:
    key = "0x" + "1f" * 32
    assert f"child trie 1000: {key}" in run("node", "--child", "1000", key).stdout


def test_json_is_alone_on_standard_output() -> None:
    result = run("node", "--top", "Paras.Heads(2000)", "--markdown", "--json")
    assert json.loads(result.stdout)["para"] is None
    assert "| part |" in result.stderr


def test_an_empty_source_is_none() -> None:
    assert run("", "--top", "0x12").exit_code == 2


def test_metadata_that_cannot_be_read_is_a_wrong_file(tmp_path: Path) -> None:
    file = tmp_path / "cost.svg"
    for content in (b"<svg>0x1234</svg>", b'"0x1234"', b"meta", b"", b'"0x"'):
        file.write_bytes(content)
        result = run("node", "--top", "0x12", "--metadata", str(file))
        assert isinstance(result.exception, InputError)
        assert str(result.exception).startswith(f"{file}: ")


def test_a_proof_of_no_keys_proves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "proof.json"
    content = {"format": "pubsub-request-proof/1", "request": "0x00", "proof": ["0x00"]}
    file.write_text(json.dumps(content))
    assert "it has no keys" in failure("--verify", str(file), "--root", "0x" + "7c" * 32)


def test_messages_agree_with_their_numbers(tmp_path: Path) -> None:
    out = tmp_path / "proof.json"
    made = run("node", "--top", "Paras.Heads(2000)", "--out", str(out))
    assert "proving 1 key\n" in made.stderr
    root = json.loads(out.read_text())["root"]
    assert re.search(
        r"1 key is proven under \w+ by \d+ nodes, [\d,]+ bytes",
        run("--verify", str(out), "--root", root).stdout,
    )
    assert "--root has 1 byte, not 32" in failure("--verify", str(out), "--root", "0x00")


@pytest.mark.parametrize("text", ["0", "x", "5-3", "1-2-3", "10001", "-1"])
def test_wrong_blocks_are_refused(text: str) -> None:
    assert "--blocks" in failure("node", "--top", "0x12", f"--blocks={text}")
