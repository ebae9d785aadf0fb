"""`pubsub`: its commands, and what becomes of errors.

Importing this module loads nothing but click; a command's module is loaded when it is named, and
what the command needs when it runs.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Final

import click

from pubsub_emulator.cli.base.groups import Group
from pubsub_emulator.cli.base.own_process import OwnProcess
from pubsub_emulator.cli.exits import (
    DEFECT,
    INFRASTRUCTURE,
    INTERRUPTED,
    MEANINGS,
    PIPE_CLOSED,
    USAGE,
)
from pubsub_emulator.cli.streams import prepare_streams
from pubsub_emulator.files.shown import safe
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.version import VERSION

COMMANDS: Final = {
    "demo": "Run the demonstration network, then audit its history and real relay proofs",
    "tour": "Show every system in a minute: short acts on one network, and one digest",
    "new": "Write a commented scenario to FILE, ready to run and to edit",
    "run": "Run a network from SCENARIO, a TOML file or a bundled name, and write its history",
    "step": "Step through the network of SCENARIO in a terminal session",
    "explore": (
        "Write a page about SOURCE: every block, its proof drawn as a trie, and what used its bytes"
    ),
    "lab": "See, step and attack the network of SCENARIO in a browser, until Ctrl-C",
    "serve": "Serve the chains of SCENARIO as JSON-RPC nodes, by WebSocket and HTTP, until Ctrl-C",
    "simulate": (
        "Simulate large histories: many networks, one per task, with cheats of every strategy"
    ),
    "audit": (
        "Verify every block of HISTORY again and report proof costs, cheats and unreadable data"
    ),
    "report": (
        "Write the report of an AUDIT: a page that opens offline, and its charts as SVG and PNG"
    ),
    "sql": "Run a statement in SQL on the tables of an AUDIT or a HISTORY, and print the result",
    "score": "Compare the cheats planted in HISTORY with the findings of AUDIT",
    "evidence": (
        "Check a finding again, offline, from its file alone; or extract that file from an audit"
    ),
    "inspect": (
        "Show what a scenario, history, audit, fixture, fuzz case, session, proof or finding"
        " contains"
    ),
    "list": (
        "Show the runs, histories, audits, sessions and findings in a FOLDER and the folders below"
    ),
    "clean": "Remove outputs in a FOLDER that can be made again, and ask before each",
    "diff": "Find the first block, storage key and trie node in which A and B differ",
    "compare": (
        "Compare A with B and others: figures that differ, then the first block that differs"
        " and why"
    ),
    "fuzz": (
        "Try cheats against the verifier: kept cases first, then new ones, alone and in combination"
    ),
    "replay": "Replay fixtures, and the surprises and differences of `pubsub fuzz`",
    "experiment": "Measure what blocks cost and how long deliveries take; write tables and plots",
    "fixtures": "Write test vectors for any implementation, one block each",
    "ship": (
        "Pack this program and its dependencies for a Spark cluster, which then needs only Python"
    ),
    "fetch": "Fetch blocks of a real parachain into a history for `pubsub audit`",
    "conform": (
        "Test the relay chain at URL and its parachains against the rules of publishing, one by one"
    ),
    "export-state": (
        "Write the full state of the chain at URL to FILE and check it against the block's"
        " state root"
    ),
    "import-relay-proofs": (
        "Import real `parachainSystem.setValidationData` data into a history for `pubsub audit`"
    ),
    "migrate": "Convert a HISTORY of an older format to the present one, in place",
    "open-proof": (
        "Open a node's answer to `state_getReadProof` or `state_getChildReadProof`, key by key"
    ),
    "prove": (
        "Show what a request for relay keys costs under the relay state of SOURCE, key by key"
    ),
    "proof-snapshot": (
        "Write the proof sizes of SCENARIO to a small text file, or check whether they have grown"
    ),
    "vectors": "Check golden vectors, for other implementations of these systems",
    "completion": (
        "Print the completion script for SHELL: commands, options, files, scenarios and strategies"
    ),
}
"""The first sentence of each command's help, in the order of the help, which so imports no command.

Commands of other distributions follow (`pubsub_emulator.extension`).

