"""Strategies of one's own on the command line; in processes of their own, for what is registered
stays registered.
"""

import json
import re
from pathlib import Path

import pytest
from support.plumbing.command import TINY
from support.plumbing.processes import program
from support.plumbing.snapshots import Snapshot
from support.plumbing.transcript import Transcript

ROOT = Path(__file__).resolve().parents[3]

CHEATS = """
from pubsub_emulator.collator.cheats.steps import Drop
from pubsub_emulator.collator.cheats.strategy import strategy
from pubsub_emulator.runtime.parachain.block import Verdict


@strategy(
    "silence",
    "keep every change from the subscriber",
    Verdict.OMITTED_BELOW_BUDGET,
    on_proof=True,
)
def silence(situation, draws):
    walked = situation.walked
    hashes = [change.entry_hash for change in walked.changes]
    changed = [entry_hash for entry_hash in hashes if entry_hash in walked.taken]
    return tuple(map(Drop, changed)) or None
"""

LENIENT = """
from pubsub_emulator import rule


@rule
def checks(verdicts):
    return tuple(name for name in verdicts if name != "OmittedBelowBudget")
"""

SCENARIO = TINY.replace(
    "[[subscribers.collators]]", "[[subscribers.collators]]\n\n[[subscribers.collators]]"
)
SCENARIO = SCENARIO.replace("omit-node", "silence")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(CHEATS, encoding="utf-8")
    (tmp_path / "silent.toml").write_text(SCENARIO, encoding="utf-8")
    return tmp_path


def test_a_scenario_names_a_strategy_of_ones_own(folder: Path) -> None:
    run = program(
        "run", "silent.toml", "--cheats", "mine.py", "--out", "out", "--json", folder=folder
    )
    assert run.returncode == 0, run.stderr
    caught = json.loads(run.stdout)["cheats"]
    assert {each["strategy"]: each["verdict"] for each in caught} == {
        "silence": "OmittedBelowBudget"
    }
    assert program("run", "silent.toml", "--out", "other", folder=folder).returncode == 2


def test_rules_are_compared_under_an_attack_of_ones_own(folder: Path) -> None:
    """The second side does not refuse a block that leaves changes out."""
    (folder / "lenient.py").write_text(LENIENT, encoding="utf-8")
    compare = ("compare", "shipped", "lenient.py", "--scenario", "silent.toml")
    shown = program(*compare, "--cheats", "mine.py", folder=folder)
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"^refused: OmittedBelowBudget +[1-9]\d* +0 ", shown.stdout, re.MULTILINE)
    assert "unknown strategy" in program(*compare, folder=folder).stderr


def test_a_session_and_a_campaign_know_it_too(folder: Path) -> None:
    session = program(
        "step",
        "silent.toml",
        "--cheats",
        "mine.py",
        given="step 3\ncheat 3000 silence\n",
        folder=folder,
    )
    assert session.returncode == 0, session.stderr
    campaign = program(
        "fuzz",
        "--cases",
        "30",
        "--cheats",
        "mine.py",
        "--strategy",
        "silence",
        "--json",
        folder=folder,
    )
    assert campaign.returncode == 0, campaign.stderr
    assert {
        name for names in json.loads(campaign.stdout)["by_strategy"] for name in names.split("+")
    } == {"silence"}


def test_a_strategy_whose_steps_change_nothing_is_seen_in_the_table(folder: Path) -> None:
    idle = CHEATS.replace("tuple(map(Drop, changed)) or None", "(Drop(bytes(32)),)")
    (folder / "mine.py").write_text(idle, encoding="utf-8")
    done = program(
        "fuzz", "--cases", "9", "--cheats", "mine.py", "--strategy", "silence", folder=folder
    )
    assert done.returncode == 0, done.stderr
    assert "9 of those accepted had no effect" in done.stdout
    assert re.search(r"silence +\d+ +no effect \d", done.stdout)
    assert "Accepted" not in done.stdout
    done = program("run", "silent.toml", "--cheats", "mine.py", "--out", "out", folder=folder)
    assert re.search(r"cheats that changed nothing: silence in \d+ blocks", done.stdout), (
        done.stdout
    )


BAD_FILES = {
    "no strategy": "x = 1\n",
    "an error": "x = 1\nraise ValueError('no')\n",
    "a file that ends the program": "import sys\nsys.exit(7)\n",
    "not Python": "x = 1\ny = (\n",
    "a name that is taken": CHEATS.replace("silence", "omit-node", 1),
}
BAD_STRATEGIES = {
    "an error": "return 1 // 0",
    "an end of the program": "raise SystemExit(7)",
    "a list": "return [Drop(b'')]",
    "a step that is a number": "return (Drop(bytes(32)), 7)",
    "a step that is a text": "return ('drop',)",
    "a hash that is a text": "return (Drop('hello'),)",
    "a hash that is too short": "return (Drop(b'hello'),)",
}


def test_a_bad_file_or_strategy_is_refused_with_its_place(
    folder: Path, transcript: Transcript, snapshot: Snapshot
) -> None:
    begins = CHEATS.split("    walked", maxsplit=1)[0]
    files = BAD_FILES | {
        f"a strategy with {case}": f"{begins}    {line}\n" for case, line in BAD_STRATEGIES.items()
    }
    for case, text in files.items():
        (folder / "bad.py").write_text(text, encoding="utf-8")
        transcript.note(f"# {case}")
        transcript.refuse("pubsub run silent.toml --cheats bad.py --out out")
        assert not (folder / "out").exists(), case
    snapshot("bad-cheats", str(transcript))
