"""The plugin's fixtures, used here as anybody would use them."""

from collections.abc import Mapping

import pytest

from pubsub_emulator.emulator.network import Network, Step, UnknownParachain
from pubsub_emulator.emulator.network.parachain import Parachain
from pubsub_emulator.emulator.relay.chain import RelayChain
from pubsub_emulator.emulator.scenario.file import parse_scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.parachain.block import InvalidBlock, Verdict
from pubsub_emulator.testing.actors import Cheats, Collators, NoSuchCheat, NothingToCheat
from pubsub_emulator.testing.networks import Networks

KEY = key_from_data(b"key")


def test_all_fixtures_of_a_test_speak_of_one_network(
    pubsub_network: Network,
    pubsub_relay_chain: RelayChain,
    pubsub_parachains: Mapping[ParaId, Parachain],
    pubsub_collators: Collators,
    pubsub_cheats: Cheats,
) -> None:
    assert pubsub_relay_chain is pubsub_network.relay
    assert pubsub_parachains is pubsub_network.parachains
    assert pubsub_collators.network is pubsub_network
    assert pubsub_cheats.network is pubsub_network


def test_what_is_frozen_stays_as_it_was(pubsub_networks: Networks, pubsub_network: Network) -> None:
    pubsub_network.publish(1000, KEY, b"before")
    pubsub_network.step(2)
    frozen = pubsub_networks.freeze(pubsub_network, "two blocks on")
    root = pubsub_network.relay.header.state_root
    pubsub_network.step(5)
    assert repr(frozen) == "Frozen(two blocks on, relay block 2)"
    assert frozen.fork().relay.header.state_root == root
    assert [delivery.value for delivery in frozen.fork().step()[0].deliveries(2000)] == [b"before"]


def test_a_collator_s_block_is_judged_and_changes_nothing(
    pubsub_network: Network, pubsub_collators: Collators
) -> None:
    pubsub_network.publish(1000, KEY, b"value")
    pubsub_network.step(2)
    candidate = pubsub_collators.author(2000)
    outcome = pubsub_collators.judge(2000, candidate)
    assert [delivery.value for delivery in outcome.deliveries] == [b"value"]
    assert len(pubsub_collators.of(2000)) == 2
    [record] = [record for record in pubsub_network.step()[0].records if record.chain == 2000]
    assert record.candidate.encode() == candidate.encode()
    with pytest.raises(InvalidBlock):
        pubsub_collators.judge(2000, candidate)
    with pytest.raises(UnknownParachain):
        pubsub_collators.author(4000)


def test_a_cheat_meets_the_verdict_that_is_due(
    pubsub_network: Network, pubsub_cheats: Cheats
) -> None:
    pubsub_network.publish(1000, KEY, b"value")
    pubsub_network.step(2)
    judged = pubsub_cheats.attempt(2000, "omit-node")
    assert judged.refusal is not None
    assert judged.found == judged.due != ()
    assert pubsub_cheats.attempt(2000, "drop-and-restore").refusal is None
    assert pubsub_network.step()[0].refused == ()
    with pytest.raises(
        NothingToCheat, match="drop-message has nothing to do at parachain 2000's next block"
    ):
        pubsub_cheats.attempt(2000, "drop-message")
    with pytest.raises(NoSuchCheat, match="unknown strategy 'omit'"):
        pubsub_cheats.attempt(2000, "omit")


def test_a_bribed_collator_cheats_in_its_turns(
    pubsub_network: Network, pubsub_cheats: Cheats
) -> None:
    pubsub_cheats.bribe(2000, 1, "wrong-state-root")
    refused = [record.refusal for step in pubsub_network.step(6) for record in step.refused]
    assert [refusal.verdict for refusal in refused if refusal is not None] == [
        Verdict.STATE_ROOT_MISMATCH
    ] * 3
    with pytest.raises(NoSuchCheat):
        pubsub_cheats.bribe(2000, 0, "be-nice")


def test_networks_are_built_with_the_collators_wanted(pubsub_networks: Networks) -> None:
    frozen = pubsub_networks.of(
        [1000],
        {2000: {1000: [KEY]}, 3000: {1000: [KEY]}},
        collators={3000: [(), ("bad-parent", "no-seal"), ()]},
    )
    network = frozen.fork()
    assert [len(network.parachain(para).collators) for para in (1000, 2000, 3000)] == [1, 2, 3]
    refused = [record for step in network.step(6) for record in step.refused]
    assert {record.chain for record in refused} == {3000}
    assert len(refused) == 2


@pytest.mark.pubsub_scenario("demo", blocks=3)
def test_a_scenario_stands_where_it_was_asked_to(
    pubsub_simulation: Simulation, pubsub_network: Network
) -> None:
    assert pubsub_network is pubsub_simulation.network
    assert pubsub_network.number == 3
    assert pubsub_simulation.step().number == 4


def test_what_was_run_of_a_scenario_is_not_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    stepped = []
    step = Simulation.step

    def counted(simulation: Simulation) -> Step:
        stepped.append(simulation.network.number + 1)
        return step(simulation)

    monkeypatch.setattr(Simulation, "step", counted)
    networks, scenario = (
        Networks(),
        parse_scenario('name = "idle"\nseed = "idle"\nrelay_blocks = 9', "idle.toml"),
    )
    for blocks in (2, 4, 2, 3, 0):
        assert networks.scenario(scenario, blocks).number == blocks
    assert stepped == [1, 2, 3, 4, 3]
    third, fourth = (networks.scenario(scenario, blocks).fork().network.relay for blocks in (3, 4))
    assert third.header == fourth.blocks[3].header
