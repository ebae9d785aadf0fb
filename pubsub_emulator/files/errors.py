"""The error of a command that cannot use what it was given."""

from pubsub_emulator.primitives.errors import PubsubError


class InputError(PubsubError):
    """A file, folder or name that a command cannot use; the message names it and says why."""
