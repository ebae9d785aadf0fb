"""Requested keys outside pub-sub: proof, verdicts, budget and handlers (UP-13, UP-14)."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from pubsub_emulator.collator.cheats.steps import Draft, Drop
from pubsub_emulator.emulator.network import Network, NetworkConfig, ParachainConfig
from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.pubsub import derive_child_key, key_from_data
from pubsub_emulator.primitives.storage_keys import ACTIVE_CONFIG
from pubsub_emulator.primitives.types import ParaId, PubsubKey
from pubsub_emulator.runtime.framework.relay_keys import relay_key
from pubsub_emulator.runtime.framework.relay_request import ChildKey, RelayStorageKey
from pubsub_emulator.runtime.framework.relay_state import (
    AbsentEntry,
    NotRequested,
    RelayStateProof,
    UndecodableEntry,
)
from pubsub_emulator.runtime.framework.static_keys import StaticValues
from pubsub_emulator.runtime.framework.storage import Storage
from pubsub_emulator.runtime.pallet_subscriber import events
from pubsub_emulator.runtime.pallet_subscriber.config import (
    MAX_EXTRA_KEYS,
    ImpossibleConfig,
    RuntimeSpec,
    decode_spec,
    integrity_test,
)
from pubsub_emulator.runtime.pallet_subscriber.handler import (
    REQUESTED,
    HandlerContext,
    StoreHandler,
    register_handler,
)
from pubsub_emulator.runtime.parachain.block import Verdict
from pubsub_emulator.runtime.parachain.execute import BlockOutcome
from pubsub_emulator.runtime.parachain.validate import judge_block

PUBLISHER, READER, SIBLING = ParaId(1000), ParaId(2000), ParaId(2001)
KEY = key_from_data(b"price")
HEAD = relay_key("Paras.Heads(2001)")
ABSENT = relay_key("Mmr.RootHash")
ENTRY = ChildKey(derive_child_key(PUBLISHER), KEY)
NO_ENTRY = ChildKey(derive_child_key(PUBLISHER), b"\x11" * 32)
NO_TRIE = relay_key("child:crowdloan/0x01")
ALL = (HEAD, ABSENT, ENTRY, NO_ENTRY, NO_TRIE)


def network(
    keys: tuple[RelayStorageKey, ...] = ALL,
    subscriptions: Mapping[ParaId, tuple[PubsubKey, ...]] | None = None,
    **settings: object,
) -> Network:
    spec = RuntimeSpec(READER, subscriptions or {}, extra_keys=keys, handler="store")
    chains = (
        ParachainConfig(replace(spec, **settings)),  # type: ignore[arg-type]  # fields of a spec
        ParachainConfig(RuntimeSpec(SIBLING, {})),
        ParachainConfig.publisher(RuntimeSpec(PUBLISHER, {})),
    )
    net = Network(NetworkConfig(chains))
    net.publish(PUBLISHER, KEY, b"7.42")
    net.step(4)
    return net


def built(net: Network) -> BlockOutcome:
    (record,) = [each for each in net.step()[0].records if each.chain == READER]
    assert record.outcome is not None, record.refusal
    return record.outcome


def test_a_chain_without_pubsub_reads_its_requested_keys() -> None:
    net = network()
    outcome = built(net)
    values = outcome.plan.requested
    assert list(values) == list(ALL)
    sibling = net.relay.block(net.number - 1)
    assert sibling is not None
    assert values[HEAD] == sibling.state.top.get(HEAD.key)  # type: ignore[union-attr]
    assert (values[ENTRY] or b"").startswith(b"\x107.42")
    assert values[ABSENT] is values[NO_ENTRY] is values[NO_TRIE] is None
    assert outcome.ledger.requested_bytes > 0
    stored = dict(REQUESTED.items(Storage(outcome.state)))
    assert stored == {key: value for key, value in values.items() if value is not None}


@pytest.mark.parametrize("key", ALL, ids=str)
def test_a_key_left_out_is_named_in_the_verdict(key: RelayStorageKey) -> None:
    now = network((key,)).situation(READER)
    bare = network(()).situation(READER)
    extra = [name for name in now.walked.taken if name not in now.proof.static_nodes]
    if not extra:
        # The path of this absent key ends in nodes that the static keys need as well.
        assert now.walked.requested == {key: None}
        return
    assert len(now.walked.taken) > len(bare.walked.taken)
    for name in extra:
        draft = Draft.of(now.honest)
        Drop(name).apply(draft)
        candidate = draft.sealed_by(now.seeds)
        _, refusal = judge_block(now.parent, candidate, now.context(now.relay.number))
        assert refusal is not None
        assert refusal.verdict is Verdict.OMITTED_BELOW_BUDGET
        assert "requested key " in str(refusal)


def test_a_static_key_left_out_is_named_in_the_verdict() -> None:
    now = network().situation(READER)
    config = now.walked.statics.values[ACTIVE_CONFIG]
    assert config is not None
    draft = Draft.of(now.honest)
    Drop(blake2_256(config)).apply(draft)
    candidate = draft.sealed_by(now.seeds)
    _, refusal = judge_block(now.parent, candidate, now.context(now.relay.number))
    assert "static key Configuration.ActiveConfig" in str(refusal)


@pytest.mark.parametrize("charged", [False, True])
def test_requested_keys_are_charged_only_if_the_runtime_says_so(*, charged: bool) -> None:
    subscribed = {PUBLISHER: (key_from_data(b"other"),)}
    without = network((), subscribed).situation(READER).walked
    found = network((HEAD,), subscribed, charge_extra_keys=charged).situation(READER).walked
    assert found.requested_bytes > 0
    assert found.used - without.used == (found.requested_bytes if charged else 0)


def test_nodes_that_a_request_took_are_free_for_the_walk() -> None:
    subscribed = {PUBLISHER: (KEY,)}
    net = network((ENTRY,), subscribed)
    # A new runtime makes the walk read the publisher again.
    spec = net.parachain(READER).spec()
    net.upgrade(replace(spec, subscriptions={PUBLISHER: (KEY, b"\x22" * 32)}, spec_version=2))
    net.step(2)
    now = net.situation(READER)
    alone = now.walk_as_if(spec=replace(now.spec, extra_keys=()))
    assert alone.taken.keys() <= now.walked.taken.keys()
    assert now.walked.used < alone.used


class Curious(StoreHandler):
    """A handler that reads a key which its runtime does not request."""

    def on_relay_state(self, context: HandlerContext) -> None:
        super().on_relay_state(context)
        context.relay.read_child_storage(b"crowdloan", b"never")


register_handler("curious", Curious())


def test_a_handler_that_reads_another_key_fails_and_the_block_stays_valid() -> None:
    outcome = built(network((HEAD,), handler="curious"))
    assert [type(record.event) for record in outcome.events] == [events.RelayStateHandlerFailed]
    assert not dict(REQUESTED.items(Storage(outcome.state)))


def test_values_are_read_as_cumulus_reads_them() -> None:
    head, absent = b"head", b"absent"
    statics = StaticValues(values={b"static": b"\x05\x00\x00\x00"})
    requested = {
        relay_key("0x" + head.hex()): b"\x01",
        relay_key("0x" + absent.hex()): None,
        ChildKey(b"trie", b"key"): b"raw",
    }
    proof = RelayStateProof(requested, statics)
    assert proof.read_entry(head, scale.u8) == 1
    assert proof.read_entry(b"static", scale.u32) == 5
    assert proof.read_entry(absent, scale.u8, 9) == 9
    assert proof.read_optional_entry(absent, scale.u8) is None
    assert proof.read_child_storage(b"trie", b"key") == b"raw"
    with pytest.raises(AbsentEntry, match="0x616273656e74 is absent"):
        proof.read_entry(absent, scale.u8)
    with pytest.raises(UndecodableEntry, match="0x68656164: 4 bytes wanted"):
        proof.read_entry(head, scale.u32)
    with pytest.raises(NotRequested, match="0x6f74686572 is not requested"):
        proof.read_optional_entry(b"other", scale.u8)
    with pytest.raises(NotRequested, match="is not requested"):
        proof.read_child_storage(b"trie", b"other")


def test_a_runtime_with_requested_keys_survives_its_encoding() -> None:
    spec = RuntimeSpec(READER, {}, extra_keys=ALL, charge_extra_keys=True, accounts=True)
    assert decode_spec(spec.encode()) == spec


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ((HEAD, HEAD), "more than once"),
        ((ChildKey(b"a" * 2000, b""),), "at most 1024"),
        (
            tuple(ChildKey(b"", number.to_bytes(4, "little")) for number in range(1 + 1024)),
            f"at most {MAX_EXTRA_KEYS}",
        ),
    ],
)
def test_an_impossible_request_is_refused(keys: tuple[RelayStorageKey, ...], why: str) -> None:
    with pytest.raises(ImpossibleConfig, match=why):
        integrity_test(RuntimeSpec(READER, {}, extra_keys=keys))
