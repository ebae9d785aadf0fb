"""Hypothesis looks for new examples at a desk, remembers those that failed, and repeats itself only
where CI is set.
"""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent

SHOW = """
import conftest
from hypothesis import settings
kept = settings().database is not None
print(settings().max_examples, settings().derandomize, kept, settings().print_blob)
"""


def profile(variables: dict[str, str]) -> str:
    """Load the profiles in a process of its own, and return the settings in force there."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in {"CI", "HYPOTHESIS_PROFILE"}
    }
    environment = {**inherited, "PYTHONPATH": os.pathsep.join((str(TESTS), str(ROOT))), **variables}
    ended = subprocess.run(
        [sys.executable, "-c", SHOW],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout.strip()


@pytest.mark.parametrize(
    ("variables", "shown"),
    [
        ({}, "50 False True True"),
        ({"CI": "true"}, "50 True False True"),
        ({"HYPOTHESIS_PROFILE": "ci"}, "50 True False True"),
        ({"CI": "true", "HYPOTHESIS_PROFILE": "dev"}, "50 False True True"),
        ({"CI": "true", "HYPOTHESIS_PROFILE": "long"}, "5000 False True True"),
    ],
    ids=["a desk", "CI", "ci by name", "dev by name in CI", "long by name in CI"],
)
def test_examples_are_random_locally_and_the_same_in_ci(
    variables: dict[str, str], shown: str
) -> None:
    assert profile(variables) == shown


def calls_of_settings() -> Iterator[tuple[str, ast.Call]]:
    """Every call `settings(…)` in tests and examples, with its file and line."""
    for folder in (TESTS, ROOT / "examples"):
        for path in sorted(folder.rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("settings"):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def test_no_test_overrides_what_a_profile_decides() -> None:
    overriding: list[str] = []
    for place, call in calls_of_settings():
        for keyword in call.keywords:
            value = ast.unparse(keyword.value)
            decided = keyword.arg in {"database", "derandomize", "print_blob"}
            forgetful = keyword.arg == "phases" and "Phase.reuse" not in value
            of_tests = place.startswith("tests/")
            fixed = (
                of_tests
                and keyword.arg == "max_examples"
                and isinstance(keyword.value, ast.Constant)
            )
            if decided or forgetful or fixed:
                overriding.append(f"{place} {keyword.arg}={value}")
    assert overriding == []
