"""`pubsub explore` of what others wrote: histories, sessions, fixtures, cases, findings."""

import base64
import json
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.plumbing.command import invoked

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.emulator.fixtures import FixtureMaker, write_fixture
from pubsub_emulator.emulator.scenario.file import load_bundled
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.files.progress import ProgressCallback
from pubsub_emulator.inspection.drawing import page_from
from pubsub_emulator.primitives.errors import PubsubError

ROOT = Path(__file__).resolve().parents[3]
CORPUS = ROOT / "pubsub_emulator" / "laboratory" / "corpus"


def _page(source: object, out: Path, *options: object) -> str:
    done = invoked("explore", source, "--out", out, *options)
    assert done.exit_code == 0, f"{done.output} {done.exception}"
    return out.read_text()


def _part(page: str, name: str) -> Any:
    found = re.search(rf'id="{name}">([^<]*)<', page)
    assert found is not None
    return json.loads(zlib.decompress(base64.b64decode(found.group(1))))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explore")
    assert invoked("new", folder / "a.toml", "--like", "attack").exit_code == 0
    text = (folder / "a.toml").read_text()
    (folder / "a.toml").write_text(
        text.replace("relay_blocks = 40", "relay_blocks = 9").replace("length = 20", "length = 4")
    )
    assert invoked("run", folder / "a.toml", "--out", folder / "out", "--explorer").exit_code == 0
    return folder


def test_a_history_is_drawn_as_its_run_was(run: Path) -> None:
    mine = _page(run / "out", run / "history.html")
    theirs = (run / "out" / "explorer.html").read_text()
    read, ran = _part(mine, "index"), _part(theirs, "index")
    assert [row[:7] + row[8:12] for row in read["candidates"]] == [
        row[:7] + row[8:12] for row in ran["candidates"]
    ]
    assert [block["root"] for block in read["relay"]] == [block["root"] for block in ran["relay"]]
    assert [(chain["id"], chain["subscribes"]) for chain in read["chains"]] == [
        (chain["id"], chain["subscribes"]) for chain in ran["chains"]
    ]
    drawn, known = _part(mine, "d2000-0"), _part(theirs, "d2000-0")
    assert [each["ledger"] for each in drawn] == [each["ledger"] for each in known]
    assert [each.get("evidence") for each in drawn] == [each.get("evidence") for each in known]


def test_of_a_long_history_the_first_blocks_are_drawn(run: Path) -> None:
    index = _part(_page(run / "out" / "history", run / "few.html", "--blocks", 3), "index")
    assert [block["number"] for block in index["relay"]] == [0, 1, 2, 3]
    assert max(row[2] for row in index["candidates"]) == 3


def test_a_saved_session_is_replayed_to_a_history_and_the_same_page(run: Path) -> None:
    lines = f"step 2\ncheat 2000 omit-node\nstep 3\nwrite {run / 's.json'}\n"
    assert CliRunner().invoke(pubsub, ["step", str(run / "a.toml")], input=lines).exit_code in {
        None,
        0,
    }
    page = _page(run / "s.json", run / "s.html")
    index = _part(page, "index")
    assert [block["number"] for block in index["relay"]][-1] == 5
    assert [row[7] for row in index["candidates"] if row[5]]
    assert invoked("run", run / "s.json", "--out", run / "played", "--explorer").exit_code == 0
    assert (run / "played" / "explorer.html").read_text() == page
    assert (run / "played" / "history").is_dir()


def test_a_case_is_drawn_honest_and_changed(tmp_path: Path) -> None:
    block = _page(CORPUS / "omit-node.json", tmp_path / "a.html")
    assert "the honest block" in block
    assert "OmittedBelowBudget" in block
    alone = _page(CORPUS / "stopped-over-budget.json", tmp_path / "b.html")
    assert all(heading in alone for heading in ("the honest proof", "the changed proof"))


def test_a_finding_is_drawn_from_its_evidence_alone(run: Path) -> None:
    assert (
        invoked(
            "audit", run / "out/history", "--out", run / "audit", "--engine", "python"
        ).exit_code
        == 1
    )
    listed = json.loads(invoked("evidence", run / "audit", "--json").stdout)
    found = next(each for each in listed["findings"] if each["code"] == "OmittedBelowBudget")
    assert (
        invoked(
            "evidence", run / "audit", "--finding", found["id"], "--out", run / "f.json"
        ).exit_code
        == 0
    )
    page = _page(run / "f.json", run / "f.html")
    assert "finding OmittedBelowBudget" in page
    assert "<svg" in page


def test_a_fixture_is_drawn(tmp_path: Path) -> None:
    simulation = Simulation(load_bundled("attack"))
    maker = FixtureMaker()
    simulation.network.observe(maker)
    for _ in range(3):
        simulation.step()
    fixture = next(iter(maker.fixtures))
    write_fixture(fixture, tmp_path / "f.json")
    assert f"fixture {fixture.name}" in _page(tmp_path / "f.json", tmp_path / "f.html")


@pytest.mark.parametrize("content", ["{}", "[]", '{"format": "else"}'])
def test_what_cannot_be_drawn_is_refused_with_what_can(tmp_path: Path, content: str) -> None:
    (tmp_path / "odd.json").write_text(content)
    for place in (tmp_path / "odd.json", tmp_path):
        done = invoked("explore", place, "--out", tmp_path / "page.html")
        assert isinstance(done.exception, PubsubError)
        assert "a scenario, a history" in str(done.exception)
    assert not (tmp_path / "page.html").exists()


def test_a_network_that_a_history_does_not_hold_is_refused(run: Path) -> None:
    done = invoked("explore", run / "out", "--out", run / "x.html", "--network", "other")
    assert "it has attack" in str(done.exception)


def test_a_program_draws_a_history_and_sees_each_stage_of_the_work(run: Path) -> None:
    stages: list[tuple[str, int | None]] = []
    done: list[float] = []

    @contextmanager
    def stage(said: str, total: int | None = None) -> Iterator[ProgressCallback]:
        stages.append((said, total))
        yield lambda count, _total=None, _what=None: done.append(count)

    watched = page_from(run / "out", stage=stage)
    assert watched == page_from(run / "out" / "history")
    ((said, total),) = stages
    assert re.fullmatch(r"executing the blocks of \d+ chains again", said)
    assert done == list(range(1, (total or 0) + 1))
