"""Mutates the rules and asks the tests: `python bench/mutate.py --sample 60`, or all of them in under an hour.

One operator, comparison, constant or branch at a time is changed in the modules that decide what a block may carry and
what it does (in a copy of the project, never in place), and a suite of seconds runs until its first failure. Mutants
that no test notices are listed; docs/mutation.md says which of them matter and why the others do not.

Each worker forks a child per mutant, with everything but the project already imported: a mutant costs its tests and
little more. POSIX only.
"""

import argparse
import ast
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

SUBSCRIBER = (
    "tests/pallet_subscriber/test_meter_charges.py",
    "tests/pallet_subscriber/test_walk_rules.py",
    "tests/pallet_subscriber/test_deliveries.py",
    "tests/parachain_system/test_inbound_messages.py",
    "tests/parachain_system/test_governance_messages.py",
    "tests/collator/test_fuzz.py::test_the_corpus_is_judged_as_it_says",
    "tests/pallet_subscriber/test_budget_and_progress.py",
    "tests/pallet_subscriber/test_cache_upkeep.py",
    "tests/parachain_system/test_block_ledger.py",
    "tests/parachain_system/test_verdicts.py",
    "tests/pallet_subscriber/test_walk_against_oracle.py",
)
TRIE = (
    "tests/trie/test_branch_of_hashes.py",
    "tests/trie/test_walk.py",
    "tests/trie/test_trie_vectors.py",
    "tests/trie/test_mainnet_proofs.py",
    "tests/trie/test_compact_attacks.py",
)
VERDICTS = (
    "tests/parachain_system/test_verdicts.py",
    "tests/parachain_system/test_inbound_messages.py",
    "tests/collator/test_fuzz.py::test_the_corpus_is_judged_as_it_says",
    "tests/collator/test_guards.py",
)

SUITES: dict[str, tuple[str, ...]] = {
    "runtime/pallet_subscriber/plan.py": SUBSCRIBER,
    "runtime/pallet_subscriber/meter.py": SUBSCRIBER,
    "runtime/pallet_subscriber/apply.py": SUBSCRIBER,
    "runtime/pallet_subscriber/delivered.py": SUBSCRIBER,
    "runtime/pallet_subscriber/cache/base.py": SUBSCRIBER,
    "runtime/pallet_subscriber/cache/nodes.py": SUBSCRIBER,
    "runtime/pallet_subscriber/cache/slots.py": SUBSCRIBER,
    "trie/walk.py": TRIE,
    "trie/proof.py": TRIE,
    "runtime/parachain_system/validate.py": VERDICTS,
}

COPIED = ("primitives", "trie", "runtime", "xcm", "collator", "emulator", "tests", "examples")
WARM = (
    "hashlib",
    "hypothesis",
    "pydantic",
    "pytest",
    "Crypto.Signature.eddsa",
    "scalecodec",
    "sortedcontainers",
    "xxhash",
)
TIMEOUT = 150
"""Seconds a mutant may take: a loop without end is noticed as well."""

_SERIAL = count()

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
OPERATORS: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "|"),
}


@dataclass(frozen=True)
class Mutant:
    """A change of one stretch of a file: `start` and `end` in characters, `line` from 1."""

    file: str
    line: int
    start: int
    end: int
    before: str
    after: str
    context: str

    def apply(self, text: str) -> str:
        """The file with the change."""
        return text[: self.start] + self.after + text[self.end :]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.before} -> {self.after}    in: {self.context}"


