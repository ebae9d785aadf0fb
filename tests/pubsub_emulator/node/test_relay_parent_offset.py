"""A node whose parachain has a relay parent offset (UP-12)."""

import pytest

from pubsub_emulator.emulator.scenario.file import parse_document
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.node.api.runs import run_block
from pubsub_emulator.node.at import At
from pubsub_emulator.node.local import LocalNode
from pubsub_emulator.node.rpc.errors import RpcError
from pubsub_emulator.primitives import babe
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.metadata.apis import OFFSET_APIS, PARACHAIN_APIS
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec
from pubsub_emulator.runtime.parachain.accounts import parachain_accounts

CALL = ("RelayParentOffsetApi_relay_parent_offset", "0x")
DOCUMENT = {
    "name": "behind",
    "seed": "behind",
    "relay_blocks": 20,
    "relay": {"session_length": 4},
    "publishers": [{"paras": [1000], "keys": 1}],
    "subscribers": [
        {"para": 2000, "subscribe": [], "relay_parent_offset": 2},
        {"para": 2001, "name": "newest", "subscribe": []},
    ],
}


@pytest.fixture
def node() -> LocalNode:
    return LocalNode(Simulation(parse_document(DOCUMENT, "behind"), accounts=True))


def test_a_runtime_with_an_offset_says_so(node: LocalNode) -> None:
    assert node.call("state_call", CALL, ParaId(2000)) == "0x02000000"
    for chain in (ParaId(2001), None):
        with pytest.raises(RpcError, match="not found"):
            node.call("state_call", CALL, chain)


def test_only_such_a_runtime_lists_the_api() -> None:
    spec = RuntimeSpec(ParaId(2000), {}, accounts=True)
    assert parachain_accounts(spec).definition.apis == PARACHAIN_APIS
    behind = RuntimeSpec(ParaId(2000), {}, accounts=True, relay_parent_offset=1)
    assert parachain_accounts(behind).definition.apis == OFFSET_APIS


def test_sealed_blocks_run_again_lead_to_the_same_state() -> None:
    simulation = Simulation(parse_document(DOCUMENT, "behind"), accounts=True)
    network = simulation.network
    runtime = network.relay.runtime
    genesis = network.relay.header.hash()
    epochs = 0
    shown = 0
    for _ in range(9):
        relay = At(runtime, network.relay.header, network.relay.state, genesis)
        head = network.parachain(2000).head
        step = simulation.step()
        header = step.block.header
        epochs += babe.announced_epoch(header) is not None
        assert run_block(relay, header, step.block.extrinsics).state.root() == header.state_root
        for record in step.records:
            if record.chain == 2000:
                candidate = record.candidate
                parent = At(None, head.header, head.state, genesis)
                again = run_block(parent, candidate.header, candidate.body())
                assert again.state.root() == candidate.header.state_root
                shown += len(candidate.inherent.descendants)
    assert epochs == 2
    assert shown > 3
