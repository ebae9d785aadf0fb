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
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.primitives.shown import safe
from pubsub_emulator.primitives.version import VERSION

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
    "log": "Write and read an ordered, gap-free log of a chain's or network's events",
    "events": "Filtered, resumable, gap-free events of a chain for any number of clients",
    "distributor": (
        "The Interchain Event Distributor: publish each event of a network once on every other"
        " network"
    ),
    "prism": "DIDs and credentials on a chain: a PRISM node and its clients",
    "simulate": (
        "Simulate large histories: many networks, one per task, with cheats of every strategy"
    ),
    "audit": (
        "Verify every block of HISTORY again, and report what its proof cost, who cheated, and what"
        " could not be read"
    ),
    "report": (
        "Write the report of an AUDIT: report.html, one page that opens offline, and its charts as"
        " SVG and PNG"
    ),
    "sql": (
        "Run the SQL query QUESTION on the tables of an AUDIT or a HISTORY, and print the result as"
        " a table"
    ),
    "score": (
        "Compare the cheats planted in HISTORY with the findings of AUDIT, the output of `pubsub"
        " audit`"
    ),
    "evidence": (
        "Check a finding again, offline, from its file alone; or extract that file from an audit"
    ),
    "inspect": (
        "Show what PATH contains: a scenario, history, audit, fixture, fuzz case, session, relay "
        "proof or finding"
    ),
    "diff": (
        "Find the first block, storage key and trie node that differ between two histories or"
        " folders of fixtures"
    ),
    "compare": (
        "Compare A with B and others: a table of the figures that differ, then the first block that"
        " differs, and why"
    ),
    "fuzz": (
        "Try cheats against the verifier: kept cases first, then new ones, alone and in combination"
    ),
    "replay": (
        "Replay fixtures, and surprises and differences of `pubsub fuzz` (JSON files, or folders of"
        " them)"
    ),
    "icrc72": (
        "Publish, subscribe and replay between canisters (ICRC-72, ICRC-77) on emulated subnets"
    ),
    "experiment": (
        "Measure what blocks cost and how long deliveries take: tables (CSV, JSON) and plots (SVG,"
        " PNG)"
    ),
    "fixtures": (
        "Write test vectors for any implementation: blocks with their pre-state, proof, verdict and"
        " post-state"
    ),
    "ship": (
        "Pack this program and its dependencies for the machines of a Spark cluster, which need"
        " only Python"
    ),
    "fetch": (
        "Fetch blocks of a real parachain into a history for `pubsub audit`: headers, relay proofs,"
        " messages"
    ),
    "conform": (
        "Hold the relay chain at URL and its parachains to the rules of publishing, one by one"
    ),
    "export-state": (
        "Write the full state of the chain at URL to FILE and check it against the block's state"
        " root"
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
    "vectors": "Check golden vectors, for those who implement these systems elsewhere",
    "completion": (
        "Print the completion script for SHELL: commands, options, files, scenarios and strategies"
    ),
}
"""The first sentence of each command's help, in the order of the help, which so imports no command.

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

Where a command wants a SCENARIO, it takes a TOML file or one of these names: {names}.
`pubsub new --list` says what they are.
"""
_CODES: Final = "\b\nExit codes:\n" + "".join(
    f"  {code:>3}  {meaning}\n" for code, meaning in MEANINGS.items()
)


class _PipeClosed(Exception):  # not an `OSError`, which click would take for its own
    """The reader of the output has stopped reading."""


@contextmanager
def _noting_a_closed_pipe() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        raise _PipeClosed from error


class Commands(Group):
    """A group that imports a command when it is named."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: object,
    ) -> click.Context:
        """The context of a call, whose options may print help. Raises `_PipeClosed`."""
        with _noting_a_closed_pipe():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command. Raises `_PipeClosed`."""
        with _noting_a_closed_pipe():
            return super().invoke(ctx)

    def sentences(self, _ctx: click.Context) -> list[tuple[str, str]]:
        """The commands with the first sentence of each."""
        return list(COMMANDS.items())

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Every command."""
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; `None` if there is none."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"pubsub_emulator.cli.commands.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the arguments name; the error about an unknown one suggests similar
        names.
        """
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(name, COMMANDS, n=3)
            if near:
                ctx.fail(f"No such command {name!r}; did you mean {' or '.join(near)}?")
        return super().resolve_command(ctx, args)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"{_EXAMPLES.format(names=', '.join(SCENARIOS))}\n{_CODES}",
)
@click.version_option(VERSION, "-V", "--version", prog_name="pubsub")
def pubsub() -> None:
    """Step, attack and measure publish-subscribe between parachains over a relay chain (RFC-0160)."""


def main() -> None:
    """The entry point: every expected failure is one line on standard error and an exit code.

    Being asked to end by another program is an interruption like any other: what is half-written
    goes.
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
        for stream in (sys.stdout, sys.stderr):  # what is left to be written goes nowhere
            with (
                suppress(OSError, ValueError),
                open(os.devnull, "wb") as nothing,  # noqa: PTH123  # no path of a user
            ):
                os.dup2(nothing.fileno(), stream.fileno())
        sys.exit(PIPE_CLOSED)


def _run() -> None:
    try:
        pubsub.main(prog_name="pubsub", standalone_mode=False, obj=OwnProcess())
    except click.exceptions.Abort:
        _fail("interrupted", INTERRUPTED)
    except KeyboardInterrupt:
        _fail("interrupted; nothing half-written was kept", INTERRUPTED)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        sys.exit(USAGE)
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        hint = f" (see {context.command_path} --help)" if context is not None else ""
        _fail(error.format_message().replace("\n", " ").rstrip(".") + hint, USAGE)
    except PubsubError as error:
        named = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
        # the machine is at fault (a full disk), and not the request (a missing file)
        machines = isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, named)
        _fail(str(error), INFRASTRUCTURE if error.is_infrastructure or machines else USAGE)
    except (BrokenPipeError, _PipeClosed):
        raise
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _fail(f"{place}{error.strerror or error}", INFRASTRUCTURE)
    except Exception as error:  # noqa: BLE001  # nothing that goes wrong may end with the code that means findings
        import traceback

        click.echo("\n".join(map(safe, traceback.format_exc().splitlines())), err=True)
        _fail(f"a defect of this program: {type(error).__name__}: {error}", DEFECT)


def _fail(message: str, code: int) -> None:
    click.echo("\n".join(map(safe, f"pubsub: {message}".split("\n"))), err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
