"""One way to a Spark session: quiet, local by default, with this interpreter and these sources in its workers."""

import logging
import os
import sys
import tempfile
from typing import IO, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from spark_audit.spark.java import find_java
from spark_audit.spark.ship import build_archive, source_root
from spark_audit.work import EngineLost

LOCAL: Final = "local[*]"
_LAST_WORDS: Final = 2000
_SHIPPED: Final = ("spark.archives", "spark.submit.pyFiles", "spark.yarn.dist.archives")
"""Settings by which whoever submits brings the packages; see `ship`."""

_jvm_log: list[IO[bytes]] = []
"""What the JVM of this process writes to its standard error: kept for error messages, out of the user's sight."""


class SparkUnavailable(EngineLost):
    """No session could be started, or it was lost; the message says why."""


def start_session(master: str | None = None, name: str = "pubsub-audit") -> SparkSession:
    """A new session; the caller stops it. Raises `SparkUnavailable`, `JavaNotFound`.

    Under `spark-submit` its settings hold, the master among them unless one is given.
    """
    submitted = _submitted()
    url = master or (LOCAL if submitted is None else submitted.get("spark.master", LOCAL)) or LOCAL
    if submitted is None:
        os.environ["JAVA_HOME"] = str(find_java().home)
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    local = url.startswith("local")
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        _share_sources()
    logging.getLogger("py4j").setLevel(logging.ERROR)
    builder = SparkSession.builder.appName(name).master(url)
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.shuffle.partitions": "8",
        "spark.python.worker.reuse": "true",
        "spark.log.level": "ERROR",
    }
    if local:
        settings["spark.driver.host"] = "127.0.0.1"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        if submitted is None:
            _open_gateway()
        session: SparkSession = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        if not local and not (submitted is not None and any(submitted.contains(key) for key in _SHIPPED)):
            session.sparkContext.addPyFile(str(build_archive()))
    except (PySparkException, Py4JError, OSError, RuntimeError) as error:
        raise SparkUnavailable(f"no Spark session on {url}: {error}\n{last_words()}".rstrip()) from error
    return session


def _submitted() -> SparkConf | None:
    """The settings that `spark-submit` started this program with; none when it did not."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return None
    SparkContext._ensure_initialized()  # noqa: SLF001  # a conf knows the JVM's settings only once there is a gateway
    return SparkConf()


def _share_sources() -> None:
    """Let local workers import this program from where the driver did, installed or not."""
    root = str(source_root())
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if root not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join(path for path in (root, *paths) if path)


def _open_gateway() -> None:
    """Start the JVM with its chatter in a file: whatever comes before a session can hush it."""
    if SparkContext._gateway is not None:  # noqa: SLF001  # a JVM of this process is reused, as pyspark does
        return
    log = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as the JVM runs
    _jvm_log.append(log)
    gateway = launch_gateway(popen_kwargs={"stderr": log})  # type: ignore[no-untyped-call]  # pyspark types not all
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001  # the one way to hand a gateway over early


def last_words() -> str:
    """The end of what the JVM wrote to its standard error, for error messages."""
    if not _jvm_log:
        return ""
    log = _jvm_log[-1]
    log.seek(0, os.SEEK_END)
    log.seek(max(log.tell() - _LAST_WORDS, 0))
    return log.read().decode(errors="replace").strip()
