"""The pages of rules: every rule once and in order, named by the code and by at least one test."""

import re

import made
import pytest
import rule_tests
from rule_tests import ROOT

from pubsub_emulator.xcm.instructions import Instruction

SPANS = {
    "protocol": {
        "PS-": (1, 23, 30, 33, 40, 45, 50, 55, 60, 71, 79, 81, 90, 90),
        "AU-": (1, 14, 16, 16),
    },
    "events-rules": {"EV-": (1, 6, 10, 14, 20, 26, 30, 31, 40, 41)},
    "prism-rules": {"PR-": (1, 6, 10, 13, 20, 25, 30, 35, 40, 43, 50, 54, 60, 63, 70, 71)},
    "distributor-rules": {"ID-": (1, 4, 10, 13, 20, 23, 30, 37, 40, 42, 45, 46, 50, 51)},
    "node-rules": {"ND-": (1, 33)},
    "icrc72-rules": {
        "IC-": (1, 12, 20, 27, 30, 51, 55, 55),
        "RP-": (1, 14),
        "I": (1, 15),
        "R": (1, 7),
    },
}
"""The first and last number of each group of rules."""


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", rule_tests.PAGES)
def test_a_page_has_every_rule_once_in_order_and_each_is_tested(name: str) -> None:
    rules = rule_tests.rules_in(page(name))
    spans = [
        (kind, *span)
        for kind, ends in SPANS[name].items()
        for span in zip(ends[::2], ends[1::2], strict=True)
    ]
    assert rules == [f"{kind}{n}" for kind, first, last in spans for n in range(first, last + 1)]
    assert [rule for rule in rules if not rule_tests.tests_of(rule)] == []


@pytest.mark.parametrize("name", [page for page in rule_tests.PAGES if page != "node-rules"])
def test_a_docstring_of_the_code_names_every_rule_of_a_page(name: str) -> None:
    assert [rule for rule in rule_tests.rules_in(page(name)) if not rule_tests.code_of(rule)] == []


def test_code_is_found_by_the_docstrings_of_modules_classes_and_methods() -> None:
    assert "`pubsub_emulator/runtime/parachain/ledger.py`" in rule_tests.code_of("PS-70")
    assert (
        "`pubsub_emulator/runtime/framework/storage.py::Storage.transaction`"
        in rule_tests.code_of("PS-10")
    )


def test_a_name_or_docstring_is_of_that_rule_and_no_longer_number() -> None:
    for name in ("test_ps6_x", "test_x_ps6", "test_ps_6_x", "test_ps_6b_x"):
        assert list(rule_tests.rules_of_name(name)) == ["PS-6"], name
    for name in ("test_ps60_x", "test_steps6", "test_ps_x_6"):
        assert "PS-6" not in rule_tests.rules_of_name(name), name
    assert list(rule_tests.rules_of_name("test_ic_12_i13_the_same_seed_r2")) == [
        "IC-12",
        "I13",
        "R2",
    ]
    assert list(rule_tests.rules_of_text("(PS-6), XPS-7, PS-61, AU-1 to AU-3.")) == [
        "PS-6",
        "PS-61",
        "AU-1",
        "AU-2",
        "AU-3",
    ]


def test_the_site_has_code_and_tests_of_a_rule_below_it() -> None:
    written = rule_tests.with_places("**ND-32.** Calls beside a server.\n\n**IC-11.** Candid.\n")
    assert written.startswith(
        "**ND-32.** Calls beside a server.\n\n- tests: `python -m bench.node`, "
    )
    code = written.partition("\n\n**IC-11.** Candid.\n\n- code: ")[2].partition("\n- tests: ")[0]
    assert "`interchain_events/icrc72/ic/candid/__init__.py`" in code.split(", ")


def test_every_scenario_with_clients_has_a_row() -> None:
    cells = re.findall(r"^\| ([\d, ]+) \|", page("node-rules"), re.MULTILINE)
    assert [int(number) for cell in cells for number in cell.split(",")] == list(range(1, 41))


def test_every_instruction_of_xcm_v5_is_named_with_its_number() -> None:
    """PS-20: the page has those that are executed, and the site all others."""
    executed = dict(re.findall(r"^\| (\d+) \| `(\w+)` \|", page("protocol"), re.MULTILINE))
    (others,) = made.xcm_others()
    assert len(executed) == 11
    named = {int(n): name for n, name in (*executed.items(), *re.findall(r"(\d+) `(\w+)`", others))}
    assert named == {index: kind.__name__ for index, kind in Instruction.VARIANTS.items()}
    assert not set(executed.values()) & set(re.findall(r"`(\w+)`", others))
