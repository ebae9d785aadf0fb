"""The publishers of the keys that findings name by their digits."""

from pathlib import Path

import pytest
from support.plumbing.command import invoked

from pubsub_emulator import key_from_data
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.judge.finding_file import finding_text
from pubsub_emulator.spark_audit.judge.named_keys import (
    MOST_NUMBERS,
    MOST_PUBLISHERS,
    _scenario_name,
    named_keys,
)
from pubsub_emulator.spark_audit.judge.results import Results

SCENARIO = """
name = "omitting"
seed = "omitting"
relay_blocks = 30

[[publishers]]
paras = [1000]
keys = 4
update_rate = 1.0

[[subscribers]]
para = 2000
subscribe = [{ publishers = "all" }]
collators = [{ strategies = ["omit-value", "omit-node"] }, {}]
"""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, object]]:
    folder = tmp_path_factory.mktemp("named")
    (folder / "omitting.toml").write_text(SCENARIO)
    assert invoked("run", folder / "omitting.toml", "--out", folder / "run").exit_code == 0
    invoked("audit", folder / "run" / "history", "--out", folder / "audit", "--engine", "python")
    return list(Results.open(str(folder / "audit")).rows(schema.FINDINGS))


def test_a_missing_key_is_named_with_its_publisher(
    rows: list[dict[str, object]], tmp_path: Path
) -> None:
    found = 0
    for row in rows:
        assert isinstance(row["evidence"], bytes)
        for key, publishers, name in named_keys(row["evidence"], str(row["detail"])):
            found += 1
            assert publishers == (1000,)
            assert key_from_data(name.encode()) == key
            file = tmp_path / "finding.json"
            file.write_text(finding_text(row))
            shown = invoked("evidence", file).stdout
            assert f"is of publisher 1000, {name} in scenarios" in shown
    assert found


def test_keys_that_nobody_wants_are_not_named(rows: list[dict[str, object]]) -> None:
    evidence = rows[0]["evidence"]
    assert isinstance(evidence, bytes)
    assert list(named_keys(evidence, f"on the way to key {'00' * 32}, at nibble 3")) == []
    assert list(named_keys(b"", f"key {'00' * 32}"[:20])) == []


def test_only_so_many_names_are_tried() -> None:
    para = ParaId(1000)
    last = f"1000/{MOST_NUMBERS - 1}"
    assert _scenario_name(key_from_data(last.encode()), (para,)) == last
    assert _scenario_name(key_from_data(f"1000/{MOST_NUMBERS}".encode()), (para,)) == ""
    others = tuple(ParaId(number) for number in range(MOST_PUBLISHERS))
    assert _scenario_name(key_from_data(last.encode()), (*others, para)) == ""
