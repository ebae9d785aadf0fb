"""`pubsub`: its commands, and what becomes of errors.

Importing this module loads nothing but click: each command imports what it needs when it runs.

Exit codes: 0 done, 1 findings, 2 wrong usage or input, 3 not everything could be read, 4 the machine failed (disk,
Java, …), 130 interrupted.
"""

import sys
from pathlib import Path
from typing import Final

import click

from primitives.errors import PubsubError
from primitives.version import VERSION

FINDINGS: Final = 1
USAGE: Final = 2
INCOMPLETE: Final = 3
INFRASTRUCTURE: Final = 4
INTERRUPTED: Final = 130

_EXTRA: Final = ("pyarrow", "pandas", "pyspark")
"""What the extra `audit` brings."""

_EXAMPLES: Final = """\b
Examples:
  pubsub demo
  pubsub run my-network.toml --out out/my-network
  pubsub audit out/my-network/history --out out/my-audit
  pubsub import-relay-proofs proofs/*.json --out out/imported
  pubsub fuzz --cases 20000 --seed 7
  pubsub experiment --sweep keys=16,256,4096 --out out/keys
"""

_ENGINE: Final = click.option(
    "--engine",
    type=click.Choice(["spark", "python"]),
    default="spark",
    show_default=True,
    help="What verifies; both come to the same rows, and plain Python starts at once.",
)
_OUT: Final = click.Path(file_okay=False, path_type=Path)
_FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
_FOLDER: Final = click.Path(exists=True, file_okay=False, path_type=Path)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=_EXAMPLES,
)
@click.version_option(VERSION, "-V", "--version", prog_name="pubsub")
def pubsub() -> None:
    """Step, attack and measure publish-subscribe between parachains over a relay chain (RFC-0160)."""


@pubsub.command(
    epilog="\b\nExamples:\n  pubsub demo\n  pubsub demo --out out/again\n",
)
@click.option("--out", type=_OUT, default=Path("out/demo"), show_default=True, help="Folder for history and audit.")
@click.option("--master", default=None, help="Spark master; without one, Spark runs inside of this program.")
@_ENGINE
def demo(out: Path, master: str | None, engine: str) -> None:
    """Run the demonstration network, then audit its history and real relay proofs.

    Twenty-five publishers, five subscribers, cheating collators, two hundred relay blocks. The last line printed is one
    digest over state roots, proofs and the audit's rows: the same on every machine.
    """
    from cli.demo import demonstrate

    demonstrate(out, master, engine)


@pubsub.command(
    epilog="\b\nExamples:\n  pubsub run my-network.toml --out out/my-network\n  pubsub run demo --out out/demo-again\n",
)
@click.argument("scenario")
@click.option("--out", type=_OUT, required=True, help="Folder to make; it must not exist or be empty.")
def run(scenario: str, out: Path) -> None:
    """Run a network from SCENARIO, a TOML file or the name of one that comes with the project, and keep its history."""
    from cli.run import run_scenario

    run_scenario(scenario, out)


@pubsub.command(
    epilog="\b\nExamples:\n  pubsub audit out/demo/history --out out/audit\n"
    "  pubsub audit out/demo/history --out out/audit --master spark://127.0.0.1:7077\n"
    "\n\b\nExit codes:\n  0 clean, 1 findings, 2 usage, 3 quarantined or incomplete, 4 infrastructure\n",
)
@click.argument("history", type=_FOLDER)
@click.option("--out", type=_OUT, required=True, help="Folder for the audit's tables; a later audit adds to it.")
@click.option("--master", default=None, help="Spark master; without one, Spark runs inside of this program.")
@_ENGINE
def audit(history: Path, out: Path, master: str | None, engine: str) -> None:
    """Verify every block of HISTORY again and say what its proof cost, who cheated, and what could not be read."""
    from cli.audit import run_audit

    sys.exit(run_audit(history, out, master, engine))


@pubsub.command(
    "import-relay-proofs",
    epilog="\b\nExample:\n  pubsub import-relay-proofs proofs/*.json --out out/imported\n  pubsub audit out/imported "
    "--out out/imported-audit\n",
)
@click.argument("files", type=_FILE, nargs=-1, required=True)
@click.option("--out", type=_OUT, required=True, help="History to add them to; made when it is not there.")
def import_relay_proofs(files: tuple[Path, ...], out: Path) -> None:
    """Bring real `parachainSystem.setValidationData` data (JSON FILES) into a history, to be audited like any other."""
    from cli.proofs import import_proofs

    import_proofs(files, out)


@pubsub.command(
    epilog="\b\nExamples:\n  pubsub fuzz --cases 20000 --seed 7\n"
    "  pubsub fuzz --cases 500 --strategy omit-node --strategy stale-root\n"
    "\n\b\nExit codes:\n  0 every verdict was the one due, 1 surprises\n",
)
@click.option("--cases", type=click.IntRange(min=0), default=5000, show_default=True, help="Cheats to try.")
@click.option("--seed", default="0", show_default=True, help="The same seed tries the same cheats.")
@click.option("--strategy", "strategies", multiple=True, metavar="NAME", help="Only this one; may be given repeatedly.")
@click.option("--out", type=_OUT, default=Path("out/surprises"), show_default=True, help="Folder for surprises.")
@click.option("--list", "listing", is_flag=True, help="Show every strategy and end.")
def fuzz(cases: int, seed: str, strategies: tuple[str, ...], out: Path, *, listing: bool) -> None:
    """Try cheats against the verifier: kept cases first, then new ones, alone and in combination.

    Every verdict is compared with the one that was due. What surprises is shrunk and written as a small file for
    `pubsub replay`.
    """
    from cli.fuzz import list_strategies, run_fuzz

    if listing:
        list_strategies()
    elif run_fuzz(cases, seed, strategies, out):
        sys.exit(FINDINGS)


