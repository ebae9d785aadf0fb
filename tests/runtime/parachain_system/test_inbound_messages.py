"""PS-50 and PS-52, `MessagesMisreported`: the messages are those of the queues, weighed rightly, and they fit."""

from dataclasses import replace

import pytest
from support.world import ME, Chain, Relay, channel, filled, make_spec, numbered, seal

from pubsub_emulator.primitives import storage_keys
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_compact
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.message_chains import InboundDownwardMessage, InboundHrmpMessage, message_chain
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


@pytest.mark.parametrize(
    "given",
    [
        [],
        [down(1, b"one")],
        [down(2, b"two"), down(1, b"one")],
        [down(1, b"one"), down(2, b"two"), down(2, b"two")],
        [down(1, b"one"), down(3, b"two")],
        [down(1, b"one"), down(2, b"tw0")],
    ],
)
def test_downward_messages_left_out_added_swapped_or_changed(given: list[InboundDownwardMessage]) -> None:
    """PS-52 MessagesMisreported: against the head among the static keys."""
    chain = start()
    at = relay(2, link(link(ZERO, 1, b"one"), 2, b"two"))
    details = misreported(chain, chain.author(at, given), at)
    assert any("downward messages hash to" in detail for detail in details)


def test_horizontal_messages_left_out_added_swapped_or_from_strangers() -> None:
    """PS-52 MessagesMisreported: sender by sender."""
    chain = start()
    at = relay(2, None, {A: link(link(ZERO, 1, b"1"), 2, b"2"), B: None})
    good = (A, (across(1, b"1"), across(2, b"2")))
    chain.judge(chain.author(at, (), (good,)), at)
    for wrong in (
        (),
        ((A, (across(1, b"1"),)),),
        ((A, (across(2, b"2"), across(1, b"1"))),),
        (good, (B, (across(2, b"?"),))),
        (good, (ParaId(2002), (across(2, b"?"),))),
    ):
        misreported(chain, chain.author(at, (), wrong), at)


def test_an_entry_without_messages_is_refused_for_it_only_moves_the_budget() -> None:
    """PS-52: for one state, relay parent and set of messages there is one block body."""
    chain = start()
    at = relay(2, None, {A: None, B: None})
    chain.judge(chain.author(at), at)
    misreported(chain, chain.author(at, (), ((A, ()),)), at)


@pytest.mark.parametrize("off", [-1, 1, 1000])
def test_the_stated_weight_must_be_the_real_one(off: int) -> None:
    """PS-52 MessagesMisreported, PS-50: under or over, for the budget is made of it."""
    chain = start()
    at = relay(2, link(ZERO, 2, b"m"))
    honest = chain.author(at, [down(2, b"m")])
    assert honest.inherent.messages_used == honest.inherent.messages.weight == 1 + 4 + 2 + 1
    wrong = seal(replace(honest, inherent=replace(honest.inherent, messages_used=honest.inherent.messages_used + off)))
    misreported(chain, wrong, at)


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


def test_a_channel_that_is_closed_and_opened_again_begins_a_new_chain() -> None:
    """PS-52: the head of a closed channel is forgotten, or the parachain could never make a valid block again."""
    chain = start()
    chain.step(relay(2, None, {A: link(ZERO, 2, b"old"), B: None}), (), ((A, (across(2, b"old"),)),))
    assert LAST_HRMP_MQC_HEADS.get(Storage(chain.state)) == {A: link(ZERO, 2, b"old")}
    chain.step(relay(3, None, {B: None}))
    assert LAST_HRMP_MQC_HEADS.get(Storage(chain.state)) == {}
    chain.step(relay(4, None, {A: None, B: None}))
    chain.step(relay(5, None, {A: link(ZERO, 5, b"new")}), (), ((A, (across(5, b"new"),)),))


def test_messages_of_a_channel_cannot_be_taken_twice() -> None:
    """PS-52 MessagesMisreported."""
    chain = start()
    message = ((A, (across(2, b"once"),)),)
    at = relay(2, link(ZERO, 2, b"d"), {A: link(ZERO, 2, b"once")})
    chain.step(at, [down(2, b"d")], message)
    misreported(chain, chain.author(at, [down(2, b"d")]), at)
    misreported(chain, chain.author(at, (), message), at)
    chain.step(at)


def test_a_chain_of_links_is_what_the_relay_chain_hashes() -> None:
    """PS-52: blake2_256(head ++ u32 sent_at ++ blake2_256(message)), from zeros on."""
    messages = ((RelayBlockNumber(1), b"a"), (RelayBlockNumber(7), b""))
    assert message_chain(ZERO, ()) == ZERO
    assert message_chain(ZERO, messages) == link(link(ZERO, 1, b"a"), 7, b"")


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
