"""A session at a terminal, with history and completion, or with commands from standard input.

Ctrl-C interrupts the running command after the block that it is building; at the prompt it clears
the line. Errors never end a session at a terminal. A script stops at its first error, since later
lines would run on another state.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

import click

from pubsub_emulator.cli.base.interrupts import Interrupts
from pubsub_emulator.cli.exits import INFRASTRUCTURE, INTERRUPTED, USAGE
from pubsub_emulator.cli.screen import bar, say, show
from pubsub_emulator.emulator.fork import NO_FORKS, Forks
from pubsub_emulator.files.pages import Doing
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.runtime.rules import SHIPPED, Rules
from pubsub_emulator.session import saved
from pubsub_emulator.session.command import BY_NAME, ParameterKind
from pubsub_emulator.session.completion import complete
from pubsub_emulator.session.session import Session

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import History

HISTORY: Final = "step-history"


def perform(session: Session, line: str, interrupts: Interrupts) -> bool:
    """Run one line and show its pages.

    Returns whether it finished. Raises the errors of `Session.execute`.
    """
    pages = session.execute(line)
    with interrupts.taken(), bar() as advance:
        for page in pages:
            if isinstance(page, Doing):
                advance(page.done, page.total, page.what)
            else:
                advance.clear()  # both write to one terminal
                show(page)
            if interrupts.noted:
                pages.close()
                advance.clear()
                say(f"interrupted; the network is at relay block {session.number}", aside=True)
                return False
    return True


def converse(session: Session) -> None:
    """Read lines at a terminal until the user leaves."""
    interrupts = Interrupts()
    prompts = _prompts(session)
    say("`help` lists the commands, Tab completes, Ctrl-D leaves")
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
            say(*str(error).split("\n"), aside=True)


def follow(session: Session, script: TextIO) -> int:
    """Run the lines of a script until one fails, and print the line's number and error.

    Returns the exit code.
    """
    interrupts = Interrupts()
    for line_number, line in enumerate(script, start=1):
        try:
            if not perform(session, line, interrupts):
                return INTERRUPTED
        except PubsubError as error:
            say(*f"pubsub: standard input:{line_number}: {error}".split("\n"), aside=True)
            return INFRASTRUCTURE if error.is_infrastructure else USAGE
        if session.over:
            break
    return 0


def _prompts(session: Session) -> "PromptSession[str]":
    """Return the prompt of a session, with history and completion."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document

    class Words(Completer):
        """Completes with the commands of the table, and with files for file arguments."""

        def get_completions(
            self, document: Document, complete_event: CompleteEvent
        ) -> Iterator[Completion]:
            """Complete words that replace the partial one."""
            del complete_event
            line = document.text_before_cursor
            partial = "" if not line or line[-1].isspace() else line.split()[-1]
            for word in complete(session, line) or _files(line, partial):
                yield Completion(word, start_position=-len(partial))

    return PromptSession(completer=Words(), history=_history(), complete_while_typing=False)


def _files(line: str, partial: str) -> list[str]:
    """Return the JSON files and folders whose names begin with `partial`, a line's last word.

    The list is empty unless the word is the first argument of a command that takes a file there.
    """
    finished = line.split()
    if partial:
        finished.pop()
    if len(finished) != 1 or finished[0] not in BY_NAME:
        return []
    parameters = BY_NAME[finished[0]].parameters
    if not parameters or parameters[0].kind is not ParameterKind.FILE:
        return []
    folder = Path(partial) if partial.endswith("/") else Path(partial).parent
    paths = [path for path in folder.glob("*") if path.is_dir() or path.suffix == ".json"]
    return sorted(str(path) for path in paths if str(path).startswith(partial))


def _history() -> "History":
    """Return the history of lines.

    It is a file in the user's folder, or in memory if that file cannot be written.
    """
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    folder = Path(click.get_app_dir("pubsub"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / HISTORY).touch()
    except OSError:
        return InMemoryHistory()
    return FileHistory(folder / HISTORY)


def resume(path: Path, forks: Forks = NO_FORKS, rules: Rules = SHIPPED) -> Session:
    """Return the session in a file of `write`. Raises `CommandError`, `SettingsError`."""
    sessions: list[Session] = []
    with bar() as advance:
        for page in saved.read(path, sessions, forks=forks, rules=rules):
            if isinstance(page, Doing):
                advance(page.done, page.total, page.what)
    return sessions[0]


def run_session(session: Session) -> int:
    """Run a session interactively at a terminal, otherwise as a script.

    Returns the exit code.
    """
    if sys.stdin.isatty() and sys.stdout.isatty():
        converse(session)
        return 0
    return follow(session, sys.stdin)
