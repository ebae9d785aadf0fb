"""The fixtures of the worked cases are what the program makes, and the page's own verifier agrees."""

import json
from pathlib import Path

from support.processes import python
from support.worked import FOLDER, ROOT, cases
from support.worked_page import page

from pubsub_emulator.emulator.fixtures import read_fixture, replay_fixture
from pubsub_emulator.runtime.parachain.block import Verdict

REMAKE = "run python tests/support/worked.py"
VERIFIER = ROOT / "examples" / "verifier" / "verifier.py"


def test_the_fixtures_are_what_the_page_judges_and_come_out_as_they_say() -> None:
    made = {case.name: case.fixture() for case in cases()}
    kept = {file.stem: read_fixture(file) for file in FOLDER.glob("*.json")}
    assert kept == made, REMAKE
    for fixture in kept.values():
        assert replay_fixture(fixture) == [], fixture.name


def test_there_is_one_case_for_each_verdict_which_is_all_that_is_wrong_with_it() -> None:
    fixtures = [case.fixture() for case in cases()]
    refused = [[offence.verdict for offence in each.expected.evidence] for each in fixtures if each.expected.evidence]
    assert refused == [[verdict.value] for verdict in Verdict]
    valid = [each.name for each in fixtures if not each.expected.evidence]
    assert valid == ["delivery", "unchanged", "removal", "stop", "resume", "nodes", "slots"]


def test_the_verifier_of_the_page_uses_the_bytes_that_the_page_shows(tmp_path: Path) -> None:
    files = sorted(FOLDER.glob("*.json"))
    done = python(VERIFIER, "--explain", *files, folder=tmp_path)
    assert done.stdout.endswith(f"{len(files)} judged, 0 differ\n")
    text = page(cases())
    for file in files:
        used = json.loads(file.read_text(encoding="utf-8"))["expected"]["used"]
        section = text.partition(f". {file.stem}\n")[2].partition("\n## ")[0]
        assert used is None or f"| {used:,} |\n" in section
