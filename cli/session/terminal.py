"""A session at a terminal, with history and completion; where no terminal is, commands come from standard input.

Ctrl-C interrupts the running command after the block that it is building; at the prompt it clears the line. Errors
never end a session at a terminal. A script stops at the first one: what follows would run in a place not meant.
"""

import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final, Protocol, TextIO

import click

from pubsub_emulator.cli.exits import INTERRUPTED, USAGE
from pubsub_emulator.cli.pages import Doing, Shown
from pubsub_emulator.cli.screen import bar, show
from pubsub_emulator.cli.session import saved
from pubsub_emulator.cli.session.command import Kind
from pubsub_emulator.cli.session.session import Session
from pubsub_emulator.cli.session.table import find
from pubsub_emulator.emulator.network.fork import NO_FORKS, Forks
from pubsub_emulator.primitives.errors import PubsubError

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import History

HISTORY: Final = "step-history"


class Conversation(Protocol):
    """A session as a terminal has it."""

    over: bool
    """Whether the user has asked to leave."""

    def execute(self, line: str) -> Generator[Shown]:
        """Do what a line says. Raises `PubsubError`."""

    def where(self) -> str:
        """What a prompt shows."""

    @property
    def number(self) -> int:
        """The newest relay block's height."""

    def complete(self, line: str) -> list[str]:
        """What the last word of a line may go on as."""


class Interrupts:
    """Ctrl-C while a command runs: taken note of, and acted on between two blocks."""

    def __init__(self) -> None:
        self.asked = False

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        self.asked = True

    @contextmanager
    def taken(self) -> Iterator[None]:
        """As long as this lasts, Ctrl-C only sets `asked`."""
        self.asked = False
        before = signal.signal(signal.SIGINT, self._note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def perform(session: Conversation, line: str, interrupts: Interrupts) -> bool:
    """Run one line and show its pages; whether it came to its end. Raises `PubsubError` as `Session.execute`."""
    pages = session.execute(line)
    with interrupts.taken(), bar() as advance:
        for page in pages:
            if isinstance(page, Doing):
                advance(page.done, page.total, page.what)
            else:
                advance.clear()  # both write to one terminal
                show(page)
            if interrupts.asked:
                pages.close()
                advance.clear()
                click.echo(f"interrupted; the network is at relay block {session.number}", err=True)
                return False
    return True


def converse(session: Conversation) -> None:
    """Read lines at a terminal until the user leaves."""
    interrupts = Interrupts()
    prompts = _prompts(session)
    click.echo("`help` lists the commands, Tab completes, Ctrl-D leaves")
    perform(session, "status", interrupts)
    while not session.over:
        try:
            line = prompts.prompt(f"{session.where()}> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        try:
            perform(session, line, interrupts)
        except PubsubError as error:
            click.echo(f"{error}", err=True)


def follow(session: Conversation, script: TextIO) -> int:
    """Run the lines of a script; the exit code. It ends at the first line that cannot be done, which is named."""
    interrupts = Interrupts()
    for at, line in enumerate(script, start=1):
        try:
            if not perform(session, line, interrupts):
                return INTERRUPTED
        except PubsubError as error:
            click.echo(f"pubsub: standard input:{at}: {error}", err=True)
            return USAGE
        if session.over:
            break
    return 0


def _prompts(session: Conversation) -> "PromptSession[str]":
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document

    class Words(Completer):
        """What the table offers, and files where one belongs."""

        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
            """Whole words in place of the one begun."""
            del complete_event
            line = document.text_before_cursor
            begun = "" if not line or line[-1].isspace() else line.split()[-1]
            for word in session.complete(line) or _files(line, begun):
                yield Completion(word, start_position=-len(begun))

    return PromptSession(completer=Words(), history=_history(), complete_while_typing=False)


def _files(line: str, begun: str) -> list[str]:
    """JSON files and folders that the word begun may be, where a command wants a file."""
    words = line.split()
    try:
        wants = len(words) > (0 if not begun else 1) and find(words[0]).parameters[:1]
    except PubsubError:
        return []
    if not wants or wants[0].kind is not Kind.FILE or len(words) - bool(begun) != 1:
        return []
    folder = Path(begun).parent if not begun.endswith("/") else Path(begun)
    found = [path for path in folder.glob("*") if path.is_dir() or path.suffix == ".json"]
    return sorted(str(path) for path in found if str(path).startswith(begun))


def _history() -> "History":
    """Lines of earlier sessions, from the user's own folder; of this session alone where that cannot be written."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    folder = Path(click.get_app_dir("pubsub"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / HISTORY).touch()
    except OSError:
        return InMemoryHistory()
    return FileHistory(folder / HISTORY)


def resume(path: Path, forks: Forks = NO_FORKS) -> Session:
    """The session in a file that `write` made. Raises `CommandError`, `ScenarioError`."""
    made: list[Session] = []
    with bar() as advance:
        for page in saved.read(path, made, forks=forks):
            if isinstance(page, Doing):
                advance(page.done, page.total, page.what)
    return made[0]


def run_session(session: Conversation) -> int:
    """The command: a conversation where a person is, a script where none is. Returns the exit code."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        converse(session)
        return 0
    return follow(session, sys.stdin)
