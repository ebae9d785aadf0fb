"""Each version of Python that the project files claim has a lane, and a lane tests what it says."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from versions import lanes

PROJECTS = lanes.read_projects()
LOWEST = next(lane for lane in lanes.LANES if lane.lowest)
NEWEST = lanes.LANES[-1]
PINNED = "3.11"
"""The Python of the usual run."""


def claimed(project: dict[str, Any]) -> list[str]:
    """The minor versions of Python among the classifiers."""
    found = (
        re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text)
        for text in project["project"]["classifiers"]
    )
    return [match.group(1) for match in found if match is not None]


@pytest.mark.parametrize("project", PROJECTS, ids=[each["project"]["name"] for each in PROJECTS])
def test_the_pythons_of_the_lanes_are_those_of_the_classifiers(project: dict[str, Any]) -> None:
    assert sorted({PINNED, *(lane.python for lane in lanes.LANES)}) == sorted(claimed(project))
    assert project["project"]["requires-python"] == f">={PINNED}"


def test_the_lanes_have_the_dependencies_of_both_distributions() -> None:
    assert [each["project"]["name"] for each in PROJECTS] == [
        "pubsub-emulator",
        "interchain-events",
    ]
    assert {"aiohttp", "click", "grpcio", "pyjwt", "wasmtime"} <= lanes.dependencies(
        PROJECTS
    ).keys()
    assert "pyspark" not in lanes.dependencies(PROJECTS)


def test_a_package_has_the_same_bounds_in_every_extra() -> None:
    lanes.dependencies(PROJECTS, leave_out=())
    first = {"project": {"dependencies": ["click>=8"], "optional-dependencies": {}}}
    second = {"project": {"optional-dependencies": {"more": ["Click>=9"]}}}
    with pytest.raises(lanes.LaneError, match="want both click>=8 and Click>=9"):
        lanes.dependencies([first, second])


@pytest.mark.parametrize("text", ["click", "click==8", "click<9"])
def test_a_dependency_without_a_lower_bound_is_refused(text: str) -> None:
    with pytest.raises(lanes.LaneError, match="has no lower bound"):
        lanes.lower_bound(Requirement(text))


def test_a_lowest_lane_pins_dependencies_and_leaves_tools_open() -> None:
    project = {
        "project": {"dependencies": ["rich>=13.7"], "optional-dependencies": {"spark": ["x"]}},
        "dependency-groups": {
            "core": ["pytest>=8", "rich>=10"],
            "test": [{"include-group": "core"}, "grpcio-status>=1"],
        },
    }
    other = {"project": {"optional-dependencies": {"sql": ["psycopg[pool]>=3.2"]}}}
    assert lanes.requirements(LOWEST, [project, other]) == [
        "rich==13.7",
        "psycopg[pool]==3.2",
        "pytest>=8",
        "pip",
    ]
    assert lanes.requirements(NEWEST, [project, other]) == [
        "rich>=13.7",
        "psycopg[pool]>=3.2",
        "pytest>=8",
        "pip",
    ]


def test_a_python_of_another_version_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    other = tmp_path / f"python{minor}"
    other.write_text("#!/bin/sh\necho 3.1.4\n")
    other.chmod(0o755)
    monkeypatch.setattr(lanes, "_candidates", lambda _minor: iter((other, Path(sys.executable))))
    assert lanes.find_python(minor) == Path(sys.executable)
    with pytest.raises(lanes.PythonMissingError, match=r"Python 3\.99 is missing"):
        lanes.find_python("3.99")


@pytest.mark.parametrize(
    ("ci", "code"),
    [
        ("true", 1),
        ("", 0),
    ],
)
def test_a_missing_python_fails_only_where_ci_is_set(
    ci: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(lanes, "_candidates", lambda _minor: iter(()))
    assert lanes.attempt(NEWEST, keep=True) == code
    assert capsys.readouterr().err.startswith(
        f"lanes.py: {NEWEST.name}: Python {NEWEST.python} is missing"
    )


def test_a_lane_whose_tests_fail_fails_and_keeps_no_result(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(lanes, "ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(lanes, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(lanes, "find_python", lambda _minor: Path(sys.executable))
    monkeypatch.setattr(lanes, "install", lambda _lane, _python: None)
    failing = lanes.interpreter(NEWEST)
    failing.parent.mkdir(parents=True)
    failing.write_text("#!/bin/sh\nexit 1\n")
    failing.chmod(0o755)
    assert lanes.attempt(NEWEST, keep=True) == 1
    assert not (tmp_path / "results").exists()


def test_a_lowest_lane_with_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [
        {"name": name, "version": lanes.lower_bound(each)}
        for name, each in lanes.dependencies(PROJECTS).items()
    ]
    monkeypatch.setattr(lanes, "run_uv", lambda *_arguments: json.dumps(listed))
    assert lanes.installed(LOWEST).keys() == lanes.dependencies(PROJECTS).keys()
    listed[0]["version"] = "9999"
    with pytest.raises(lanes.LaneError, match="9999 is installed instead of"):
        lanes.installed(LOWEST)


@pytest.mark.parametrize("place", lanes.LEFT_OUT)
def test_what_the_lanes_leave_out_is_there(place: str) -> None:
    assert (lanes.ROOT / place).exists()


def test_the_page_has_the_results_that_were_kept() -> None:
    page = (lanes.ROOT / "development" / "versions.md").read_text(encoding="utf-8")
    assert lanes.table(lanes.read_results()) in page


def test_the_results_are_those_of_the_present_lower_bounds() -> None:
    [lowest] = (result for result in lanes.read_results() if result["lane"] == LOWEST.name)
    bounds = {
        name: lanes.Version(lanes.lower_bound(requirement))
        for name, requirement in lanes.dependencies(PROJECTS).items()
    }
    assert {name: lanes.Version(text) for name, text in lowest["versions"].items()} == bounds
