"""Read the name of a job, set up what it needs, and run it."""

import argparse
import os
from pathlib import Path

from development import jobs
from development.environment import GROUPS, VENV, set_up
from development.release import release
from development.report import SetupError, say

DESCRIPTION = """
Set the project up and run its jobs: `python3 dev.py demo`, `python3 dev.py test`.

Needs only Python 3.11 or newer and a package index. The first run makes `.venv` beside dev.py and
installs what the job needs, in the versions of constraints.txt. A later job that needs more
installs the rest. Everything is installed again when pyproject.toml, constraints.txt or the Python
changes. Further arguments go to the tool: `python3 dev.py test tests/pubsub_emulator/trie -x`,
`python3 dev.py demo --help`.
"""
HELP = """
jobs:
  demo    the demonstration: a network is run, its history and real relay proofs are audited
  test    every test, or those named: python3 dev.py test tests/pubsub_emulator/trie
  lint    ruff check, ruff format --check, mypy, lint-imports
  clients the field's own clients against a node; the first time they are fetched from their package
          indexes, and --newest fetches the newest versions to see whether they still can be had
  worlds  the distributor on chains of other makers; the first time npm fetches those
  prometheus  Prometheus scrapes a distributor and evaluates the alert rules; the first time it is
          fetched from Debian's package index
  canisters the example canisters, built from source, run, and called by agents of npm and PyPI; the
          first time Motoko's compiler and the agents are fetched
  compile the hot modules compiled, in build/compiled; needs a C compiler
  compiled  the compiled build, made and tested in build/; needs a C compiler
  docs    the documentation as a site in docs/_build, warnings being errors; every link within it is
          followed, and with --external those to elsewhere, too
  interop Rust programs read the fixtures and vectors, and judge fuzz cases beside ours; needs cargo
  versions  the tests that need neither Spark nor a browser, with other versions of Python and of
          the dependencies; with names, only those lanes: development/versions.md
  mutation  changes of the rules, one at a time, and whether a test notices (hours); with names,
          only those
  release  everything of a release but the upload: both source distributions and wheels of the last
          commit, built, checked and installed in fresh environments, in dist/; with --final, the
          changelog must be that of the version
  ci      lint, then test
  pubsub  any `pubsub` command, in the folder you are in:
          python3 dev.py pubsub run my.toml --out out/my
  setup   only the set-up, with the browser that tests of pages need

A job that needs a tool which this machine lacks does nothing and says so. If the variable CI is
set, that is an error.
"""


def run(job: str, args: list[str]) -> int:
    """Run one job in the finished set-up and return its exit code."""
    match job:
        case "demo":
            return jobs.tool("pubsub", "demo", *args, folder=Path.cwd())
        case "pubsub":
            return jobs.tool("pubsub", *args, folder=Path.cwd())
        case "setup":
            return jobs.tool("python", "tests/support/plumbing/chromium.py")
        case "mutation":
            return jobs.tool("mutmut", "run", *args)
        case "compile":
            return jobs.compile_and_say_how()
        case "compiled":
            return jobs.compiled()
        case "interop":
            return jobs.interop()
        case "docs":
            return jobs.docs(args)
        case "canisters":
            return jobs.canisters(args)
        case "clients":
            return jobs.clients(args)
        case "worlds":
            return jobs.worlds(args)
        case "prometheus":
            return jobs.prometheus(args)
        case "versions":
            return jobs.tool("python", "tests/versions/lanes.py", *args)
        case "lint":
            return jobs.lint()
        case "release":
            return release(args)
        case "test":
            return jobs.test(args)
        case _:
            # The remaining job is `ci`.
            return jobs.lint() or jobs.test(args)


def main() -> int:
    """Read the arguments, set up, and run the job. Return the exit code."""
    parser = argparse.ArgumentParser(
        prog="dev.py",
        description=DESCRIPTION,
        epilog=HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("job", choices=tuple(GROUPS))
    parser.add_argument("args", nargs=argparse.REMAINDER, help="passed on to the tool")
    chosen = parser.parse_args()
    reason = jobs.missing_tool(chosen.job)
    if reason is not None:
        say(reason)
        return 1 if os.environ.get("CI") else 0
    try:
        set_up(chosen.job, chosen.args)
        return run(chosen.job, chosen.args)
    except SetupError as error:
        say(str(error))
        return 1
    except OSError as error:
        say(f"{error.filename or VENV}: {error.strerror or error}")
        return 1
    except KeyboardInterrupt:
        return 130
