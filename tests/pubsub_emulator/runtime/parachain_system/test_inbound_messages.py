"""PS-33, PS-50, PS-52, PS-67: messages are those of the queues and fit; root calls and upgrades
come with them.
"""

from dataclasses import replace
from typing import Any

import pytest
from support.runtime.world import (
    ME,
    Chain,
    Governed,
    Relay,
    channel,
    each_policy,
    filled,
    make_spec,
    numbered,
    seal,
)

from pubsub_emulator.primitives import storage_keys
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_bytes, vec
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.codecs import para_id
from pubsub_emulator.runtime.framework.events import EventRecord
from pubsub_emulator.runtime.framework.message_chains import (
    ZERO_HEAD,
    InboundDownwardMessage,
    InboundHrmpMessage,
    QueueLinks,
    linked_chain,
    message_chain,
)
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.system import PALLET as SYSTEM
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.config import (
    ImpossibleConfig,
    RuntimeSpec,
    decode_spec,
)
from pubsub_emulator.runtime.pallet_subscriber.events import (
    PublisherCacheCleared,
    PublisherEnabled,
    RedeliveryRequested,
)
from pubsub_emulator.runtime.pallet_subscriber.storage import PALLET as SUBSCRIBER_PALLET
from pubsub_emulator.runtime.parachain import governance
from pubsub_emulator.runtime.parachain.block import (
    Candidate,
    InvalidBlock,
    Verdict,
    queue_heads,
)
from pubsub_emulator.runtime.parachain.execute import BlockOutcome
from pubsub_emulator.runtime.parachain.genesis import genesis
from pubsub_emulator.runtime.parachain.storage import LAST_DMQ_MQC_HEAD, LAST_HRMP_MQC_HEADS

KEYS = numbered(3)
A, B = ParaId(2000), ParaId(2001)


def chained(*messages: tuple[int, bytes], head: Hash = ZERO_HEAD) -> Hash:
    """The head of a message queue's chain, as the relay chain makes it."""
    return message_chain(head, messages)  # type: ignore[arg-type]


def relay(
    number: int, dmq: Hash | None = None, channels: dict[ParaId, Hash | None] | None = None
) -> Relay:
    top = {}
    if dmq is not None:
        top[storage_keys.dmq_mqc_head(ME)] = dmq
    if channels is not None:
        top[storage_keys.hrmp_ingress_channel_index(ME)] = vec(para_id).encode(sorted(channels))
        top |= {
            storage_keys.hrmp_channel(sender, ME): channel(head)
            for sender, head in channels.items()
        }
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


def test_messages_leading_from_the_last_head_to_the_relay_parents_are_accepted() -> None:
    """PS-52: downward and horizontal, over several blocks, in one step or many."""
    chain = start()
    head = chained((1, b"one"), (2, b"two"))
    from_a = chained((2, b"a1"))
    chain.step(
        relay(2, head, {A: from_a, B: None}),
        [down(1, b"one"), down(2, b"two")],
        ((A, (across(2, b"a1"),)),),
    )
    storage = Storage(chain.state)
    assert LAST_DMQ_MQC_HEAD.get(storage) == head
    assert LAST_HRMP_MQC_HEADS.get(storage) == {A: from_a}
    chain.step(relay(3, head, {A: from_a, B: None}))
    later = chained((3, b"a2"), (4, b"a3"), head=from_a)
    from_b = chained((4, b"b1"))
    both = ((A, (across(3, b"a2"), across(4, b"a3"))), (B, (across(4, b"b1"),)))
    chain.step(
        relay(4, chained((4, b"x"), head=head), {A: later, B: from_b}), [down(4, b"x")], both
    )
    assert LAST_HRMP_MQC_HEADS.get(Storage(chain.state)) == {A: later, B: from_b}


def test_the_inherent_states_the_parent_and_the_proof_size_of_the_chain() -> None:
    """UP-7: nothing else would be what a validator of the relay chain knows."""
    chain = start()
    at = relay(2)
    honest = chain.author(at)
    assert honest.inherent.parent_head == chain.header.encode()
    for claim in ({"parent_head": b""}, {"max_pov_size": chain.spec.max_pov_size + 1}):
        wrong = seal(replace(honest, inherent=replace(honest.inherent, **claim)))  # type: ignore[arg-type]
        with pytest.raises(InvalidBlock) as refused:
            chain.judge(wrong, at)
        assert [each.verdict for each in refused.value.evidence] == [Verdict.BAD_VALIDATION_DATA]


