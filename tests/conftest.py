"""For every test: hypothesis budgets by name, fixtures of servers, one worker for each server, ids
that are unique.

A run needs the core, pytest and hypothesis. A fixture whose library is missing is unknown.
"""

import os
from collections import Counter
from collections.abc import Generator
from dataclasses import fields, is_dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, settings

_SERVERS = {
    "plumbing.browser": "playwright",
    "plumbing.postgres": "psycopg",
    "plumbing.redis_server": "redis",
    "plumbing.spark": "pyspark",
}
"""Modules of fixtures, and the library that each needs."""

pytest_plugins = ["support.plumbing.snapshots", "support.plumbing.transcript"]
pytest_plugins += [
    f"support.{module}" for module, library in _SERVERS.items() if find_spec(library)
]

_PATIENT: dict[str, Any] = {
    "deadline": None,  # a machine that is busy with other tests would fail them
    "suppress_health_check": (HealthCheck.too_slow, HealthCheck.data_too_large),
    "print_blob": True,
}
# Hypothesis loads a profile of its own where CI is set. None of these may inherit from that one.
_PLAIN = settings.get_profile("default")
settings.register_profile(
    "ci", _PLAIN, **_PATIENT, max_examples=50, derandomize=True, database=None
)
settings.register_profile("dev", _PLAIN, **_PATIENT, max_examples=50)
settings.register_profile("long", _PLAIN, **_PATIENT, max_examples=5000)
# A mutation run asks whether a test fails, and nothing else: to shrink each failure took most of
# its time.
settings.register_profile(
    "mutation",
    settings.get_profile("ci"),
    max_examples=15,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
)
_USUAL = "ci" if os.environ.get("CI") else "dev"
settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", _USUAL)
)  # docs/testing.md says what each is for


def pytest_addoption(parser: pytest.Parser) -> None:
    """What to do about the browser."""
    group = parser.getgroup("browser")
    group.addoption(
        "--no-browser", action="store_true", help="leave out the tests that open pages in a browser"
    )
    parser.getgroup("clients").addoption(
        "--clients",
        action="store_true",
        help="run the scenarios of real clients too, which come from package indexes",
    )
    parser.getgroup("worlds").addoption(
        "--worlds",
        action="store_true",
        help="run what needs chains of other makers too, which npm brings",
    )
    parser.getgroup("canisters").addoption(
        "--canisters",
        action="store_true",
        help="run the canisters that `dev.py canisters` has built, too",
    )
    parser.getgroup("prometheus").addoption(
        "--prometheus",
        action="store_true",
        help="let the Prometheus that `dev.py prometheus` has fetched scrape a distributor, too",
    )
    group.addoption(
        "--chromium",
        metavar="PATH",
        help="a Chromium to test with, instead of the one the tests bring",
    )


_LONGEST_ID: Final = 50
"""Characters of one value in the id of a test."""


def _has_an_order(val: object) -> bool:
    """Return whether no set is in a value: its `repr` would differ between processes."""
    if isinstance(val, list | tuple):
        return all(map(_has_an_order, val))
    if isinstance(val, dict):
        return all(map(_has_an_order, val.values()))
    if is_dataclass(val):
        return all(_has_an_order(getattr(val, field.name)) for field in fields(val))
    return not isinstance(val, set | frozenset)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Name a value by its text, or by its `repr` if it is a collection or a record.

    pytest alone would name such values by their parameter and a number. Long names are cut. pytest
    numbers names that are equal.

    pytest escapes the ids that it has made once more when tests are collected again in the same
    process, as mutmut does. It does not find tests whose ids have a backslash then. Bytes and text
    that it would escape are named in hexadecimal digits.
    """
    if isinstance(val, str | bytes):
        raw = val.encode("utf-8", "surrogatepass") if isinstance(val, str) else val
        is_plain = all(32 <= byte < 127 and byte != ord("\\") for byte in raw)
        name = raw.decode("ascii") if is_plain else raw.hex()
    elif isinstance(val, list | tuple | dict) or (is_dataclass(val) and not isinstance(val, type)):
        try:
            name = ascii(val).replace("\\x", "").replace("\\", "")
        except ValueError:  # it has a number that is too long to be printed
            return None
        if " at 0x" in name or not _has_an_order(val):
            return None
    else:
        return None
    return name if len(name) <= _LONGEST_ID else f"{name[: _LONGEST_ID - 2]}.."


def pytest_configure(config: pytest.Config) -> None:
    """A run that decides whether a change lands leaves nothing out."""
    if config.getoption("--no-browser") and os.environ.get("CI"):
        raise pytest.UsageError(
            "--no-browser is for a desk: where CI is set, pages are tested as well"
        )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore folders that need programs of others, unless an option asks for them.

    Jobs of their own run real clients, chains of other makers, and canisters that were built.
    """
    apart = (
        collection_path.name in {"canisters", "clients", "prometheus", "worlds"}
        and collection_path.parent.name == "tests"
    )
    return True if apart and not config.getoption(f"--{collection_path.name}") else None


def refuse_repeated(ids: list[str]) -> None:
    """Raise `UsageError` for tests with the same id: pytest-xdist would run one of them."""
    repeated = [f"{name} ({count} times)" for name, count in Counter(ids).items() if count > 1]
    if repeated:
        raise pytest.UsageError(f"several tests have the same id: {', '.join(repeated)}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(ids: list[str]) -> None:
    """Check the ids that a worker has collected."""
    refuse_repeated(ids)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each server one worker of pytest-xdist, and files with slow tests the first places: none
    is left for the end.
    """
    slow = {item.path for item in items if item.get_closest_marker("slow") is not None}
    items.sort(key=lambda item: item.path not in slow)
    if not hasattr(config, "workerinput"):
        refuse_repeated([item.nodeid for item in items])
    for item in items:
        if item.get_closest_marker("spark") is not None:
            item.add_marker(pytest.mark.xdist_group("spark"))
        for server in ("postgres", "redis_server"):
            if server in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group("databases"))
        if item.get_closest_marker("clients") is not None:
            item.add_marker(pytest.mark.xdist_group("clients"))
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.xdist_group("browser"))
            if config.getoption("--no-browser"):
                item.add_marker(pytest.mark.skip(reason="--no-browser"))
        groups = {str(mark.args[0]) for mark in item.iter_markers("xdist_group")}
        if groups and config.getoption("loadgroup", default=False) and hasattr(item, "id"):
            # What pytest-xdist 3.8 does itself, but to an attribute that pytest 9.2 no longer
            # reads.
            group = min(groups, key=lambda name: (name != "spark", name))
            item._id = type(item.id).parse(f"{item.nodeid}@{group}")


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turn a skip into a failure if CI is set: nobody would notice that a tool or a library is
    missing there.
    """
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"left out where CI is set: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Refuse the skip of a test in CI."""
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Refuse in CI that a file skips all its tests while it is imported, as `pytest.importorskip`
    does.
    """
    report = yield
    _refuse_skip(report)
    return report
