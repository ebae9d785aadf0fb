"""The audit runs unchanged on a standalone cluster, is shipped to its workers, and survives their
deaths (AU-8).
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest
from support.plumbing.object_store import s3_server
from support.spark_audit.audits import drop_a_node, write_history

from pubsub_emulator.spark_audit.audit.run import AuditResult, audit
from pubsub_emulator.spark_audit.judge.results import RECEIPT, REPORT
from pubsub_emulator.spark_audit.spark.java import find_java
from pubsub_emulator.spark_audit.spark.ship import MOUNT, build_environment

ROOT = Path(__file__).resolve().parents[3]
SPARK = Path(pyspark.__file__).parent
PATIENCE = 300
pytestmark = [pytest.mark.spark, pytest.mark.slow]


@dataclass(frozen=True)
class Cluster:
    """A running master and its workers."""

    url: str
    environment: dict[str, str]
    workers: tuple[int, ...]
    web: int
    """Port of the master's page."""

    def executors(self) -> set[int]:
        """The processes of executors that are alive, as Linux tells them."""
        found = set()
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(stat.read_text().rpartition(")")[2].split()[1])
                command = stat.with_name("cmdline").read_bytes()
            except OSError:
                continue  # it ended while it was looked at
            if parent in self.workers and b"CoarseGrainedExecutorBackend" in command:
                found.add(int(stat.parent.name))
        return found


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch, s3_server(patch) as address:
        yield address


