"""Which test executes which statements of the files that are mutated, and how long each test takes."""

import ast
import functools
import gc
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from bench.mutation.children import Answer
from bench.mutation.operators import Mutant
from bench.mutation.suite import Suite, module_of
from bench.mutation.swap import Swapper

Lines = dict[str, list[int]]
"""By file, the lines on which statements begin that were executed."""

_NOTE = "__executed__"
_PROGRAMS = "a program"
"""Stands among the files of a test that starts one."""


@dataclass(frozen=True)
class Coverage:
    """`lines` and `seconds` of CPU by test; `imported` is executed before any test runs."""

    lines: dict[str, Lines]
    seconds: dict[str, float]
    imported: Lines

    def when_imported(self, mutant: Mutant) -> bool:
        """Whether the statement has been executed when tests begin."""
        return any(mutant.first <= line <= mutant.last for line in self.imported.get(mutant.file, ()))

    def executing(self, mutant: Mutant) -> list[str]:
        """The tests that execute the statement."""
        return [name for name, lines in self.lines.items() if mutant.first in lines.get(mutant.file, ())]

    def starting_programs(self) -> list[str]:
        """The tests that run programs: what these execute is not known."""
        return [name for name, lines in self.lines.items() if _PROGRAMS in lines]

    def save(self, path: Path, project: str) -> None:
        """Keep this for other runs over the same project."""
        path.write_text(json.dumps({"project": project, **asdict(self)}), encoding="utf-8")

    @classmethod
    def load(cls, path: Path, project: str) -> "Coverage | None":
        """What was kept of the same project."""
        if not path.exists():
            return None
        kept = json.loads(path.read_text(encoding="utf-8"))
        return cls(**kept) if kept.pop("project") == project else None


class ImportTracer:
    """Notes what is executed of some files while they are imported and tests are collected."""

    def __init__(self, root: Path, files: Sequence[str]) -> None:
        self._lines: dict[str, set[int]] = {str(root / file): set() for file in files}
        self._root = root

    def start(self) -> None:
        """Note from now on."""
        sys.settrace(self._call)

    def stop(self) -> Lines:
        """What was executed."""
        sys.settrace(None)
        return {str(Path(path).relative_to(self._root)): sorted(lines) for path, lines in self._lines.items()}

    def _call(self, frame: FrameType, _event: str, _: object) -> Any:
        return self._line if frame.f_code.co_filename in self._lines else None

    def _line(self, frame: FrameType, event: str, _: object) -> Any:
        if event == "line":
            self._lines[frame.f_code.co_filename].add(frame.f_lineno)
        return self._line


class _Noting(ast.NodeTransformer):
    """Puts a note before every statement inside of functions."""

    def __init__(self) -> None:
        self._inside = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        outer, self._inside = self._inside, True
        node.body = [noted for statement in node.body for noted in self._noted(statement)]
        self._inside = outer
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name, old in ast.iter_fields(node) if self._inside else ():
            if isinstance(old, list) and old and isinstance(old[0], ast.stmt):
                setattr(node, name, [noted for statement in old for noted in self._noted(statement)])
            elif isinstance(old, list):
                for item in old:
                    if isinstance(item, ast.ExceptHandler | ast.match_case):
                        self.generic_visit(item)
        return node if self._inside else super().generic_visit(node)

    def _noted(self, statement: ast.stmt) -> list[ast.stmt]:
        note = ast.Expr(ast.Call(ast.Name(_NOTE, ast.Load()), [ast.Constant(statement.lineno)], []))
        ast.copy_location(note, statement)
        return [ast.fix_missing_locations(note), self.visit(statement)]


def measure(suite: Suite, root: Path, files: Sequence[str], swapper: Swapper) -> Answer:
    """Run every test as if it were the first: what another one left in a cache would hide what it needs."""
    executed: dict[str, set[int]] = {file: set() for file in files}
    for file in files:
        text = (root / file).read_text(encoding="utf-8")
        swapper.swap(compile(text, root / file, "exec"), compile(_Noting().visit(ast.parse(text)), root / file, "exec"))
        vars(module_of(file))[_NOTE] = executed[file].add
    programs = executed[_PROGRAMS] = set()
    start = subprocess.Popen.__init__

    def noted(*args: Any, **named: Any) -> None:
        programs.add(1)
        start(*args, **named)

    subprocess.Popen.__init__ = noted  # type: ignore[method-assign]  # in this process, which ends soon
    caches = [thing for thing in gc.get_objects() if isinstance(thing, functools._lru_cache_wrapper)]  # noqa: SLF001
    lines: dict[str, Lines] = {}
    seconds: dict[str, float] = {}
    names = list(suite.tests)
    for name, following in zip(names, [*names[1:], None], strict=True):
        for cache in caches:
            cache.cache_clear()
        for noted_lines in executed.values():
            noted_lines.clear()
        began = time.process_time()
        suite.run_one(name, following)
        seconds[name] = time.process_time() - began
        lines[name] = {file: sorted(found) for file, found in executed.items() if found}
    return {"lines": lines, "seconds": seconds, "failures": suite.failures}
