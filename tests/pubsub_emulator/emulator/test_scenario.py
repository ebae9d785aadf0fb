import json
import re
from pathlib import Path

import pytest
from support.plumbing.processes import printed
from support.plumbing.scenarios import scenario
from support.plumbing.snapshots import Snapshot

from pubsub_emulator.emulator.observers.digest import RunDigest
from pubsub_emulator.emulator.observers.summary import Summary
from pubsub_emulator.emulator.scenario.file import (
    BUNDLE,
    load_bundled,
    load_scenario,
    parse_document,
    parse_scenario,
)
from pubsub_emulator.emulator.scenario.model import (
    Scenario,
    Subscriber,
    SubscriptionSettings,
    missing_key,
    published_key,
)
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.files.settings import SettingsError
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.pallet_pubsub.events import DataPublished

GOOD = scenario("good")


def _refusal(text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        parse_scenario(text, "file.toml")
    return str(caught.value)


def test_a_scenario_is_read_into_frozen_models() -> None:
    scenario = parse_scenario(GOOD, "file.toml")
    assert scenario.publisher_ids() == (1000, 2100)
    assert scenario.publishers[0].update_rate == 250_000
    assert scenario.subscribers[0].collators[1].strategies == ("omit-node",)
    with pytest.raises(ValueError, match="frozen"):
        scenario.name = "other"


def test_ps30_items_are_sorted_merged_and_hold_missing_keys() -> None:
    scenario = parse_scenario(GOOD, "file.toml")
    subscriber = scenario.subscribers[0]
    items = scenario.items([*subscriber.subscribe, *subscriber.subscribe])
    assert list(items) == [1000, 2100]
    expected = [published_key(ParaId(1000), index) for index in range(3)] + [
        missing_key(ParaId(1000), 0)
    ]
    assert items[ParaId(1000)] == tuple(sorted(expected))


ACT = '{ kind = "publish", para = 1000, key = "price", value = "7.42", ttl = 6 }'


def with_act(act: str, block: int = 3) -> str:
    return f"{GOOD}\n[[acts]]\nat_block = {block}\ndo = [{act}]\n"


def test_acts_are_done_before_the_traffic_of_their_block() -> None:
    scenario = parse_scenario(with_act(ACT), "file.toml")
    assert parse_document(scenario.document(), "again") == scenario
    simulation, plain = Simulation(scenario), Simulation(parse_scenario(GOOD, "file.toml"))
    price = key_from_data(b"price")
    for number in range(1, 6):
        step, other = simulation.step(), plain.step()
        assert (step.block.header == other.block.header) is (number < 3)
        published = [
            each for each in step.events if isinstance(each, DataPublished) and each.key == price
        ]
        assert [each.value_size for each in published] == ([4] if number == 4 else [])


BAD_ACTS = (
    ('{ kind = "publsh" }', 3),
    ('{ kind = "turn", para = 7 }', 3),
    (ACT.replace("price", "0x1"), 3),
    (ACT.replace("6 }", '"x" }'), 3),
    (ACT, 21),
    ("", 3),
)
"""Acts with the relay blocks in which they are to be done."""


def with_messages(relay: str, load: str) -> str:
    """The scenario with limits of messages, and with messages to its first subscriber."""
    first = GOOD.index("[[publishers]]")
    document = f"{GOOD[:first]}[relay]\n{relay}\n\n{GOOD[first:]}"
    return document + f"\n[[subscribers.load]]\nfirst_block = 3\nlast_block = 4\n{load}\n"


BAD_LIMITS = (
    ("max_downward_message_size = 999", "downward_messages = 1\ndownward_size = 1000"),
    ("max_horizontal_message_size = 999", "senders = [1000]\nhorizontal_size = 1000"),
    ("max_channel_bytes = 1000", ""),
    ("max_downward_bytes = 8912881", ""),
    ("max_channel_bytes = 9000000", "senders = [1000]"),
)
"""Limits of the relay chain, and loads of a subscriber, that do not fit together."""


def test_as_many_bytes_as_the_largest_block_holds_may_wait() -> None:
    parse_scenario(with_messages("max_downward_bytes = 8912880", ""), "file.toml")


def test_an_act_that_the_network_refuses_is_named() -> None:
    act = '{ kind = "cheat", para = 3000, strategies = ["omit-nod"] }'
    simulation = Simulation(parse_scenario(with_act(act), "file.toml"))
    with pytest.raises(SettingsError, match=r"small: acts\.1\.do\.1: unknown strategy 'omit-nod'"):
        simulation.run()
    assert simulation.network.number == 2


PUBLISHER_FIELDS = (
    "paras, keys, value_size, update_rate, delete_rate, ttl, first_block, last_block,"
    " fill_per_block, offboard_at"
)


MISTAKES = (
    ("keys = 3", "keys = 0"),
    ("keys = 3", 'keys = "3"'),
    ("update_rate = 0.25", "update_rate = 1.5"),
    ("keys = 3", "keys = 3\nttl = -1"),
    ("keys = 3", "keys = 3\nttl = [1, -1]"),
    ("max = 40", "max = 4"),
    ("{ min = 10, max = 40 }", "{ min = 10 }"),
    ("{ min = 10, max = 40 }", "'x'"),
    ("{ min = 10, max = 40 }", "2049"),
    ("relay_blocks = 20", ""),
    ("[[publishers]]", "[publishers]"),
    ('"all"', '"al"'),
    ("para = 3000", 'para = 3000\nextra_keys = "Mmr.RootHash"'),
    ('"all"', "[7]"),
    ('"all", m', '"all", keys = 4, m'),
    ('"all", m', "[1000], keys = 4, m"),
    ('"all", m', '"all", first_key = 3, m'),
    ("rate = 0.5", 'rate = "often"'),
    ("omit-node", "omit-nod"),
    ("last_block = 9", "last_block = 4"),
    ("first_block = 5\nlast_block = 9", "first_block = 25\nlast_block = 29"),
    ("paras = [1000, 2100]", "paras = [1000, 1000]"),
    ("keys = 3", "keys = "),
    ('name = "small"', 'name = "a/b"'),
    ("para = 3000", "para = 3000\nmax_pov_size = 10"),
    ("para = 3000", "para = 3000\nmeter_cache_reads = 1"),
    ("para = 3000", "para = 3000\nrelay_parent_lag = 256"),
    ("para = 3000", "para = 3000\nevery = 21"),
    ("keys = 3", "keys = 3\nfirst_block = 21"),
    ("keys = 3", "keys = 3\noffboard_at = 21"),
    ("keys = 3", "keys = 3\nfirst_block = 4\nlast_block = 3"),
    ("downward_messages = 4", "downward_size = 300_000"),
    ("[[publishers]]", "[relay]\nmax_publishers = 0\n[[publishers]]"),
    ("[[publishers]]", "[relay]\nmax_total_storage_size = 99\n[[publishers]]"),
    (
        "[[subscribers.load]]",
        (
            "[[subscribers.orders]]\nat_block = 21\ncall = 'redeliver'\npublisher = 1000\n\n"
            "[[subscribers.load]]"
        ),
    ),
    ("\n\n[[pub", "\nspeed = 1\n[[pub"),
)
"""Parts of the scenario, and mistakes in their place."""


def test_every_error_names_file_line_and_field(snapshot: Snapshot) -> None:
    cases = [(new or f"without {old}", GOOD.replace(old, new, 1)) for old, new in MISTAKES]
    cases += [(f"do = [{act}] in block {block}", with_act(act, block)) for act, block in BAD_ACTS]
    cases += [(f"{relay}\n{load}", with_messages(relay, load)) for relay, load in BAD_LIMITS]
    texts = []
    for shown, text in cases:
        refusal = _refusal(text)
        assert re.fullmatch(r"(file\.toml:(\d+:)? [\w. ]+: [^\n]+\n?)+", refusal), refusal
        texts.append(f"{shown.strip()}\n  {refusal}\n")
    snapshot("scenario-mistakes", "\n".join(texts))


def test_all_errors_are_reported_at_once_in_the_files_order() -> None:
    text = GOOD.replace("keys = 3", "kees = 3").replace(
        "update_rate = 0.25", "update_rate = 2\ncolour = 'red'"
    )
    assert _refusal(text).splitlines() == [
        "file.toml:5: publishers.1.keys: missing: a whole number from 1 to 4,294,967,295",
        (
            "file.toml:7: publishers.1.kees: no such field; did you mean keys? Known:"
            f" {PUBLISHER_FIELDS}"
        ),
        "file.toml:9: publishers.1.update_rate: a share is a number from 0 to 1, not 2",
        f"file.toml:10: publishers.1.colour: no such field; known: {PUBLISHER_FIELDS}",
    ]


def test_all_that_does_not_go_together_is_said_at_once() -> None:
    text = GOOD.replace("first_block = 5\nlast_block = 9", "first_block = 25\nlast_block = 29")
    text = text.replace('"all"', "[7]").replace("keys = 3", "keys = 3\noffboard_at = 30")
    assert [line.split(": ")[1] for line in _refusal(text).splitlines()] == [
        "publishers.1.offboard_at",
        "subscribers.1.subscribe.1.publishers",
        "subscribers.1.load.1.first_block",
    ]


def test_subscribers_that_are_given_a_name_have_one_of_their_own() -> None:
    second = '\n[[subscribers]]\npara = 3001\nsubscribe = [{ publishers = "all" }]\n'
    parse_scenario(GOOD + second, "file.toml")  # neither is given a name
    named = (GOOD + second).replace("para = 300", 'name = "x"\npara = 300')
    assert [line.split(": ")[1:] for line in _refusal(named).splitlines()] == [
        ["subscribers.1.name", "2 subscribers have this name"],
        ["subscribers.2.name", "2 subscribers have this name"],
    ]


def test_a_scenario_made_in_python_is_checked_when_it_is_simulated() -> None:
    wanted = SubscriptionSettings(publishers=(ParaId(7),))
    scenario = Scenario(
        name="x",
        seed="x",
        relay_blocks=1,
        subscribers=(Subscriber(para=ParaId(3000), subscribe=(wanted,)),),
    )
    with pytest.raises(
        SettingsError, match=r"x: subscribers.1.subscribe.1.publishers: 7 is not a publisher"
    ):
        Simulation(scenario)


@pytest.mark.parametrize("name", BUNDLE.names())
def test_a_scenarios_document_is_read_back_as_the_same_scenario(name: str) -> None:
    scenario = load_bundled(name)
    assert parse_document(json.loads(json.dumps(scenario.document())), "again") == scenario


def test_a_scenario_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.toml: No such file or directory"):
        load_scenario(tmp_path / "none.toml")
    with pytest.raises(SettingsError, match="no such scenario; known: "):
        load_bundled("nothing")


SMALL = scenario("small")

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
