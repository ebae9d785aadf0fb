"""One audited history for all tests of the report: three subscribers, cheats, and a file that
cannot be read.
"""

import pytest
from support.spark_audit.audits import drop_a_node, flip, write_history
from support.spark_audit.forged_report import Reported

from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.reader import History
from pubsub_emulator.spark_audit.report import PAGE
from pubsub_emulator.spark_audit.report.page import write_report


@pytest.fixture(scope="session")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Reported:
    folder = tmp_path_factory.mktemp("report")
    history = write_history(
        folder / "history", 12, subscribers=3, cheats={3: drop_a_node, 7: drop_a_node}
    )
    (entry,) = History.open(history).files(schema.BLOCKS, "dev", 2002, 1)
    flip(history / entry.path, entry.row_groups[0].offset + 5)
    audit(history, folder / "audit", engine="python")
    out = folder / "out"
    out.mkdir()
    write_report(folder / "audit", out)
    return Reported(folder / "audit", out / PAGE)
