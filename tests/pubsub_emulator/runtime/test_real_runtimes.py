"""The runtimes here beside real ones: what differs in their metadata is kept, with reasons.

A new difference makes these tests red. `python tests/support/runtime/real_differences.py` writes
it into the kept list, where its place needs a reason.
"""

import pytest
from support.plumbing.pages import filled
from support.runtime.real_differences import (
    CHAINS,
    Differences,
    compared,
    found,
    kept,
    of_kinds,
    runtimes,
)
from support.runtime.real_shapes import Runtime


@pytest.fixture(scope="module")
def now() -> Differences:
    return found()


def test_the_kept_differences_are_the_ones_that_there_are(now: Differences) -> None:
    listed = {place: of_kinds(entry) for place, entry in kept().items()}
    assert listed.keys() == now.keys()
    for place, kinds in now.items():
        assert listed[place] == kinds, f"{place}: run tests/support/runtime/real_differences.py"


def test_every_difference_has_a_reason() -> None:
    for place, entry in kept().items():
        assert entry["reason"].endswith("."), place


def test_the_page_shows_every_place_with_its_reason() -> None:
    page = filled("upstream.md")
    for place, entry in kept().items():
        name = place.partition(".")[2]
        assert f"| `{name}` | {entry['reason']} |" in page, place


def test_a_lost_new_or_changed_item_is_a_difference() -> None:
    theirs = {"a": "0(u32)", "b": "1(u8)", "c": "2()"}
    ours = {"a": "0(u32)", "b": "1(u16)", "d": "2()"}
    assert compared(ours, theirs) == {"missing": ["c"], "extra": ["d"], "other": ["b"]}


@pytest.mark.parametrize("chain", CHAINS)
def test_shared_pallets_have_their_items_under_the_same_prefix(chain: str) -> None:
    """Storage keys begin with it."""
    ours, theirs = runtimes(chain)
    for name in ours.pallets.keys() & theirs.pallets.keys():
        if ours.pallets[name].storage:
            assert ours.pallets[name].prefix == theirs.pallets[name].prefix, name


def inherent(runtime: Runtime) -> str:
    return runtime.items()["ParachainSystem.calls"]["set_validation_data"]


def test_the_inherent_has_the_bytes_of_a_real_chain_of_today() -> None:
    """UP-7: the call's number and the shape of both arguments are those of Asset Hub 2.0.0."""
    ours, theirs = runtimes("parachain")
    assert inherent(ours) == inherent(theirs)
    messages = "([(u32,[u8])],[(u32,[u8;32])]),([(u32,(u32,[u8]))],[(u32,(u32,[u8;32]))])"
    assert messages in inherent(ours)


@pytest.mark.parametrize(
    ("chain", "place", "name"),
    [
        ("relay", "Dmp.storage", "DownwardMessageQueues"),
        ("relay", "Dmp.storage", "DownwardMessageQueueHeads"),
        ("relay", "Hrmp.storage", "HrmpChannels"),
        ("relay", "Hrmp.storage", "HrmpChannelContents"),
        ("relay", "Configuration.storage", "ActiveConfig"),
        ("parachain", "ParachainSystem.storage", "LastProcessedDownwardMessage"),
        ("parachain", "ParachainSystem.storage", "LastProcessedHrmpMessage"),
        ("parachain", "ParachainSystem.storage", "LastHrmpMqcHeads"),
    ],
)
def test_values_that_blocks_prove_or_keep_have_the_real_bytes(
    chain: str, place: str, name: str
) -> None:
    ours, theirs = runtimes(chain)
    assert ours.items()[place][name] == theirs.items()[place][name]
