"""PS-33 and PS-67 as they reach a parachain: root calls and runtime upgrades in downward messages."""

from dataclasses import replace
from typing import Any

import pytest
from support.world import ME, Chain, Relay, channel, each_policy, filled, make_spec, numbered

from pubsub_emulator.primitives import storage_keys
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.scale import encode_bytes
from pubsub_emulator.primitives.types import Hash, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.events import EventRecord
from pubsub_emulator.runtime.framework.message_chains import InboundDownwardMessage, InboundHrmpMessage
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.framework.system import PALLET as SYSTEM
from pubsub_emulator.runtime.pallet_subscriber import storage as items
from pubsub_emulator.runtime.pallet_subscriber.config import ImpossibleConfig, decode_spec
from pubsub_emulator.runtime.pallet_subscriber.events import (
    PublisherCacheCleared,
    PublisherEnabled,
    RedeliveryRequested,
)
from pubsub_emulator.runtime.pallet_subscriber.storage import PALLET as SUBSCRIBER_PALLET
from pubsub_emulator.runtime.parachain import governance
from pubsub_emulator.runtime.parachain.execute import BlockOutcome
from pubsub_emulator.runtime.parachain.genesis import genesis

KEYS = numbered(6)
PUBLISHERS = {1000: filled(KEYS), 1001: filled(KEYS[:2])}


class Governed:
    """A chain that is sent downward messages."""

    def __init__(self, **changes: Any) -> None:
        self.chain = Chain(make_spec(dict.fromkeys(PUBLISHERS, KEYS), **changes))
        self.head = Hash(bytes(32))
        self.number = 0
        self.publishers: dict[int, Any] = dict(PUBLISHERS)

    def send(self, *messages: bytes) -> BlockOutcome:
        self.number += 1
        for message in messages:
            self.head = blake2_256(self.head + self.number.to_bytes(4, "little") + blake2_256(message))
        relay = Relay(self.number, self.publishers, top={storage_keys.dmq_mqc_head(ME): self.head})
        inbound = [InboundDownwardMessage(RelayBlockNumber(self.number), message) for message in messages]
        return self.chain.step(relay, inbound)

    def call(self, name: str, para: int = 1000) -> BlockOutcome:
        return self.send(governance.transact(governance.subscriber_call(name, para)))

    def upgrade(self, **changes: Any) -> BlockOutcome:
        return self.send(governance.transact(governance.set_code(self.spec(**changes))))

    def spec(self, **changes: Any) -> Any:
        return make_spec(changes.pop("subs", dict.fromkeys(PUBLISHERS, KEYS)), **changes)


def test_a_runtime_of_another_parachain_is_not_installed_ps33() -> None:
    """Its static keys would be another chain's: no block of this one would ever be valid again."""
    governed = Governed()
    governed.send()
    code = governed.chain.spec
    governed.send(governance.transact(governance.set_code(replace(code, para_id=ParaId(3001), spec_version=2))))
    assert governed.chain.spec == code
    governed.send()
    with pytest.raises(ImpossibleConfig, match="3001 cannot run parachain 3000"):
        governance.upgrade(Storage(governed.chain.state), replace(code, para_id=ParaId(3001)))


def events(outcome: BlockOutcome) -> list[object]:
    return [record.event for record in outcome.events if isinstance(record, EventRecord)]


def test_a_root_call_comes_as_the_xcm_that_a_relay_chain_sends() -> None:
    """PS-67: `VersionedXcm::V5([UnpaidExecution, Transact { Superuser }])`, byte for byte."""
    golden = bytes.fromhex("05082f0000060200080000")  # "unpaid Transact, unlimited, no check origin" of the vectors
    assert governance.transact(b"\x00\x00") == golden
    call = governance.subscriber_call("redeliver", 1000)
    assert call == bytes((SUBSCRIBER_PALLET.index, 1)) + (1000).to_bytes(4, "little")


