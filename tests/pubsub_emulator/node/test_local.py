"""A node without a server: the same methods, whoever calls waits, and any kept moment can be gone
back to.
"""

import pytest

from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.node.local import LocalNode
from pubsub_emulator.node.rpc.errors import RpcError
from pubsub_emulator.primitives.errors import PubsubError


def _node(history: int = 256) -> LocalNode:
    return LocalNode(Simulation(load_bundled("node"), accounts=True), history)


def _step(node: LocalNode, blocks: int = 1) -> str:
    found: str = node.call("dev_newBlock", [{"count": blocks}])
    return found


def test_a_moment_older_than_the_window_is_restored_to_the_same_blocks() -> None:
    node = _node(history=4)
    _step(node, 2)
    node.call("pubsub_publish", [1000, "before", "0x01"])
    name, there = node.call("dev_snapshot"), node.call("chain_getBlockHash")
    straight = _step(node, 9)
    for _ in range(2):
        assert node.call("dev_restore", [name]) is True
        assert node.call("chain_getBlockHash") == there
        assert node.call("pubsub_block", [2])["hash"] == there
        assert node.call("chain_getBlockHash", [1]) is None
        assert _step(node, 9) == straight
    assert node.call("dev_forget", [name]) is True
    assert node.call("dev_forget", [name]) is False
    assert node.call("dev_restore", [name]) is False
    assert len(node.timeline.moments()) == 5


def test_blocks_before_the_first_step_are_kept_and_gone_back_to() -> None:
    node = _node(history=4)
    name = node.call("dev_snapshot")
    straight = _step(node, 9)
    assert node.call("dev_restore", [name]) is True
    assert node.call("chain_getHeader")["number"] == "0x0"
    assert _step(node, 9) == straight


def test_a_step_that_fails_leaves_what_was_requested_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node, other = _node(), _node()
    for each in (node, other):
        _step(each, 2)
        each.call("pubsub_publish", [1000, "key", "0x01"])

    def fail(*_arguments: object) -> None:
        raise PubsubError("in the middle")

    with monkeypatch.context() as patched:
        patched.setattr(type(node.live.network.relay), "build", fail)
        with pytest.raises(RpcError, match="in the middle"):
            _step(node)
    assert _step(node, 3) == _step(other, 3)


def test_what_needs_a_connection_a_pool_or_a_clock_is_not_offered() -> None:
    node = _node()
    for method in ("chain_subscribeNewHeads", "author_submitExtrinsic", "no_such_method"):
        with pytest.raises(RpcError, match="Method not found"):
            node.call(method)
    with pytest.raises(RpcError, match="never instant"):
        node.call("dev_setBlockBuildMode", ["Batch"])