def test_downward_messages_may_not_exceed_their_share() -> None:
    """UP-9, PS-52 MessagesMisreported: to the byte."""
    chain = start(max_pov_size=1_400_000, reserve_minimum=True)
    limit = chain.spec.messages_limit
    assert limit == chain.spec.allowed_pov // 2
    for size, fits in ((limit, True), (limit + 1, False)):
        message = b"m" * size
        at = relay(2, chained((2, message)))
        candidate = chain.author(at, [down(2, message)])
        if fits:
            assert chain.judge(candidate, at).ledger.budget == 1_048_576
        else:
            assert "exceed the share" in misreported(chain, candidate, at)[0]


def test_a_channel_that_begins_anew_is_followed_from_its_beginning() -> None:
    """PS-52: the recipient built no block while the channel was closed, so it still knows the old
    head.
    """
    chain = start()
    chain.step(
        relay(3, channels={A: chained((2, b"old"))}), horizontal=((A, (across(2, b"old"),)),)
    )
    chain.step(relay(5, channels={A: None}))
    assert LAST_HRMP_MQC_HEADS.get(Storage(chain.state)) == {}
    chain.step(
        relay(8, channels={A: chained((7, b"new"))}), horizontal=((A, (across(7, b"new"),)),)
    )
    anew = chained((9, b"newer"), (9, b"newest"))
    chain.step(
        relay(9, channels={A: anew}), horizontal=((A, (across(9, b"newer"), across(9, b"newest"))),)
    )
    assert LAST_HRMP_MQC_HEADS.get(Storage(chain.state)) == {A: anew}


def test_a_downward_queue_that_begins_anew_is_followed_from_its_beginning() -> None:
    """PS-52: the parachain left the relay chain and came back."""
    chain = start()
    chain.step(relay(3, chained((2, b"old"))), (down(2, b"old"),))
    chain.step(relay(9))
    assert LAST_DMQ_MQC_HEAD.get(Storage(chain.state)) == ZERO_HEAD
    chain.step(relay(12, chained((11, b"new"))), (down(11, b"new"),))
    chain.step(relay(20, chained((19, b"anew"))), (down(19, b"anew"),))


def test_a_queue_that_goes_on_is_not_taken_twice_from_its_beginning() -> None:
    """PS-52: its whole history hashes to the head as well, but the parachain has taken the first of
    it already.
    """
    chain = start()
    old, new = (3, b"old"), (5, b"new")
    chain.step(relay(3, chained(old), {A: chained(old)}), (down(*old),), ((A, (across(*old),)),))
    whole = relay(6, chained(old, new), {A: chained(old, new)})
    for downward, horizontal in (
        ((down(*old), down(*new)), ((A, (across(*new),)),)),
        ((down(*new),), ((A, (across(*old), across(*new))),)),
    ):
        candidate = chain.author(whole, downward, horizontal)
        misreported(chain, candidate, whole)
    chain.step(whole, (down(*new),), ((A, (across(*new),)),))


def test_an_older_relay_parent_is_no_new_beginning() -> None:
    """PS-32, PS-52: before its first message a queue has no head either."""
    chain = start()
    chain.step(relay(3, chained((2, b"old"))), (down(2, b"old"),))
    older = relay(1)
    with pytest.raises(InvalidBlock) as refused:
        chain.judge(chain.author(older), older)
    assert [offence.verdict for offence in refused.value.evidence] == [
        Verdict.RELAY_PARENT_DECREASED,
        Verdict.MESSAGES_MISREPORTED,
    ]


