"""Shows networks and their blocks: drawings of proofs, notebook cards, and the page of a run.

In a notebook, `%load_ext pubsub_emulator.explorer` registers cards for networks, steps, blocks,
ledgers, tries, events and state differences.
"""


def load_ipython_extension(shell: object) -> None:
    """Load the extension, as `%load_ext pubsub_emulator.explorer` does."""
    from pubsub_emulator.explorer.notebook import register  # noqa: PLC0415  # pages do not need cards

    register(shell)


def unload_ipython_extension(shell: object) -> None:
    """Unload the extension, as `%unload_ext pubsub_emulator.explorer` does."""
    from pubsub_emulator.explorer.notebook import unregister  # noqa: PLC0415  # as above

    unregister(shell)
