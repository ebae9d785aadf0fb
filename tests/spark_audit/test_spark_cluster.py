"""The audit runs unchanged on a standalone cluster, is shipped to its workers, and survives their deaths (AU-8)."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyspark
import pytest
from support.audits import drop_a_node, write_history
from support.object_store import s3_server

from pubsub_emulator.spark_audit.audit.run import AuditResult, audit
from pubsub_emulator.spark_audit.judge.results import RECEIPT, REPORT
from pubsub_emulator.spark_audit.spark.java import find_java
from pubsub_emulator.spark_audit.spark.ship import MOUNT, build_environment

ROOT = Path(__file__).resolve().parents[2]
SPARK = Path(pyspark.__file__).parent
PATIENCE = 300
pytestmark = [pytest.mark.spark, pytest.mark.slow]


_MOUNTS = shutil.which("unshare") is not None and (
    subprocess.run(
        ["unshare", "-m", "sh", "-c", "mount -t tmpfs own /tmp"],  # noqa: S607  # of this machine
        capture_output=True,
        check=False,
    ).returncode
    == 0
)


@dataclass(frozen=True)
class Cluster:
    """A running master and its workers."""

    url: str
    environment: dict[str, str]
    workers: tuple[int, ...]
    apart: Path
    """A folder that is another one for each worker, where this machine lets a process have mounts of its own."""

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
    """A master and two workers from the installed package; their environment knows nothing of this project.

    Each worker has folders of its own. What all share is the way to an object store.
    """
    assert bucket
    folder = tmp_path_factory.mktemp("cluster")
    apart = tmp_path_factory.mktemp("apart")
    port, web = _free_port(), _free_port()
    url = f"spark://127.0.0.1:{port}"
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "JAVA_HOME": str(find_java().home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        **{name: value for name, value in os.environ.items() if name.startswith("AWS_")},
        "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    package = "org.apache.spark.deploy"
    master = (f"{package}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web))
    worker = (f"{package}.worker.Worker", "--cores", "1", "--memory", "1g", "--webui-port", "0", url)
    with ExitStack() as running:
        started = []
        for at, command in enumerate((master, worker, worker)):
            log = running.enter_context((folder / f"{at}.log").open("wb"))
            launcher = [str(SPARK / "bin" / "spark-class"), *command]
            own = {"HOME": str(folder / f"home{at}"), "SPARK_WORKER_DIR": str(folder / f"work{at}")}
            if command is worker and _MOUNTS:
                launcher = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs own "$0" && exec "$@"', str(apart), *launcher]
            process = subprocess.Popen(launcher, env={**environment, **own}, cwd=folder, stdout=log, stderr=log)
            running.callback(process.wait)
            running.callback(process.terminate)
            started.append(process.pid)
        _await(lambda: _alive_workers(web) == 2, "two workers")
        yield Cluster(url, environment, tuple(started[1:]), apart)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recorded") / "history"
    return write_history(path, 12, segment_length=2, cheats={3: drop_a_node})


@pytest.fixture(scope="module")
def plain(history: Path) -> AuditResult:
    return audit(history, history.with_name("plain"), engine="python")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _alive_workers(web: int) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{web}/json/", timeout=5) as answer:
            alive: int = json.load(answer)["aliveworkers"]
            return alive
    except (OSError, ValueError):  # it does not answer yet, or with another page
        return 0


def _await(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"waited {PATIENCE} s in vain for {what}")
        time.sleep(0.02)


def _driven(cluster: Cluster, cwd: Path, program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
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
from pathlib import Path
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.spark.context import start_context

def where(at):
    import pyarrow
    from pubsub_emulator import primitives, spark_audit
    return [module.__file__ for module in (pyarrow, primitives, spark_audit)]

context = start_context(*sys.argv[3:])
places = context.parallelize(range(2), 2).map(where).collect()
result = audit(Path(sys.argv[1]), Path(sys.argv[2]), engine="spark")
told = {"digest": result.digest, "exit_code": result.exit_code, "engine": result.engine, "places": places}
Path(sys.argv[2], "told.json").write_text(json.dumps(told))
context.stop()
"""


def test_a_driver_on_its_own_brings_its_sources_to_the_workers(
    cluster: Cluster, history: Path, plain: AuditResult, tmp_path: Path
) -> None:
    """Their Python has the third-party packages."""
    _driven(cluster, tmp_path, _DRIVER, history, tmp_path)
    told = json.loads((tmp_path / "told.json").read_bytes())
    assert (told["digest"], told["exit_code"], told["engine"]) == (plain.digest, plain.exit_code, "spark")
    assert all(".zip" in place for found in told["places"] for place in found[1:])


