"""Digests of the traces and states of stories.

They show whether a change of the network or the roles changes any message. After one that should,
`PYTHONPATH=tests python -m support.icrc72.golden_stories` writes them anew.
"""

import hashlib
import json
from pathlib import Path
from typing import Final

from interchain_events.icrc72.ic.messaging import Happening
from interchain_events.icrc72.ic.stable import encode
from interchain_events.icrc72.stories import begin, drawn, finish

FILE: Final = Path(__file__).parents[2] / "vectors" / "canister_stories" / "digests.json"
STORIES: Final = 6
"""How many stories are played. Together they have every kind of trouble."""


class Digest:
    """An observer that hashes the trace of a network."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.happenings = 0

    def happened(self, happening: Happening) -> None:
        """Add an entry of the trace."""
        self.happenings += 1
        self.hash.update(encode(tuple(happening)))


def digest_of(number: int) -> list[int | str]:
    """Play a story. Return the length of its trace, and the hash of trace and final states."""
    digest = Digest()
    story = begin(drawn(b"golden %d" % number), (digest,))
    finish(story)
    for host in story.network.hosts():
        if host.code is not None:
            digest.hash.update(host.code.state_bytes())
    return [digest.happenings, digest.hash.hexdigest()]


if __name__ == "__main__":
    digests = {str(number): digest_of(number) for number in range(STORIES)}
    FILE.write_text(json.dumps(digests, indent=1) + "\n", encoding="utf-8")
