"""The start of a Spark context, for audits and for users' sessions.

The context does not write to the terminal and runs on this machine unless there is a master. Its
workers use this interpreter and this program.
"""

import atexit
import contextlib
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from typing import IO, Any, Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway

from pubsub_emulator.spark_audit.engine.engine import check_form
from pubsub_emulator.spark_audit.spark.java import find_java
from pubsub_emulator.spark_audit.spark.masters import SparkUnavailable, check_master
from pubsub_emulator.spark_audit.spark.ship import build_archive, source_root

LOCAL: Final = "local[*]"
"""The master if neither the caller nor the configuration names one."""
LIGHT_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of every JVM of an audit. Units run in Python, so the JVM has little work. Optimizing
its code for a long run would double its cost."""

ATTEMPTS: Final = 4
"""The number of attempts to run a task, in local mode as on a cluster."""

_LOCAL_MASTER: Final = re.compile(r"local(?:\[(\*|\d+)\])?")
_MOST_QUOTED: Final = 2000
"""The maximum number of bytes from the end of the JVM's output in an error message."""
_CAUSE: Final = re.compile(r"(: )?(Caused by: )?[\w.$]*(Exception|Error): \S")
"""A line of a Java or Python traceback that names an error."""
_PY4J: Final = ("java_gateway", "clientserver")
"""Modules of py4j that write to the root logger."""
_YARN_LIMITS: Final = {
    "spark.hadoop.yarn.resourcemanager.connect.max-wait.ms": "12000",
    "spark.hadoop.yarn.resourcemanager.connect.retry-interval.ms": "2000",
}
"""How long YARN's client looks for a resource manager. Its default is a quarter of an hour."""
_SHIPPED: Final = ("spark.archives", "spark.submit.pyFiles", "spark.yarn.dist.archives")
"""Settings by which a user of `spark-submit` ships packages; see `ship`."""

_jvm_log: list[IO[bytes]] = []
"""The file with the standard error of this process's JVM, which is the last entry. It is not shown
to the user, but error messages quote it."""
_is_light: list[bool] = []
"""Not empty if this process's JVM has the options of an audit."""


def start_context(
    master: str | None = None, name: str = "pubsub-audit", *, light: bool = True
) -> SparkContext:
    """Start a Spark context, which the caller must stop (AU-8).

    With `light`, JVMs are started with `LIGHT_JVM`, which suits units in Python. Otherwise, they
    have Spark's defaults, which suit queries in SQL. Under `spark-submit`, the JVM is running
    already, with the user's settings. Otherwise a JVM is started with a Java of this machine.
    Raises `SparkUnavailable`, `JavaNotFound`.
    """
    hush_py4j()
    if master is not None:
        check_form(master)
        check_master(master)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not submitted:
        os.environ["JAVA_HOME"] = str(find_java().home)
        os.environ["PYSPARK_PYTHON"] = sys.executable
        os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    try:
        if submitted:
            SparkContext._ensure_initialized()  # noqa: SLF001  # without a gateway, a conf lacks the submitted settings
        conf = SparkConf()
        # The configuration may name a master, for example in `spark-defaults.conf`.
        url = _with_retries(master or conf.get("spark.master", LOCAL) or LOCAL)
        local = url.startswith("local")
        if local:
            # The JVM and the workers inherit the environment, so set it before the JVM starts.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            _share_sources()
        if not submitted:
            _open_gateway(light=light)
            conf = SparkConf()
        conf.setMaster(url)
        conf.setAppName(name)
        for key, value in settings(url, light=light).items():
            conf.setIfMissing(key, value)
        context = SparkContext.getOrCreate(conf)
        context.setLogLevel("ERROR")
        # A gateway may set these to empty texts.
        if not local and not any(conf.get(key, "") for key in _SHIPPED):
            context.addPyFile(str(build_archive()))
    except (PySparkException, Py4JError, OSError, RuntimeError) as error:
        raise SparkUnavailable(
            f"no Spark context on {master or 'the master'}: {one_line(str(error))}"
        ) from error
    return context


def forget_context() -> None:
    """Make pyspark forget a context whose JVM is gone, so that the next one starts its own JVM."""
    SparkContext._active_spark_context = None  # noqa: SLF001  # stopping a context does this if its JVM answers
    SparkContext._gateway = None  # noqa: SLF001  # as above
    SparkContext._jvm = None  # noqa: SLF001  # as above


