"""Which engine runs the units of an audit, and its start. Each engine is imported when it is chosen."""

import os
from typing import Final

from pubsub_emulator.emulator.extras import brings
from pubsub_emulator.spark_audit.engine.engine import EngineLost, Mapper, PythonMapper, usable_cores

PACKAGES: Final = frozenset({"pandas", "py4j", "pyspark"})
"""The import names of Spark and the packages that come with it."""


def choose_engine(name: str, master: str | None, units: int) -> str:
    """The engine that `auto` means: Spark with a master or under `spark-submit`, else processes if there is work."""
    if name != "auto":
        return name
    if master is not None or "PYSPARK_GATEWAY_PORT" in os.environ:
        return "spark"
    return "pool" if units > 1 and usable_cores() > 1 else "python"


def may_be_spark(name: str, master: str | None) -> bool:
    """Whether Spark may run in this process, by the engine's name in the arguments."""
    return name == "spark" or (name == "auto" and choose_engine(name, master, 0) == "spark")


def open_mapper(name: str, master: str | None = None) -> Mapper:
    """The mapper of a name. Raises `EngineLost` when Spark cannot be started."""
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
    """Return the error to raise if Spark cannot be imported: the command that installs it, if a package is missing."""
    if not isinstance(error, ModuleNotFoundError):
        return EngineLost(f"Spark cannot be imported: {error}")
    if (error.name or "").partition(".")[0] not in PACKAGES:
        return error
    return EngineLost(f"Spark needs {error.name}, {brings('spark')}")
