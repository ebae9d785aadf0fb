"""`pubsub audit`: its arguments and help."""

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import ON_SPARK, Command, Need
from pubsub_emulator.cli.base.options import AUDIT_OUT, option, repeatable
from pubsub_emulator.cli.base.result import Result, with_json_option


@click.command(
    "audit",
    cls=Command,
    needs=(Need("audit"), *ON_SPARK, Need("plot", "report")),
    epilog=(
        "\b\nExamples:\n  pubsub audit out/demo/history --out out/audit\n  pubsub audit"
        " out/demo/history --out out/audit --engine python\n  pubsub audit s3://bucket/history"
        " --out s3://bucket/audit --master spark://127.0.0.1:7077\n  pubsub audit"
        " out/growing/history --out out/audit --follow --fail-on error\n\n\b\nExit codes:\n  0"
        " clean, 1 findings, 2 usage, 3 read errors or incomplete, 4 infrastructure,\n  5 findings,"
        " and read errors or incomplete\n"
    ),
)
@click.argument("history", type=options.HISTORY)
@option(
    "--out",
    type=AUDIT_OUT,
    required=True,
    help="Folder or URI for the audit's tables. A later audit adds to it.",
)
@options.rules
@options.master
@options.engine
@option(
    "--fail-on",
    type=click.Choice(["info", "warning", "error", "never"]),
    default="warning",
    help="Exit with code 1 if a finding has at least this severity.",
)
@repeatable(
    "--trust",
    "trusted",
    metavar="HASH",
    says="Hash in hex of a header that a chain may start at instead of genesis",
)
@option(
    "--head",
    metavar="DIGEST",
    help=(
        "The head that HISTORY must have, as an earlier audit printed it; it proves completeness."
        " Any other head gives exit code 3."
    ),
)
@option(
    "--retain",
    type=click.FloatRange(min=0),
    default=24.0,
    metavar="HOURS",
    help="How long replaced files of tables are kept for readers that still use them.",
)
@option(
    "--follow", is_flag=True, help="Continue as segments are added to HISTORY, until interrupted."
)
@option("--report", is_flag=True, help="Also write the report to OUT/report; see `pubsub report`.")
@with_json_option
def command(*, follow: bool, report: bool, **given: object) -> Result:
    """Verify every block of HISTORY again and report proof costs, cheats and unreadable data.

    HISTORY and OUT are folders or URIs (file:, s3:, s3a:, gs:, hdfs:); credentials come from the
    environment. The digest printed last is one hash over the rows of all tables: equal histories
    have equal digests.
    """
    from pubsub_emulator.cli.commands.audit.run import AuditOptions, run_audit

    return run_audit(options.filled(AuditOptions, given), growing=follow, report=report)