class Finder(ast.NodeVisitor):
    """Every place of one file that can be changed."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.text = text
        self.starts = [0]
        for line in text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.lines = text.splitlines()
        self.found: list[Mutant] = []

    def at(self, line: int, column: int) -> int:
        """Character offset; `column` counts UTF-8 bytes, as ast has it."""
        prefix = self.lines[line - 1].encode()[:column].decode()
        return self.starts[line - 1] + len(prefix)

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Where a node stands."""
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno or 0, node.end_col_offset or 0)

    def add(self, start: int, end: int, after: str) -> None:
        """Note a mutant."""
        line = self.text.count("\n", 0, start) + 1
        before = " ".join(self.text[start:end].split())
        self.found.append(Mutant(self.file, line, start, end, before, after, self.lines[line - 1].strip()))

    def operator(self, left: ast.expr, right: ast.expr, sign: str, after: str) -> None:
        """The operator that stands between two operands."""
        low, high = self.span(left)[1], self.span(right)[0]
        pattern = r"\s+".join(map(re.escape, sign.split()))
        match = re.search(pattern, self.text[low:high])
        if match is not None:
            self.add(low + match.start(), low + match.end(), after)

    def visit_Compare(self, node: ast.Compare) -> None:  # ast's name
        """`<` to `<=` and so on."""
        operands = [node.left, *node.comparators]
        for at, op in enumerate(node.ops):
            sign, after = COMPARISONS[type(op)]
            self.operator(operands[at], operands[at + 1], sign, after)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """`+` to `-` and so on."""
        if type(node.op) in OPERATORS:
            self.operator(node.left, node.right, *OPERATORS[type(node.op)])
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """`+=` to `-=`; and the whole statement left out."""
        if type(node.op) in OPERATORS:
            sign, after = OPERATORS[type(node.op)]
            self.operator(node.target, node.value, f"{sign}=", f"{after}=")
        self.add(*self.span(node), "pass")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """`and` to `or` and back."""
        sign, after = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            self.operator(left, right, sign, after)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """`not x` to `x`."""
        if isinstance(node.op, ast.Not):
            self.add(self.span(node)[0], self.span(node.operand)[0], "")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Numbers one up, truth values turned."""
        if isinstance(node.value, bool):
            self.add(*self.span(node), str(not node.value))
        elif isinstance(node.value, int):
            self.add(*self.span(node), str(node.value + 1))

    def branch(self, test: ast.expr, *values: str) -> None:
        """A condition that is always true, or never."""
        for value in values:
            self.add(*self.span(test), value)

    def visit_If(self, node: ast.If) -> None:
        """Branches always and never taken."""
        self.branch(node.test, "True", "False")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """The same, in an expression."""
        self.branch(node.test, "True", "False")
        self.generic_visit(node)

    def visit_While(self, node: ast.While) -> None:
        """A loop that is not entered."""
        if not isinstance(node.test, ast.Constant):
            self.branch(node.test, "False")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """A call that is left out; docstrings stay."""
        if isinstance(node.value, ast.Call):
            self.add(*self.span(node), "pass")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        """`continue` to `pass`."""
        self.add(*self.span(node), "pass")

    def visit_Break(self, node: ast.Break) -> None:
        """`break` to `continue`."""
        self.add(*self.span(node), "continue")

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Values only, no annotations."""
        if node.value is not None:
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Bodies and defaults, no annotations."""
        for default in (*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)):
            self.visit(default)
        for statement in node.body:
            self.visit(statement)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Bodies; what decorators are told is of no consequence here."""
        for statement in node.body:
            self.visit(statement)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Words for people are not mutated."""

    def visit_Call(self, node: ast.Call) -> None:
        """What only sizes a cache of Python's is left alone."""
        if not (isinstance(node.func, ast.Name) and node.func.id == "lru_cache"):
            self.generic_visit(node)


def mutants_of(file: str) -> list[Mutant]:
    """All mutants of a file, in order."""
    text = (ROOT / file).read_text(encoding="utf-8")
    finder = Finder(file, text)
    finder.visit(ast.parse(text))
    unique = {(m.start, m.end, m.after): m for m in finder.found}
    return sorted(unique.values(), key=lambda m: (m.start, m.end, m.after))


def copy_project(folder: Path) -> None:
    """What the tests need."""
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder / "pyproject.toml")


def warm_up() -> None:
    """Import what is not the project's, once, before forking."""
    for name in WARM:
        __import__(name)


