"""Run the blocks of Markdown pages and compare the shown output.

The blocks of a page are run in order, in a folder of their own.

    ```python            run; all blocks of a page share their names
    ```sh                every line a command: `pubsub …`, `python …` or `curl …`; `\\` continues
                         one, `#` begins a comment
    ```sql               asked of the audit at `out/audit`, which the page has made; the answer has
                         columns
    ```text              shown, not run

A comment right before a block changes how it is treated:

    <!-- not run: why -->      the reason is part of the page; `tests/docs/test_pages.py` counts
                               these blocks
    <!-- file: name.toml -->   the block is written to this file in the page's folder, and is not
                               run
    <!-- prints -->            the block is what the one before it prints, or its message where it
                               fails; `…` is any text, on its own line any lines
    <!-- prints: soon -->      the same, after servers have done their work: the commands before it
                               are repeated until they print it
    <!-- exit code: 1 -->      how each command of the block ends, where that is not 0
    <!-- serves: 8081 8082 --> the commands go on until the page ends; the next block waits until
                               these ports take connections. A free port takes the place of each
                               of them, on the whole page, so commands name their ports.

A block in any other language than `text` must be a file, run, or marked as not run.
"""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import made
from markdown_it import MarkdownIt
from support.plumbing import forked

from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.spark_audit.tables.ask import ask

ROOT: Final = Path(__file__).resolve().parents[3]

SHOWN: Final = frozenset({"text", ""})
PROGRAMS: Final = Path(sys.executable).parent
MOST_SECONDS: Final = 240
MOST_SECONDS_TO_START: Final = 90
"""Seconds until a server takes connections."""

_MARK: Final = re.compile(
    r"<!--\s*(not run|file|prints|exit code|serves)(?::\s*(.*?))?\s*-->",
    re.DOTALL,
)
_COMMAND: Final = re.compile(r"^\s*(\$ |pubsub |python3? |pip |pytest |curl )", re.MULTILINE)

_CONSOLE: Final = """
import contextlib, io, json, sys, traceback, types
page = types.ModuleType("page")
sys.modules["page"] = page
for line in sys.stdin:
    place, code = json.loads(line)
    out, failure = io.StringIO(), None
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(code, place, "exec"), page.__dict__)
        except BaseException:
            failure = traceback.format_exc()
    print(json.dumps([out.getvalue(), failure]), flush=True)
"""


def filled(name: str) -> str:
    """Return a page of docs/ as it is on the site, with the parts that code writes."""
    text: str = made.filled((ROOT / "docs" / name).read_text(encoding="utf-8"))
    return text


class PageError(AssertionError):
    """Raised if a page shows something wrong. The message begins with page and line."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: where it begins, its language, its text, and the marks before it."""

    place: str
    language: str
    text: str
    marks: dict[str, str]

    @property
    def reason(self) -> str | None:
        """Why it is not run, where it is marked so."""
        return self.marks.get("not run")


def pages() -> list[Path]:
    """Return every page of the project's documentation, and its README."""
    written = [
        path for folder in ("docs", "examples") for path in sorted((ROOT / folder).rglob("*.md"))
    ]
    made = ("_", ".")  # folders of Sphinx and pytest
    kept = (
        path
        for path in written
        if not any(part.startswith(made) for part in path.relative_to(ROOT).parts)
    )
    return [ROOT / "README.md", *kept]