@pubsub.command(
    epilog="\b\nExamples:\n  pubsub replay out/surprises/omit-node-0f3c.json\n  pubsub replay out/fixtures\n"
    "\n\b\nExit codes:\n  0 all as expected, 1 something was surprising\n",
)
@click.argument("paths", type=click.Path(exists=True, path_type=Path), nargs=-1, required=True)
def replay(paths: tuple[Path, ...]) -> None:
    """Play surprises of `pubsub fuzz` and fixtures again (JSON files, or folders of them)."""
    from cli.replay import run_replay

    if run_replay(paths):
        sys.exit(FINDINGS)


@pubsub.command(
    epilog="\b\nExamples:\n  pubsub experiment --sweep keys=16,256,4096 --out out/keys\n"
    "  pubsub experiment --sweep update_rate=1,100000,1000000 --set keys=1024 --cache none,slots --out out/rates\n"
    "  pubsub experiment --preset attacker --out out/attacker\n",
)
@click.option("--sweep", "swept", metavar="FIELD=V1,V2,…", help="The field of the workload to vary, and its values.")
@click.option("--set", "settings", metavar="FIELD=VALUE", multiple=True, help="Another field; may be given repeatedly.")
@click.option("--cache", "policies", default="none,nodes,slots", show_default=True, help="Cache policies to compare.")
@click.option("--y", default="pov", show_default=True, help="What the plot shows.")
@click.option(
    "--preset",
    type=click.Choice(["cache-policies", "latency", "unused-budget", "attacker"]),
    help="A fixed question instead of a sweep; docs/findings.md has the answers.",
)
@click.option("--out", type=_OUT, required=True, help="Folder to make; it must not exist or be empty.")
def experiment(  # noqa: PLR0917  # click passes each option by name
    swept: str | None, settings: tuple[str, ...], policies: str, y: str, preset: str | None, out: Path
) -> None:
    """Measure what blocks cost and how long deliveries take: tables (CSV, JSON) and plots (SVG, PNG).

    Rates are millionths of the keys in each relay block, sizes bytes. A wrong field name lists those there are.
    """
    from cli.experiment import parse_policies, run_question, run_sweep

    if (swept is None) == (preset is None):
        raise click.UsageError("give either --sweep or --preset")
    if preset is not None:
        run_question(preset, out)
    elif swept is not None:
        run_sweep(swept, settings, parse_policies(policies), y, out)


@pubsub.command(
    epilog="\b\nExamples:\n  pubsub fixtures --out out/fixtures\n  pubsub replay out/fixtures\n",
)
@click.option("--out", type=_OUT, required=True, help="Folder to make; it must not exist or be empty.")
def fixtures(out: Path) -> None:
    """Write executable vectors: blocks with their pre-state, proof, verdict and post-state, for any implementation."""
    from cli.fixtures import run_fixtures

    run_fixtures(out)


@pubsub.command(
    epilog="\b\nExamples:\n  pubsub diff out/one/history out/two/history\n  pubsub diff out/fixtures their/fixtures\n"
    "\n\b\nExit codes:\n  0 equal, 1 different\n",
)
@click.argument("a", type=_FOLDER)
@click.argument("b", type=_FOLDER)
def diff(a: Path, b: Path) -> None:
    """Find the first block, storage key and trie node in which A and B differ: histories, or folders of fixtures."""
    from cli.diff import run_diff

    if run_diff(a, b):
        sys.exit(FINDINGS)


def main() -> None:
    """The entry point: every expected failure is one line on standard error and an exit code."""
    try:
        pubsub.main(standalone_mode=False)
    except click.exceptions.Abort:
        _fail("interrupted", INTERRUPTED)
    except KeyboardInterrupt:
        _fail("interrupted; nothing half-written was kept", INTERRUPTED)
    except click.ClickException as error:
        _fail(_usage(error), USAGE)
    except PubsubError as error:
        _fail(str(error), INFRASTRUCTURE if _is_machines(error.__cause__) else USAGE)
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        _fail(f"this needs {error.name}, which `pip install 'pubsub-emulator[audit]'` brings", INFRASTRUCTURE)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(INFRASTRUCTURE)
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        _fail(f"{place}{error.strerror or error}", INFRASTRUCTURE)


def _is_machines(cause: BaseException | None) -> bool:
    """Whether the machine is at fault (a full disk), and not what was asked for (a file that is not there)."""
    asked = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
    return isinstance(cause, OSError) and not isinstance(cause, asked)


def _usage(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    hint = f" (see {context.command_path} --help)" if context is not None else ""
    return error.format_message().replace("\n", " ").rstrip(".") + hint


def _fail(message: str, code: int) -> None:
    click.echo(f"pubsub: {message}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