@pytest.mark.parametrize(
    ("last", "sent", "begins_anew"),
    [
        (5, (), True),
        (5, (6,), True),
        (4, (5, 6), True),
        (5, (5, 6), False),
        (6, (), False),
        (6, (7,), False),
        (7, (), False),
        (None, (), False),
    ],
)
def test_a_queue_begins_anew_only_after_the_parents_relay_parent(
    last: int | None, sent: tuple[int, ...], *, begins_anew: bool
) -> None:
    """PS-52: on the same relay block, 6, or an older one the queue is the one that the parent
    saw.
    """
    before = chained((2, b"old"))
    links = tuple((RelayBlockNumber(number), blake2_256(b"new")) for number in sent)
    anew = linked_chain(ZERO_HEAD, links)
    since = None if last is None else RelayBlockNumber(last)
    heads = queue_heads(before, QueueLinks(links), anew, lambda: since, RelayBlockNumber(6))
    wanted = anew if begins_anew else linked_chain(before, links)
    assert (heads.kept, heads.end) == (wanted, wanted)


SIX = numbered(6)
PUBLISHERS = {1000: filled(SIX), 1001: filled(SIX[:2])}


class Ruled(Governed):
    """A chain of two publishers."""

    def __init__(self, **changes: Any) -> None:
        super().__init__(spec_of(**changes))
        self.publishers: dict[int, Any] = dict(PUBLISHERS)

    def send(self, *messages: bytes) -> BlockOutcome:
        return self.block(self.publishers, *messages)

    def called(self, name: str) -> list[object]:
        return events(self.call(self.publishers, name, 1000))


def spec_of(**changes: Any) -> RuntimeSpec:
    return make_spec(changes.pop("subs", dict.fromkeys(PUBLISHERS, SIX)), **changes)


def test_a_runtime_of_another_parachain_is_not_installed_ps33() -> None:
    """Its static keys would be another chain's: no block of this one would ever be valid again."""
    governed = Ruled()
    governed.send()
    code = governed.chain.spec
    governed.upgrade(PUBLISHERS, replace(code, para_id=ParaId(3001), spec_version=2))
    assert governed.chain.spec == code
    governed.send()
    with pytest.raises(ImpossibleConfig, match="3001 cannot run parachain 3000"):
        governance.upgrade(Storage(governed.chain.state), replace(code, para_id=ParaId(3001)))


def events(outcome: BlockOutcome) -> list[object]:
    return [record.event for record in outcome.events if isinstance(record, EventRecord)]


def test_a_root_call_comes_as_the_xcm_that_a_relay_chain_sends() -> None:
    """PS-67: `VersionedXcm::V5([UnpaidExecution, Transact { Superuser }])`, byte for byte."""
    golden = bytes.fromhex(
        "05082f0000060200080000"
    )  # "unpaid Transact, unlimited, no check origin" of the vectors
    assert governance.transact(b"\x00\x00") == golden
    call = governance.subscriber_call("redeliver", 1000)
    assert call == bytes((SUBSCRIBER_PALLET.index, 1)) + (1000).to_bytes(4, "little")


@each_policy
def test_root_calls_take_effect_in_the_block_and_show_in_the_next_ps67_b60(policy: str) -> None:
    world = Ruled(cache=policy)
    assert len(world.send().deliveries) == 8
    assert PublisherCacheCleared(ParaId(1000)) in world.called("clear_publisher_cache")
    assert set(items.PROCESSED_ROOTS.get(Storage(world.chain.state))) == {1001}
    assert world.send().deliveries == ()
    assert RedeliveryRequested(ParaId(1000)) in world.called("redeliver")
    assert [d.publisher for d in world.send().deliveries] == [1000] * 6
    world.publishers[1000] = {SIX[0]: b"?"}
    assert world.send().plan.publishers[ParaId(1000)].disabled
    world.publishers[1000] = filled(SIX, b"good" * 10)
    assert PublisherEnabled(ParaId(1000)) in world.called("enable_publisher")
    assert len(world.send().deliveries) == 6


