"""The pages of rules: every rule once and in order, with code that is there and at least one test."""

import ast
import re

import made
import pytest
import rule_tests
from rule_tests import ROOT

from pubsub_emulator.xcm.instructions import Instruction

SPANS = {
    "protocol": {"PS-": (1, 23, 30, 33, 40, 45, 50, 55, 60, 71, 79, 81, 90, 90), "AU-": (1, 14, 16, 16)},
    "events-rules": {"EV-": (1, 6, 10, 14, 20, 26, 30, 31, 40, 41)},
    "prism-rules": {"PR-": (1, 6, 10, 13, 20, 25, 30, 35, 40, 43, 50, 54, 60, 63)},
    "distributor-rules": {"ID-": (1, 4, 10, 13, 20, 23, 30, 37, 40, 42, 45, 46, 50, 51)},
    "node-rules": {"ND-": (1, 33)},
    "icrc72-rules": {"IC-": (1, 12, 20, 27, 30, 51, 55, 55), "RP-": (1, 14), "I": (1, 15), "R": (1, 7)},
}
"""The first and last number of each group of rules."""


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


CODE = [
    (entry[1], place)
    for name in SPANS
    for entry in re.finditer(
        r"^(?:\*\*(.+?)\.\*\* .+\n\n- lives:|\| (?:IC-|RP-|I|R)\d+ \| [^|]+ \|) (.+)$", page(name), re.MULTILINE
    )
    for place in re.findall(r"`([^`]+)`", entry[2])
]


@pytest.mark.parametrize("name", rule_tests.PAGES)
def test_every_rule_of_a_page_is_there_once_and_in_order_and_has_a_test(name: str) -> None:
    rules = rule_tests.rules_in(page(name))
    spans = [(kind, *span) for kind, ends in SPANS[name].items() for span in zip(ends[::2], ends[1::2], strict=True)]
    assert rules == [f"{kind}{n}" for kind, first, last in spans for n in range(first, last + 1)]
    assert [rule for rule in rules if not rule_tests.tests_of([rule])] == []


def test_the_code_of_every_rule_is_there() -> None:
    assert len(CODE) > 300
    trees: dict[str, ast.Module] = {}
    for rule, place in CODE:
        path, _, symbol = place.partition("::")
        if path not in trees:
            trees[path] = ast.parse((ROOT / "pubsub_emulator" / path).read_text(encoding="utf-8"))
        body: list[ast.stmt] | None = trees[path].body
        for part in symbol.split(".") if symbol else ():
            body = next((inside for name, inside in map(defined, body or ()) if name == part), None)
        assert body is not None, f"{rule}: there is no {place}"


def defined(node: ast.stmt) -> tuple[str, list[ast.stmt]]:
    """The name that a statement defines, and what is inside."""
    match node:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            return node.name, node.body
        case ast.AnnAssign(target=ast.Name(name)) | ast.Assign(targets=[ast.Name(name)]):
            return name, []
    return "", []


def test_a_name_or_docstring_is_of_that_rule_and_no_longer_number() -> None:
    for name in ("test_ps6_x", "test_x_ps6", "test_ps_6_x", "test_ps_6b_x"):
        assert list(rule_tests.rules_of_name(name)) == ["PS-6"], name
    for name in ("test_ps60_x", "test_steps6", "test_ps_x_6"):
        assert "PS-6" not in rule_tests.rules_of_name(name), name
    assert list(rule_tests.rules_of_name("test_ic_12_i13_the_same_seed_r2")) == ["IC-12", "I13", "R2"]
    assert list(rule_tests.rules_of_text("(PS-6), XPS-7, PS-61, AU-1 to AU-3.")) == [
        "PS-6",
        "PS-61",
        "AU-1",
        "AU-2",
        "AU-3",
    ]


def test_the_site_has_the_tests_of_a_rule_below_it_or_in_a_column() -> None:
    written = rule_tests.with_tests(
        "**ND-32.** Calls beside a server.\n\n- lives: `a.py::b`\n\n| rule | about |\n|---|---|\n| ND-32, ND-33 | x |\n"
    )
    assert "- lives: `a.py::b`\n- tests: `python -m bench.node`, " in written
    assert "| rule | about | tests |\n|---|---|---|\n| ND-32, ND-33 | x | `python -m bench.node`, " in written


def test_every_scenario_with_clients_has_a_row() -> None:
    cells = re.findall(r"^\| ([\d, ]+) \|", page("node-clients"), re.MULTILINE)
    assert [int(number) for cell in cells for number in cell.split(",")] == list(range(1, 40))


def test_every_instruction_of_xcm_v5_is_named_with_its_number() -> None:
    """PS-20: the page has those that are executed, and the site all others."""
    executed = dict(re.findall(r"^\| (\d+) \| `(\w+)` \|", page("protocol"), re.MULTILINE))
    (others,) = made.xcm_others()
    assert len(executed) == 11
    named = {int(n): name for n, name in (*executed.items(), *re.findall(r"(\d+) `(\w+)`", others))}
    assert named == {index: kind.__name__ for index, kind in Instruction.VARIANTS.items()}
    assert not set(executed.values()) & set(re.findall(r"`(\w+)`", others))
