"""Networks under governance, upgrades, channels, departures, faults and loads: nobody is blamed,
doubled or stuck.
"""

import pytest

from pubsub_emulator.emulator.network import Pace
from pubsub_emulator.laboratory.stories import BrokenPromise, NetworkStory, tell
from pubsub_emulator.primitives.types import Hash
from pubsub_emulator.runtime.framework.message_chains import ZERO_HEAD
from pubsub_emulator.runtime.parachain.block import QueueHeads


@pytest.mark.parametrize("seed", range(8))
def test_a_story_told_by_a_seed_keeps_its_promises(seed: int) -> None:
    tell(b"test %d" % seed)


def test_the_same_seed_tells_the_same_story() -> None:
    one, other = tell(b"again", 12), tell(b"again", 12)
    assert one.events == other.events
    assert one.network.relay.header.hash() == other.network.relay.header.hash()


# The story can be broken: each promise is really held


def test_a_verdict_on_an_honest_block_breaks_a_story(monkeypatch: pytest.MonkeyPatch) -> None:
    story = NetworkStory()
    story.send(0, 2, 10)
    monkeypatch.setattr(
        "pubsub_emulator.runtime.parachain.validate.downward_heads",
        lambda *_args: QueueHeads(ZERO_HEAD, Hash(bytes(31) + b"\x01")),
    )
    with pytest.raises(BrokenPromise, match="an honest block of 1000 is refused"):
        story.steps(3)


def test_a_message_that_is_lost_breaks_a_story() -> None:
    story = NetworkStory()
    story.send(0, 2, 10)
    story.network.parachain(1000).horizontal.clear()
    with pytest.raises(BrokenPromise, match="of 1000 to 2500 is lost"):
        story.end()


def test_a_parachain_that_stands_still_breaks_a_story() -> None:
    story = NetworkStory()
    story.network.parachain(2600).pace = Pace(every=1 << 40)
    with pytest.raises(BrokenPromise, match="parachain 2600 is stuck"):
        story.end()
