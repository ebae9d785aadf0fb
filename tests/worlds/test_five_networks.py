"""The demonstration with a network of each kind."""

import asyncio
from pathlib import Path

from worlds.five_networks import EACH, KINDS, demonstrate


def test_five_networks_of_each_kind_have_every_event_once(tmp_path: Path) -> None:
    seen = asyncio.run(demonstrate(tmp_path))
    assert seen.on.keys() == KINDS.keys()
    assert {name: sum(counts.values()) for name, counts in seen.on.items()} == dict.fromkeys(KINDS, 6 * EACH)
    assert not seen.doubled()
    assert seen.told.keys() == set(seen.published)
