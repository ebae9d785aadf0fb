"""The name of a folder decides nothing: every command that takes a path says and writes the same
wherever it is.
"""

import re
import shutil
import sys
from collections.abc import Iterator
from hashlib import blake2b
from io import StringIO
from pathlib import Path
from typing import Any, Final

import click
import pytest
from command_reference import leaves
from support.plumbing.command import TINY, pubsub
from support.plumbing.snapshots import Snapshot
from support.plumbing.transcript import normal
from support.spark_audit.audits import write_history

from pubsub_emulator.cli.base.options import Address
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.judge.results import Results

ODD: Final = ("chain=7", "a*", "a?c", "a[b]", "network=x,y", "ü 空 '\"", "two words", "two\nlines")
"""Names that a reader could take for a partition, a pattern, a quotation, or the end of a line."""
DECOYS: Final = ("abc", "ab")
"""Names that those of the patterns match."""

ROOT: Final = Path(__file__).resolve().parents[3]
SUMS: Final = (
    "SELECT chain, COUNT(*), SUM(proof_bytes) FROM block_measures GROUP BY chain ORDER BY chain"
)

COMMANDS: Final = (
    "new mine.toml",
    "run tiny.toml --out run --history history",
    "step tiny.toml",
    "explore tiny.toml --out page.html",
    "audit history --out audit --engine python",
    "report audit --out report.html",
    "sql audit SUMS",
    "score history audit",
    "evidence audit --finding FIRST --out finding.json",
    "evidence finding.json",
    "inspect history",
    "inspect PART",
    "inspect tiny.toml",
    "diff history history",
    "fixtures --out fixtures",
    "replay fixtures",
    "fuzz --cases 5 --out surprises --seed 1",
    "import-relay-proofs proof.json --out imported",
    "migrate history",
    "open-proof answers.jsonl --draw proof.svg",
    "proof-snapshot tiny.toml --out sizes.txt",
    "proof-snapshot tiny.toml --check sizes.txt",
    "experiment --sweep keys=1 --cache none --out experiment",
    "simulate --networks 1 --blocks 12 --out simulated --engine python",
    "icrc72 trace canisters.toml --namespace org.example.price --event 12 --svg canisters.svg",
    "vectors check vectors",
)
"""Command lines in the order in which one makes what the next one reads."""
ELSEWHERE: Final = {
    "demo": "run, audit and report at once",
    "serve": "a server",
    "lab": "a server",
    "log follow": "a server's client, or as run",
    "events serve": "a server",
    "events audit": "Spark, whose paths test_spark_errors.py tries",
    "prism audit": "as events audit",
    "distributor serve": "a server",
    "distributor simulate": "as run",
    "prism serve": "a server",
    "prism status": "a server's client",
    "prism submit": "a server's client",
    "prism subscribe": "a server's client",
    "icrc72 run": "as icrc72 trace",
    "icrc72 serve": "a server",
    "icrc72 stories": "as fuzz",
    "ship": "packs the installation, for minutes",
    "fetch": "a node's client",
    "export-state": "a node's client",
    "conform": "a node's client",
    "prove": "a node's client, or as open-proof",
    "list": "shows the absolute path of an audit's history",
    "clean": "removes what list shows",
    "compare": "its arguments are those of diff and run",
    "distributor adapter": "a server",
    "icrc72 conform": "a module's path, as icrc72 run",
}
"""Commands with a path that are not in the list, and why."""


def test_every_command_with_a_path_is_tried_or_named() -> None:
    tried = {re.match(r"(?:icrc72 |vectors )?[a-z0-9-]+", line)[0] for line in COMMANDS}
    paths = {
        name
        for name, command, _ in leaves()
        for each in command.params
        if isinstance(each.type, (click.Path, Address)) or each.name in {"scenario", "source"}
    }
    assert paths == tried | set(ELSEWHERE)


