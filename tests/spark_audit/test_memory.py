"""A process of an audit does without pandas; a program that calls the audit keeps it."""

from pathlib import Path

import pytest
from support.processes import python

SMALL = """
import sys
import pyarrow as pa
from pubsub_emulator.spark_audit.engine.memory import give_back, spare

spare()
assert pa.Table.from_pylist([{"a": 1}]).num_rows == 1
assert "pandas" not in sys.modules
assert pa.default_memory_pool().backend_name == "system"
give_back()
import pandas
"""

HOST = """
import sys
from click.testing import CliRunner
from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.cli.base.own_process import spare_memory

CliRunner().invoke(pubsub, ["audit", "nothing", "--out", "out"])
import pyarrow as pa
spare_memory()
assert len(pa.table({"a": [1]}).to_pandas()) == 1
"""


@pytest.mark.parametrize("script", [SMALL, HOST], ids=["a process of its own", "a host"])
def test_arrow_looks_for_pandas_only_where_somebody_may_want_it(script: str, tmp_path: Path) -> None:
    done = python("-c", script, folder=tmp_path)
    assert done.returncode == 0, done.stderr
