"""The outputs of this program in a folder: `find` lists them, `remove` removes one."""

from pubsub_emulator.cli.contents.outputs import Output, OutputKind, find
from pubsub_emulator.cli.contents.removal import remove

__all__ = ["Output", "OutputKind", "find", "remove"]