@each_policy
def test_root_calls_take_effect_in_the_block_and_show_in_the_next(policy: str) -> None:
    """PS-67, B60."""
    world = Governed(cache=policy)
    assert len(world.send().deliveries) == 8
    assert PublisherCacheCleared(ParaId(1000)) in events(world.call("clear_publisher_cache"))
    assert set(items.PROCESSED_ROOTS.get(Storage(world.chain.state))) == {1001}
    assert world.send().deliveries == ()
    assert RedeliveryRequested(ParaId(1000)) in events(world.call("redeliver"))
    assert [d.publisher for d in world.send().deliveries] == [1000] * 6
    world.publishers[1000] = {KEYS[0]: b"?"}
    assert world.send().plan.publishers[ParaId(1000)].disabled
    world.publishers[1000] = filled(KEYS, b"good" * 10)
    assert PublisherEnabled(ParaId(1000)) in events(world.call("enable_publisher"))
    assert len(world.send().deliveries) == 6


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"hello",
        governance.transact(b""),
        governance.transact(b"\xff"),
        governance.transact(bytes((SUBSCRIBER_PALLET.index, 3)) + bytes(4)),
        governance.transact(governance.subscriber_call("redeliver", 1000) + b"\x00"),
        governance.transact(governance.subscriber_call("redeliver", 1000)) + b"\x00",
        governance.transact(governance.subscriber_call("redeliver", 1000)).replace(b"\x06\x02", b"\x06\x03", 1),
        governance.transact(governance.subscriber_call("redeliver", 1000))[:-1],
        governance.transact(governance.subscriber_call("enable_publisher", 1000)),
        governance.transact(bytes((SYSTEM.index, 2))),
        governance.transact(bytes((SYSTEM.index, 2)) + encode_bytes(b"no runtime")),
    ],
)
def test_a_message_that_is_no_root_call_or_fails_changes_nothing_and_spoils_no_block(message: bytes) -> None:
    """PS-54, PS-67: the relay chain sent it; the block is valid."""
    world, quiet = Governed(), Governed()
    world.send()
    quiet.send()
    world.send(message)
    quiet.send(b"quiet")
    mine, other = Storage(world.chain.state), Storage(quiet.chain.state)
    prefix = items.LAST_RELAY_PARENT.key[:16]
    assert dict(mine.iter_prefix(prefix)) == dict(other.iter_prefix(prefix))
    assert mine.get(governance.CODE) == other.get(governance.CODE)
    world.send()


def test_an_upgrade_rules_from_the_next_block_on() -> None:
    """PS-33."""
    world = Governed()
    assert len(world.upgrade(subs={1000: KEYS[:1]}, handler="store").deliveries) == 8
    assert world.chain.spec.handler == "store"
    outcome = world.send()
    assert outcome.plan.changed_key_sets == (1000, 1001)
    assert outcome.deliveries == ()
    assert len(Governed().send().deliveries) == 8


@pytest.mark.parametrize(
    "changes",
    [
        {"handler": "nobody"},
        {"max_pov_size": 5 * 2**20},
        {"cache": "nodes", "max_cache_bytes": 1},
        {"max_value_length": 2**20},
    ],
)
def test_a_runtime_that_no_block_could_be_executed_with_is_refused(changes: dict[str, Any]) -> None:
    """PS-33, PS-50: at an upgrade as at genesis; a chain must not stop for good because of a message."""
    world = Governed()
    before = world.chain.spec
    world.upgrade(**changes)
    assert world.chain.spec == before
    world.send()
    with pytest.raises(ImpossibleConfig):
        genesis(world.spec(**changes), (b"a" * 32,))


def test_code_that_is_no_text_where_text_belongs_is_a_clean_refusal() -> None:
    """PS-54: hostile bytes in a handler's name raise nothing but what decoding may raise."""
    world = Governed()
    code = world.chain.spec.encode()
    broken = code.replace(b"observe", b"\xff\xfe\xfd\xfc\xfb\xfa\xf9")
    assert broken != code
    world.send(governance.transact(bytes((SYSTEM.index, 2)) + encode_bytes(broken)))
    assert world.chain.spec == decode_spec(code)
    world.send()


def test_root_calls_do_not_reach_a_chain_through_other_parachains() -> None:
    """PS-67: only the relay chain's queue is obeyed."""
    world = Governed()
    world.send()
    sender = ParaId(2000)
    message = governance.transact(governance.subscriber_call("redeliver", 1000))
    head = blake2_256(bytes(32) + (2).to_bytes(4, "little") + blake2_256(message))
    relay = Relay(
        2,
        PUBLISHERS,
        top={
            storage_keys.hrmp_ingress_channel_index(ME): b"\x04" + sender.to_bytes(4, "little"),
            storage_keys.hrmp_channel(sender, ME): channel(head),
        },
    )
    outcome = world.chain.step(relay, (), ((sender, (InboundHrmpMessage(RelayBlockNumber(2), message),)),))
    assert not [event for event in events(outcome) if isinstance(event, RedeliveryRequested)]
