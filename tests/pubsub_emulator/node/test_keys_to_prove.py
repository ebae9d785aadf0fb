"""The runtime API `KeyToIncludeInRelayProof` over JSON-RPC (UP-1, UP-2)."""

import pytest

from pubsub_emulator.emulator.scenario.file import parse_document
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.node.local import LocalNode
from pubsub_emulator.node.rpc.errors import RpcError
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.pubsub import derive_child_key
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.relay_keys import relay_key
from pubsub_emulator.runtime.framework.relay_request import ChildKey, RelayProofRequest
from pubsub_emulator.runtime.pallet_subscriber.config import MAX_EXTRA_KEYS

CALL = ("KeyToIncludeInRelayProof_keys_to_prove", "0x")
DOCUMENT = {
    "name": "requests",
    "seed": "requests",
    "relay_blocks": 20,
    "publishers": [{"paras": [1001, 1000], "keys": 3}],
    "subscribers": [
        {
            "para": 2000,
            "subscribe": [{"publishers": "all"}],
            "extra_keys": ["Mmr.RootHash", "child:crowdloan/0x01"],
        },
        {"para": 2001, "name": "reader", "subscribe": []},
    ],
}


@pytest.fixture
def node() -> LocalNode:
    return LocalNode(Simulation(parse_document(DOCUMENT, "requests"), accounts=True))


def _asked(node: LocalNode, chain: int) -> RelayProofRequest:
    answer = node.call("state_call", CALL, ParaId(chain))
    assert isinstance(answer, str)
    return RelayProofRequest.decode(unhex(answer))


def test_a_subscriber_requests_its_items_and_then_its_extra_keys(node: LocalNode) -> None:
    keys = _asked(node, 2000).keys
    items, extra = keys[:-2], keys[-2:]
    assert extra == (relay_key("Mmr.RootHash"), relay_key("child:crowdloan/0x01"))
    tries = [asked.storage_key for asked in items if isinstance(asked, ChildKey)]
    assert tries == [derive_child_key(ParaId(para)) for para in (1000, 1001) for _ in range(3)]
    names = [asked.key for asked in items if isinstance(asked, ChildKey)]
    assert names[:3] == sorted(names[:3])
    assert names[3:] == sorted(names[3:])


def test_without_subscriptions_and_extra_keys_the_request_is_empty(node: LocalNode) -> None:
    assert node.call("state_call", CALL, ParaId(2001)) == "0x00"


def test_the_relay_chain_has_no_such_function(node: LocalNode) -> None:
    with pytest.raises(RpcError, match="not found"):
        node.call("state_call", CALL)


def test_arguments_are_refused(node: LocalNode) -> None:
    with pytest.raises(RpcError, match="trailing"):
        node.call("state_call", (CALL[0], "0x00"), ParaId(2001))


def test_keys_are_requested_with_a_new_runtime(node: LocalNode) -> None:
    answer = node.call("pubsub_requestKeys", (2001, ["Paras.Heads(2000)", "0x0102"]))
    assert answer == {"specVersion": 2}
    node.call("dev_newBlock", ())
    node.call("dev_newBlock", ())
    assert _asked(node, 2001).keys == (relay_key("Paras.Heads(2000)"), relay_key("0x0102"))


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param(
            ["nothing"],
            id="not hex",
        ),
        pytest.param(
            ["0x1"],
            id="half a byte",
        ),
        pytest.param(
            [1],
            id="a number",
        ),
        pytest.param(
            ["0x01"] * (MAX_EXTRA_KEYS + 1),
            id="too many",
        ),
    ],
)
def test_wrong_keys_are_refused(node: LocalNode, keys: list[object]) -> None:
    with pytest.raises(RpcError) as refused:
        node.call("pubsub_requestKeys", (2001, keys))
    assert refused.value.code == -32602
    assert "keys" in str(refused.value.data)
