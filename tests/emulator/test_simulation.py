import pytest
from support.processes import printed

from pubsub_emulator.emulator.observers.digest import RunDigest
from pubsub_emulator.emulator.observers.summary import Summary
from pubsub_emulator.emulator.scenario.file import parse_scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.emulator.settings import SettingsError

SMALL = """
name = "small"
seed = "s"
relay_blocks = 24
segment_length = 10
relay = { session_length = 6 }

[[publishers]]
paras = [1000, 2100]
keys = 12
value_size = { min = 10, max = 90 }
update_rate = 0.2
delete_rate = 0.05
ttl = [0, 5]
fill_per_block = 8

[[subscribers]]
para = 3000
subscribe = [{ publishers = "all", missing_keys = 1 }]
cache = "nodes"
blocks_per_relay_block = 2

[[subscribers.collators]]
strategies = ["omit-node", "add-junk"]
rate = 0.5

[[subscribers.collators]]

[[subscribers.load]]
first_block = 4
last_block = 9
downward_messages = 2
senders = [1000]
horizontal_size = 5000

[[subscribers.orders]]
at_block = 12
call = "redeliver"
publisher = 1000

[[subscribers.changes]]
at_block = 15
subscribe = [{ publishers = [2100], keys = 6 }]
"""

SCRIPT = f"""
from pubsub_emulator.emulator.observers.digest import RunDigest
from pubsub_emulator.emulator.scenario.file import parse_scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
digest = RunDigest()
Simulation(parse_scenario({SMALL!r}, "small.toml"), (digest,)).run()
print(digest.value.hex())
"""


def _run(text: str = SMALL) -> tuple[Summary, RunDigest]:
    summary, digest = Summary(), RunDigest()
    Simulation(parse_scenario(text, "small.toml"), (summary, digest)).run()
    return summary, digest


def test_a_scenario_is_run_to_its_end_and_summed_up() -> None:
    summary, _ = _run()
    chain = summary.chains[next(para for para in summary.chains if para == 3000)]
    assert summary.relay_blocks == 24
    assert chain.delivered > 24
    assert chain.removed > 0
    assert chain.messages_bytes > 6 * (2 * 1024 + 5000)
    assert summary.undetected == 0
    assert set(summary.verdicts) == {"OmittedBelowBudget", "UnusedNodes"}
    assert sum(count for _, count in summary.cheats.items()) == summary.verdicts.total()


def test_ps90_a_run_is_the_same_under_any_hash_seed() -> None:
    assert {found.strip() for found in printed(SCRIPT, "4711")} == {_run()[1].value.hex()}


def test_ps50_a_scenario_that_cannot_work_says_why() -> None:
    text = SMALL.replace('cache = "nodes"', "max_pov_size = 5_000_000")
    with pytest.raises(SettingsError, match="max_pov_size 5000000 leaves"):
        Simulation(parse_scenario(text, "small.toml"))
