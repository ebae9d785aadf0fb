"""References to a user's rules, by which tasks name them.

Rules are Python code in a file. A task names the file by its path and digest. The worker reads it,
and refuses a file that was changed in the meantime.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pubsub_emulator.emulator.user_file import read_rules
from pubsub_emulator.runtime.rules import SHIPPED, Rules


@dataclass(frozen=True, slots=True)
class RulesFile:
    """A reference to rules, for tasks."""

    path: str = ""
    """The file's path, empty for the shipped rules."""
    digest: str = ""
    """The BLAKE2 hash of the file's content in hex, empty for the shipped rules."""

    @staticmethod
    def of(rules: Rules) -> "RulesFile":
        """Return the reference to some rules."""
        return RulesFile(rules.path, rules.digest.hex())

    def read(self) -> Rules:
        """Return the rules. Raises `RulesError` if the file cannot be read or was changed."""
        if not self.digest:
            return SHIPPED
        return read_rules(Path(self.path), bytes.fromhex(self.digest))


SHIPPED_RULES: Final = RulesFile()
"""The reference to the rules of this program."""