def _prepare(folder: Path) -> Path:
    """A folder with what the commands read."""
    folder.mkdir(parents=True)
    (folder / "tiny.toml").write_text(TINY, encoding="utf-8")
    shutil.copy(
        ROOT / "examples" / "mainnet" / "asset-hub-kusama-450000.json", folder / "proof.json"
    )
    shutil.copy(ROOT / "examples" / "node_data" / "session.jsonl", folder / "answers.jsonl")
    shutil.copy(
        ROOT / "interchain_events" / "icrc72" / "scenarios" / "demo.toml", folder / "canisters.toml"
    )
    shutil.copytree(ROOT / "tests" / "vectors" / "tries", folder / "vectors")
    return folder


def _play(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[object]:
    """Exit code and words of every command in a folder, times left out, and at the end the digests
    of all files.
    """
    monkeypatch.chdir(folder)
    names = {"SUMS": lambda: SUMS, "FIRST": _first_finding, "PART": _part}
    for line in COMMANDS:
        monkeypatch.setattr(sys, "stdin", StringIO("step 3\nstatus\n"))
        code = pubsub(
            monkeypatch, *(names.get(word, lambda word=word: word)() for word in line.split())
        )
        said = capsys.readouterr()
        assert code != 2, said.err
        # A campaign says its rate only if it took a second.
        words = re.sub(r", [\d,]+ cases? per second", "", said.out)
        words = re.sub(
            r"[\d.]+ (?:ms|s|core seconds)\b|(?m:^(?:finished|seconds|rate).*$)", "…", words
        )
        yield line, code, words
    for path in sorted(
        path for path in Path().rglob("*") if path.is_file() and not _has_time(path)
    ):
        yield path, blake2b(path.read_bytes()).hexdigest()


def _has_time(path: Path) -> bool:
    """Whether times are in a file: when it was made, and how long that took."""
    named = {"run_report.json", "report.html", "ledger.json"}
    return path.name in named or bool({"_delta_log", "ledger", "_simulation"} & set(path.parts))


def _first_finding() -> str:
    return next(Results.open(Path("audit")).rows(schema.FINDINGS))["id"].hex()


def _part() -> str:
    return str(next(Path("audit/tables/block_measures").glob("*.parquet")))


def test_all_commands_say_and_write_the_same_in_odd_folders(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    snapshot: Snapshot,
) -> None:
    plain = list(_play(_prepare(tmp_path / "plain"), monkeypatch, capsys))
    snapshot("commands", normal(_shown(plain), tmp_path / "plain"))
    odd = list(_play(_prepare(tmp_path.joinpath(*ODD)), monkeypatch, capsys))
    assert odd == plain


def _shown(played: list[Any]) -> str:
    """Return the commands with their output.

    Sizes of Parquet files depend on the version of Arrow, so they are left out.
    """
    texts = []
    for line, code, words in (each for each in played if len(each) == 3):
        if line == "inspect PART":
            continue
        shown = words.rstrip()
        if line == "inspect history":
            shown = re.sub(r"(?m)^(bytes|\w+ +[\d,]+) +[\d,]+$", r"\1  N", shown)
        ending = f"(exit code {code})\n" if code else ""
        texts.append(f"$ pubsub {line}\n{shown}\n{ending}")
    return "\n".join(texts)


@pytest.mark.parametrize("name", ODD)
def test_a_question_has_one_answer_whatever_the_folder_is_called(
    audited: Path,
    tmp_path: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for folder in (name, *DECOYS):
        shutil.copytree(audited, tmp_path / folder / "audit")
    answers = []
    for place in (audited, tmp_path / name / "audit"):
        assert pubsub(monkeypatch, "sql", place, SUMS) == 0
        answers.append(capsys.readouterr().out)
    assert answers[0] == answers[1]


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited")
    audit(write_history(folder / "history", 4), folder / "audit", engine="python")
    return folder / "audit"
