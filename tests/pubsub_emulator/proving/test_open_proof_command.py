"""`pubsub open-proof` on the files that come as an example, and on what is wrong with them."""

import json
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

from click.testing import CliRunner, Result
from support.node.node_data import PRICES, hexed
from support.plumbing.processes import python
from support.plumbing.snapshots import Snapshot
from support.plumbing.transcript import Transcript

from pubsub_emulator.cli.main import pubsub
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


REFUSED = (
    "read-proof.json",
    "header.json",
    f"read-proof.json --root 0x{'00' * 32}",
    "read-proof.json --root 0x00",
    "read-proof.json --root 0xzz",
    "read-proof.json header.json --key 0x1",
    f"read-proof.json header.json --key {hexed(dmq_mqc_head(ParaId(3000)))}",
    "read-proof.json header.json --child 1000",
    "child-read-proof.json header.json --child alice",
    "session.jsonl --child 2000",
    "cut.json header.json --child 1000",
)


def test_what_open_proof_prints_and_refuses(transcript: Transcript, snapshot: Snapshot) -> None:
    folder = transcript.folder
    shutil.copytree(DATA, folder, dirs_exist_ok=True)
    without_child_root(folder)
    transcript.run("pubsub open-proof session.jsonl")
    transcript.run(f"pubsub open-proof child-read-proof.json --root {STATE_ROOT} --child 1000")
    transcript.run("pubsub open-proof cut.json header.json")
    for arguments in REFUSED:
        transcript.refuse(f"pubsub open-proof {arguments}")
    snapshot("open-proof", str(transcript))


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
