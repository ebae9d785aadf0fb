"""`pubsub explore` and `pubsub run --explorer`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.explorer.run_page import open_page
from support.plumbing.command import TINY
from support.plumbing.processes import program

from pubsub_emulator.cli.main import main, pubsub

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(TINY)
    return path


def test_explore_writes_the_page_in_the_place_of_an_older_one(
    scenario: Path, tmp_path: Path
) -> None:
    out = tmp_path / "pages" / "small.html"
    done = CliRunner().invoke(
        pubsub, ["explore", str(scenario), "--out", str(out)], catch_exceptions=False
    )
    assert done.exit_code == 0
    assert str(out) in done.output
    first = out.read_text()
    assert open_page(first).index["title"] == "tiny"
    out.write_text("older")
    CliRunner().invoke(
        pubsub, ["explore", str(scenario), "--out", str(out)], catch_exceptions=False
    )
    assert out.read_text() == first


def test_run_writes_the_same_page_beside_the_history(scenario: Path, tmp_path: Path) -> None:
    out, page = tmp_path / "out", tmp_path / "page.html"
    arguments = ["run", str(scenario), "--out", str(out), "--explorer", "--json"]
    done = CliRunner().invoke(pubsub, arguments, catch_exceptions=False)
    assert json.loads(done.stdout)["explorer"] == str(out / "explorer.html")
    CliRunner().invoke(
        pubsub, ["explore", str(scenario), "--out", str(page)], catch_exceptions=False
    )
    assert (out / "explorer.html").read_text() == page.read_text()
    assert not (tmp_path / "out" / "history" / "explorer.html").exists()


@pytest.mark.parametrize("out", [".", "small.toml/page.html"])
def test_what_cannot_be_written_is_said_in_one_line(
    scenario: Path, out: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(scenario.parent)
    monkeypatch.setattr("sys.argv", ["pubsub", "explore", str(scenario), "--out", out])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (2, 4)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert out.split("/", maxsplit=1)[0] in said


def test_a_page_does_not_depend_on_how_python_hashes(scenario: Path, tmp_path: Path) -> None:
    pages = []
    for seed in ("1", "2"):
        out = tmp_path / f"{seed}.html"
        assert program("explore", scenario, "--out", out, PYTHONHASHSEED=seed).returncode == 0
        pages.append(out.read_bytes())
    assert pages[0] == pages[1]