@pytest.fixture(scope="module")
def cluster(bucket: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers from the installed package; their environment knows nothing of this
    project.

    Each worker has folders of its own. What all share is the way to an object store.
    """
    assert bucket
    folder = tmp_path_factory.mktemp("cluster")
    port, web = _free_port(), _free_port()
    url = f"spark://127.0.0.1:{port}"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "JAVA_HOME": str(find_java().home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        **{name: value for name, value in os.environ.items() if name.startswith("AWS_")},
        "JDK_JAVA_OPTIONS": os.environ["JDK_JAVA_OPTIONS"],
    }
    package = "org.apache.spark.deploy"
    master = (
        f"{package}.master.Master",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--webui-port",
        str(web),
    )
    with ExitStack() as running:
        running.enter_context(
            _started(environment, folder, 0, [str(SPARK / "bin" / "spark-class"), *master])
        )
        workers = tuple(
            running.enter_context(_worker(url, environment, folder, at)) for at in (1, 2)
        )
        _await(lambda: _workers(web)["ALIVE"] == 2, "two workers")
        yield Cluster(url, environment, workers, web)


@contextmanager
def _started(
    environment: dict[str, str], folder: Path, at: int, command: list[str]
) -> Iterator[int]:
    """A process of the cluster."""
    own = {"HOME": str(folder / f"home{at}"), "SPARK_WORKER_DIR": str(folder / f"work{at}")}
    with (folder / f"{at}.log").open("wb") as log:
        process = subprocess.Popen(
            command, env={**environment, **own}, cwd=folder, stdout=log, stderr=log
        )
        try:
            yield process.pid
        finally:
            process.terminate()
            process.wait()


def _worker(
    url: str, environment: dict[str, str], folder: Path, at: int
) -> AbstractContextManager[int]:
    """A worker of one core, which may be told to end (`SIGPWR`)."""
    command = [str(SPARK / "bin" / "spark-class"), "org.apache.spark.deploy.worker.Worker"]
    command += ["--cores", "1", "--memory", "1g", "--webui-port", "0", url]
    options = {"SPARK_DAEMON_JAVA_OPTS": "-Dspark.decommission.enabled=true"}
    return _started({**environment, **options}, folder, at, command)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One chain of three has more than half of all blocks."""
    path = tmp_path_factory.mktemp("recorded") / "history"
    return write_history(path, 12, segment_length=2, cheats={3: drop_a_node}, skew=4)


@pytest.fixture(scope="module")
def plain(history: Path) -> AuditResult:
    return audit(history, history.with_name("plain"), engine="python")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _workers(web: int) -> Counter[str]:
    """How many workers the master has, by their states."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{web}/json/", timeout=5) as answer:
            return Counter(worker["state"] for worker in json.load(answer)["workers"])
    except (OSError, ValueError):  # it does not answer yet, or with another page
        return Counter()


def _await(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {PATIENCE} s in vain for {what}")
        time.sleep(0.02)


def _driven(
    cluster: Cluster, cwd: Path, program: str, *arguments: object
) -> subprocess.CompletedProcess[str]:
    """A driver in a process of its own that uses the cluster: this one may hold a context."""
    run = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments), cluster.url],
        env={**cluster.environment, "PYTHONPATH": str(ROOT)},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run


_DRIVER = """
import json, sys
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.spark.context import start_context

def where(at):
    import pyarrow
    from pubsub_emulator import primitives, spark_audit
    return [module.__file__ for module in (pyarrow, primitives, spark_audit)]

context = start_context(*sys.argv[3:])
places = context.parallelize(range(2), 2).map(where).collect()
result = audit(sys.argv[1], sys.argv[2], engine="spark")
told = {
    "digest": result.digest,
    "exit_code": result.exit_code,
    "engine": result.engine,
    "places": places,
}
context.stop()
print(json.dumps(told))
"""


def _told(output: str, plain: AuditResult) -> list[list[str]]:
    """Where the workers found what they import, of a driver that came to the same end."""
    told = json.loads(output.splitlines()[-1])
    assert (told["digest"], told["exit_code"], told["engine"]) == (
        plain.digest,
        plain.exit_code,
        "spark",
    )
    places: list[list[str]] = told["places"]
    return places


def test_a_lone_driver_ships_its_sources_to_workers_without_a_common_folder(
    cluster: Cluster, plain: AuditResult, bucket: str, tmp_path: Path
) -> None:
    """AU-12: history and output are in an object store.

    The workers' Python has the third-party packages.
    """
    write_history(f"{bucket}/history", 12, segment_length=2, cheats={3: drop_a_node}, skew=4)  # type: ignore[arg-type]
    run = _driven(cluster, tmp_path, _DRIVER, f"{bucket}/history", f"{bucket}/out")
    assert all(".zip" in place for found in _told(run.stdout, plain) for place in found[1:])
    assert not list(tmp_path.iterdir())


_HELD = """
import sys, time
from pathlib import Path
from pubsub_emulator.spark_audit.audit import work

def held(text, out, unit=work.judge_or_fold, folder=Path(sys.argv[2]).parent):
    try:
        (folder / "first").touch(exist_ok=False)
    except FileExistsError:
        while not (folder / "go").exists():
            time.sleep(0.02)
    return unit(text, out)

work.judge_or_fold = held
"""
"""Workers do one unit, and begin others once they may go on."""


@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="executors are found as Linux tells of processes"
)
def test_a_submitted_job_has_the_same_digest_while_workers_are_killed(
    cluster: Cluster, history: Path, plain: AuditResult, tmp_path: Path
) -> None:
    """The workers' Python has no packages at all: what they import is what was shipped.

    A third worker is decommissioned and the executors of the others are killed when one unit is
    done and they are at others; slow units are given out twice.
    """
    sizes = [row["candidates"] for row in plain.chains]
    assert 2 * max(sizes) > sum(sizes), "the history is skewed"
    environment = build_environment(tmp_path / "pubsub.tar.gz")
    driver = tmp_path / "driver.py"
    driver.write_text(_HELD + _DRIVER)
    out = tmp_path / "out"
    settings = {
        "spark.pyspark.driver.python": sys.executable,
        "spark.pyspark.python": os.path.realpath(sys._base_executable),  # type: ignore[attr-defined]  # not in typeshed
        "spark.executorEnv.PYTHONPATH": MOUNT,
        "spark.executorEnv.PYTHONNOUSERSITE": "1",
        "spark.decommission.enabled": "true",
        "spark.speculation": "true",
        "spark.speculation.interval": "50ms",
        "spark.speculation.multiplier": "1.01",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.minTaskRuntime": "10ms",
    }
    command = [
        str(SPARK / "bin" / "spark-submit"),
        "--master",
        cluster.url,
        "--archives",
        f"{environment}#{MOUNT}",
    ]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    with (
        _worker(cluster.url, cluster.environment, tmp_path, 3) as leaving,
        (tmp_path / "submit.log").open("wb") as log,
        (tmp_path / "told").open("wb") as told,
    ):
        _await(lambda: _workers(cluster.web)["ALIVE"] == 3, "a third worker")
        job = subprocess.Popen(
            [*command, str(driver), str(history), str(out)],
            env={**cluster.environment, "PYTHONPATH": str(ROOT)},
            cwd=tmp_path,
            stdout=told,
            stderr=log,
        )
        try:
            committed = lambda: len(list(out.glob(f"items/*/*/{RECEIPT}")))  # noqa: E731  # read where it is waited for
            _await(lambda: job.poll() is not None or committed() > 0, "the first unit")
            _await(lambda: len(cluster.executors()) == 2, "the executors of both workers")
            os.kill(leaving, signal.SIGPWR)
            killed = cluster.executors()
            for executor in killed:
                os.kill(executor, signal.SIGKILL)
            _await(lambda: not killed & cluster.executors(), "the executors to die")
            assert job.poll() is None, (tmp_path / "submit.log").read_text()
            assert not (out / REPORT).exists()
            assert committed() == 1 < plain.units_judged
            _await(lambda: _workers(cluster.web)["ALIVE"] == 2, "the third worker to leave")
            (tmp_path / "go").touch()
            assert job.wait(PATIENCE) == 0, (tmp_path / "submit.log").read_text()
        finally:
            job.kill()
            job.wait()
    for found in _told((tmp_path / "told").read_text(), plain):
        assert all(f"/{MOUNT}/" in place for place in found)
        assert not any(place.startswith(str(ROOT)) for place in found)
