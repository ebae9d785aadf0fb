"""Under backlog messages wait in order, paras take turns, nothing is lost or served twice (PS-11, PS-23)."""

import pytest
from support.relay_chain import world
from support.relay_chain.world import BOUNDARY, PUBLIC, ROOT, SYSTEM

from pubsub_emulator.emulator.relay.chain import RelayChain
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.executive import Block
from pubsub_emulator.runtime.pallet_pubsub.events import DataPublished, PublisherDeregistered
from pubsub_emulator.runtime.relay.message_queue import Processed, ring

THREE = (SYSTEM, BOUNDARY, PUBLIC)


def one(para: int, number: int, size: int = 1) -> bytes:
    """A message whose value says who sent it as which."""
    return world.message(world.publish(number % 5, b"%d/%d" % (para, number) + bytes(size)))


def served(block: Block) -> list[tuple[int, bytes]]:
    told = world.events(block, "MessageQueue")
    return [(event.origin, event.id) for event in told if isinstance(event, Processed)]


def drain(chain: RelayChain, blocks: int = 20) -> list[list[tuple[int, bytes]]]:
    """What each block served until nothing waits."""
    out = []
    for _ in range(blocks):
        out.append(served(world.step(chain)))
        if not ring.members(chain.storage()):
            return out
    pytest.fail("the queues do not empty")


def test_ps23_three_paras_take_turns_and_each_is_served_in_order() -> None:
    chain = world.start(publishers=[PUBLIC])
    sent = {para: [one(para, number) for number in range(4)] for para in THREE}
    world.step(chain, [world.candidate(chain, para, *sent[para]) for para in THREE])
    blocks = drain(chain)
    # a block serves three publishes: what is left of a queue waits until the others had their turn
    assert [[para for para, _ in block] for block in blocks] == [
        [SYSTEM] * 3,
        [BOUNDARY] * 3,
        [PUBLIC] * 3,
        [SYSTEM, BOUNDARY, PUBLIC],
    ]
    for para in THREE:
        ids = [digest for block in blocks for origin, digest in block if origin == para]
        assert ids == [blake2_256(data) for data in sent[para]]
        assert world.counted(chain, para)[0] == 4


def test_ps23_messages_that_keep_coming_are_all_served_once_in_order_and_last_write_wins() -> None:
    chain = world.start(publishers=[PUBLIC])
    accepted: dict[int, list[bytes]] = {para: [] for para in THREE}
    done: list[tuple[int, bytes]] = []
    for number in range(30):
        candidates = []
        for para in THREE:
            messages = [one(para, 10 * number + i) for i in range(1 + number % 2)]
            storage = chain.storage()
            count, size = chain.runtime.message_queue.remaining(storage, ParaId(para))
            # what fits now still fits when the block comes in: serving only makes room
            if len(messages) <= count and sum(map(len, messages)) <= size:
                candidates.append(world.candidate(chain, para, *messages))
                accepted[para] += messages
        done += served(world.step(chain, candidates))
    done += [row for block in drain(chain) for row in block]
    for para in THREE:
        assert [digest for origin, digest in done if origin == para] == [blake2_256(data) for data in accepted[para]]
        last = {data[3:35]: data for data in accepted[para]}
        for key, data in last.items():
            stored = world.entries(chain, para)[key]
            assert stored[:-8] == data[35:-4], "the last message about a key is what it holds"


def test_ps23_a_block_that_ends_mid_queue_leaves_the_rest_untouched_and_equals_the_part_it_served() -> None:
    """Weight exhausted mid-queue: what was served is as if the rest had not been sent yet."""
    chain, other = world.start(), world.start()
    messages = [one(SYSTEM, number) for number in range(4)]
    world.step(chain, [world.candidate(chain, SYSTEM, *messages)])
    world.step(other, [world.candidate(other, SYSTEM, *messages[:3])])
    world.step(chain)
    world.step(other)
    assert world.waiting(chain, SYSTEM) == messages[3:]
    assert world.waiting(other, SYSTEM) == []
    assert world.entries(chain, SYSTEM) == world.entries(other, SYSTEM)
    world.step(chain)
    assert world.counted(chain, SYSTEM)[0] == 4


def test_ps23_the_first_message_of_a_queue_goes_first_when_its_turn_comes_whatever_others_send() -> None:
    """A message of three publishes fits only a whole block; light ones of others never put it off for ever."""
    chain = world.start(publishers=[PUBLIC])
    heavy = world.message(*(world.publish(number, b"") for number in range(3)))
    world.step(chain, [world.candidate(chain, para, one(para, 0)) for para in (SYSTEM, BOUNDARY)])
    world.step(chain, [world.candidate(chain, PUBLIC, heavy)])
    for _ in range(4):
        block = world.step(chain, [world.candidate(chain, para, one(para, 1)) for para in (SYSTEM, BOUNDARY)])
        if (PUBLIC, blake2_256(heavy)) in served(block):
            break
    else:
        pytest.fail("three queues, and not served within four blocks")


def test_ps11_messages_that_still_wait_when_their_para_leaves_go_with_it_and_nothing_comes_back() -> None:
    """1000 is a system para: a message of it that ran after its data was removed would store data for ever."""
    chain = world.start()
    world.send(chain, SYSTEM, one(SYSTEM, 9))
    assert world.counted(chain, SYSTEM)[0] == 1
    # accepted in blocks 3 and 4, and the session changes in block 5
    light = [one(SYSTEM, number) for number in range(2)]
    heavy = [world.message(*(world.publish(i, b"") for i in range(3)))] * 3
    world.step(chain, [world.candidate(chain, BOUNDARY, *heavy)])
    world.step(
        chain,
        [world.candidate(chain, SYSTEM, *light)],
        [world.call(ROOT, "deregister", SYSTEM, pallet="Registrar")],
    )
    assert world.waiting(chain, SYSTEM) == light
    assert chain.number == 4
    block = world.step(chain)
    assert ParaId(SYSTEM) not in chain.runtime.paras.parachains(chain.storage())
    assert world.waiting(chain, SYSTEM) == []
    assert world.events(block, "Broadcaster")[0] == PublisherDeregistered(ParaId(SYSTEM))
    for _ in range(4):
        assert (world.entries(chain, SYSTEM), world.counted(chain, SYSTEM)) == ({}, (0, 0, 0))
        told = world.events(block, "Broadcaster")
        assert not [event for event in told if isinstance(event, DataPublished) and event.publisher == SYSTEM]
        block = world.step(chain)
    assert ring.members(chain.storage()) == []
    assert world.counted(chain, BOUNDARY)[0] == 3
