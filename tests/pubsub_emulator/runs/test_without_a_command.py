"""A program runs scenarios and compares places without the command line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.plumbing.command import TINY

from pubsub_emulator.emulator.scenario.file import load_scenario
from pubsub_emulator.files.errors import InputError
from pubsub_emulator.files.progress import ProgressCallback
from pubsub_emulator.runs.comparison import as_markdown, changes_figure, compare
from pubsub_emulator.runs.run import HISTORY, is_a_run, simulate


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.toml"
    path.write_text(TINY, encoding="utf-8")
    return path


def test_a_run_writes_its_history_and_summary_into_a_folder(scenario: Path, tmp_path: Path) -> None:
    stages: list[tuple[str, int | None]] = []

    @contextmanager
    def stage(said: str, total: int | None = None) -> Iterator[ProgressCallback]:
        stages.append((said, total))
        yield lambda _done, _total=None, _what=None: None

    folder = tmp_path / "out"
    folder.mkdir()
    model = load_scenario(scenario)
    run = simulate(model, folder, stage=stage)
    assert stages == [("running tiny: 8 relay blocks", 8)]
    assert run.summary.relay_blocks == 8
    assert (folder / HISTORY).is_dir()
    assert is_a_run(folder)
    (folder / "mine.txt").touch()
    assert not is_a_run(folder)


def test_equal_places_do_not_differ_and_others_are_told_apart(
    scenario: Path, tmp_path: Path
) -> None:
    longer = tmp_path / "longer.toml"
    longer.write_text(TINY.replace("relay_blocks = 8", "relay_blocks = 9"), encoding="utf-8")
    compared = compare([str(scenario), str(scenario), str(longer)])
    assert compared.labels == ("tiny (1)", "tiny (2)", "longer")
    lines = {line.name: line for line in compared.lines}
    assert lines["relay blocks"].values == (8, 8, 9)
    assert compared.first["tiny (2)"] == []
    assert compared.first["longer"]
    differing = compared.shown(every=False)
    assert {line.values[0] == line.values[1] for line in differing} == {True}
    assert "relay blocks" in compared.beyond(5)
    assert compared.beyond(None) == []
    assert "The first block in which longer differs" in as_markdown(compared, differing)
    figure = changes_figure(compared.labels, differing)
    assert figure is not None
    assert {row["side"] for row in figure.rows} == {"tiny (2)", "longer"}


def test_a_place_that_is_none_is_refused_before_anything_runs(scenario: Path) -> None:
    with pytest.raises(InputError, match="nothing: not a run, history, audit"):
        compare([str(scenario), "nothing"])
