"""docs/protocol.md, events-rules.md and prism-rules.md: every rule once, with symbols and tests that are about it."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ("protocol", "events-rules", "prism-rules")
PAGE = "".join((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in PAGES)

# Every number of the rules: those of publishing, proving and subscribing have gaps between their groups.
GROUPS = ((1, 23), (30, 33), (40, 45), (50, 55), (60, 71), (79, 81), (90, 90))
RULES = [f"PS-{n}" for first, last in GROUPS for n in range(first, last + 1)] + [f"AU-{n}" for n in (*range(1, 15), 16)]
EVENT_GROUPS = ((1, 6), (10, 14), (20, 26), (30, 31), (40, 41))
RULES += [f"EV-{n}" for first, last in EVENT_GROUPS for n in range(first, last + 1)]

PRISM_GROUPS = ((1, 6), (10, 13), (20, 25), (30, 35), (40, 43), (50, 54), (60, 63))
RULES += [f"PR-{n}" for first, last in PRISM_GROUPS for n in range(first, last + 1)]

_ENTRY = re.compile(r"^\*\*((?:PS|AU|EV|PR)-\d+)\.\*\* (.+?)\n\n- lives: (.+)\n- tests: (.+)\n", re.MULTILINE)
ENTRIES = [(m[1], m[2], re.findall(r"`([^`]+)`", m[3]), re.findall(r"`([^`]+)`", m[4])) for m in _ENTRY.finditer(PAGE)]


def file_of(path: str) -> Path:
    """Tests by their path in the repository, code by its path in the package."""
    return ROOT / path if path.startswith("tests/") else ROOT / "pubsub_emulator" / path


@cache
def tree(path: str) -> ast.Module:
    return ast.parse(file_of(path).read_text(encoding="utf-8"))


@cache
def source(path: str) -> list[str]:
    return file_of(path).read_text(encoding="utf-8").splitlines()


def find(body: list[ast.stmt], names: list[str]) -> ast.stmt | None:
    """The statement that defines a name, or a name inside that of a class."""
    for node in body:
        defined: list[str] = []
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            defined = [node.name]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            defined = [node.target.id]
        elif isinstance(node, ast.Assign):
            defined = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if names[0] in defined:
            if len(names) == 1:
                return node
            return find(node.body, names[1:]) if isinstance(node, ast.ClassDef) else None
    return None


def mentions(text: str, rule: str) -> bool:
    """`PS-12`, `ps12` and `ps_12` in a name, and ranges: `PS-10 to PS-19`, `PS-60 to PS-68`."""
    kind, number = rule.split("-")
    if re.search(rf"(?<![A-Za-z0-9]){kind}[-_]?{number}(?!\d)", text.replace("test_", " "), re.IGNORECASE):
        return True
    if re.search(rf"_{kind.lower()}_?{number}(?!\d)", text):
        return True
    ranges = re.findall(rf"{kind}-(\d+) to {kind}-(\d+)", text)
    return any(int(first) <= int(number) <= int(last) for first, last in ranges)


def test_every_rule_stands_there_once_and_in_order() -> None:
    assert [rule for rule, *_ in ENTRIES] == RULES


@pytest.mark.parametrize(("rule", "text", "lives", "tests"), ENTRIES, ids=[entry[0] for entry in ENTRIES])
def test_what_is_said_of_a_rule_is_there(rule: str, text: str, lives: list[str], tests: list[str]) -> None:
    assert len(text) > 40
    assert lives
    assert tests
    for place in lives:
        path, _, symbol = place.partition("::")
        assert file_of(path).is_file(), place
        assert find(tree(path).body, symbol.split(".")) is not None, f"{rule}: there is no {place}"
    for test in tests:
        path, _, name = test.partition("::")
        assert file_of(path).is_file(), test
        found = find(tree(path).body, name.split("::"))
        assert isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef), f"{rule}: there is no {test}"
        first = min([found.lineno, *(decorator.lineno for decorator in found.decorator_list)])
        own = "\n".join(source(path)[first - 1 : found.end_lineno])
        module = ast.get_docstring(tree(path)) or ""
        assert mentions(own, rule) or mentions(module, rule), f"{test} does not say that it is about {rule}"


def test_a_mention_is_of_that_rule_and_no_longer_number() -> None:
    """Otherwise a test about another rule would pass for one about this."""
    for text in ("PS-6", "about (PS-6).", "def test_ps6_x", "def test_x_ps6", "def test_ps_6_x", "PS-1 to PS-9"):
        assert mentions(text, "PS-6"), text
    for text in ("PS-61", "PS-16", "def test_ps60_x", "steps6", "PS-7 to PS-9", "AU-6"):
        assert not mentions(text, "PS-6"), text


def test_every_instruction_of_xcm_v5_is_named_with_its_number() -> None:
    """PS-20: what is executed, and that all others are not."""
    from pubsub_emulator.xcm.executor import __doc__ as contract  # noqa: PLC0415  # only its docstring is wanted
    from pubsub_emulator.xcm.instructions import Instruction  # noqa: PLC0415  # as above

    executed = dict(re.findall(r"^\| (\d+) \| `(\w+)` \|", PAGE, re.MULTILINE))
    others = dict(re.findall(r"(\d+) `(\w+)`[,.]", PAGE.split("All others of v5")[1].split("\n")[0]))
    assert not set(executed) & set(others)
    assert {int(n): name for n, name in (executed | others).items()} == {
        index: kind.__name__ for index, kind in Instruction.VARIANTS.items()
    }
    assert sorted(executed.values()) == sorted(re.findall(r"`(\w+)`", (contract or "").split("Executed here:")[1])[:11])


def test_links_within_the_page_lead_somewhere() -> None:
    headings = {
        re.sub(r"[^a-z0-9 -]", "", line.lstrip("# ").lower()).replace(" ", "-")
        for line in PAGE.splitlines()
        if line.startswith("#")
    }
    for anchor in re.findall(r"\]\(#([^)]+)\)", PAGE):
        assert anchor in headings
