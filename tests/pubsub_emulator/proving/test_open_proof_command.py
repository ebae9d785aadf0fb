"""`pubsub open-proof` on the files that come as an example, and on what is wrong with them."""

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner, Result
from support.node.node_data import PRICES, hexed
from support.plumbing.processes import python

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.storage_keys import dmq_mqc_head
from pubsub_emulator.primitives.types import ParaId

ROOT = Path(__file__).resolve().parents[3]
DATA = ROOT / "examples" / "node_data"
PROOF, CHILD, HEADER, SESSION = (
    str(DATA / name)
    for name in ("read-proof.json", "child-read-proof.json", "header.json", "session.jsonl")
)
STATE_ROOT = json.loads((DATA / "header.json").read_bytes())["result"]["stateRoot"]


def run(*args: str) -> Result:
    return CliRunner().invoke(pubsub, ["open-proof", *args])


def test_a_session_is_opened_by_the_keys_that_were_asked_for() -> None:
    result = run(SESSION)
    assert result.exit_code == 0
    assert f"state root {STATE_ROOT}" in result.stdout
    for text in (
        "Paras.Heads(4000)",
        "absent",
        "0x372e3432, ttl 100, inserted in block 2",
        "path nodes of 3 keys",
    ):
        assert text in result.stdout
    assert "unread" not in result.stdout


def test_as_json_every_byte_stands_once() -> None:
    result = run(
        CHILD,
        "--header",
        HEADER,
        "--child",
        "1000",
        "--key",
        hexed(PRICES[0]),
        "--key",
        hexed(PRICES[2]),
        "--json",
    )
    document = json.loads(result.stdout)
    [proof] = document["proofs"]
    assert (document["format"], proof["state_root"]) == (1, STATE_ROOT)
    assert sum(part["bytes"] for part in proof["parts"]) == proof["bytes"]
    states = {part["key"]: part["state"] for part in proof["parts"] if part["kind"] == "key"}
    assert states == {hexed(PRICES[0]): "value", hexed(PRICES[2]): "absent"}
    assert result.exit_code == 1, "the nodes of the key that was not asked for are unread"
    assert len(proof["unread"]) == 2


def test_the_state_root_may_be_given_and_keys_read_from_the_proof() -> None:
    result = run(CHILD, "--root", STATE_ROOT, "--child", "1000")
    assert result.exit_code == 0
    assert "0x372e3432, ttl 100, inserted in block 2" in result.stdout
    by_key = run(
        CHILD,
        "--root",
        STATE_ROOT,
        "--child",
        hexed(b":child_storage:default:pubsub\xe8\x03\x00\x00"),
    )
    assert by_key.stdout == result.stdout


def test_the_drawing_is_svg_with_every_node(tmp_path: Path) -> None:
    out = tmp_path / "proof.svg"
    assert run(CHILD, "--header", HEADER, "--child", "1000", "--draw", str(out)).exit_code == 0
    drawn = ET.parse(out)  # noqa: S314  # our own
    assert drawn.getroot().tag.endswith("svg")
    text = out.read_text(encoding="utf-8")
    assert "child trie 1000" in text


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([PROOF], "read-proof.json: result: no header names the state root"),
        ([HEADER], "no read proof, only 1 header$"),
        ([PROOF, "--root", "0x" + "00" * 32], "the node of the storage root 0000"),
        ([PROOF, "--root", "0x00"], "--root has 1 byte, not 32"),
        ([PROOF, "--root", "0xzz"], "--root 0xzz: not hex"),
        ([PROOF, HEADER, "--key", "0x1"], "--key 0x1: not hex"),
        (
            [PROOF, HEADER, "--key", hexed(dmq_mqc_head(ParaId(3000)))],
            r"Heads\(3000\) is not proven: node .* is missing",
        ),
        ([PROOF, HEADER, "--child", "1000"], "child trie 1000 is not proven: node .* is missing"),
        (
            [CHILD, HEADER, "--child", "alice"],
            "--child alice: neither a parachain's id nor a storage key",
        ),
        ([SESSION, "--child", "2000"], "the request did not ask for child trie 2000"),
    ],
)
def test_what_cannot_be_opened_is_one_line_that_names_the_place(args: list[str], said: str) -> None:
    result = run(*args)
    assert isinstance(result.exception, PubsubError)
    assert "\n" not in str(result.exception)
    with pytest.raises(PubsubError, match=said):
        raise result.exception


def without_child_root(folder: Path) -> tuple[Path, str]:
    """The proof of a child trie without the root node of that trie; the root's hash."""
    document = json.loads(Path(CHILD).read_bytes())
    opened = json.loads(run(CHILD, HEADER, "--json").stdout)["proofs"][0]
    root = next(part["value"] for part in opened["parts"] if part["kind"] == "child trie")
    nodes = document["result"]["proof"]
    document["result"]["proof"] = [
        node for node in nodes if hexed(blake2_256(bytes.fromhex(node[2:]))) != root
    ]
    cut = folder / "cut.json"
    cut.write_text(json.dumps(document), encoding="utf-8")
    return cut, root


def test_a_proof_ending_at_the_child_root_does_not_prove_child_entries(
    tmp_path: Path,
) -> None:
    cut, root = without_child_root(tmp_path)
    result = run(str(cut), HEADER, "--child", "1000")
    assert isinstance(result.exception, PubsubError)
    assert f"the root node of child trie 1000, {root[2:]}, is not in the proof" in str(
        result.exception
    )


def test_proofs_are_opened_without_what_the_audit_needs() -> None:
    """Arrow and Spark come with an extra; a node's proof is opened by the plain installation."""
    script = (
        "import sys\n"
        "for name in ('pyarrow', 'pandas', 'pyspark'): sys.modules[name] = None\n"
        f"sys.argv = ['pubsub', 'open-proof', {SESSION!r}]\n"
        "from pubsub_emulator.cli.main import main\nmain()\n"
    )
    done = python("-c", script)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Paras.Heads(4000)" in done.stdout


def test_nodes_in_places_that_a_chain_may_use_are_not_called_unread(
    tmp_path: Path,
) -> None:
    """Without the request a proof may be a subscriber's own, which leaves out the nodes that it
    caches.
    """
    cut, _ = without_child_root(tmp_path)
    result = run(str(cut), HEADER, "--json")
    [proof] = json.loads(result.stdout)["proofs"]
    assert (result.exit_code, proof["unread"]) == (0, [])
    assert proof["unplaced"]
    assert "no node of the proof leads to it" in run(str(cut), HEADER).stdout
