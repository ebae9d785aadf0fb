"""Whether the program is a process of its own, and what it then spares."""

import click


class OwnProcess:
    """The object of click's context if this program is the process.

    Tests and host programs that call the command line do not set it.
    """


def spare_memory() -> None:
    """Make Arrow use less memory if this process was started as this program."""
    context = click.get_current_context(silent=True)
    if context is not None and context.find_object(OwnProcess) is not None:
        from pubsub_emulator.spark_audit.engine.memory import spare

        spare()
