"""What a parachain block takes and sends, what paras and sessions refuse (PS-23), and the host
configuration.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.runtime.relay_chain import world
from support.runtime.relay_chain.world import PUBLIC, SECOND, SYSTEM

from pubsub_emulator.emulator.relay.chain import Genesis, RelayChain
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.storage_keys import item_prefix
from pubsub_emulator.primitives.types import AccountId, ParaId, RelayBlockNumber
from pubsub_emulator.runtime.framework.dispatch import BadOrigin
from pubsub_emulator.runtime.framework.hooks import IntegrityError, StateError
from pubsub_emulator.runtime.framework.message_chains import MessageBounds, OutboundHrmpMessage
from pubsub_emulator.runtime.framework.origin import Root, Signed
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.relay import hrmp
from pubsub_emulator.runtime.relay.babe import current_slot
from pubsub_emulator.runtime.relay.host_configuration import (
    ABRIDGED,
    Configuration,
    HostConfiguration,
    active_config,
    host_configuration,
)
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
    chain = RelayChain.start(
        world.SMALL, Genesis(dict.fromkeys(MANAGERS, b"head"), MANAGERS, (), ((A, B),))
    )
    chain.send_downward(A, b"down")
    world.step(chain)
    return chain


def _block(
    downward: int = 1,
    watermark: int = 1,
    across: Sequence[OutboundHrmpMessage] = (),
    head: bytes = b"new head",
) -> BackedCandidate:
    commitments = CandidateCommitments(
        UP, tuple(across), head, downward, RelayBlockNumber(watermark)
    )
    return BackedCandidate(A, RelayBlockNumber(1), commitments)


def test_an_included_block_takes_its_messages_and_sends_its_own() -> None:
    chain = _start()
    storage, runtime = chain.storage(), chain.runtime
    assert [message.msg for message in runtime.dmp.contents(storage, A)] == [b"down"]
    block = world.step(chain, [_block(across=[OutboundHrmpMessage(B, b"hi")])])
    assert {UpwardMessagesReceived(A, 2), NewHeadNoted(A)} <= set(
        world.events(block, "ParaInclusion", "Paras")
    )
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
def test_ps23_a_block_that_does_not_fit_is_refused_whole(
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
        ParaInclusion(
            runtime.paras, runtime.message_queue, runtime.dmp, runtime.hrmp, bounds
        ).check_bounds(storage)


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


RELAY_STATE = Path(__file__).parents[2] / "vectors" / "relay_state"
SAMPLES: list[dict[str, Any]] = json.loads((RELAY_STATE / "active_config.json").read_text())
CHANNELS: list[dict[str, str]] = json.loads((RELAY_STATE / "hrmp_channels.json").read_text())
NEWEST = next(sample for sample in SAMPLES if sample["chain"] == "moonbeam")


def _raw(sample: dict[str, Any]) -> bytes:
    return unhex(sample["active_config"])


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: f"{s['chain']}-{s['block']}")
def test_the_part_of_a_real_configuration_that_cumulus_reads_re_encodes(
    sample: dict[str, Any],
) -> None:
    raw = _raw(sample)
    reader = Reader(raw)
    fields = [codec.read(reader) for codec in ABRIDGED]
    encoded = b"".join(codec.encode(field) for codec, field in zip(ABRIDGED, fields, strict=True))
    assert len(encoded) == 44
    assert raw.startswith(encoded)
    max_code_size, max_head_data_size = fields[:2]
    assert 1_000_000 < max_code_size <= 10 * 2**20
    assert max_head_data_size == 20_480


def test_todays_real_configuration_decodes_whole_and_is_our_default() -> None:
    raw = _raw(NEWEST)
    found = host_configuration.decode(raw)
    assert host_configuration.encode(found) == raw
    assert found.max_pov_size == 10 * 2**20
    assert found.scheduler_params.num_cores == 100
    assert replace(
        HostConfiguration(),
        executor_params=found.executor_params,
        node_features=found.node_features,
    ) == (found)


@pytest.mark.parametrize("cut", [0, 43, 100, 237])
def test_a_truncated_configuration_is_refused(cut: int) -> None:
    with pytest.raises(ScaleError):
        host_configuration.decode(_raw(NEWEST)[:cut])


def test_an_unknown_executor_parameter_is_refused() -> None:
    config = HostConfiguration()
    raw = host_configuration.encode(config)
    at = 44 + 12 + 32 + 16
    assert raw[at] == 0
    with pytest.raises(ScaleError, match="executor parameter"):
        host_configuration.decode(raw[:at] + b"\x04\x63" + raw[at + 1 :])


@pytest.mark.parametrize("sample", CHANNELS, ids=lambda s: s["key"][-16:])
def test_real_channels_decode_and_re_encode(sample: dict[str, str]) -> None:
    raw = unhex(sample["value"])
    channel = hrmp.channel.decode(raw)
    assert hrmp.channel.encode(channel) == raw
    key = unhex(sample["key"])
    which = hrmp.channel_id.decode(key[-8:])
    assert hrmp.CHANNELS.key_for(which) == key
    assert channel.msg_count <= channel.max_capacity


def test_a_scheduled_configuration_holds_from_its_session_on() -> None:
    storage, pallet = Storage(State()), Configuration()
    assert active_config(storage) == HostConfiguration()
    pallet.genesis(storage)
    raw = storage.get(item_prefix("Configuration", "ActiveConfig"))
    assert raw == host_configuration.encode(HostConfiguration())
    first, second = (
        replace(HostConfiguration(), max_pov_size=size) for size in (6_000_000, 7_000_000)
    )
    pallet.set_config(storage, Root(), second, 5)
    pallet.set_config(storage, Root(), first, 3)
    found = []
    for session in range(2, 7):
        pallet.on_new_session(storage, session)
        found.append(active_config(storage).max_pov_size)
    assert found == [10_485_760, 6_000_000, 6_000_000, 7_000_000, 7_000_000]
    with pytest.raises(BadOrigin):
        pallet.set_config(storage, Signed(AccountId(bytes(32))), first, 9)


@pytest.mark.parametrize(
    "change",
    [
        {"max_pov_size": 0},
        {"max_upward_queue_count": 0},
        {"max_upward_message_size": 2_000_000},
        {"hrmp_channel_max_message_size": 102_401},
    ],
    ids=str,
)
def test_a_configuration_that_no_parachain_could_work_with_is_refused(
    change: dict[str, int],
) -> None:
    with pytest.raises(IntegrityError):
        Configuration(replace(HostConfiguration(), **change)).integrity_test()
    Configuration().integrity_test()
