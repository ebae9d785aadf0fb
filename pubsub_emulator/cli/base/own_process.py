"""A mark for a process that only runs this program, and the memory that it then saves."""

import click


class OwnProcess:
    """The object of click's context if this program is the process.

    Tests and host programs that call the command line do not set it.
    """


def spare_memory() -> None:
    """Make Arrow use less memory, unless a test or a host program calls the command line."""
    context = click.get_current_context(silent=True)
    if context is not None and context.find_object(OwnProcess) is not None:
        from pubsub_emulator.spark_audit.engine.memory import spare

        spare()
