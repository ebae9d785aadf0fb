"""`--fork`: a session and a node on the state of a node of `pubsub serve`, which is a program of
its own.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.plumbing.served import Served

from pubsub_emulator.cli.main import pubsub


@pytest.fixture(scope="module")
def node() -> Iterator[Served]:
    """A node that has published something."""
    served = Served("--dev", "--build", "manual")
    served.call("pubsub_publish", 1000, "real", "0x7265616c")
    served.call("dev_newBlock", {"count": 4})
    yield served
    served.end()


def _run(*args: str, script: str = "") -> str:
    done = CliRunner().invoke(pubsub, args, input=script)
    assert not done.exception or done.exit_code == 0, (done.output, done.exception)
    return done.output


def test_a_session_continues_from_a_node_and_resumes_on_the_same_state(
    node: Served, tmp_path: Path
) -> None:
    path, at = tmp_path / "session.json", node.call("chain_getFinalizedHead")
    number = int(node.call("chain_getHeader", at)["number"], 16)
    source = f"{node.url}@{number}"
    script = (
        f"status\nsubscribe 2000 1000 real\nstep 4\nchild 1000 real\nstorage relay\nwrite {path}\n"
    )
    said = _run("step", "node", "--fork", source, script=script)
    assert f"relay continues from {node.url}, block {number}" in said
    assert f"relay block {number + 1}, 0 of 100 blocks of the scenario" in said
    assert "value: 0x7265616c" in said
    assert re.search(r"System\.Account\s", said), "the fork's accounts"

    said = _run("step", str(path), "--fork", f"{node.url}@{at}", script="status\n")
    assert f"relay block {number + 5}, 4 of 100" in said


def test_a_saved_session_wants_its_state_and_no_other(node: Served, tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    _run("step", "node", "--fork", node.url, script=f"step 1\nwrite {path}\n")
    for given in ((), ("--fork", f"{node.url}@1")):
        done = CliRunner().invoke(pubsub, ["step", str(path), *given])
        assert "fork.relay: the session continues from the state 0x" in str(done.exception)
    document = json.loads(path.read_bytes())
    del document["fork"]
    path.write_text(json.dumps(document), encoding="utf-8")
    done = CliRunner().invoke(pubsub, ["step", str(path), "--fork", node.url])
    assert "chain relay of this session is not forked" in str(done.exception)


def test_an_exported_state_is_forked_from_its_file(node: Served, tmp_path: Path) -> None:
    relay, para = tmp_path / "relay.json", tmp_path / "para.json"
    said = json.loads(
        _run("export-state", node.url, str(relay), "--json").partition("{")[2].join(("{", ""))
    )
    assert said["state_root"] == node.call("chain_getHeader")["stateRoot"]
    _run("export-state", f"{node.url}2000", str(para))
    said_by_step = _run(
        "step",
        "node",
        "--fork",
        str(relay),
        "--fork-para",
        f"2000={para}",
        script="status\nstep 3\n",
    )
    assert f"relay continues from {relay}" in said_by_step
    assert f"2000 continues from {para}" in said_by_step
    assert "delivered" in said_by_step


def test_a_node_continues_from_a_node(node: Served) -> None:
    """Clients see one chain: its first block follows the forked one, and extrinsics are signed for
    its hash.
    """
    forked = Served("--fork", node.url, "--dev", "--build", "manual")
    try:
        assert any(
            line.startswith(f"relay continues from {node.url}, block ") for line in forked.said
        )
        assert any(re.search(r", state root 0x[0-9a-f]{64}$", line) for line in forked.said)
        real = node.call("chain_getHeader", node.call("chain_getFinalizedHead"))
        first = forked.call("chain_getBlockHash", 0)
        header = forked.call("chain_getHeader", first)
        assert int(header["number"], 16) == int(real["number"], 16) + 1
        assert header["parentHash"] == node.call("chain_getFinalizedHead")
        entry = forked.call("pubsub_entry", 1000, "real")
        assert entry["value"] == "0x7265616c"
        forked.call("pubsub_publish", 1000, "real", "0x6e6577")
        forked.call("dev_newBlock", {"count": 2})
        assert forked.call("pubsub_entry", 1000, "real")["value"] == "0x6e6577"
        assert node.call("pubsub_entry", 1000, "real")["value"] == "0x7265616c"
        assert len(forked.call("state_getKeysPaged", "0x", 1000)) > 40
    finally:
        assert forked.end() == 130


def test_a_fork_of_a_parachain_that_the_network_has_not_is_refused(node: Served) -> None:
    done = CliRunner().invoke(pubsub, ["step", "node", "--fork-para", f"2999={node.url}2000"])
    assert "a fork of parachain 2999, which is not in this network" in str(done.exception)
