"""Try mutmut's changes of one folder in forks of one pytest process: development/mutation.md.

    .venv/bin/python bench/mutants.py pubsub_emulator/xcm --count 200

`mutmut run` collects the tests anew for each change, which takes longer than the tests themselves.
This program collects the tests of a folder once, and forks for each change that it tries. It tries
the first `--count` changes of a random order, prints each survivor with its diff, and writes the
exit codes into mutmut's `.meta` files. A run that was ended goes on where it was. `--again` tries
the survivors once more, after tests have been added.
"""

import argparse
import contextlib
import gc
import json
import os
import random
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import pytest
from mutmut.__main__ import create_file_mutants
from mutmut.configuration import config
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state
from mutmut.utils.file_utils import (
    copy_also_copy_files,
    copy_src_dir,
    setup_source_paths,
    walk_source_files,
)
from mutmut.utils.format_utils import mangled_name_from_mutant_name

ROOT: Final = Path(__file__).resolve().parents[1]
MUTANTS: Final = ROOT / "mutants"
SLOWEST: Final = 0.5
"""Seconds of processor time from which on a test is too slow to be tried with every change, unless
`--slowest` gives others."""
MEMORY: Final = 3 << 30
"""Bytes that a fork may take, so that a change that appends without end fails early."""
SURVIVED: Final = 0
NOTICED: Final = 1
BROKEN: Final = 3
TIMEOUT: Final = 36
NO_TESTS: Final = 33
"""Exit codes as mutmut keeps and reads them."""
_SERVERS: Final = ("postgres", "redis")
"""Words in the fixtures and parameters of tests that start a server, which takes seconds for each
test that runs alone."""


class Trial(NamedTuple):
    """What a test did when it ran alone, with the modules as they are."""

    passed: bool
    seconds: float
    """Processor time with all fixtures, which a busy machine changes less than the time of day."""
    functions: list[str]
    """The functions that it executed, by the names that mutmut gives them."""


def make_changes(folder: str) -> list[SourceFileMutationData]:
    """Make mutmut's changes of the modules below a folder, and copy everything else.

    Modules that mutmut has changed before are made anew if their source is newer. Returns the
    modules of the folder with the exit codes that their changes have so far.
    """
    modules = []
    with contextlib.redirect_stdout(None):
        MUTANTS.mkdir(exist_ok=True)
        copy_src_dir()
        copy_also_copy_files()
        for path in walk_source_files():
            is_wanted = path.is_relative_to(folder) and config().should_mutate(path)
            is_newer = path.stat().st_mtime > (MUTANTS / path).stat().st_mtime
            if is_wanted or is_newer:
                result = create_file_mutants(path)
                if result.error is not None:
                    raise result.error
            if is_wanted:
                module = SourceFileMutationData(path=path)
                module.load()
                modules.append(module)
    return modules


def tests_of(folder: str, further: Sequence[str]) -> list[str]:
    """Return the tests of `[tool.mutmut]` that are those of the folder's room, and further ones."""
    package, room, *_ = folder.split("/")
    selection: list[str] = config().pytest_add_cli_args_test_selection
    return [path for path in selection if path.startswith(f"tests/{package}/{room}")] + [*further]


