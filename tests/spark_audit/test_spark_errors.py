"""Spark's errors are one line: no master, none that answers, no such URL (AU-15)."""

import socket
from pathlib import Path

import pytest
from audit_support import write_history

from pubsub_emulator.spark_audit.audit.run import AuditFailed, audit
from pubsub_emulator.spark_audit.engine.engine import WrongMaster, check_form
from pubsub_emulator.spark_audit.spark.context import SparkUnavailable, _one_line, check_master


@pytest.mark.parametrize(
    "master",
    [
        "local",
        "local[2]",
        "local[*]",
        "local[2,4]",
        "spark://h:7077",
        "spark://a:1,b:2",
        "spark://[::1]:7",
        "yarn",
        "k8s://https://x:1",
    ],
)
def test_au15_masters_that_spark_knows_are_taken(master: str) -> None:
    check_form(master)


@pytest.mark.parametrize("master", ["", "foo", "spark://h", "spark://", "local[x]", "http://h:1", "mesos://h:1"])
def test_au15_a_wrong_master_is_wrong_usage_before_anything_is_started(master: str, tmp_path: Path) -> None:
    with pytest.raises(WrongMaster, match="is no Spark master; one is local"):
        check_form(master)
    history = write_history(tmp_path / "history", 1)
    with pytest.raises(AuditFailed, match="is no Spark master") as failed:
        audit(history, tmp_path / "out", master=master, engine="spark")
    assert failed.value.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_au15_a_master_that_does_not_answer_is_told_in_one_line() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(SparkUnavailable) as failed:  # bound and not listening: it refuses
            check_master(f"spark://127.0.0.1:{port}")
    assert str(failed.value) == (
        f"no Spark master answers at spark://127.0.0.1:{port}: 127.0.0.1:{port}: Connection refused"
    )


def test_au15_one_of_several_masters_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}")


def test_au15_a_page_of_java_becomes_its_cause() -> None:
    page = (
        "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
        ": java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n"
        "\tat org.apache.spark.SparkContext.assertNotStopped(SparkContext.scala:1)\n"
        "Caused by: java.io.IOException: Failed to connect to /127.0.0.1:1\n\tat java.base/java.lang.Thread.run\n"
    )
    assert _one_line(page) == "Caused by: java.io.IOException: Failed to connect to /127.0.0.1:1"
