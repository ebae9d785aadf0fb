"""Whatever a stranger wrote, no command lets it act on the terminal: every command with a file, a
folder or a node.
"""

import ast
import json
import os
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import click
import pyarrow as pa
import pytest
from command_reference import leaves
from support.plumbing.command import pubsub
from support.plumbing.pages import ROOT
from support.spark_audit.audits import drop_a_node, write_history
from support.spark_audit.history_forgery import load, store

from pubsub_emulator.cli.exits import DEFECT
from pubsub_emulator.spark_audit.history.manifest import HISTORY_TABLES

EVIL = "\x1b]0;owned\x07\x1b[8m\u202e\u2066\x9b2J"
PRINTING = {
    "cli/main.py",
    "cli/screen/__init__.py",
    "cli/screen/tables.py",
    "cli/commands/completion.py",
}
"""Files that print: the first two escape, the others print texts of this project alone."""
LIGHT = {"../interchain_events/cli/commands/distributor/serve.py"}
"""It starts without the screen's library; what it prints are names of checked characters and its
own address.
"""
NODE = ("export-state {url} {out}", "step --connect {url}", "explore --connect {url} --out {out}")
NODE += (
    "log follow {url} --log {out}",
    "serve --fork {url}",
    "fetch --node {url} --network a --chain 1000 --from 1 --out {out}",
)


def test_only_the_screen_prints() -> None:
    package = ROOT / "pubsub_emulator"
    printing = {
        "click.echo",
        "click.secho",
        "print",
        "console.print",
        "sys.stdout.write",
        "sys.stderr.write",
    }
    found = set()
    events = ROOT / "interchain_events"
    sources = (*package.rglob("*.py"), *events.rglob("*.py"))
    for path in (path for path in sources if path.name != "setup.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in printing:
                found.add(os.path.relpath(path, package))
    assert found == PRINTING | LIGHT


def _paths(command: click.Command) -> int:
    """How many arguments are paths of what exists."""
    return sum(
        isinstance(each, click.Argument) and getattr(each.type, "exists", False)
        for each in command.params
    )


READING = {name: _paths(command) for name, command, _ in leaves() if _paths(command)}


def test_the_commands_that_read_files_are_found() -> None:
    assert {"evidence", "inspect", "open-proof", "replay", "audit", "score", "diff"} <= {*READING}


def _printed(capfd: pytest.CaptureFixture[str]) -> str:
    out, err = capfd.readouterr()
    for line in (out + err).split("\n"):
        assert line.isprintable(), repr(line[:200])
        assert len(line) < 30_000
    return out + err


TEXTS = (
    EVIL,
    "x" * (1 << 20),
    json.dumps({"format": EVIL, "name": EVIL, "network": EVIL}, ensure_ascii=False),
)


@pytest.mark.parametrize("name", READING)
def test_escape_sequences_in_a_files_name_and_text_become_plain_text(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    for number, text in enumerate(TEXTS):
        path = tmp_path / f"{number}{EVIL}.json"
        path.write_text(text, encoding="utf-8")
        out = [f"--out={tmp_path / 'out'}"] if name in {"audit", "import-relay-proofs"} else []
        pubsub(monkeypatch, *name.split(), *[path] * READING[name], *out)
        assert "owned" in _printed(capfd) or number == 1


def test_escape_sequences_in_a_historys_texts_become_plain_text(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Every text of every table, and a chain's name: the histories of strangers are audited, drawn
    and queried.
    """
    segments = load(write_history(tmp_path / "honest", 3, cheats={2: drop_a_node}))
    for (name, _chain), rows in segments[0].parts.items():
        texts = {
            field.name for field in HISTORY_TABLES[name].schema if field.type == pa.string()
        } - {"network"}
        rows[:] = [
            {**row, **dict.fromkeys(texts & {each for each in row if row[each] is not None}, EVIL)}
            for row in rows
        ]
    history, out, page = (
        store(segments, tmp_path / "history"),
        tmp_path / "audit",
        tmp_path / "report",
    )
    for line in (
        ("inspect", history),
        ("inspect", history, "--block", "2000:1"),
        ("audit", history, "--out", out, "--engine", "python"),
        ("sql", out, "SELECT * FROM read_errors"),
        ("sql", history, "SELECT * FROM blocks"),
        ("score", history, out),
        ("diff", history, tmp_path / "honest"),
        ("compare", history, tmp_path / "honest", "--markdown"),
        ("report", out, "--out", page),
    ):
        assert pubsub(monkeypatch, *line) != DEFECT, line
        _printed(capfd)
    drawn = "".join(path.read_text("utf-8") for path in page.rglob("*.html"))
    assert "owned" in drawn
    assert not {each for each in EVIL if not each.isprintable()} & {*drawn}


class _Evil(BaseHTTPRequestHandler):
    document: object = None

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        data = json.dumps({"jsonrpc": "2.0", "id": asked["id"], **type(self).document}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name that is called
        """Say nothing."""


@pytest.fixture(scope="module")
def evil_node() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Evil) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("line", NODE)
def test_what_a_node_says_is_told_in_plain_lines_and_exit_code_4(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    evil_node: str,
    line: str,
) -> None:
    for text in (EVIL, "x" * (1 << 20)):
        for document in (
            {"result": text},
            {"error": {"code": -1, "message": text, "data": text}},
            {"error": text},
        ):
            _Evil.document = document
            code = pubsub(monkeypatch, *line.format(url=evil_node, out=tmp_path / "out").split())
            assert code in {2, 4}, document
            _printed(capfd)
