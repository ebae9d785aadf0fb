"""The audit runs unchanged on a standalone cluster, to whose workers it brings its own sources (AU-8)."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyspark
import pytest
from audit_support import drop_a_node, write_history

from spark_audit.audit import audit
from spark_audit.spark.java import find_java

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.spark, pytest.mark.slow]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A master and one worker from the installed package; their environment knows nothing of this project."""
    port, web = _free_port(), _free_port()
    url = f"spark://127.0.0.1:{port}"
    environment = {
        "PATH": os.environ["PATH"],
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(tmp_path / "work"),
    }
    launcher = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    package = "org.apache.spark.deploy"
    commands = (
        (f"{package}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(web)),
        (f"{package}.worker.Worker", "--cores", "1", "--memory", "1g", "--webui-port", str(_free_port()), url),
    )
    with ExitStack() as running:
        for command in commands:
            log = running.enter_context((tmp_path / f"{command[0]}.log").open("wb"))
            process = subprocess.Popen([launcher, *command], env=environment, cwd=tmp_path, stdout=log, stderr=log)
            running.callback(process.wait)
            running.callback(process.terminate)
        _await_worker(web)
        yield url


def _await_worker(web: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        time.sleep(0.5)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{web}/json/", timeout=5) as answer:
                if json.load(answer)["aliveworkers"]:
                    return
        except OSError:
            continue
    pytest.fail("the cluster did not come up")


_DRIVER = """
import sys
from pathlib import Path
from spark_audit.audit import audit
result = audit(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
print(result.digest, result.exit_code, result.engine)
"""


def test_a_cluster_gives_the_digest_of_the_plain_path(cluster: str, tmp_path: Path) -> None:
    """The driver has a process of its own: this one may hold a local session already."""
    history = write_history(tmp_path / "history", 8, cheats={3: drop_a_node})
    plain = audit(history, tmp_path / "plain", engine="python")
    run = subprocess.run(
        [sys.executable, "-c", _DRIVER, str(history), str(tmp_path / "out"), cluster],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.stdout.split() == [plain.digest, "1", "spark"], run.stderr
