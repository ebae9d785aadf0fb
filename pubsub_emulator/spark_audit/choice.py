"""Which engine runs the units of an audit, and its start. Each engine is imported when it is chosen."""

import os

from pubsub_emulator.spark_audit.engine.engine import EngineLost, Mapper, PythonMapper, usable_cores


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
        raise EngineLost(f"the Spark engine needs the extra `spark`: {error}") from None
    return SparkMapper(master)
