"""What is changed: one operator, comparison, constant, call or branch of a file at a time."""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

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
    """A change of one stretch of a file: `start` and `end` in characters, lines from 1.

    `first` and `last` are the lines of the statement that holds it; of one that holds others, those of its head.
    """

    file: str
    line: int
    start: int
    end: int
    before: str
    after: str
    context: str
    first: int
    last: int

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
        self.statement = (0, 0)

    def visit(self, node: ast.AST) -> None:
        """Remember the statement around each mutant that is found."""
        if not isinstance(node, ast.stmt):
            super().visit(node)
            return
        outer, self.statement = self.statement, (node.lineno, _last_line(node))
        super().visit(node)
        self.statement = outer

    def at(self, line: int, column: int) -> int:
        """Character offset; `column` counts UTF-8 bytes, as ast has it."""
        prefix = self.lines[line - 1].encode()[:column].decode()
        return self.starts[line - 1] + len(prefix)

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """The position of a node in the source."""
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno or 0, node.end_col_offset or 0)

    def add(self, start: int, end: int, after: str) -> None:
        """Add a mutant."""
        line = self.text.count("\n", 0, start) + 1
        before = " ".join(self.text[start:end].split())
        context = self.lines[line - 1].strip()
        self.found.append(Mutant(self.file, line, start, end, before, after, context, *self.statement))

    def operator(self, left: ast.expr, right: ast.expr, sign: str, after: str) -> None:
        """The operator between two operands."""
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


def _last_line(node: ast.stmt) -> int:
    """The last line of a statement, or of the head of one that holds others."""
    body: list[ast.stmt] = getattr(node, "body", [])
    if not body:
        return node.end_lineno or node.lineno
    return max(node.lineno, body[0].lineno - 1)


def mutants_of(root: Path, file: str) -> list[Mutant]:
    """All mutants of a file of the project at `root`, in order."""
    text = (root / file).read_text(encoding="utf-8")
    finder = Finder(file, text)
    finder.visit(ast.parse(text))
    unique = {(m.start, m.end, m.after): m for m in finder.found}
    return sorted(unique.values(), key=lambda m: (m.start, m.end, m.after))
