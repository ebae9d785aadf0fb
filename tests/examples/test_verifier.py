"""The verifier of docs/verifier.md and ours judge alike; it knows nothing of this project."""

import ast
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pubsub_emulator.emulator.fixtures import Fixture
from pubsub_emulator.laboratory.fixture_set import make_vectors
from pubsub_emulator.laboratory.verifier import Answer, compare_verifiers

FILE = Path(__file__).resolve().parents[2] / "examples" / "verifier" / "verifier.py"


@pytest.fixture(scope="module")
def verifier() -> ModuleType:
    spec = importlib.util.spec_from_file_location("page_verifier", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def fixtures() -> list[Fixture]:
    return make_vectors()


def test_it_imports_the_standard_library_and_signatures_alone() -> None:
    tree = ast.parse(FILE.read_text(encoding="utf-8"))
    names = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        for name in (
            [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert names - set(sys.stdlib_module_names) == {"Crypto"}


def test_every_fixture_comes_out_as_it_says(verifier: ModuleType, fixtures: list[Fixture]) -> None:
    for fixture in fixtures:
        case = json.loads(json.dumps(fixture.model_dump(mode="json")))
        assert verifier.expected(verifier.judged(case)) == case["expected"], fixture.name


def test_a_wrong_expectation_is_found(
    verifier: ModuleType, fixtures: list[Fixture], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = fixtures[0].model_dump(mode="json")
    case["expected"]["used"] += 1
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(case))
    assert not verifier.check_fixture(file, explain=True)
    assert f"wrong.json: used: expected {case['expected']['used']}" in capsys.readouterr().out


def test_fuzz_cases_are_judged_alike(verifier: ModuleType) -> None:
    def judge(case: dict[str, Any]) -> Answer:
        found = json.loads(json.dumps(verifier.answer(case)))
        if "undecodable" in found:
            return Answer(frozenset(), frozenset(), found["undecodable"])
        return Answer(frozenset(found["judged"]), frozenset(found["offences"]))

    found = compare_verifiers(judge, 300, "page")
    assert (found.cases, found.differing) == (300, 0)
