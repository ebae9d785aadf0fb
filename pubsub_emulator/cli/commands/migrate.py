"""`pubsub migrate`: its arguments and help."""

import click

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Command, Need
from pubsub_emulator.cli.base.result import Result, with_json_option
from pubsub_emulator.primitives.words import counted


@click.command(
    "migrate",
    cls=Command,
    needs=(Need("audit"),),
    epilog="\b\nExample:\n  pubsub migrate out/old/history\n",
)
@click.argument("history", type=options.HISTORY)
@with_json_option
def command(history: str) -> Result:
    """Convert a HISTORY of an older format to the present one, in place.

    Segments are written again, each with one file per table; every row is checked against its
    manifest as it is read. The old files of a network are removed once all of it is written. The
    same command continues an interrupted migration. Outputs of audits are not migrated; audit again
    instead. An audit judges blocks by the present rules, whichever version made them.
    """
    from pubsub_emulator.cli.screen import say, stage
    from pubsub_emulator.spark_audit.history.migrate import migrate

    with stage(f"checking and migrating {history}") as advance:
        try:
            done = migrate(history, lambda at, total: advance(at, total, "writing segments"))
        except KeyboardInterrupt:
            say(
                "interrupted: everything that is still needed is there, and the same command"
                " continues"
            )
            raise
    if done.manifests:
        say(f"{done.manifests:,} of {counted(done.segments, 'segment')} written again")
    else:
        say("nothing to do: the history is of the present format")
    head = f"0x{done.head}"
    say(f"head: {head}")
    return Result(
        {"history": history, "manifests": done.manifests, "segments": done.segments, "head": head}
    )