@pytest.mark.parametrize(
    "message",
    [
        pytest.param(
            b"",
            id="empty",
        ),
        pytest.param(
            b"hello",
            id="text",
        ),
        pytest.param(
            governance.transact(b""),
            id="transact of nothing",
        ),
        pytest.param(
            governance.transact(b"\xff"),
            id="transact of an unknown pallet",
        ),
        pytest.param(
            governance.transact(bytes((SUBSCRIBER_PALLET.index, 3)) + bytes(4)),
            id="unknown call",
        ),
        pytest.param(
            governance.transact(governance.subscriber_call("redeliver", 1000) + b"\x00"),
            id="trailing byte in the call",
        ),
        pytest.param(
            governance.transact(governance.subscriber_call("redeliver", 1000)) + b"\x00",
            id="trailing byte in the message",
        ),
        pytest.param(
            governance.transact(governance.subscriber_call("redeliver", 1000)).replace(
                b"\x06\x02", b"\x06\x03", 1
            ),
            id="another origin",
        ),
        pytest.param(
            governance.transact(governance.subscriber_call("redeliver", 1000))[:-1],
            id="cut short",
        ),
        pytest.param(
            governance.transact(governance.subscriber_call("enable_publisher", 1000)),
            id="refused call",
        ),
        pytest.param(
            governance.transact(bytes((SYSTEM.index, 2))),
            id="call without its argument",
        ),
        pytest.param(
            governance.transact(bytes((SYSTEM.index, 2)) + encode_bytes(b"no runtime")),
            id="wrong code",
        ),
    ],
)
def test_a_message_that_is_not_a_successful_root_call_changes_nothing(
    message: bytes,
) -> None:
    """PS-54, PS-67: the relay chain sent it; the block is valid."""
    world, quiet = Ruled(), Ruled()
    world.send()
    quiet.send()
    world.send(message)
    quiet.send(b"quiet")
    mine, other = Storage(world.chain.state), Storage(quiet.chain.state)
    prefix = items.LAST_RELAY_PARENT.key[:16]
    assert dict(mine.iter_prefix(prefix)) == dict(other.iter_prefix(prefix))
    assert mine.get(governance.CODE) == other.get(governance.CODE)
    world.send()


def test_an_upgrade_rules_from_the_next_block_on_ps33() -> None:
    world = Ruled()
    assert (
        len(world.upgrade(PUBLISHERS, spec_of(subs={1000: SIX[:1]}, handler="store")).deliveries)
        == 8
    )
    assert world.chain.spec.handler == "store"
    outcome = world.send()
    assert outcome.plan.changed_key_sets == (1000, 1001)
    assert outcome.deliveries == ()
    assert len(Ruled().send().deliveries) == 8


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param(
            {"handler": "nobody"},
            id="unknown handler",
        ),
        pytest.param(
            {"max_pov_size": 5 * 2**20},
            id="no room in the block",
        ),
        pytest.param(
            {"cache": "nodes", "max_cache_bytes": 1},
            id="cache too small",
        ),
        pytest.param(
            {"max_value_length": 2**20},
            id="values too large",
        ),
    ],
)
def test_a_runtime_that_no_block_could_be_executed_with_is_refused(changes: dict[str, Any]) -> None:
    """PS-33, PS-50: at an upgrade as at genesis; a chain must not stop for good because of a
    message.
    """
    world = Ruled()
    before = world.chain.spec
    world.upgrade(PUBLISHERS, spec_of(**changes))
    assert world.chain.spec == before
    world.send()
    with pytest.raises(ImpossibleConfig):
        genesis(spec_of(**changes), (b"a" * 32,))


def test_code_that_is_no_text_where_text_belongs_is_a_clean_refusal() -> None:
    """PS-54: hostile bytes in a handler's name raise nothing but what decoding may raise."""
    world = Ruled()
    code = world.chain.spec.encode()
    broken = code.replace(b"observe", b"\xff\xfe\xfd\xfc\xfb\xfa\xf9")
    assert broken != code
    world.send(governance.transact(bytes((SYSTEM.index, 2)) + encode_bytes(broken)))
    assert world.chain.spec == decode_spec(code)
    world.send()


def test_root_calls_do_not_reach_a_chain_through_other_parachains() -> None:
    """PS-67: only the relay chain's queue is obeyed."""
    world = Ruled()
    world.send()
    message = governance.transact(governance.subscriber_call("redeliver", 1000))
    at = relay(2, channels={A: chained((2, message))})
    outcome = world.chain.step(at, (), ((A, (across(2, message),)),))
    assert not [event for event in events(outcome) if isinstance(event, RedeliveryRequested)]