def forked(work: Callable[[], NoReturn]) -> int:
    """Run `work` in a fork without output and return its exit code.

    A signal that ended it counts as a time-out. The programs that it has started end with it.
    """
    process = os.fork()
    if process == 0:
        try:
            os.setsid()
            silence = os.open(os.devnull, os.O_RDWR)
            for stream in range(3):
                os.dup2(silence, stream)
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            work()
        finally:
            # The fork must never return into pytest's loop, whatever `work` raises.
            os._exit(BROKEN)
    _, status = os.waitpid(process, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(status)
    return TIMEOUT if code < 0 else code


def end_after(seconds: float) -> None:
    """Let the kernel end this process after some processor time, or if it waits for very long."""
    for which, alarm, limit in (
        (signal.ITIMER_PROF, signal.SIGPROF, seconds),
        (signal.ITIMER_REAL, signal.SIGALRM, 60 * seconds),
    ):
        signal.signal(alarm, signal.SIG_DFL)
        signal.setitimer(which, limit)


class Forks:
    """A pytest plugin that tries changes, in place of the loop over all tests."""

    def __init__(
        self,
        folder: str,
        chosen: list[tuple[str, SourceFileMutationData]],
        *,
        again: bool,
        slowest: float,
    ) -> None:
        self.chosen = chosen
        self.again = again
        self.slowest = slowest
        self.trials_file = MUTANTS / f"{folder.replace('/', '.')}.tests.json"
        self.answer = MUTANTS / f"{folder.replace('/', '.')}.answer"
        """The file in which a fork leaves its result for this process."""
        self.trials: dict[str, Trial] = {}
        self.quick: list[pytest.Item] = []
        self.imported: set[str] = set()
        """The functions that ran while the modules were imported, when no change is switched on."""
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember that a phase of the running test has failed."""
        self.failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Learn what each test executes, then try the changes."""
        items = [item for item in session.items if not _needs_server(item)]
        self.imported = set(_executed())
        _executed().clear()
        set_mutant_under_test("")
        gc.collect()
        gc.freeze()
        self._run_alone(items)
        for item in items:
            trial = self.trials[item.nodeid]
            if not trial.passed:
                print(f"left out, since it fails alone or is slow: {item.nodeid}")
            elif trial.seconds < self.slowest:
                self.quick.append(item)
        self.quick.sort(key=lambda item: self.trials[item.nodeid].seconds)
        self._leave_out_dependent()
        print(f"{len(self.quick)} of {len(items)} tests are quick enough", flush=True)
        counts = Counter(self._try(name, module) for name, module in self.chosen)
        print(", ".join(f"{count} {outcome}" for outcome, count in counts.most_common()))
        return True

    def _run_alone(self, items: list[pytest.Item]) -> None:
        """Run each test in a fork of its own, unless an earlier run of this program did."""
        if self.trials_file.exists():
            stored = json.loads(self.trials_file.read_text(encoding="utf-8"))
            self.trials = {test: Trial(*fields) for test, fields in stored.items()}
        unknown = [item for item in items if item.nodeid not in self.trials]
        for number, item in enumerate(unknown, start=1):
            self.answer.unlink(missing_ok=True)
            forked(lambda item=item: self._record(item))  # type: ignore[misc]
            if self.answer.exists():
                trial = Trial(*json.loads(self.answer.read_text(encoding="utf-8")))
            else:
                # The kernel ended it.
                trial = Trial(passed=True, seconds=2 * self.slowest, functions=[])
            self.trials[item.nodeid] = trial
            if number % 20 == 0 or number == len(unknown):
                print(f"{number} of {len(unknown)} tests have run alone", flush=True)
                self.trials_file.write_text(json.dumps(self.trials), encoding="utf-8")

    def _record(self, item: pytest.Item) -> NoReturn:
        """Run a test alone and write down which functions it executes."""
        end_after(2 * self.slowest)
        set_mutant_under_test("stats")
        before = time.process_time()
        passed = self._passes(item)
        seconds = time.process_time() - before
        trial = Trial(passed=passed, seconds=seconds, functions=sorted(_executed()))
        self.answer.write_text(json.dumps(trial), encoding="utf-8")
        os._exit(0)

    def _passes(self, item: pytest.Item) -> bool:
        """Run a test with all its fixtures, which are torn down after it."""
        self.failed = False
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        return not self.failed

    def _leave_out_dependent(self) -> None:
        """Leave out tests that fail after others although nothing is changed."""
        while True:
            code, test = self._first_failure("", self.quick)
            if code == SURVIVED:
                return
            print(f"left out, since it fails after other tests: {test}")
            self.quick = [item for item in self.quick if item.nodeid != test]

    def _first_failure(self, change: str, items: list[pytest.Item]) -> tuple[int, str]:
        """Run tests with a change until one fails. Returns the exit code and the last test."""
        self.answer.unlink(missing_ok=True)
        code = forked(lambda: self._run_changed(change, items))
        return code, self.answer.read_text(encoding="utf-8")

    def _run_changed(self, change: str, items: list[pytest.Item]) -> NoReturn:
        set_mutant_under_test(change)
        for item in items:
            self.answer.write_text(item.nodeid, encoding="utf-8")
            end_after(2 + 20 * self.trials[item.nodeid].seconds)
            if not self._passes(item):
                os._exit(NOTICED)
        os._exit(SURVIVED)

    def _try(self, name: str, module: SourceFileMutationData) -> str:
        """Try one change if it has no result yet. Returns the result in words."""
        function = mangled_name_from_mutant_name(name)
        code = module.exit_code_by_key[name]
        is_open = code in {SURVIVED, NO_TESTS}
        if code is None or (is_open and self.again):
            items = [item for item in self.quick if function in self.trials[item.nodeid].functions]
            test = ""
            before = time.monotonic()
            if items:
                code, test = self._first_failure(name, items)
            else:
                code = NO_TESTS
            module.exit_code_by_key[name] = code
            module.durations_by_key[name] = time.monotonic() - before
            with contextlib.chdir(ROOT):
                module.save()
            if is_open and test and code != SURVIVED:
                print(f"\n{name}: noticed by {test}", flush=True)
        if code == SURVIVED:
            outcome = "survived"
        elif code != NO_TESTS:
            return "noticed"
        elif function in self.imported:
            outcome = "run by imports only"
        else:
            outcome = "run by no test"
        with contextlib.chdir(ROOT):
            difference = get_diff_for_mutant(name, path=module.path)
        print(f"\n{name}: {outcome}\n{difference}", flush=True)
        return outcome


def _executed() -> set[str]:
    """Return mutmut's set of the functions that have run since it was cleared."""
    functions: set[str] = state()._stats  # noqa: SLF001  # mutmut has no other way to read it
    return functions


def _needs_server(item: pytest.Item) -> bool:
    fixtures = item.fixturenames if isinstance(item, pytest.Function) else []
    names = " ".join((item.name, *fixtures))
    return any(server in names for server in _SERVERS)


def main() -> int:
    """Read the arguments, make the changes and try them. Returns pytest's exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", help="a folder of `only_mutate` in pyproject.toml")
    parser.add_argument("--count", type=int, default=200, help="how many changes of the order")
    parser.add_argument("--seed", type=int, default=1, help="of the random order")
    parser.add_argument("--again", action="store_true", help="try the survivors once more")
    parser.add_argument(
        "--slowest",
        type=float,
        default=SLOWEST,
        help="leave out tests that take more seconds of processor time",
    )
    parser.add_argument(
        "--tests", nargs="*", default=[], help="further tests beside those of the folder's room"
    )
    given = parser.parse_args()
    os.chdir(ROOT)
    folder = given.folder.rstrip("/")
    changes: dict[str, SourceFileMutationData] = {}
    for module in make_changes(folder):
        changes |= dict.fromkeys(module.exit_code_by_key, module)
    if not changes:
        parser.error(f"mutmut makes no changes in {folder}; [tool.mutmut] lists the folders")
    order = sorted(changes)
    random.Random(given.seed).shuffle(order)
    chosen = [(name, changes[name]) for name in order[: given.count]]
    print(f"{folder}: {len(chosen)} of {len(order)} changes", flush=True)
    # As mutmut does it: tests, and programs that they start, import the changed modules.
    setup_source_paths()
    os.environ["PYTHONPATH"] = str(MUTANTS)
    os.environ["PY_IGNORE_IMPORTMISMATCH"] = "1"
    os.environ["MUTMUT_DEPENDENCY_DEPTH"] = "-1"
    set_mutant_under_test("stats")
    settings = [*config().pytest_add_cli_args, "-qq", "-s", "--no-header", "--rootdir=."]
    plugin = Forks(folder, chosen, again=given.again, slowest=given.slowest)
    with contextlib.chdir(MUTANTS):
        return int(pytest.main([*settings, *tests_of(folder, given.tests)], plugins=[plugin]))


if __name__ == "__main__":
    sys.exit(main())
