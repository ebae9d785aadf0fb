"""The verifier of docs/verifier.md and ours judge alike; it knows nothing of this project."""

import ast
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from support.runtime import page_verifier

from pubsub_emulator.emulator.fixtures import Fixture
from pubsub_emulator.laboratory.fixture_set import make_vectors
from pubsub_emulator.laboratory.verifier import VerifierAnswer, compare_verifiers


@pytest.fixture(scope="module")
def verifier() -> ModuleType:
    return page_verifier.verifier()


@pytest.fixture(scope="module")
def fixtures() -> list[Fixture]:
    return make_vectors()


def test_it_imports_the_standard_library_and_signatures_alone() -> None:
    tree = ast.parse(page_verifier.FILE.read_text(encoding="utf-8"))
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
    verifier: ModuleType,
    fixtures: list[Fixture],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    case = fixtures[0].model_dump(mode="json")
    case["expected"]["used"] += 1
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(case))
    assert not verifier.check_fixture(file, explain=True)
    assert f"wrong.json: used: expected {case['expected']['used']}" in capsys.readouterr().out


def test_bad_input_is_one_line_that_names_the_place(
    verifier: ModuleType,
    fixtures: list[Fixture],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "case.json"
    monkeypatch.setattr(sys, "argv", ["verifier.py", str(file)])

    def told(text: str) -> str:
        file.write_text(text)
        assert verifier.main() == 2
        return capsys.readouterr().err

    def changed(**fields: object) -> str:
        return told(json.dumps({**fixtures[0].model_dump(mode="json"), **fields}))

    candidate = fixtures[0].model_dump(mode="json")["candidate"]
    assert (
        told("{")
        == f"{file}: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)\n"
    )
    assert told("[]") == f"{file}: candidate: missing\n"
    assert changed(candidate=7) == f"{file}: candidate: not a JSON string\n"
    assert (
        changed(candidate="0x0g") == f"{file}: candidate: not 0x and pairs of hexadecimal digits\n"
    )
    assert changed(candidate=candidate[:-2]).startswith(f"{file}: the candidate, byte ")
    assert (
        changed(candidate="0x01")
        == f"{file}: the candidate, byte 0: 32 bytes are needed, 1 are left\n"
    )
    assert changed(parent_header="0x" + 32 * "00" + "01") == (
        f"{file}: parent_header, byte 33: 1 bytes are needed, 0 are left\n"
    )
    assert changed(pre_state=[["0x00"]]) == f"{file}: pre_state[0]: not a key and a value\n"
    assert changed(pre_state=[]) == f"{file}: pre_state: :code is missing\n"
    assert changed(relay={"storage_root": None}) == f"{file}: relay.slot_now: missing\n"
    file.unlink()
    assert verifier.main() == 2
    assert str(file) in capsys.readouterr().err


def test_fuzz_cases_are_judged_alike(verifier: ModuleType) -> None:
    def judge(case: dict[str, Any]) -> VerifierAnswer:
        found = json.loads(json.dumps(verifier.answer(case)))
        if "undecodable" in found:
            return VerifierAnswer(frozenset(), frozenset(), found["undecodable"])
        return VerifierAnswer(frozenset(found["judged"]), frozenset(found["offences"]))

    found = compare_verifiers(judge, 300, "page")
    assert (found.cases, found.differing) == (300, 0)
