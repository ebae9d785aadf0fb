"""`pubsub evidence`: its arguments and help."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.options import option
from pubsub_emulator.cli.base.result import Result, with_json_option

if TYPE_CHECKING:
    from pubsub_emulator.runtime.rules import Rules


def _is_audit(path: str) -> bool:
    """Return whether a path is the folder or URI of an audit, and not a finding's file."""
    return not Path(path).is_file()


@click.command(
    "evidence",
    cls=Command,
    needs=(Need("audit", "path", _is_audit),),
    epilog=(
        "\b\nExamples:\n  pubsub evidence out/audit\n  pubsub evidence out/audit --finding 3f9c"
        " --out finding.json\n  pubsub evidence finding.json\n\n\b\nExit codes:\n  0 the finding is"
        " confirmed, or written; 2 it is not, or the file has no finding;\n  3 it depends on"
        " figures that one file cannot prove\n"
    ),
)
@click.argument("path", type=options.AUDIT_OR_FILE)
@option(
    "--finding",
    metavar="ID",
    help="For an audit's folder: the finding to write, by its id or the start of it.",
)
@option("--out", type=options.NEW_FILE_AND_FOLDER, help="The file to write it to.")
@options.rules
@with_json_option
def command(path: str, finding: str | None, out: Path | None, *, rules: "Rules") -> Result:
    """Check a finding again, offline, from its file alone; or extract that file from an audit.

    PATH is a finding's file, or the output folder of `pubsub audit`. For a folder, the findings are
    listed, and --finding writes one of them. A file contains the block with its proof and seal, and
    the state that judging it needs, as a storage proof against the root in the parent's header.
    Checking needs neither the history nor Spark. Facts that no file can prove, such as what the
    relay chain attested, are named.
    """
    from pubsub_emulator.cli.commands.evidence.run import check, list_findings, write

    if Path(path).is_file():
        if finding is not None or out is not None:
            raise click.UsageError(
                "--finding and --out go with an audit's folder, not with a finding's file"
            )
        return check(Path(path), rules)
    if (finding is None) != (out is None):
        raise click.UsageError("--finding and --out go together")
    return list_findings(path) if finding is None or out is None else write(path, finding, out)
