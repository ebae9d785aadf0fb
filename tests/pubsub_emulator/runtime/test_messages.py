"""Downward and horizontal messages: hash chains, acknowledgement, and bounds a parachain can always
meet.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_bytes
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.dispatch import (
    BadOrigin,
    DispatchError,
    ModuleError,
    with_storage_layer,
)
from pubsub_emulator.runtime.framework.message_chains import (
    ZERO_HEAD,
    InboundDownwardMessage,
    InboundHrmpMessage,
    InboundMessages,
    MessageBounds,
    OutboundHrmpMessage,
    message_chain,
)
from pubsub_emulator.runtime.framework.origin import Parachain, Root
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.relay import dmp, hrmp
from pubsub_emulator.runtime.relay.dmp import Dmp
from pubsub_emulator.runtime.relay.host_configuration import ACTIVE, HostConfiguration
from pubsub_emulator.runtime.relay.hrmp import Hrmp, HrmpChannelId

A, B, C = ParaId(1000), ParaId(2000), ParaId(2001)


def downward_head(head: Hash, messages: Iterable[InboundDownwardMessage]) -> Hash:
    return message_chain(head, ((message.sent_at, message.msg) for message in messages))


def horizontal_head(head: Hash, messages: Iterable[InboundHrmpMessage]) -> Hash:
    return message_chain(head, ((message.sent_at, message.data) for message in messages))


def at(number: int) -> RelayBlockNumber:
    return RelayBlockNumber(number)


def _send(
    pallet: Hrmp, storage: Storage, sender: ParaId, now: int, *messages: tuple[ParaId, bytes]
) -> None:
    pallet.queue_outbound(
        storage, sender, [OutboundHrmpMessage(to, data) for to, data in messages], at(now)
    )


@given(messages=st.lists(st.tuples(st.integers(0, 2**32 - 1), st.binary(max_size=20))))
def test_a_chain_head_is_the_hash_of_head_block_and_message_hash(
    messages: list[tuple[int, bytes]],
) -> None:
    head = bytes(32)
    for sent_at, message in messages:
        head = blake2_256(head + sent_at.to_bytes(4, "little") + blake2_256(encode_bytes(message)))
    assert downward_head(ZERO_HEAD, [InboundDownwardMessage(at(n), m) for n, m in messages]) == head
    assert horizontal_head(ZERO_HEAD, [InboundHrmpMessage(at(n), m) for n, m in messages]) == head


def test_downward_messages_queue_in_order_with_a_chain_that_outlives_them() -> None:
    storage, pallet = Storage(State()), Dmp()
    sent = [InboundDownwardMessage(at(5 + i), bytes([i])) for i in range(3)]
    for message in sent:
        pallet.queue_downward_message(storage, A, message.msg, message.sent_at)
    assert pallet.contents(storage, A) == sent
    assert storage.get(dmp.QUEUES.key_for(A)) == bytes.fromhex(
        "0c050000000400060000000401070000000402"
    )
    head = pallet.head(storage, A)
    assert head == downward_head(ZERO_HEAD, sent)
    pallet.acknowledge(storage, A, 2, at(6))
    assert pallet.contents(storage, A) == sent[2:]
    pallet.acknowledge(storage, A, 1, at(7))
    assert not dmp.QUEUES.contains(storage, A)
    assert pallet.head(storage, A) == head
    pallet.try_state(storage)


def test_an_acknowledgement_of_what_was_not_there_or_of_nothing_is_refused() -> None:
    storage, pallet = Storage(State()), Dmp()
    pallet.queue_downward_message(storage, A, b"m", at(5))
    with pytest.raises(ModuleError, match="::Underflow"):
        pallet.acknowledge(storage, A, 2, at(5))
    with pytest.raises(ModuleError, match="::AdvancementRule"):
        pallet.acknowledge(storage, A, 0, at(5))
    pallet.acknowledge(storage, A, 0, at(4))  # the block was built before the message was sent


def test_a_downward_message_too_large_or_too_many_is_refused() -> None:
    storage, pallet = Storage(State()), Dmp(MessageBounds(downward=100))
    with pytest.raises(ModuleError, match="::ExceedsMaxMessageSize"):
        pallet.queue_downward_message(storage, A, bytes(51_201), at(1))
    pallet.queue_downward_message(storage, A, bytes(90), at(1))  # 4 + 2 + 90
    with pytest.raises(ModuleError, match="::QueueFull"):
        pallet.queue_downward_message(storage, A, b"", at(1))
    pallet.on_offboard(storage, [A])
    assert storage.commit() == Storage(State()).commit()


def test_a_channel_stands_in_both_indexes_sorted() -> None:
    storage, pallet = Storage(State()), Hrmp()
    for sender, recipient in ((B, A), (C, A), (A, C), (A, B)):
        pallet.open_channel(storage, sender, recipient, 8, 100)
    assert hrmp.INGRESS.get(storage, A) == [B, C]
    assert hrmp.EGRESS.get(storage, A) == [B, C]
    assert hrmp.INGRESS.get(storage, B) == [A]
    pallet.try_state(storage)
    pallet.hrmp_close_channel(storage, Root(), HrmpChannelId(B, A))
    assert hrmp.INGRESS.get(storage, A) == [C]
    assert not hrmp.EGRESS.contains(storage, B)
    pallet.try_state(storage)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((A, A, 1, 1), "OpenHrmpChannelToSelf"),
        ((A, B, 0, 1), "OpenHrmpChannelZeroCapacity"),
        ((A, B, 1001, 1), "OpenHrmpChannelCapacityExceedsLimit"),
        ((A, B, 1, 0), "OpenHrmpChannelZeroMessageSize"),
        ((A, B, 1, 102_401), "OpenHrmpChannelMessageSizeExceedsLimit"),
        ((A, C, 1, 1), "OpenHrmpChannelAlreadyExists"),
    ],
    ids=str,
)
def test_a_channel_outside_of_the_limits_is_not_opened(
    arguments: Sequence[Any], error: str
) -> None:
    storage, pallet = Storage(State()), Hrmp()
    pallet.force_open_hrmp_channel(storage, Root(), A, C, 1, 1)
    with pytest.raises(ModuleError, match=f"::{error}$"):
        pallet.open_channel(storage, *arguments)
    with pytest.raises(BadOrigin):
        pallet.force_open_hrmp_channel(storage, Parachain(A), A, B, 1, 1)


def test_a_channel_is_not_opened_beyond_what_its_recipient_could_take() -> None:
    storage = Storage(State())
    weight = hrmp.channel_weight(10, 102_400)
    pallet = Hrmp(MessageBounds(horizontal=2 * weight))
    pallet.open_channel(storage, A, C, 10, 100)
    pallet.open_channel(storage, B, C, 10, 100)
    with pytest.raises(ModuleError, match="::RecipientBoundExceeded"):
        pallet.open_channel(storage, ParaId(3), C, 1, 100)
    pallet.open_channel(storage, ParaId(3), A, 1, 100)


def test_what_a_block_sends_has_to_fit_its_channels() -> None:
    storage, pallet = Storage(State()), Hrmp()
    ACTIVE.put(
        storage,
        replace(
            HostConfiguration(),
            hrmp_channel_max_total_size=10,
            hrmp_max_message_num_per_candidate=2,
        ),
    )
    pallet.open_channel(storage, A, B, 2, 6)
    pallet.open_channel(storage, A, C, 9, 6)
    refused = {
        "MoreMessagesThanPermitted": [(B, b""), (C, b""), (ParaId(2002), b"")],
        "NotSorted": [(C, b""), (B, b"")],
        "NoSuchChannel": [(ParaId(1), b"")],
        "MaxMessageSizeExceeded": [(B, bytes(7))],
    }
    for error, messages in refused.items():
        with pytest.raises(ModuleError, match=f"::{error}$"):
            _send(pallet, storage, A, 5, *messages)
    with pytest.raises(ModuleError, match="::NotSorted"):
        _send(pallet, storage, A, 5, (B, b"1"), (B, b"2"))
    _send(pallet, storage, A, 5, (B, bytes(6)))
    with pytest.raises(ModuleError, match="::TotalSizeExceeded"):
        _send(pallet, storage, A, 6, (B, bytes(5)))
    _send(pallet, storage, A, 6, (B, bytes(4)), (C, b"x"))
    with pytest.raises(ModuleError, match="::CapacityExceeded"):
        _send(pallet, storage, A, 7, (B, b""))
    pallet.try_state(storage)


def test_a_watermark_takes_all_up_to_it_and_never_goes_back() -> None:
    storage, pallet = Storage(State()), Hrmp()
    for sender in (A, B):
        pallet.open_channel(storage, sender, C, 9, 100)
    _send(pallet, storage, A, 5, (C, b"a5"))
    _send(pallet, storage, B, 5, (C, b"b5"))
    _send(pallet, storage, A, 7, (C, b"a7"))
    assert pallet.inbound(storage, C) == [
        (A, [InboundHrmpMessage(at(5), b"a5"), InboundHrmpMessage(at(7), b"a7")]),
        (B, [InboundHrmpMessage(at(5), b"b5")]),
    ]
    for watermark, relay_parent, error in (
        (8, 7, "AheadRelayParent"),
        (6, 8, "LandsOnBlockWithNoMessages"),
    ):
        with pytest.raises(ModuleError, match=f"::{error}$"):
            pallet.acknowledge(storage, C, at(watermark), at(relay_parent))
    heads = [channel.mqc_head for _, channel in hrmp.CHANNELS.items(storage)]
    pallet.acknowledge(storage, C, at(5), at(8))
    assert pallet.inbound(storage, C) == [(A, [InboundHrmpMessage(at(7), b"a7")]), (B, [])]
    pallet.try_state(storage)
    with pytest.raises(ModuleError, match="::AdvancementRule"):
        pallet.acknowledge(storage, C, at(4), at(8))
    pallet.acknowledge(storage, C, at(8), at(8))
    assert pallet.inbound(storage, C) == [(A, []), (B, [])]
    assert hrmp.DIGESTS.get(storage, C) == []
    assert [channel.mqc_head for _, channel in hrmp.CHANNELS.items(storage)] == heads
    pallet.try_state(storage)


def test_a_para_that_leaves_takes_all_its_channels_with_it() -> None:
    storage, pallet = Storage(State()), Hrmp()
    for sender, recipient in ((A, B), (B, A), (C, A), (A, C)):
        pallet.open_channel(storage, sender, recipient, 9, 100)
    _send(pallet, storage, A, 5, (B, b"x"), (C, b"y"))
    _send(pallet, storage, B, 5, (A, b"z"))
    pallet.acknowledge(storage, A, at(6), at(6))
    pallet.on_offboard(storage, [A])
    assert storage.commit() == Storage(State()).commit()


class MessagesAreNeverLost(RuleBasedStateMachine):
    """What recipients take, all together and in order, is what was sent; and it always fits into a
    block.
    """

    def __init__(self) -> None:
        super().__init__()
        self.storage = Storage(State())
        ACTIVE.put(self.storage, replace(HostConfiguration(), hrmp_channel_max_total_size=30))
        self.bounds = MessageBounds(60, 3 * hrmp.channel_weight(4, 30))
        self.dmp, self.hrmp = Dmp(self.bounds), Hrmp(self.bounds)
        self.paras = [A, B, C, ParaId(2002)]
        for sender in self.paras:
            for recipient in self.paras:
                if sender != recipient:
                    self.hrmp.open_channel(self.storage, sender, recipient, 4, 20)
        self.now = 1
        self.sent_down: dict[ParaId, list[InboundDownwardMessage]] = {
            para: [] for para in self.paras
        }
        self.sent_across: dict[HrmpChannelId, list[InboundHrmpMessage]] = {}
        self.got_down: dict[ParaId, list[InboundDownwardMessage]] = {
            para: [] for para in self.paras
        }
        self.got_across: dict[HrmpChannelId, list[InboundHrmpMessage]] = {}

    @rule()
    def next_block(self) -> None:
        self.now += 1

    @rule(para=st.integers(0, 3), msg=st.binary(max_size=30))
    def send_down(self, para: int, msg: bytes) -> None:
        try:
            self.dmp.queue_downward_message(self.storage, self.paras[para], msg, at(self.now))
        except DispatchError:
            return
        self.sent_down[self.paras[para]].append(InboundDownwardMessage(at(self.now), msg))

    @rule(
        sender=st.integers(0, 3),
        messages=st.dictionaries(st.integers(0, 3), st.binary(max_size=22), max_size=3),
    )
    def send_across(self, sender: int, messages: dict[int, bytes]) -> None:
        out = [OutboundHrmpMessage(self.paras[to], data) for to, data in sorted(messages.items())]
        try:
            with_storage_layer(
                self.storage,
                lambda: self.hrmp.queue_outbound(
                    self.storage, self.paras[sender], out, at(self.now)
                ),
            )
        except DispatchError:
            return
        for message in out:
            which = HrmpChannelId(self.paras[sender], message.recipient)
            self.sent_across.setdefault(which, []).append(
                InboundHrmpMessage(at(self.now), message.data)
            )

    @rule(para=st.integers(0, 3))
    def take(self, para: int) -> None:
        recipient = self.paras[para]
        downward = self.dmp.contents(self.storage, recipient)
        inbound = self.hrmp.inbound(self.storage, recipient)
        weight = InboundMessages(tuple(downward), tuple((s, tuple(m)) for s, m in inbound)).weight
        assert weight <= self.bounds.total()
        self.dmp.acknowledge(self.storage, recipient, len(downward), at(self.now))
        self.hrmp.acknowledge(self.storage, recipient, at(self.now), at(self.now))
        self.got_down[recipient] += downward
        for sender, messages in inbound:
            self.got_across.setdefault(HrmpChannelId(sender, recipient), []).extend(messages)

    @invariant()
    def nothing_is_lost_or_reordered(self) -> None:
        self.dmp.try_state(self.storage)
        self.hrmp.try_state(self.storage)
        for para in self.paras:
            assert (
                self.got_down[para] + self.dmp.contents(self.storage, para) == self.sent_down[para]
            )
            assert self.dmp.head(self.storage, para) == downward_head(
                ZERO_HEAD, self.sent_down[para]
            )
        for which, sent in self.sent_across.items():
            waiting = hrmp.CONTENTS.get(self.storage, which)
            assert self.got_across.get(which, []) + waiting == sent
            channel = hrmp.CHANNELS.get(self.storage, which)
            assert channel is not None
            assert channel.mqc_head == horizontal_head(ZERO_HEAD, sent)


TestMessagesAreNeverLost = MessagesAreNeverLost.TestCase
TestMessagesAreNeverLost.settings = settings(stateful_step_count=20)
