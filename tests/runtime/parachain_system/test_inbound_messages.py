"""PS-50 and PS-52, `MessagesMisreported`: the messages are those of the queues, weighed rightly, and they fit."""

from dataclasses import replace

import pytest
from support.world import ME, Chain, Relay, channel, filled, make_spec, numbered, seal

from pubsub_emulator.primitives import storage_keys
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.message_chains import InboundDownwardMessage, InboundHrmpMessage
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.parachain.block import Candidate, InvalidBlock, Verdict
from pubsub_emulator.runtime.parachain.storage import LAST_DMQ_MQC_HEAD, LAST_HRMP_MQC_HEADS

KEYS = numbered(3)
ZERO = Hash(bytes(32))
A, B = ParaId(2000), ParaId(2001)


def link(head: Hash, sent_at: int, message: bytes) -> Hash:
    """One link of a message queue chain, as the relay chain makes it."""
    return blake2_256(head + sent_at.to_bytes(4, "little") + blake2_256(message))


def ids(*paras: int) -> bytes:
    return encode_compact(len(paras)) + b"".join(para.to_bytes(4, "little") for para in paras)


def relay(number: int, dmq: Hash | None = None, channels: dict[ParaId, Hash | None] | None = None) -> Relay:
    top = {}
    if dmq is not None:
        top[storage_keys.dmq_mqc_head(ME)] = dmq
    if channels is not None:
        top[storage_keys.hrmp_ingress_channel_index(ME)] = ids(*sorted(channels))
        top |= {storage_keys.hrmp_channel(sender, ME): channel(head) for sender, head in channels.items()}
    return Relay(number, {1000: filled(KEYS)}, top=top)


def down(sent_at: int, message: bytes) -> InboundDownwardMessage:
    return InboundDownwardMessage(RelayBlockNumber(sent_at), message)


def across(sent_at: int, data: bytes) -> InboundHrmpMessage:
    return InboundHrmpMessage(RelayBlockNumber(sent_at), data)


def start(**changes: object) -> Chain:
    return Chain(make_spec({1000: KEYS}, **changes))  # type: ignore[arg-type]


def misreported(chain: Chain, candidate: Candidate, at: Relay) -> list[str]:
    with pytest.raises(InvalidBlock) as refused:
        chain.judge(candidate, at)
    assert refused.value.verdict is Verdict.MESSAGES_MISREPORTED
    assert {offence.verdict for offence in refused.value.evidence} == {Verdict.MESSAGES_MISREPORTED}
    return [offence.detail for offence in refused.value.evidence]


def test_messages_that_lead_from_the_last_head_to_the_relay_parents_are_taken() -> None:
    """PS-52: downward and horizontal, over several blocks, in one step or many."""
    chain = start()
    head = link(link(ZERO, 1, b"one"), 2, b"two")
    from_a = link(ZERO, 2, b"a1")
    chain.step(relay(2, head, {A: from_a, B: None}), [down(1, b"one"), down(2, b"two")], ((A, (across(2, b"a1"),)),))
    storage = Storage(chain.state)
    assert LAST_DMQ_MQC_HEAD.get(storage) == head
    assert LAST_HRMP_MQC_HEADS.get(storage) == {A: from_a}
    chain.step(relay(3, head, {A: from_a, B: None}))
    later = link(link(from_a, 3, b"a2"), 4, b"a3")
    from_b = link(ZERO, 4, b"b1")
    both = ((A, (across(3, b"a2"), across(4, b"a3"))), (B, (across(4, b"b1"),)))
    chain.step(relay(4, link(head, 4, b"x"), {A: later, B: from_b}), [down(4, b"x")], both)
    assert LAST_HRMP_MQC_HEADS.get(Storage(chain.state)) == {A: later, B: from_b}


def test_a_misstated_weight_buys_no_other_budget() -> None:
    """PS-50: the walk is judged under the budget that the messages in the block really leave."""
    keys = numbered(40)
    chain = Chain(make_spec({1000: keys}))
    at = Relay(2, {1000: filled(keys, b"v" * 40_000)})
    honest = chain.author(at)
    ledger = chain.judge(honest, at).ledger
    assert ledger.used > 1_048_576
    assert ledger.budget == chain.spec.budget(2)
    claim = chain.spec.allowed_pov  # would leave the minimum, and nodes beyond it unused
    misreported(chain, seal(replace(honest, inherent=replace(honest.inherent, messages_used=claim))), at)


