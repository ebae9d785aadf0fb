"""`pubsub migrate`: converts a history to the present format."""

from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.screen import say, stage
from pubsub_emulator.spark_audit.history.migrate import migrate


def run_migrate(history: str) -> Result:
    """Convert a history to the present format, in place."""
    with stage(f"checking and migrating {history}") as advance:
        try:
            done = migrate(history, lambda at, total: advance(at, total, "writing segments"))
        except KeyboardInterrupt:
            say("interrupted: nothing was removed that is still needed, and the same command goes on")
            raise
    if done.manifests:
        say(f"{done.manifests:,} of {done.segments:,} segments written again")
    else:
        say("nothing to do: the history is of the present format")
    say(f"head: 0x{done.head}")
    return Result(
        {"history": history, "manifests": done.manifests, "segments": done.segments, "head": f"0x{done.head}"}
    )
