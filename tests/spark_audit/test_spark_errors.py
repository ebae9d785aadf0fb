"""Spark's errors are one line: no master, none that answers, no such URL (AU-15)."""

import logging
import socket
from pathlib import Path
from threading import Thread

import pytest
from support.audits import write_history
from support.processes import python

from pubsub_emulator.spark_audit.audit.run import AuditFailed, audit
from pubsub_emulator.spark_audit.engine.engine import WrongMaster, check_form
from pubsub_emulator.spark_audit.spark import masters
from pubsub_emulator.spark_audit.spark.context import hush_py4j, one_line
from pubsub_emulator.spark_audit.spark.masters import SparkUnavailable, check_master


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


@pytest.mark.parametrize(
    "master", ["", "foo", "spark://h", "spark://", "local[x]", "http://h:1", "mesos://h:1", "spark://h:99999"]
)
def test_au15_a_text_that_is_no_master_is_refused(master: str) -> None:
    with pytest.raises(WrongMaster, match="is no Spark master; one is local"):
        check_form(master)


def test_au15_a_wrong_master_is_wrong_usage_before_anything_is_started(tmp_path: Path) -> None:
    history = write_history(tmp_path / "history", 1)
    with pytest.raises(AuditFailed, match="is no Spark master") as failed:
        audit(history, tmp_path / "out", master="foo", engine="spark")
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
        _answering(server, b"\0\0\0\0\0\0\0\x0d\x08")
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{server.getsockname()[1]}")


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\0\0\0\0\x0d\x05"])
def test_au15_a_server_that_is_no_master_is_told_before_spark_tries_for_a_minute(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        _answering(server, answer)
        with pytest.raises(SparkUnavailable, match="what answers there is no Spark master"):
            check_master(f"spark://127.0.0.1:{server.getsockname()[1]}")


def test_au15_a_server_that_says_nothing_is_no_master(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masters, "CONNECT_SECONDS", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        pytest.raises(SparkUnavailable, match=r"no answer in 0\.2 seconds"),
    ):
        check_master(f"spark://127.0.0.1:{server.getsockname()[1]}")


def test_au15_yarn_without_its_configuration_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    with pytest.raises(SparkUnavailable, match="neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set"):
        check_master("yarn")


def _configured(folder: Path, monkeypatch: pytest.MonkeyPatch, **settings: str) -> None:
    """Configure YARN as `HADOOP_CONF_DIR` does; `_` is written for `.` and `__` for `-`."""
    names = {name.replace("__", "-").replace("_", "."): value for name, value in settings.items()}
    rows = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in names.items())
    (folder / "yarn-site.xml").write_text(f"<configuration>{rows}</configuration>", encoding="utf-8")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(folder))
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)


def test_au15_yarn_without_a_server_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        host, address = {"yarn_resourcemanager_hostname": "127.0.0.1"}, "${yarn.resourcemanager.hostname}"
        _configured(tmp_path, monkeypatch, **host, yarn_resourcemanager_address=f"{address}:{port}")
        with pytest.raises(SparkUnavailable) as failed:
            check_master("yarn")
    assert str(failed.value) == f"no resource manager answers at yarn: 127.0.0.1:{port}: Connection refused"


def test_au15_one_of_several_resource_managers_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        _configured(
            tmp_path,
            monkeypatch,
            yarn_resourcemanager_ha_enabled="true",
            yarn_resourcemanager_ha_rm__ids="one, two",
            yarn_resourcemanager_address_one="127.0.0.1:1",
            yarn_resourcemanager_address_two=f"127.0.0.1:{server.getsockname()[1]}",
        )
        check_master("yarn")


def test_au15_a_configuration_of_yarn_that_is_no_xml_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _configured(tmp_path, monkeypatch)
    (tmp_path / "yarn-site.xml").write_text("<configuration>", encoding="utf-8")
    with pytest.raises(SparkUnavailable, match=r"yarn-site\.xml: no element found"):
        check_master("yarn")


@pytest.mark.parametrize("url", ["k8s://https://127.0.0.1:1", "k8s://127.0.0.1:1", "k8s://http://127.0.0.1:99999"])
def test_au15_a_kubernetes_that_does_not_answer_is_told_at_once(url: str) -> None:
    with pytest.raises(SparkUnavailable, match="no Kubernetes answers at k8s://"):
        check_master(url)


def test_au15_several_silent_masters_take_no_longer_than_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masters, "CONNECT_SECONDS", 0.4)
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        places = ",".join(f"127.0.0.1:{each.getsockname()[1]}" for each in (one, two))
        with pytest.raises(SparkUnavailable, match=r"(no answer in 0\.2 seconds.*){2}"):
            check_master(f"spark://{places}")


def _answering(server: socket.socket, answer: bytes) -> None:
    def serve() -> None:
        found, _ = server.accept()
        with found:
            found.recv(100)
            found.sendall(answer)

    Thread(target=serve, daemon=True).start()


def test_au15_a_page_of_java_becomes_its_cause() -> None:
    page = (
        "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
        ": java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n"
        "\tat org.apache.spark.SparkContext.assertNotStopped(SparkContext.scala:1)\n"
        "Caused by: java.io.IOException: Failed to connect to /127.0.0.1:1\n\tat java.base/java.lang.Thread.run\n"
    )
    assert one_line(page) == "Caused by: java.io.IOException: Failed to connect to /127.0.0.1:1"


LOST = """
import os, signal
from pyspark import SparkContext
from pubsub_emulator.spark_audit.spark.job import SparkMapper
from pubsub_emulator.spark_audit.spark.masters import SparkUnavailable

mapper = SparkMapper("local[1]")
os.kill(SparkContext._gateway.proc.pid, signal.SIGKILL)
try:
    mapper.map(len, ["a task"], "", print)
except SparkUnavailable as error:
    print(error)
mapper.close()
print(SparkContext._gateway, SparkContext._active_spark_context)
"""


@pytest.mark.spark
def test_a_killed_jvm_is_one_line_and_the_next_context_starts_another() -> None:
    done = python("-c", LOST)
    said, state = done.stdout.splitlines()
    assert said == "Spark's JVM is gone: it was killed, or the machine had no memory left for it"
    assert (state, done.returncode) == ("None None", 0)
    assert "Traceback" not in done.stderr


def test_an_interrupt_shows_no_trace_of_py4j(capsys: pytest.CaptureFixture[str]) -> None:
    hush_py4j()
    for path, said in (("py4j/java_gateway.py", "py4j's"), ("mine.py", "mine")):
        record = logging.LogRecord("root", logging.ERROR, path, 1, said, None, None)
        logging.getLogger().handle(record)
    assert "py4j's" not in capsys.readouterr().err
    assert logging.getLogger().filter(record)
