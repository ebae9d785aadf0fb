"""`pubsub events audit` and `pubsub prism audit`: deliveries compared with the server's log."""

import shutil
import tempfile
from contextlib import closing
from pathlib import Path

from interchain_events.delivery_audit import tables
from interchain_events.delivery_audit.deliveries import Audited, DeliveriesError, audit_deliveries
from interchain_events.delivery_audit.statuses import audit_statuses
from interchain_events.events.log.sql_store import existing_store
from interchain_events.events.subscriptions.deliveries import export_log
from interchain_events.prism.tables.operations import OperationLog
from interchain_events.prism.tables.schema import prepare
from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.exits import FINDINGS
from pubsub_emulator.cli.screen import say, table
from pubsub_emulator.primitives.words import counted
from pubsub_emulator.spark_audit.spark.context import start_context

_TOKEN = 16
"""The shown characters of a subscription's or operation's id. `--json` prints the whole id."""


def run_audit(
    deliveries: Path, place: str, master: str | None, *, with_statuses: bool = False
) -> Result:
    """Compare the tables in the folder `deliveries` with the log at `place`.

    If `with_statuses` is true, the statuses of PRISM operations are compared as well. `master` is
    the URL of Spark's master. Raises `PubsubError`.
    """
    has_streams = (deliveries / tables.EVENT_STREAMS.name).is_dir()
    status_tables = (
        (tables.STATUS_TRUTHS, tables.STATUS_ANSWERS, tables.STATUS_STREAMS)
        if with_statuses
        else ()
    )
    if not has_streams and not any((deliveries / item.name).is_dir() for item in status_tables):
        raise DeliveriesError(f"{deliveries}: there is no table {tables.EVENT_STREAMS.name}")
    with tempfile.TemporaryDirectory(prefix="pubsub-events-") as name:
        folder = Path(name)
        for table_name in (tables.EVENT_STREAMS.name, tables.EVENT_DELIVERIES.name):
            if (deliveries / table_name).is_dir():
                shutil.copytree(deliveries / table_name, folder / table_name)
        with closing(existing_store(place)) as store:
            if with_statuses:
                prepare(store.database)
            events = export_log(OperationLog(store.database) if with_statuses else store, folder)
        context = start_context(master)
        try:
            audited = audit_deliveries(context, folder) if has_streams else Audited([], 0, 0, 0)
            statuses = audit_statuses(context, deliveries) if with_statuses else None
        finally:
            context.stop()
    say(
        f"{counted(audited.deliveries, 'delivery', 'deliveries')} in"
        f" {counted(audited.streams, 'stream')} against {counted(events, 'event')} of the log"
    )
    if audited.taken_back:
        say(f"{audited.taken_back:,} of them are on reverted branches and cannot be compared")
    if not _say_findings(audited.findings, "subscription", "first_seq"):
        say("no event is missing, duplicate, out of order, unrequested, altered or invented")
    document = {
        "findings": audited.findings,
        "streams": audited.streams,
        "deliveries": audited.deliveries,
    }
    document |= {"taken_back": audited.taken_back, "events": events}
    if statuses is not None:
        say(
            f"{counted(statuses.answers, 'status', 'statuses')} sent in"
            f" {counted(statuses.streams, 'stream')} of one operation each"
        )
        if not _say_findings(statuses.findings, "operation", "first_position"):
            say("no status is duplicate, out of order, altered, invented or withheld")
        document["statuses"] = statuses._asdict()
    return Result(document, FINDINGS if audited.findings or (statuses and statuses.findings) else 0)


def _say_findings(findings: list[dict[str, object]], stream: str, first: str) -> bool:
    """Print findings by stream and day. Returns whether there are any.

    `stream` and `first` are the columns of the stream and of the first place with the finding.
    """
    if findings:
        columns = (stream, "day", "finding", "count", first)
        rows = [
            (str(finding[stream])[:_TOKEN], *(finding[column] for column in columns[1:]))
            for finding in findings
        ]
        table("", tuple(column.replace("_", " ") for column in columns), rows)
    return bool(findings)