def test_messages_may_not_exceed_what_a_block_may_hold() -> None:
    """PS-50, PS-52 MessagesMisreported: to the byte."""
    chain = start(max_pov_size=1_400_000, reserve_minimum=True)
    allowed = chain.spec.allowed_pov
    for size, fits in ((allowed, True), (allowed + 1, False)):
        message = b"m" * (size - 1 - 4 - 4 - 1)
        at = relay(2, link(ZERO, 2, message))
        candidate = chain.author(at, [down(2, message)])
        assert candidate.inherent.messages_used == size
        if fits:
            assert chain.judge(candidate, at).ledger.budget == 1_048_576
        else:
            assert "exceed" in misreported(chain, candidate, at)[0]


# Queues that were removed and made again


def chained(*messages: tuple[int, bytes]) -> Hash:
    head = ZERO
    for sent_at, message in messages:
        head = link(head, sent_at, message)
    return head


def test_a_channel_that_begins_anew_is_followed_from_its_beginning() -> None:
    """PS-52: the recipient built no block while the channel was closed, so it still knows the old head."""
    chain = Chain(make_spec({1000: KEYS}))
    chain.step(relay(3, channels={A: chained((2, b"old"))}), horizontal=((A, (across(2, b"old"),)),))
    chain.step(relay(5, channels={A: None}))
    assert LAST_HRMP_MQC_HEADS.get(Storage(chain.state)) == {}
    chain.step(relay(8, channels={A: chained((7, b"new"))}), horizontal=((A, (across(7, b"new"),)),))
    anew = chained((9, b"newer"), (9, b"newest"))
    chain.step(relay(9, channels={A: anew}), horizontal=((A, (across(9, b"newer"), across(9, b"newest"))),))
    assert LAST_HRMP_MQC_HEADS.get(Storage(chain.state)) == {A: anew}


def test_a_downward_queue_that_begins_anew_is_followed_from_its_beginning() -> None:
    """PS-52: the parachain left the relay chain and came back."""
    chain = Chain(make_spec({1000: KEYS}))
    chain.step(relay(3, chained((2, b"old"))), (down(2, b"old"),))
    chain.step(relay(9))
    assert LAST_DMQ_MQC_HEAD.get(Storage(chain.state)) == ZERO
    chain.step(relay(12, chained((11, b"new"))), (down(11, b"new"),))
    chain.step(relay(20, chained((19, b"anew"))), (down(19, b"anew"),))


def test_a_queue_that_goes_on_is_not_taken_twice_from_its_beginning() -> None:
    """PS-52: its whole history hashes to the head as well, but the parachain has taken the first of it already."""
    chain = Chain(make_spec({1000: KEYS}))
    old, new = (3, b"old"), (5, b"new")
    chain.step(relay(3, chained(old), {A: chained(old)}), (down(*old),), ((A, (across(*old),)),))
    whole = relay(6, chained(old, new), {A: chained(old, new)})
    for downward, horizontal in (
        ((down(*old), down(*new)), ((A, (across(*new),)),)),
        ((down(*new),), ((A, (across(*old), across(*new))),)),
    ):
        candidate = chain.author(whole, downward, horizontal)
        with pytest.raises(InvalidBlock) as refused:
            chain.judge(candidate, whole)
        assert refused.value.verdict is Verdict.MESSAGES_MISREPORTED
    chain.step(whole, (down(*new),), ((A, (across(*new),)),))


def test_an_older_relay_parent_is_no_new_beginning() -> None:
    """PS-32, PS-52: before its first message a queue has no head either."""
    chain = Chain(make_spec({1000: KEYS}))
    chain.step(relay(3, chained((2, b"old"))), (down(2, b"old"),))
    older = relay(1)
    with pytest.raises(InvalidBlock) as refused:
        chain.judge(chain.author(older), older)
    assert [offence.verdict for offence in refused.value.evidence] == [
        Verdict.RELAY_PARENT_DECREASED,
        Verdict.MESSAGES_MISREPORTED,
    ]