def suite_passes(folder: Path, tests: tuple[str, ...]) -> bool:
    """Run tests in a child of this process; a child that takes too long has failed."""
    child = os.fork()
    if child == 0:
        _run_child(folder, tests)
    deadline = time.monotonic() + TIMEOUT
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _run_child(folder: Path, tests: tuple[str, ...]) -> None:
    import pytest  # noqa: PLC0415  # in the child alone

    code = 2
    try:
        os.chdir(folder)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (1, 2):
            os.dup2(null, stream)
        os.environ["HYPOTHESIS_PROFILE"] = "ci"
        sys.path[:] = [str(folder), *(p for p in sys.path if Path(p or ".").resolve() != ROOT)]
        # Hypothesis, imported before the fork, has its assertions as they are.
        warm = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
        quiet = ("-q", "-x", "--no-header", "--tb=no", "-p", "no:randomly", "-p", "no:cacheprovider", "-p", "no:xdist")
        code = int(pytest.main([*quiet, *warm, *tests]))
    finally:
        os._exit(code)


def judge(folder: Path, mutant: Mutant) -> bool:
    """Whether a mutant survives its suite in the copy at `folder`, which is as it was afterwards."""
    path = folder / mutant.file
    original = path.read_text(encoding="utf-8")
    changed = mutant.apply(original)
    try:
        compile(changed, mutant.file, "exec")
    except SyntaxError:
        return False
    stat = path.stat()
    path.write_text(changed, encoding="utf-8")
    # Bytecode of the original, or of another mutant that a test's own process wrote, must not pass for this one.
    os.utime(path, (stat.st_atime, stat.st_mtime + 7 + next(_SERIAL)))
    sys.dont_write_bytecode = True
    try:
        return suite_passes(folder, SUITES[mutant.file])
    finally:
        path.write_text(original, encoding="utf-8")
        os.utime(path, (stat.st_atime, stat.st_mtime))


def worker(at: int, mutants: list[Mutant], out: Path) -> None:
    """Judge some mutants in a copy of this worker's own; a line of JSON for each."""
    with tempfile.TemporaryDirectory(prefix="mutate-") as name, out.open("w", encoding="utf-8") as file:
        folder = Path(name)
        copy_project(folder)
        for tests in dict.fromkeys(SUITES[m.file] for m in mutants):
            if not suite_passes(folder, tests):  # and leaves bytecode for all that is not mutated
                file.write(json.dumps({"error": f"without any mutant, {tests} fail"}) + "\n")
                return
        for number, mutant in enumerate(mutants, start=1):
            survived = judge(folder, mutant)
            file.write(json.dumps({**asdict(mutant), "survived": survived}) + "\n")
            file.flush()
            mark = "SURVIVED" if survived else "killed"
            print(f"[{at}] {number}/{len(mutants)} {mark}: {mutant}", file=sys.stderr, flush=True)


def run(mutants: list[Mutant], workers: int, folder: Path) -> Iterator[dict[str, object]]:
    """Judge all mutants by several processes."""
    children = []
    for at in range(workers):
        child = os.fork()
        if child == 0:
            worker(at, mutants[at::workers], folder / f"{at}.jsonl")
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    for at in range(workers):
        for line in (folder / f"{at}.jsonl").read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def main() -> int:
    """Reads what to mutate, runs, lists survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, help="only so many mutants, drawn from all")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--files", nargs="*", default=list(SUITES), help="only these modules")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--list", action="store_true", help="show the mutants and end")
    chosen = parser.parse_args()
    mutants = [mutant for file in chosen.files for mutant in mutants_of(file)]
    if chosen.sample is not None and chosen.sample < len(mutants):
        picked = sorted(random.Random(chosen.seed).sample(range(len(mutants)), chosen.sample))
        mutants = [mutants[at] for at in picked]
    if chosen.list:
        print(*mutants, f"{len(mutants)} mutants", sep="\n")
        return 0
    began = time.monotonic()
    warm_up()
    with tempfile.TemporaryDirectory(prefix="mutate-") as name:
        rows = list(run(mutants, max(1, chosen.workers), Path(name)))
    errors = [row["error"] for row in rows if "error" in row]
    survivors = [row for row in rows if row.get("survived")]
    for row in sorted(survivors, key=lambda row: (str(row["file"]), int(str(row["start"])))):
        print(f"{row['file']}:{row['line']}: {row['before']} -> {row['after']}    in: {row['context']}")
    judged = len(rows) - len(errors)
    seconds = time.monotonic() - began
    print(f"{judged} mutants, {judged - len(survivors)} killed, {len(survivors)} survived, {seconds:.0f} s")
    for error in errors:
        print(error, file=sys.stderr)
    return 2 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