`pubsub some-name` is `command` in `cli/commands/some_name`.
"""

SCENARIOS: Final = ("attack", "demo", "fixtures", "full-blocks", "node", "oracle")
"""The scenarios that come with the project, as help names them."""

_EXAMPLES: Final = """\b
Examples:
  pubsub demo
  pubsub tour
  pubsub new my-network.toml
  pubsub run my-network.toml --out out/my-network
  pubsub audit out/my-network/history --out out/my-audit --report
  pubsub import-relay-proofs proofs/*.json --out out/imported
  pubsub fuzz --cases 20000 --seed 7
  pubsub experiment --sweep keys=16,256,4096 --out out/keys

A SCENARIO is a TOML file or one of these names: {names}.
`pubsub new --list` describes them.
"""
_CODES: Final = "\b\nExit codes:\n" + "".join(
    f"  {code:>3}  {meaning}\n" for code, meaning in MEANINGS.items()
)


class _PipeClosed(Exception):  # not an `OSError`, which click would take for its own
    """The reader of the output has stopped reading."""


@contextmanager
def _noting_a_closed_pipe() -> Iterator[None]:
    """Raise `_PipeClosed` instead of `BrokenPipeError` inside the `with` block."""
    try:
        yield
    except BrokenPipeError as error:
        raise _PipeClosed from error


def sentences_of_all() -> dict[str, str]:
    """Return the first sentence of each command's help, also of other distributions' commands."""
    from pubsub_emulator.extension import extensions

    sentences = dict(COMMANDS)
    for extension in extensions():
        sentences |= extension.commands
    return sentences


def _package_of(name: str) -> str | None:
    """Return the package that a command is in, or `None` if there is no such command."""
    if name in COMMANDS:
        return "pubsub_emulator.cli.commands"
    from pubsub_emulator.extension import extensions

    for extension in extensions():
        if name in extension.commands:
            return extension.command_package
    return None


class Commands(Group):
    """A group that imports a command when it is named."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: object,
    ) -> click.Context:
        """Return the context of a call. Its options may print help. Raises `_PipeClosed`."""
        with _noting_a_closed_pipe():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command. Raises `_PipeClosed`."""
        with _noting_a_closed_pipe():
            return super().invoke(ctx)

    def sentences(self, _ctx: click.Context) -> list[tuple[str, str]]:
        """Return the commands with the first sentence of each."""
        return list(sentences_of_all().items())

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(sentences_of_all())

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with this name, or `None` if it does not exist."""
        package = _package_of(cmd_name)
        if package is None:
            return None
        module = import_module(f"{package}.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments name.

        The error about an unknown command suggests similar names.
        """
        name = args[0]
        if _package_of(name) is None and not name.startswith("-"):
            from difflib import get_close_matches

            from pubsub_emulator.extension import ELSEWHERE
            from pubsub_emulator.files.extras import install_distribution

            if name in ELSEWHERE:
                missing = ELSEWHERE[name]
                ctx.fail(
                    f"`pubsub {name}` is part of {missing}, which"
                    f" `{install_distribution(missing)}` installs."
                )
            similar = get_close_matches(name, sentences_of_all(), n=3)
            if similar:
                ctx.fail(f"No such command {name!r}; did you mean {' or '.join(similar)}?")
        return super().resolve_command(ctx, args)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"{_EXAMPLES.format(names=', '.join(SCENARIOS))}\n{_CODES}",
)
@click.version_option(VERSION, "-V", "--version", prog_name="pubsub")
def pubsub() -> None:
    """Step, attack and measure publish-subscribe between parachains over a relay chain.

    This program emulates RFC-0160.
    """


def main() -> None:
    """Run the program.

    An expected failure prints one line on standard error and ends with an exit code. SIGTERM is
    handled like Ctrl-C, so that unfinished files are removed.
    """
    prepare_streams()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        try:
            _run()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
    except (BrokenPipeError, _PipeClosed):
        # The rest of the output cannot be written. Without this, Python would fail at exit.
        for stream in (sys.stdout, sys.stderr):
            with (
                suppress(OSError, ValueError),
                open(os.devnull, "wb") as null_device,  # noqa: PTH123  # no path of a user
            ):
                os.dup2(null_device.fileno(), stream.fileno())
        sys.exit(PIPE_CLOSED)


def _run() -> None:
    """Run the command of the arguments, and exit with the code and message of its failure."""
    try:
        pubsub.main(prog_name="pubsub", standalone_mode=False, obj=OwnProcess())
    except click.exceptions.Abort:
        _fail("interrupted", INTERRUPTED)
    except KeyboardInterrupt:
        _fail(MEANINGS[INTERRUPTED], INTERRUPTED)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(USAGE)
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        hint = f" (see {context.command_path} --help)" if context is not None else ""
        _fail(error.format_message().replace("\n", " ").rstrip(".") + hint, USAGE)
    except PubsubError as error:
        request_errors = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
        # A full disk is the machine's fault, a missing file is the request's.
        is_machine_error = isinstance(error.__cause__, OSError) and not isinstance(
            error.__cause__, request_errors
        )
        _fail(str(error), INFRASTRUCTURE if error.is_infrastructure or is_machine_error else USAGE)
    except (BrokenPipeError, _PipeClosed):
        raise
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _fail(f"{place}{error.strerror or error}", INFRASTRUCTURE)
    # Python would exit with 1, which is the code for findings.
    except Exception as error:  # noqa: BLE001
        import traceback

        click.echo("\n".join(map(safe, traceback.format_exc().splitlines())), err=True)
        _fail(f"a defect of this program: {type(error).__name__}: {error}", DEFECT)


def _fail(message: str, code: int) -> None:
    """Print a message on standard error and exit with a code."""
    click.echo("\n".join(map(safe, f"pubsub: {message}".split("\n"))), err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
