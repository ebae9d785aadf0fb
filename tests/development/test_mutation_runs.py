"""The settings of mutation runs name modules that exist, and their table counts every package."""

import json
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from bench import mutation_table
from development.environment import ROOT

SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mutmut"]


@pytest.mark.parametrize("pattern", SETTINGS["only_mutate"])
def test_a_pattern_of_changed_modules_matches_below_a_source_path(pattern: str) -> None:
    # mutmut looks for modules below its source paths only, and says nothing about other patterns.
    assert any(pattern.startswith(f"{path}/") for path in SETTINGS["source_paths"])
    assert [*ROOT.glob(pattern)]


@pytest.mark.parametrize("place", SETTINGS["pytest_add_cli_args_test_selection"])
def test_the_tests_of_mutation_runs_exist(place: str) -> None:
    assert (ROOT / place).exists()


def test_the_table_has_a_row_for_each_folder_of_both_packages(tmp_path: Path) -> None:
    codes: dict[str, list[int | None]] = {
        "interchain_events/prism/core/wire.py": [1, 0, None],
        "pubsub_emulator/runtime/pallet_subscriber/plan.py": [36, 33],
        "pubsub_emulator/runtime/pallet_subscriber/cache/slots.py": [-24],
    }
    for module, results in codes.items():
        path = tmp_path / f"{module}.meta"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"exit_code_by_key": dict(enumerate(results))}))
    folders = mutation_table.mutated_folders(ROOT / "pyproject.toml")
    assert mutation_table.outcomes(tmp_path, folders) == {
        "interchain_events/prism/core": Counter({"noticed": 1, "survived": 1, "not run": 1}),
        "pubsub_emulator/runtime/pallet_subscriber": Counter({"noticed": 2, "no test runs it": 1}),
    }