def blocks(path: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page in order, without Sphinx's own directives."""
    name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path.name
    marks: dict[str, str] = {}
    for token in MarkdownIt().parse(path.read_text(encoding="utf-8")):
        if token.type == "html_block":
            marks |= {kind: said or "" for kind, said in _MARK.findall(token.content)}
        elif token.type in ("fence", "code_block"):
            language = (token.info.split() or [""])[0]
            if not language.startswith("{"):
                yield Block(
                    f"{name}:{token.map[0] + 1 if token.map else 0}", language, token.content, marks
                )
            marks = {}
        elif token.nesting != -1:
            marks = {}


def check_marks(block: Block) -> None:
    """Raise `PageError` for a block that looks as if it were run, but is not."""
    if block.reason is not None and len(block.reason) < 10:  # a word is no reason
        raise PageError(f"{block.place}: say why it is not run")
    for port in block.marks.get("serves", "").split():
        if port not in block.text:
            raise PageError(f"{block.place}: no command names the port {port}")
    if block.reason is not None or "file" in block.marks:
        return
    if block.language in SHOWN and "prints" not in block.marks and _COMMAND.search(block.text):
        raise PageError(
            f"{block.place}: it holds commands; make it an `sh` block, or mark it as not run"
        )
    if block.language not in SHOWN and block.language not in ("python", "sh", "sql"):
        raise PageError(
            f"{block.place}: nothing runs a {block.language} block; mark it as a file or as not run"
        )


class Runner:
    """One page's folder and Python."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for shared in ("examples", "bench"):
            (folder / shared).symlink_to(ROOT / shared)
        self._python: subprocess.Popen[str] | None = None
        self.servers: list[subprocess.Popen[bytes]] = []
        self._ports: dict[str, str] = {}
        """The free port that takes the place of each port of the page."""
        self.environment = {
            **os.environ,
            "PATH": os.pathsep.join((str(PROGRAMS), os.environ.get("PATH", os.defpath))),
            "COLUMNS": "120",
            "NO_COLOR": "1",
            "PYTHONPATH": str(ROOT),
            # A reader does not have this plugin of our tests, which takes a second of each start.
            "PYTEST_ADDOPTS": "-p no:schemathesis",
        }

    def close(self) -> None:
        """End the page's Python and its servers."""
        if self._python is not None:
            self._python.communicate(timeout=MOST_SECONDS)
        for server in reversed(self.servers):
            server.terminate()
        for server in self.servers:
            try:
                server.wait(timeout=20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()

    def run(self, page: Path) -> int:
        """Run a page, return how many blocks it has that are run or compared.

        Raises `PageError`.
        """
        printed, ran = "", 0
        of_page = list(blocks(page))
        asked: Block | None = None
        for block in of_page:
            for port in block.marks.get("serves", "").split():
                self._ports[port] = str(free_port())
        for written in of_page:
            check_marks(written)
            block = replace(written, text=self._with_free_ports(written.text))
            if block.reason is not None:
                continue
            if "file" in block.marks:
                target = self.folder / block.marks["file"]
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(block.text, encoding="utf-8")
            elif "prints" in block.marks:
                if block.marks["prints"] == "soon" and asked is not None:
                    printed = self._run_until(asked, block.text)
                if not matches(block.text, printed):
                    raise PageError(
                        f"{block.place}: the page shows\n{block.text}\nbut there came\n{printed}"
                    )
            elif block.language == "python":
                printed = self._run_python(block)
            elif block.language == "sql":
                printed = self._ask(block)
            elif "serves" in block.marks:
                self._serve(block)
            elif block.language == "sh":
                asked = block
                printed = self._run_commands(block)
            else:
                continue
            ran += 1
        return ran

    def _with_free_ports(self, text: str) -> str:
        """Return a text with a free port in the place of each port that the page serves."""
        for port, free in self._ports.items():
            text = re.sub(rf"(?<!\d){port}(?!\d)", free, text)
        return text

    def _serve(self, block: Block) -> None:
        """Start the commands of a block, and wait until they take connections.

        Raises `PageError` if one ends.
        """
        for words in commands(block.text):
            with (self.folder / f"server-{len(self.servers)}.log").open("wb") as log:
                server = subprocess.Popen(
                    [PROGRAMS / words[0], *words[1:]],
                    cwd=self.folder,
                    env=self.environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            self.servers.append(server)
        end = time.monotonic() + MOST_SECONDS_TO_START
        for port in block.marks["serves"].split():
            while not takes_connections(int(self._ports[port])):
                for at, server in enumerate(self.servers):
                    if server.poll() is not None:
                        log_text = (self.folder / f"server-{at}.log").read_text(encoding="utf-8")
                        raise PageError(f"{block.place}: a server has ended:\n{log_text}")
                if time.monotonic() > end:
                    raise PageError(f"{block.place}: nothing takes connections at {port}")
                time.sleep(0.05)

    def _ask(self, block: Block) -> str:
        try:
            answer = ask(self.folder / "out" / "audit", block.text)
        except PubsubError as error:
            raise PageError(f"{block.place}: {error}") from None
        return "\n".join(str(row) for row in (answer.columns, *answer.rows))

    def _run_python(self, block: Block) -> str:
        if self._python is None:
            self._python = subprocess.Popen(
                [sys.executable, "-W", "error", "-c", _CONSOLE],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._python.stdin is not None
        assert self._python.stdout is not None
        print(json.dumps([block.place, block.text]), file=self._python.stdin, flush=True)
        printed, failure = json.loads(self._python.stdout.readline())
        if failure is not None:
            raise PageError(f"{block.place}: {failure}")
        return str(printed)

    def _run_commands(self, block: Block) -> str:
        return "".join(self._run_command(block, words) for words in commands(block.text))

    def _run_until(self, block: Block, shown: str) -> str:
        """Run a block's commands until they print the shown output, and return it."""
        end = time.monotonic() + MOST_SECONDS_TO_START
        printed = self._run_commands(block)
        while not matches(shown, printed) and time.monotonic() < end:
            time.sleep(0.5)
            printed = self._run_commands(block)
        return printed

    def _run_command(self, block: Block, words: list[str]) -> str:
        if words[0] not in ("pubsub", "python", "pytest", "curl"):
            raise PageError(f"{block.place}: {words[0]} is not run here; mark the block")
        if words[0] == "curl":  # words such as JSON and URLs have no patterns of file names
            expanded = ["--silent", "--show-error", *words[1:]]
        else:
            expanded = [found for word in words[1:] for found in self._expanded(word)]
        if words[0] == "pubsub":
            done = forked.run(expanded, self.folder, None, self.environment, MOST_SECONDS)
        else:
            done = subprocess.run(
                [program(words[0], block.place), *expanded],
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=MOST_SECONDS,
                stdin=subprocess.DEVNULL,
            )
        wanted = int(block.marks.get("exit code", "0"))
        if done.returncode != wanted:
            said = done.stderr or done.stdout
            raise PageError(
                f"{block.place}: `{shlex.join(words)}` ends with {done.returncode}, not"
                f" {wanted}:\n{said}"
            )
        return done.stdout or (done.stderr if wanted else "")

    def _expanded(self, word: str) -> list[str]:
        if not any(sign in word for sign in "*?["):
            return [word]
        return sorted(str(found.relative_to(self.folder)) for found in self.folder.glob(word)) or [
            word
        ]


def program(name: str, place: str) -> Path:
    """Return the path of a program in this environment, or of the machine's `curl`.

    Raises `PageError` if it does not exist.
    """
    if name != "curl":
        return PROGRAMS / name
    found = shutil.which(name)
    if found is None:
        raise PageError(f"{place}: this machine has no {name}")
    return Path(found)


def free_port() -> int:
    """Return a free port of this machine."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def takes_connections(port: int) -> bool:
    """Return whether something listens on a port of this machine."""
    with socket.socket() as one:
        one.settimeout(1)
        return one.connect_ex(("127.0.0.1", port)) == 0


def commands(text: str) -> Iterator[list[str]]:
    """Return the commands of a block as words. Raises `PageError` if one needs a shell."""
    for line in text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if any(word in ("|", "&&", "||", ";", ">", "<", "&") for word in words):
            raise PageError(
                f"`{line}` needs a shell, which not every machine has; write it in one command"
            )
        if words:
            yield words


def matches(shown: str, printed: str) -> bool:
    """Return whether the shown text was printed, ignoring spaces at the ends of lines."""
    parts = []
    for line in shown.strip("\n").splitlines():
        if line.strip() == "…":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            parts.append(".*?".join(map(re.escape, line.rstrip().split("…"))) + r"[ ]*\n")
    lines = "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
    return re.fullmatch("".join(parts), lines + "\n") is not None
