"""Rules of one's own on the command line."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.plumbing.processes import environment, program
from support.plumbing.served import Served
from support.plumbing.snapshots import Snapshot
from support.plumbing.transcript import Transcript
from support.runtime.rules import CAP, SCENARIO


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "cap.py").write_text(CAP, encoding="utf-8")
    (tmp_path / "other.py").write_text(CAP.replace("3", "5"), encoding="utf-8")
    (tmp_path / "small.toml").write_text(SCENARIO, encoding="utf-8")
    return tmp_path


def test_a_rule_changes_a_run_and_its_digest_is_in_the_summary(folder: Path) -> None:
    figures = []
    for rules in ((), ("--rules", "cap.py")):
        run = program(
            "run", "small.toml", *rules, "--out", f"out{len(rules)}", "--json", folder=folder
        )
        assert run.returncode == 0, run.stderr
        figures.append(json.loads(run.stdout))
    shipped, capped = figures
    assert shipped["publishers"]["1000"]["expired"] == 0 < capped["publishers"]["1000"]["expired"]
    assert "rules" not in shipped
    assert len(capped["rules"]) == 66


@pytest.mark.parametrize("engine", ["python", "pool"])
def test_an_audit_is_clean_with_the_histories_rules_and_reports_other_rules(
    folder: Path, engine: str
) -> None:
    assert (
        program("run", "small.toml", "--rules", "cap.py", "--out", "out", folder=folder).returncode
        == 0
    )
    asked = ("audit", "out/history", "--out", "audit", "--engine", engine)
    for others in ((), ("--rules", "other.py")):
        refused = program(*asked, *others, folder=folder)
        assert refused.returncode == 2
        assert "the history was made with the rules 0x" in refused.stderr
    audited = program(*asked, "--rules", "cap.py", folder=folder)
    assert audited.returncode == 0, audited.stdout + audited.stderr


def test_a_session_file_is_played_with_its_rules_alone(folder: Path) -> None:
    commands = "step 3\nwrite saved.json\nquit\n"
    made = program("step", "small.toml", "--rules", "cap.py", folder=folder, given=commands)
    assert made.returncode == 0, made.stderr
    assert len(json.loads((folder / "saved.json").read_text())["rules"]) == 66
    refused = program("step", "saved.json", folder=folder, given="quit\n")
    assert "rules: the session was made with 0x" in refused.stdout + refused.stderr
    assert (
        program("step", "saved.json", "--rules", "cap.py", folder=folder, given="quit\n").returncode
        == 0
    )


def _only_by_its_rules(folder: Path, *words: str) -> None:
    """A command works with the rules that its file names, and without them says what is missing."""
    refused = program(*words, folder=folder)
    assert refused.returncode == 2
    assert "are not loaded; `--rules` names their file" in refused.stderr
    allowed = program(*words, "--rules", "cap.py", folder=folder)
    assert allowed.returncode == 0, allowed.stdout + allowed.stderr


def test_cases_of_a_campaign_are_replayed_and_shown_by_its_rules(folder: Path) -> None:
    made = ("fuzz", "--cases", "6", "--corpus", "kept", "--out", "surprises", "--rules", "cap.py")
    assert program(*made, folder=folder).returncode == 0
    case = str(min((folder / "kept").glob("*-*.json")))
    _only_by_its_rules(folder, "replay", case)
    _only_by_its_rules(folder, "explore", case, "--out", "case.html")
    _only_by_its_rules(folder, "inspect", case)


def test_runs_and_their_findings_are_shown_and_checked_by_their_rules(
    folder: Path,
) -> None:
    cheats = 'collators = [{}, { strategies = ["omit-node"] }]'
    (folder / "small.toml").write_text(f"{SCENARIO}{cheats}\n", encoding="utf-8")
    by_rules = ("--rules", "cap.py")
    assert program("run", "small.toml", *by_rules, "--out", "out", folder=folder).returncode == 0
    _only_by_its_rules(folder, "explore", "out", "--out", "history.html")
    audited = ("audit", "out/history", "--out", "audit", "--engine", "python", *by_rules)
    assert program(*audited, folder=folder).returncode == 1
    listed = json.loads(program("evidence", "audit", "--json", folder=folder).stdout)
    finding = listed["findings"][0]["id"]
    written = program(
        "evidence", "audit", "--finding", finding, "--out", "finding.json", folder=folder
    )
    assert written.returncode == 0, written.stderr
    _only_by_its_rules(folder, "evidence", "finding.json")
    _only_by_its_rules(folder, "explore", "finding.json", "--out", "finding.html")
    _only_by_its_rules(folder, "inspect", "finding.json")
    _only_by_its_rules(folder, "inspect", "out/history", "--block", "2000:1")
    shown = program(
        "inspect", "out/history", "--block", "2000:1", *by_rules, "--json", folder=folder
    )
    for block in json.loads(shown.stdout)["blocks"]:
        assert block["verdict_now"] == block["verdict_recorded"]


def test_sessions_and_nodes_are_drawn_by_their_rules(folder: Path) -> None:
    commands = "step 3\nwrite saved.json\nquit\n"
    made = program("step", "small.toml", "--rules", "cap.py", folder=folder, given=commands)
    assert made.returncode == 0, made.stderr
    asked = ("explore", "saved.json", "--out", "session.html")
    assert "rules: the session was made with 0x" in program(*asked, folder=folder).stderr
    assert program(*asked, "--rules", "cap.py", folder=folder).returncode == 0
    served = Served(str(folder / "small.toml"), "--rules", str(folder / "cap.py"), "--dev")
    try:
        served.call("dev_newBlock", {"count": 2})
        _only_by_its_rules(folder, "explore", "--connect", served.url, "--out", "node.html")
    finally:
        served.end()


BAD_RULES = {
    "an unknown rule": CAP.replace("lifetime(", "life("),
    "too few arguments": CAP.replace("para, size, now", "para"),
    "no rule at all": "x = 1\n",
    "decode without encode": CAP.replace("lifetime(ttl, para, size, now)", "decode(data)"),
    "not Python": "def lifetime(:\n",
    "an error": CAP.replace("min(ttl or 3, 3)", "1 // 0"),
    "a wrong type": CAP.replace("min(ttl or 3, 3)", "'3'"),
    "a number that is too large": CAP.replace("min(ttl or 3, 3)", "1 << 32"),
}


def test_a_bad_file_of_rules_is_refused_with_its_place(
    folder: Path, transcript: Transcript, snapshot: Snapshot
) -> None:
    for case, text in BAD_RULES.items():
        (folder / "bad.py").write_text(text, encoding="utf-8")
        transcript.note(f"# {case}")
        transcript.refuse("pubsub run small.toml --rules bad.py --out out")
        assert not (folder / "out").exists(), case
    (folder / "bad.py").write_text("x = 1\n", encoding="utf-8")
    transcript.refuse("pubsub lab small.toml --rules bad.py --no-open")
    snapshot("bad-rules", str(transcript))


def test_a_run_replaces_an_earlier_run_of_that_name_and_nothing_else(folder: Path) -> None:
    asked = ("run", "small.toml", "--out", "out")
    assert program(*asked, folder=folder).returncode == 0
    first = json.loads((folder / "out/summary.json").read_text())
    kept = program(*asked, "--keep", folder=folder)
    assert kept.returncode == 2
    assert "not empty" in kept.stderr
    assert program(*asked, "--rules", "cap.py", folder=folder).returncode == 0
    assert json.loads((folder / "out/summary.json").read_text())["digest"] != first["digest"]
    (folder / "out/notes.txt").write_text("mine")
    assert program(*asked, folder=folder).returncode == 2
    assert (folder / "out/notes.txt").read_text() == "mine"
    (folder / "out/notes.txt").unlink()
    (folder / "out/summary.json").write_text("{}")
    assert program(*asked, folder=folder).returncode == 2


def test_a_watched_run_reruns_when_its_rules_change_and_reports_differences(
    folder: Path,
) -> None:
    command = ("run", "small.toml", "--rules", "cap.py", "--out", "out", "--watch")
    watching = subprocess.Popen(
        [sys.executable, "-m", "pubsub_emulator", *command],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        _until(watching, "watching small.toml")
        (folder / "cap.py").write_text("def lifetime(:", encoding="utf-8")
        _until(watching, "line 1: SyntaxError")
        (folder / "cap.py").write_text(CAP.replace("3", "1"), encoding="utf-8")
        assert "expiries" in _until(watching, "Ctrl-C ends it", after="differences")
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=120)
    finally:
        watching.kill()
        watching.wait()
    assert watching.returncode == 0


def _until(process: "subprocess.Popen[str]", said: str, after: str = "") -> str:
    """What a process says up to a line with `said` that follows `after`."""
    heard = ""
    for line in process.stdout or ():
        heard += line
        if said in line and after in heard:
            return heard
    pytest.fail(f"{said!r} was not said: {heard}")
