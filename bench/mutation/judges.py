"""Two ways to judge a mutant: swapped into a process that has everything imported, or imported from a copy of its own.

The quick one runs the tests that execute the changed statement, fastest first, in a fork: milliseconds for most. What
it cannot swap, and all that survives it, goes to the careful one.
"""

import gc
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path

from bench.mutation.children import Answer, in_children, silence
from bench.mutation.coverage import Coverage, ImportTracer, Lines, measure
from bench.mutation.operators import Mutant
from bench.mutation.suite import COPIED, Suite, collect
from bench.mutation.swap import Swapper, Unswappable

Tell = Callable[[Mutant, Answer, float], None]
Killers = Counter[tuple[str, str]]

_LONGEST = 1800
"""Seconds after which a mutant counts as noticed, whatever it waits for."""
_IMPORTING = 60
"""Seconds of CPU that importing a mutant and collecting the suite may take."""


def copy_project(source: Path, folder: Path) -> None:
    """Copy what the tests need."""
    for name in COPIED:
        shutil.copytree(source / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(source / "pyproject.toml", folder / "pyproject.toml")


def _within(patience: float, tests: Sequence[str], seconds: dict[str, float]) -> Sequence[str]:
    """As many of the first tests as take `patience` seconds together, and at least one."""
    ends = accumulate(seconds[test] for test in tests)
    return tests[: 1 + sum(end <= patience for end in ends)]


class Judges:
    """Judges of mutants of the project at `root`, in this process, which has imported nothing of it and does not."""

    def __init__(
        self, root: Path, workers: int, folder: Path, tell: Tell, *, killers: Killers, patience: float
    ) -> None:
        """`tell` is told every verdict; `folder` is for what they write.

        `killers` counts what each test noticed in each file: such tests are asked early. The quick judge asks for
        `patience` seconds.
        """
        self.root = root
        self.workers = workers
        self.folder = folder
        self.tell = tell
        self.killers = killers
        self.patience = patience

    def quick(
        self, files: Sequence[str], mutants: Sequence[Mutant], known: Coverage | None, keep: Callable[[Coverage], None]
    ) -> Coverage:
        """Judge all mutants of `files` that can be swapped. Returns `known`, or the coverage that was measured first.

            killed      a test failed
            timeout     the tests took too long
            survived    no test failed
            doubtful    no test failed within `patience`, and some were not run
            unreached   no test executes the statement
            deferred    the statement is executed on import, or cannot be swapped

        Raises `RuntimeError` if the tests fail without any mutant.
        """

        def everything(_: None, __: int) -> Answer:
            silence()
            learned: Answer = {}

            def with_suite(suite: Suite) -> None:
                imported = tracer.stop()
                swapper = Swapper({str(self.root / file) for file in files})
                coverage = known or self._learn(suite, files, imported, swapper)
                keep(coverage)  # in case that this is interrupted
                learned.update(asdict(coverage))
                gc.collect()
                gc.freeze()  # or every child would copy what it only counts; hidden from `gc.get_objects` from now on
                self._judge_by_swapping(suite, mutants, coverage, swapper)

            tracer = ImportTracer(self.root, files)
            tracer.start()
            collect(self.root, files, with_suite)
            return learned

        ((_, learned, _),) = in_children([None], 1, self.folder, everything)
        if "verdict" in learned:
            raise RuntimeError(learned.get("by", "the suite was not run"))
        return Coverage(**learned)

    def _learn(self, suite: Suite, files: Sequence[str], imported: Lines, swapper: Swapper) -> Coverage:
        if suite.failures:
            raise RuntimeError(f"without any mutant {suite.failures} are not collected")
        ((_, learned, _),) = in_children(
            [None], 1, self.folder, lambda _, __: measure(suite, self.root, files, swapper)
        )
        if learned.pop("failures", learned):
            raise RuntimeError(f"without any mutant the suite fails: {learned}")
        return Coverage(**learned, imported=imported)

    def _judge_by_swapping(self, suite: Suite, mutants: Sequence[Mutant], coverage: Coverage, swapper: Swapper) -> None:
        texts = {mutant.file: (self.root / mutant.file).read_text(encoding="utf-8") for mutant in mutants}
        codes = {file: compile(text, self.root / file, "exec") for file, text in texts.items()}

        def judge(mutant: Mutant, _: int) -> Answer:
            if coverage.when_imported(mutant):
                return {"verdict": "deferred", "by": "importing executes it"}
            tests = coverage.executing(mutant)
            if not tests:
                return {"verdict": "unreached"}
            try:
                changed = compile(mutant.apply(texts[mutant.file]), self.root / mutant.file, "exec")
                swapper.swap(codes[mutant.file], changed)
            except SyntaxError:
                return {"verdict": "killed", "by": "the compiler"}
            except Unswappable as error:
                return {"verdict": "deferred", "by": str(error)}
            seconds = coverage.seconds
            tests.sort(key=lambda test: seconds[test] / (1 + self.killers[mutant.file, test]))
            told = suite.judge(chosen := _within(self.patience, tests, seconds), seconds)
            return {"verdict": "doubtful"} if told["verdict"] == "survived" and len(chosen) < len(tests) else told

        for mutant, answer, seconds in in_children(mutants, self.workers, self.folder, judge, longest=_LONGEST):
            if answer["verdict"] == "killed":
                self.killers[mutant.file, answer["by"]] += 1
            self.tell(mutant, answer, seconds)

    def careful(self, cases: Sequence[tuple[Mutant, Collection[str]]], seconds: dict[str, float]) -> None:
        """Judge each mutant by the tests beside it, in a copy of the project that holds it, imported without bytecode.

        `seconds` is what each test takes.
        """
        copies = [self.folder / f"copy-{at}" for at in range(self.workers)]
        for copy in copies:
            copy_project(self.root, copy)

        def judge(case: tuple[Mutant, Collection[str]], slot: int) -> Answer:
            mutant, tests = case
            silence()
            sys.dont_write_bytecode = True
            os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
            for file in {other.file for other, _ in cases}:  # a former mutant may be there
                shutil.copy(self.root / file, copies[slot] / file)
            path = copies[slot] / mutant.file
            path.write_text(mutant.apply(path.read_text(encoding="utf-8")), encoding="utf-8")
            answer: Answer = {}

            def with_suite(suite: Suite) -> None:
                known = sorted(suite.tests.keys() & tests, key=seconds.__getitem__)
                answer.update(suite.judge(known, seconds))

            signal.setitimer(signal.ITIMER_PROF, _IMPORTING)  # ends the process, unless a test begins
            collect(copies[slot], [mutant.file], with_suite)
            return answer

        for (mutant, _), answer, took in in_children(cases, self.workers, self.folder, judge, longest=_LONGEST):
            self.tell(mutant, answer, took)
