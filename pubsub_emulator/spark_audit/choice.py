"""The choice of the engine that runs the units of an audit, and its start.

An engine is imported only after it was chosen, since importing Spark is slow and it may not be
installed.
"""

import os
from typing import Final

from pubsub_emulator.files.extras import brings
from pubsub_emulator.spark_audit.engine.engine import EngineLost, Mapper, PythonMapper, usable_cores

PACKAGES: Final = frozenset({"pandas", "py4j", "pyspark"})
"""The import names of Spark and of the packages that it requires."""


def choose_engine(name: str, master: str | None, units: int) -> str:
    """Return the engine's name, with `auto` resolved.

    `auto` means Spark if there is a master or the program runs under `spark-submit` (which sets
    `PYSPARK_GATEWAY_PORT`). Otherwise it means a pool of processes if there are several units and
    cores, and this process if not.
    """
    if name != "auto":
        return name
    if master is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return "spark"
    return "pool" if units > 1 and usable_cores() > 1 else "python"


def may_be_spark(name: str, master: str | None) -> bool:
    """Return whether an engine named in the arguments may start Spark in this process."""
    return name == "spark" or (name == "auto" and choose_engine(name, master, 0) == "spark")


def open_mapper(name: str, master: str | None = None) -> Mapper:
    """Start the engine of this name, which must not be `auto`.

    Raises `EngineLost` if Spark is not installed or cannot be started. If Spark is installed but
    one of this program's own imports is missing, that `ImportError` is raised.
    """
    if name == "python":
        return PythonMapper()
    if name == "pool":
        from pubsub_emulator.spark_audit.engine.pool import PoolMapper  # noqa: PLC0415  # started when it is wanted

        return PoolMapper()
    try:
        from pubsub_emulator.spark_audit.spark.job import SparkMapper  # noqa: PLC0415  # a JVM's library, loaded when it is wanted
    except ImportError as error:
        raise without_spark(error) from error
    return SparkMapper(master)


def without_spark(error: ImportError) -> Exception:
    """Return the error to raise after Spark could not be imported.

    If one of Spark's packages is missing, the error names the command that installs it. If another
    package is missing, it is the given error.
    """
    if not isinstance(error, ModuleNotFoundError):
        return EngineLost(f"Spark cannot be imported: {error}")
    if (error.name or "").partition(".")[0] not in PACKAGES:
        return error
    return EngineLost(f"Spark needs {error.name}, {brings('spark')}")
