import re
from pathlib import Path

import pytest

from emulator.scenario import Scenario, missing_key, published_key
from emulator.scenario_file import ScenarioError, bundled_scenarios, load_bundled, load_scenario, parse_scenario
from primitives.types import ParaId

GOOD = """\
name = "small"
seed = "one"
relay_blocks = 20

[[publishers]]
paras = [1000, 2100]
keys = 3
value_size = { min = 10, max = 40 }
update_rate = 0.25

[[subscribers]]
para = 3000
subscribe = [{ publishers = "all", missing_keys = 1 }]

[[subscribers.collators]]

[[subscribers.collators]]
strategies = ["omit-node"]
rate = 0.5

[[subscribers.load]]
first_block = 5
last_block = 9
downward_messages = 4
"""


def _refusal(text: str) -> str:
    with pytest.raises(ScenarioError) as caught:
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
    expected = [published_key(ParaId(1000), index) for index in range(3)] + [missing_key(ParaId(1000), 0)]
    assert items[ParaId(1000)] == tuple(sorted(expected))


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("keys = 3", "keys = 0", "file.toml:7: publishers.1.keys: Input should be greater than or equal to 1"),
        ("keys = 3", 'keys = "3"', "file.toml:7: publishers.1.keys: Input should be a valid integer"),
        ("keys = 3", "kees = 3", r"file.toml:5: publishers.1.keys: Field required \(and 1 more\)"),
        (
            "update_rate = 0.25",
            "update_rate = 1.5",
            "file.toml:9: publishers.1.update_rate: a share is a number from 0",
        ),
        ("max = 40", "max = 4", "file.toml:8: publishers.1.value_size.*: min 10 exceeds max 4"),
        ("relay_blocks = 20", "", "file.toml: relay_blocks: Field required"),
        ('"all"', "[7]", "file.toml:13: subscribers.1.subscribe: 7 is no publisher of this scenario"),
        ("rate = 0.5", 'rate = "often"', "file.toml:19: subscribers.1.collators.2.rate: a share is a number"),
        ("last_block = 9", "last_block = 4", "file.toml:21: subscribers.1.load.1: first_block 5 exceeds last_block 4"),
        ("paras = [1000, 2100]", "paras = [1000, 1000]", "file.toml:5: publishers.1: para 1000 stands there more than"),
        ("keys = 3", "keys = ", r"file.toml:7: Invalid value \(at line 7"),
    ],
)
def test_every_error_names_file_line_and_field(old: str, new: str, complaint: str) -> None:
    assert re.match(complaint, _refusal(GOOD.replace(old, new)))


def test_an_unknown_field_is_refused_at_its_line() -> None:
    assert "file.toml:4: speed: Extra inputs are not permitted" in _refusal(
        GOOD.replace("\n\n[[pub", "\nspeed = 1\n[[pub", 1)
    )


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"none\.toml: No such file or directory"):
        load_scenario(tmp_path / "none.toml")


@pytest.mark.parametrize("name", bundled_scenarios())
def test_every_bundled_scenario_is_valid(name: str) -> None:
    assert isinstance(load_bundled(name), Scenario)


def test_an_unknown_bundled_scenario_names_the_known_ones() -> None:
    with pytest.raises(ScenarioError, match="no such scenario; there are "):
        load_bundled("nothing")