_LOST_DRIVER = """
import sys
from pubsub_emulator.spark_audit.audit.run import AuditFailed, audit
try:
    audit(sys.argv[1], sys.argv[2], sys.argv[3])
except AuditFailed as failure:
    print(failure.exit_code, failure)
"""


@pytest.mark.skipif(not _MOUNTS, reason="a process of this user has no mounts of its own")
def test_au11_an_output_that_workers_do_not_share_is_an_infrastructure_failure_and_the_next_run_repairs_it(
    cluster: Cluster, history: Path, plain: AuditResult, tmp_path: Path
) -> None:
    """Each worker writes to a disk of its own under the path that the driver names."""
    out = cluster.apart / "out"
    run = _driven(cluster, tmp_path, _LOST_DRIVER, history, out)
    assert run.stdout.startswith("4 ")
    assert "is missing although a worker wrote it" in run.stdout
    assert not list(out.rglob("*.*")), "nothing is kept"
    repaired = audit(history, out, engine="python")
    assert (repaired.digest, repaired.codes, repaired.exit_code) == (plain.digest, plain.codes, plain.exit_code)


_REMOTE_DRIVER = """
import json, sys
from pubsub_emulator.spark_audit.audit.run import audit
result = audit(sys.argv[1], sys.argv[2], sys.argv[3])
print(json.dumps({"digest": result.digest, "exit_code": result.exit_code, "engine": result.engine}))
"""


def test_driver_and_workers_need_no_common_folder(
    cluster: Cluster, plain: AuditResult, bucket: str, tmp_path: Path
) -> None:
    """AU-12: history and output are in an object store; driver and workers have folders of their own."""
    write_history(f"{bucket}/history", 12, segment_length=2, cheats={3: drop_a_node})  # type: ignore[arg-type]
    run = _driven(cluster, tmp_path, _REMOTE_DRIVER, f"{bucket}/history", f"{bucket}/out")
    told = json.loads(run.stdout.splitlines()[-1])
    assert told == {"digest": plain.digest, "exit_code": plain.exit_code, "engine": "spark"}
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="executors are found as Linux tells of processes")
def test_a_submitted_job_whose_executors_are_killed_gives_the_digest_of_an_undisturbed_one(
    cluster: Cluster, history: Path, plain: AuditResult, tmp_path: Path
) -> None:
    """The workers' Python has no packages at all: what they import is what was shipped.

    The executors are killed once the first part is committed, while others are not.
    """
    environment = build_environment(tmp_path / "pubsub.tar.gz")
    driver = tmp_path / "driver.py"
    driver.write_text(_DRIVER)
    out = tmp_path / "out"
    settings = {
        "spark.pyspark.driver.python": sys.executable,
        "spark.pyspark.python": os.path.realpath(sys._base_executable),  # type: ignore[attr-defined]  # not in typeshed
        "spark.executorEnv.PYTHONPATH": MOUNT,
        "spark.executorEnv.PYTHONNOUSERSITE": "1",
    }
    command = [str(SPARK / "bin" / "spark-submit"), "--master", cluster.url, "--archives", f"{environment}#{MOUNT}"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    with (tmp_path / "submit.log").open("wb") as log:
        job = subprocess.Popen(
            [*command, str(driver), str(history), str(out)],
            env={**cluster.environment, "PYTHONPATH": str(ROOT)},
            cwd=tmp_path,
            stdout=log,
            stderr=log,
        )
        try:
            committed = lambda: len(list(out.glob(f"items/*/*/{RECEIPT}")))  # noqa: E731  # read where it is waited for
            _await(lambda: job.poll() is not None or committed() > 0, "the first part")
            killed = cluster.executors()
            for executor in killed:
                os.kill(executor, signal.SIGKILL)
            assert job.poll() is None, (tmp_path / "submit.log").read_text()
            assert not (out / REPORT).exists()
            assert committed() < plain.units_judged
            assert job.wait(PATIENCE) == 0, (tmp_path / "submit.log").read_text()
        finally:
            job.kill()
            job.wait()
    assert len(killed) == 2
    told: dict[str, Any] = json.loads((out / "told.json").read_bytes())
    assert (told["digest"], told["exit_code"], told["engine"]) == (plain.digest, plain.exit_code, "spark")
    for found in told["places"]:
        assert all(f"/{MOUNT}/" in place for place in found)
        assert not any(place.startswith(str(ROOT)) for place in found)
