"""The options of JVMs: light ones for audits, Spark's own ones for queries of users."""

import os
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext

from pubsub_emulator.spark_audit.spark import context
from pubsub_emulator.spark_audit.spark.context import LIGHT_JVM, settings

Started = list[str | None]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """The options of each JVM that was started, in place of a JVM."""
    found: Started = []

    def launch(**_given: Any) -> Any:
        found.append(os.environ.get("JDK_JAVA_OPTIONS"))
        proc = SimpleNamespace(stdin=SimpleNamespace(close=lambda: None))
        return SimpleNamespace(shutdown=lambda: found.append("ended"), proc=proc)

    def keep(**given: Any) -> None:
        monkeypatch.setattr(SparkContext, "_gateway", given["gateway"])

    monkeypatch.delenv("JDK_JAVA_OPTIONS", raising=False)
    monkeypatch.setattr(context, "launch_gateway", launch)
    monkeypatch.setattr(context, "_jvm_log", [])
    monkeypatch.setattr(context, "_is_light", [])
    for name in ("_gateway", "_jvm", "_active_spark_context"):
        monkeypatch.setattr(SparkContext, name, None)
    monkeypatch.setattr(SparkContext, "_ensure_initialized", keep)
    return found


def _open(*kinds: bool) -> None:
    for light in kinds:
        context._open_gateway(light=light)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        pytest.param(
            [True],
            [LIGHT_JVM],
            id="one light",
        ),
        pytest.param(
            [False],
            [None],
            id="one heavy",
        ),
        # The JVM of an audit does not serve a session; the other way round it does.
        pytest.param(
            [True, False],
            [LIGHT_JVM, "ended", None],
            id="light then heavy",
        ),
        pytest.param(
            [False, True],
            [None],
            id="heavy then light",
        ),
        pytest.param(
            [True, True],
            [LIGHT_JVM],
            id="two light",
        ),
        pytest.param(
            [True, False, False],
            [LIGHT_JVM, "ended", None],
            id="light then two heavy",
        ),
    ],
)
def test_a_session_gets_a_jvm_with_sparks_own_settings(
    started: Started, kinds: list[bool], expected: Started
) -> None:
    _open(*kinds)
    assert started == expected
    assert "JDK_JAVA_OPTIONS" not in os.environ


def test_options_of_the_user_hold_for_both(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JDK_JAVA_OPTIONS", "-Xmx1g")
    _open(True, False)
    assert started == ["-Xmx1g"]


def test_the_jvm_of_a_context_that_runs_stays(
    started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    _open(True)
    monkeypatch.setattr(SparkContext, "_active_spark_context", object())
    _open(False)
    assert started == [LIGHT_JVM]


def test_executors_of_sessions_have_no_options_of_an_audit() -> None:
    url = "spark://127.0.0.1:7077"
    assert settings(url, light=True)["spark.executor.extraJavaOptions"] == LIGHT_JVM
    assert "spark.executor.extraJavaOptions" not in settings(url, light=False)
