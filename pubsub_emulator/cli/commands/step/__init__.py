"""`pubsub step`: its arguments and help."""

import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.options import option

if TYPE_CHECKING:
    from pubsub_emulator.runtime.rules import Rules


@click.command(
    "step",
    cls=Command,
    needs=(Need("client", "url"), Need("client", "fork"), Need("client", "fork_para")),
    epilog=(
        "\b\nExamples:\n  pubsub step demo\n  pubsub step my-network.toml\n  pubsub step"
        " attack.json\n  echo 'cheat 3000 omit-node; until verdict; verdicts' | tr ';' '\\n' |"
        " pubsub step demo\n  pubsub step --connect ws://127.0.0.1:9944\n  pubsub step node --fork"
        " ws://127.0.0.1:9944\n\n\b\nIn the session:\n  help          every command\n  help COMMAND"
        "  all about one, with examples\n"
    ),
)
@click.argument("scenario", shell_complete=options.complete_scenario, required=False)
@option(
    "--connect",
    "url",
    metavar="URL",
    help="Step the network of the node at URL instead of a SCENARIO.",
)
@options.own_cheats
@options.rules
@options.fork
@options.fork_para
@option(
    "--accounts",
    is_flag=True,
    help="Give all chains accounts, so that `set` can change their storage.",
)
def command(
    scenario: str | None,
    url: str | None,
    *,
    fork: str | None,
    fork_para: tuple[str, ...],
    accounts: bool,
    rules: "Rules",
) -> None:
    """Step through the network of SCENARIO in a terminal session.

    Build blocks one by one or until something happens; publish, subscribe, cheat; inspect storage,
    tries, caches and ledgers; take snapshots, branch, compare. SCENARIO is a TOML file, a bundled
    name, or a session file that `write` made. Without a terminal, commands are read from standard
    input, one per line; the first that fails ends the script with exit code 2.

    With --connect, the network is that of a running node, with the same commands; those that change
    something need `pubsub serve --dev`. From nodes of other programs, only events, storage and
    headers are read.

    With --fork, the scenario's network continues from a real state: docs/howto/fork-live-state.md.
    """
    if (scenario is None) == (url is None):
        raise click.UsageError("give either a SCENARIO or --connect URL")
    from pubsub_emulator.cli.base.forks import opened
    from pubsub_emulator.cli.commands.step.terminal import resume, run_session
    from pubsub_emulator.emulator.scenario.file import find_scenario
    from pubsub_emulator.session import Session

    if scenario is None:
        if accounts:
            why = "the node determines whether its chains have accounts"
            raise click.UsageError(f"--accounts cannot be given with --connect: {why}")
        if fork or fork_para:
            raise click.UsageError("--fork cannot be given with --connect; give a SCENARIO")
        with closing(Session.at(str(url), rules)) as remote:
            sys.exit(run_session(remote))
    path = Path(scenario)
    with opened(fork, fork_para) as forks:
        if path.suffix == ".json":
            if accounts:
                why = "its file determines whether chains have accounts"
                raise click.UsageError(f"--accounts cannot be given with a saved session: {why}")
            session = resume(path, forks, rules)
        else:
            session = Session.of(
                find_scenario(scenario, rules), accounts=accounts, forks=forks, rules=rules
            )
        sys.exit(run_session(session))
