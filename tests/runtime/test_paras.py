"""What a parachain block takes and sends, whole or not at all, and what paras, sessions and slots refuse (PS-23)."""

from collections.abc import Sequence

import pytest
from support.relay_chain import world
from support.relay_chain.world import PUBLIC, SECOND, SYSTEM

from pubsub_emulator.emulator.relay.chain import Genesis, RelayChain
from pubsub_emulator.primitives.types import ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.hooks import IntegrityError, StateError
from pubsub_emulator.runtime.framework.message_chains import MessageBounds, OutboundHrmpMessage
from pubsub_emulator.runtime.relay.babe import current_slot
from pubsub_emulator.runtime.relay.inclusion import (
    BackedCandidate,
    CandidateCommitments,
    CandidateRefused,
    ParaInclusion,
    UpwardMessagesReceived,
)
from pubsub_emulator.runtime.relay.paras import HEADS, PARACHAINS, NewHeadNoted, Paras
from pubsub_emulator.runtime.relay.session import Session

A, B = ParaId(SYSTEM), ParaId(PUBLIC)
MANAGERS = {ParaId(para): world.MANAGERS[para] for para in (SYSTEM, PUBLIC, SECOND)}
UP = (b"up1", b"up2")


def _start() -> RelayChain:
    """A chain with a channel from A to B, on which a downward message waits for A."""
    chain = RelayChain.start(world.SMALL, Genesis(dict.fromkeys(MANAGERS, b"head"), MANAGERS, (), ((A, B),)))
    chain.send_downward(A, b"down")
    world.step(chain)
    return chain


def _block(
    downward: int = 1,
    watermark: int = 1,
    across: Sequence[OutboundHrmpMessage] = (),
    head: bytes = b"new head",
) -> BackedCandidate:
    commitments = CandidateCommitments(UP, tuple(across), head, downward, RelayBlockNumber(watermark))
    return BackedCandidate(A, RelayBlockNumber(1), commitments)


def test_an_included_block_takes_its_messages_and_sends_its_own() -> None:
    chain = _start()
    storage, runtime = chain.storage(), chain.runtime
    assert [message.msg for message in runtime.dmp.contents(storage, A)] == [b"down"]
    block = world.step(chain, [_block(across=[OutboundHrmpMessage(B, b"hi")])])
    assert {UpwardMessagesReceived(A, 2), NewHeadNoted(A)} <= set(world.events(block, "ParaInclusion", "Paras"))
    storage = chain.storage()
    assert storage.get(HEADS.key_for(A)) == b"\x20new head"
    assert runtime.dmp.contents(storage, A) == []
    assert [(m.sent_at, m.data) for m in runtime.hrmp.inbound(storage, B)[0][1]] == [(2, b"hi")]
    assert world.waiting(chain, A) == list(UP)


@pytest.mark.parametrize(
    ("candidate", "error"),
    [
        (_block(across=[OutboundHrmpMessage(ParaId(SECOND), b"")]), "NoSuchChannel"),
        (_block(downward=2), "Underflow"),
        (_block(downward=0), "AdvancementRule"),
        (_block(watermark=9), "AheadRelayParent"),
        (_block(head=bytes(20_481)), "HeadDataTooLarge"),
    ],
    ids=["horizontal", "underflow", "advancement", "watermark", "head"],
)
def test_ps23_a_block_that_does_not_fit_is_refused_whole_and_others_go_in(
    candidate: BackedCandidate, error: str
) -> None:
    chain = _start()
    block = world.step(chain, [candidate, world.candidate(chain, PUBLIC, b"up")])
    refused, taken = world.events(block, "ParaInclusion")
    assert isinstance(refused, CandidateRefused)
    assert (refused.para, getattr(refused.error, "name", "")) == (A, error)
    assert taken == UpwardMessagesReceived(B, 1)
    storage = chain.storage()
    assert (chain.runtime.paras.head(storage, A), world.waiting(chain, A)) == (b"head", [])
    assert [message.msg for message in chain.runtime.dmp.contents(storage, A)] == [b"down"]


def test_what_may_wait_for_a_parachain_fits_its_block() -> None:
    chain = _start()
    runtime, storage = chain.runtime, chain.storage()
    runtime.inclusion.check_bounds(storage)
    bounds = MessageBounds(2**22, 2**23)
    with pytest.raises(IntegrityError):
        ParaInclusion(runtime.paras, runtime.message_queue, runtime.dmp, runtime.hrmp, bounds).check_bounds(storage)


def test_the_slot_comes_from_the_digest() -> None:
    chain = _start()
    assert current_slot(chain.storage()) == world.SMALL.genesis_slot + 1


def test_sessions_without_blocks_or_changes_in_the_past_are_refused() -> None:
    for session in (Session(0, Paras()), Session(1, Paras(), delay=0)):
        with pytest.raises(IntegrityError):
            session.integrity_test()


def test_try_state_finds_a_para_that_nobody_listed() -> None:
    chain = _start()
    storage = chain.storage()
    PARACHAINS.put(storage, [])
    with pytest.raises(StateError):
        chain.runtime.paras.try_state(storage)
