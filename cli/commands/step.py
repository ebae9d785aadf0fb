"""`pubsub step`: its arguments and help."""

import sys
from pathlib import Path

import click

from pubsub_emulator.cli import options


@click.command(
    "step",
    epilog="\b\nExamples:\n  pubsub step demo\n  pubsub step my-network.toml\n  pubsub step attack.json\n"
    "  echo 'cheat 3000 omit-node; until verdict; verdicts' | tr ';' '\\n' | pubsub step demo\n"
    "  pubsub step --connect ws://127.0.0.1:9944\n"
    "  pubsub step node --fork ws://127.0.0.1:9944\n"
    "\n\b\nIn the session:\n  help          every command\n  help COMMAND  all about one, with examples\n",
)
@click.argument("scenario", shell_complete=options.complete_scenario, required=False)
@click.option("--connect", "url", metavar="URL", help="Step the network of the node at URL instead of a SCENARIO.")
@options.own_cheats
@options.fork
@options.fork_para
@click.option("--accounts", is_flag=True, help="Give all chains accounts, so that `set` can change their storage.")
def command(
    scenario: str | None, url: str | None, *, fork: str | None, fork_para: tuple[str, ...], accounts: bool
) -> None:
    """Step through the network of SCENARIO in a terminal session.

    Build blocks one by one or until something happens; publish, subscribe, cheat; look into storage, tries, caches and
    ledgers; keep snapshots, branch, compare. SCENARIO is a TOML file, the name of a scenario that comes with the
    project, or a file that `write` made in a session. Without a terminal, commands are read from standard input, one a
    line; the first that cannot be done ends the script with exit code 2.

    With --connect, the network is that of a running node, and the commands are those that a node can do; what reads
    events and storage works with any Substrate node.

    With --fork, the scenario's network continues from a real state, by need from a node: docs/howto/fork-live-state.md.
    """
    if (scenario is None) == (url is None):
        raise click.UsageError("give a SCENARIO or --connect URL")
    from pubsub_emulator.cli.forks import opened
    from pubsub_emulator.cli.run import find_scenario
    from pubsub_emulator.cli.session import Session
    from pubsub_emulator.cli.session.terminal import resume, run_session

    if scenario is None:
        if accounts:
            raise click.UsageError("--accounts: a node says by itself whether its chains have accounts")
        if fork or fork_para:
            raise click.UsageError("--fork: the network of a node is there already; give a SCENARIO")
        from pubsub_emulator.cli.session.remote import Remote

        with Remote(str(url)) as remote:
            sys.exit(run_session(remote))
    path = Path(scenario)
    with opened(fork, fork_para) as forks:
        if path.suffix == ".json":
            if accounts:
                raise click.UsageError("--accounts: a saved session says by itself whether its chains have accounts")
            session = resume(path, forks)
        else:
            session = Session(find_scenario(scenario), accounts=accounts, forks=forks)
        code = run_session(session)
    sys.exit(code)