def hush_py4j() -> None:
    """Hide py4j's log messages, some of which go to the root logger.

    They are not needed, because py4j also raises its errors.
    """
    logging.getLogger("py4j").setLevel(logging.ERROR)
    logging.getLogger().addFilter(_is_not_py4js)


def _is_not_py4js(record: logging.LogRecord) -> bool:
    """Return whether a log record is not from py4j. It is used as a filter of the root logger."""
    return record.module not in _PY4J


def one_line(text: str) -> str:
    """Return the line with the cause of an error.

    `text` is the error of Spark, of many lines. The end of the JVM's standard error is searched as
    well.
    """
    all_lines = [*text.splitlines(), *last_words().splitlines()]
    lines = [line.strip() for line in all_lines if line.strip()]
    causes = [line for line in lines if _CAUSE.match(line)]
    if causes:
        cause = causes[-1]
    elif lines:
        cause = lines[0]
    else:
        cause = "there is no message"
    return cause[:_MOST_QUOTED]


def last_words() -> str:
    """Return the end of the JVM's standard error."""
    if not _jvm_log:
        return ""
    log = _jvm_log[-1]
    log.seek(0, os.SEEK_END)
    log.seek(max(log.tell() - _MOST_QUOTED, 0))
    return log.read().decode(errors="replace").strip()


def _with_retries(url: str) -> str:
    """Return a master under which tasks are retried.

    In local mode, Spark tries each task only once unless the master states a number, so that a
    single killed worker would end the job.
    """
    match = _LOCAL_MASTER.fullmatch(url)
    return url if match is None else f"local[{match.group(1) or '1'},{ATTEMPTS}]"


def settings(master: str, *, light: bool) -> dict[str, str]:
    """Return default settings for a master, which a user's configuration overrides.

    `light` is explained at `start_context`.
    """
    local = master.startswith("local")
    defaults = {
        "spark.ui.enabled": str(not local).lower(),
        "spark.ui.showConsoleProgress": "false",
        "spark.python.worker.reuse": "true",
        "spark.log.level": "ERROR",
    }
    if local:
        defaults["spark.driver.host"] = "127.0.0.1"
        defaults["spark.driver.bindAddress"] = "127.0.0.1"
    elif light:
        defaults["spark.executor.extraJavaOptions"] = LIGHT_JVM
    if master == "yarn":
        defaults |= _YARN_LIMITS
    return defaults


def _share_sources() -> None:
    """Let local workers import this program from the same folder as the driver."""
    root = str(source_root())
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if root not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join(path for path in (root, *paths) if path)


def _open_gateway(*, light: bool) -> None:
    """Start the JVM with its standard error redirected to a file.

    Without a context, the JVM's log level cannot be set, so redirecting is the only way to silence
    it. A light JVM, which was started for an audit, is replaced if `light` is false.
    """
    if SparkContext._gateway is not None:  # noqa: SLF001  # a JVM of this process is reused, as pyspark does
        # A context that is not stopped yet is shared, so its JVM stays as well.
        if light or not _is_light or SparkContext._active_spark_context is not None:  # noqa: SLF001  # as above
            return
        _close_gateway()
    if light and "JDK_JAVA_OPTIONS" not in os.environ:
        with _variable("JDK_JAVA_OPTIONS", LIGHT_JVM):
            _launch()
        _is_light.append(True)
    else:
        _launch()


def _close_gateway() -> None:
    """End the JVM that was started for an audit, by closing its standard input."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001  # no other way to reach it
    gateway.shutdown()
    gateway.proc.stdin.close()
    forget_context()


@contextlib.contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """Set a variable of the environment, and remove it at the end."""
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]


def _launch() -> None:
    """Start the JVM and hand it to pyspark."""
    _is_light.clear()
    log = tempfile.TemporaryFile()  # noqa: SIM115  # open as long as the JVM runs
    atexit.register(log.close)
    _jvm_log.append(log)
    gateway = launch_gateway(popen_kwargs={"stderr": log})  # type: ignore[no-untyped-call]  # pyspark lacks this type
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001  # the one way to hand a gateway over early
