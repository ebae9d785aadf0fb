"""Networks and their blocks in front of people's eyes: drawings of proofs, notebook cards, the page of a run.

In a notebook, `%load_ext pubsub_emulator.explorer` has networks, steps, blocks, ledgers, tries, events and state
differences show themselves. The emulator knows nothing of it.
"""

from typing import Any


def load_ipython_extension(shell: Any) -> None:
    """What `%load_ext pubsub_emulator.explorer` calls."""
    from pubsub_emulator.explorer.notebook import register  # noqa: PLC0415  # whoever writes a page needs no cards

    register(shell)


def unload_ipython_extension(shell: Any) -> None:
    """What `%unload_ext pubsub_emulator.explorer` calls."""
    from pubsub_emulator.explorer.notebook import unregister  # noqa: PLC0415  # as above

    unregister(shell)
