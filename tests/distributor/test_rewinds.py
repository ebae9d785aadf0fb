"""ID-36: a log that was taken back is noticed, also where the last row read is the same on both branches."""

import pytest

from pubsub_emulator.distributor.core import rows
from pubsub_emulator.distributor.core.rules import Rules
from pubsub_emulator.distributor.event import Notice, parse_notification, parse_row
from pubsub_emulator.distributor.simulation.network import SimulatedNetwork
from pubsub_emulator.distributor.simulation.stories import event_of
from pubsub_emulator.distributor.simulation.world import World

BLOCK = "0x" + "ab" * 32


def _branched(network: SimulatedNetwork, length: int, *, recheck: int = 100) -> World:
    """A network whose log lost event 1 to another branch that ends with the same rows; nobody was notified."""
    world = World(0, {"a": network, "b": SimulatedNetwork("b")}, rules=Rules((), "", recheck=recheck))
    for number in range(length):
        network.append(event_of(number, number)[1], world.now)
    world.start()
    world.run(100_000)
    assert len(world.networks["b"].log) == length
    world.cut("a", 1)
    for number in (1000, *range(2, length)):
        network.append(event_of(number, number)[1], world.now)
    return world


@pytest.mark.parametrize("length", [3, 40])
def test_id36_a_block_s_hash_tells_of_another_branch_however_far_back_it_begins(length: int) -> None:
    world = _branched(SimulatedNetwork("a"), length, recheck=0)
    world.run(200_000)
    assert world.notes["rewind"] == 1
    assert world.networks["a"].count(event_of(1)[0]) == 1
    assert world.networks["b"].count(event_of(1000)[0]) == 1
    assert sum(world.calls.values()) == length + 2  # one event is new to each network


def test_id36_without_blocks_rows_before_the_last_are_read_again() -> None:
    world = _branched(SimulatedNetwork("a", tells_blocks=False), 40)
    world.run(200_000)
    assert world.notes["rewind"] == 1
    assert [world.networks["a"].count(event_of(1)[0]), world.networks["b"].count(event_of(1000)[0])] == [1, 1]


def test_id36_without_blocks_a_short_log_is_cut_where_it_ends() -> None:
    world = World(0, {"a": SimulatedNetwork("a", tells_blocks=False), "b": SimulatedNetwork("b")})
    for number in range(10):
        world.networks["a"].append(event_of(number, number)[1], world.now)
    world.start()
    world.run(100_000)
    world.cut("a", 7)
    world.run(300_000)
    assert world.notes["rewind"] == 1
    assert len(world.networks["a"].log) == 10
    assert sum(world.calls.values()) == 10 + 3


def test_id36_a_notification_without_its_block_is_confirmed_by_the_row_that_has_it() -> None:
    world = World(0)
    world.start()
    world.run(500)
    network = world.networks["a"]
    notice = network.append(event_of(1)[1], world.now)
    assert notice is not None
    world.deliver(next(iter(network.hooks.values())), notice._replace(block=""))
    world.run(100_000)
    assert world.notes["rewind"] == 0
    assert world.watch.read_row(rows.numbers("a"), "1") == rows.entry(notice)


def test_a_row_of_a_store_from_before_blocks_were_kept_is_still_compared() -> None:
    name, event = event_of(1)
    notice = Notice(1, 1, event, name, "", "", BLOCK)
    older = rows.entry(notice).rpartition("|")[0]
    assert rows.same_entry(older, notice)
    assert not rows.same_entry(older, notice._replace(id="other"))
    assert not rows.same_entry(rows.entry(notice), notice._replace(block="0x" + "cd" * 32))


def test_the_block_is_read_from_rows_and_notifications_and_what_is_no_hash_is_dropped() -> None:
    name, event = event_of(1)
    notice = Notice(1, 1, event, name, "0x" + "eb" * 20, "", BLOCK)
    assert parse_row(notice.row()) == notice
    assert parse_notification(notice.body()) == (None, notice)
    for wrong in ("0x12", 7, None, BLOCK + "00"):
        assert not parse_row({**notice.row(), "blockHash": wrong}).block
    assert parse_row({**notice.row(), "blockHash": BLOCK.upper().replace("X", "x")}).block == BLOCK
