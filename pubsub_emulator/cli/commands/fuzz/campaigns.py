"""The options of a campaign, whatever it tries."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pubsub_emulator.runtime.rules import Rules

CASES: Final = 5000
"""The number of cases without --cases and --minutes."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """The options of `pubsub fuzz`."""

    cases: int | None
    seed: str
    strategies: tuple[str, ...]
    """The names of the strategies to use. It is empty for all."""
    out: Path
    """The folder for the files of surprises."""
    minutes: float | None
    corpus: Path | None
    """The folder with cases that guide the campaign, if any."""
    verifier: str | None
    """The command that starts another verifier, if one is compared with ours."""
    rules: Rules

    @property
    def most(self) -> int | None:
        """The number of cases, `None` for as many as --minutes allow."""
        if self.cases is None and self.minutes is None:
            return CASES
        return self.cases

    @property
    def counted(self) -> int:
        """The number of cases, or one that no campaign reaches if only --minutes limit them."""
        return sys.maxsize if self.most is None else self.most
