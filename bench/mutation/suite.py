"""The tests that judge: collected by pytest once in a process, then run one by one in any order until one fails."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType, ModuleType

import pytest
from hypothesis import Phase, settings

from bench.mutation.children import Answer

ROOMS = ("tests/trie", "tests/pallet_subscriber", "tests/parachain_system", "tests/collator")

LEFT_OUT = "tests/collator/test_guards.py::test_with_this_guard_switched_off_its_attack_goes_red"
"""These tests change the source themselves: what they find there says nothing about a mutant."""

COPIED = ("primitives", "trie", "runtime", "xcm", "collator", "emulator", "tests", "examples", "docs")

_OPTIONS = (
    *("-q", "--no-header", "--tb=no", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist"),
    # Hypothesis, imported before, has its assertions as they are.
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
    *("--deselect", LEFT_OUT),
)


def module_of(file: str) -> ModuleType:
    """The module that a file of the project was imported as."""
    return sys.modules[file.removesuffix(".py").replace("/", ".")]


class _TooLong(BaseException):
    """A test is not expected to catch this."""


class Suite:
    """A plugin of pytest: collects, then hands the tests to `work` in place of pytest's own loop."""

    def __init__(self, work: Callable[["Suite"], None]) -> None:
        self._work = work
        self.tests: dict[str, pytest.Item] = {}
        self.failures: list[str] = []
        self.timed_out = False

    def pytest_configure(self) -> None:
        """An example that fails is enough: it need not be made small or explained."""
        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutation", settings.get_profile("ci"), phases=phases, report_multiple_bugs=False)
        settings.load_profile("mutation")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be imported has failed."""
        if report.failed:
            self.failures.append(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a failure of a test, its set-up or its end."""
        if report.failed:
            self.failures.append(report.nodeid)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """All of it."""
        self.tests = {item.nodeid: item for item in session.items}
        self._work(self)
        return True

    def run_one(self, name: str, following: str | None = None, limit: float = 0) -> None:
        """Run a test; one that takes more than `limit` seconds of CPU, unless 0, fails."""
        item = self.tests[name]
        signal.signal(signal.SIGPROF, self._end)
        signal.setitimer(signal.ITIMER_PROF, limit, 1)
        try:
            item.ihook.pytest_runtest_protocol(item=item, nextitem=None if following is None else self.tests[following])
        except _TooLong:  # pytest itself was at work
            self.failures.append(name)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)

    def _end(self, _: int, __: FrameType | None) -> None:
        self.timed_out = True
        raise _TooLong

    def judge(self, names: Sequence[str], seconds: dict[str, float]) -> Answer:
        """Run these tests until one fails; `seconds` is what each takes."""
        if self.failures:
            return {"verdict": "killed", "by": self.failures[0]}
        for at, name in enumerate(names):
            self.run_one(name, names[at + 1] if at + 1 < len(names) else None, limit=2 + 5 * seconds[name])
            if self.failures:
                return {"verdict": "timeout" if self.timed_out else "killed", "by": self.failures[0]}
        return {"verdict": "survived"}


def collect(root: Path, files: Sequence[str], work: Callable[[Suite], None]) -> None:
    """Collect the suite of the project at `root` in this process, which has imported nothing of it, then do `work`."""
    raised: list[BaseException] = []

    def checked(suite: Suite) -> None:
        try:
            if not suite.failures:
                _comes_from(root, files)
            work(suite)
        except BaseException as error:  # noqa: BLE001  # pytest would keep it to itself
            raised.append(error)

    os.chdir(root)
    os.environ["HYPOTHESIS_PROFILE"] = "ci"
    sys.path.insert(0, str(root))
    code = pytest.main([*_OPTIONS, *ROOMS], plugins=[suite := Suite(checked)])
    if raised:
        raise raised[0]
    if not suite.tests and not suite.failures:
        raise RuntimeError(f"pytest collected nothing: {code}")


def _comes_from(root: Path, files: Sequence[str]) -> None:
    """Another copy of the project, installed, must not be judged in place of this one."""
    for file in files:
        if (path := module_of(file).__file__) != str(root / file):
            raise RuntimeError(f"{file} comes from {path}, not from {root}")
