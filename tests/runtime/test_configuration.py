"""Host configuration: real values of relay chain state decode and re-encode to the byte."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.storage_keys import item_prefix
from pubsub_emulator.primitives.types import AccountId
from pubsub_emulator.runtime.framework.dispatch import BadOrigin
from pubsub_emulator.runtime.framework.hooks import IntegrityError
from pubsub_emulator.runtime.framework.origin import Root, Signed
from pubsub_emulator.runtime.framework.storage import State, Storage
from pubsub_emulator.runtime.relay import hrmp
from pubsub_emulator.runtime.relay.configuration import Configuration
from pubsub_emulator.runtime.relay.host_configuration import (
    ABRIDGED,
    HostConfiguration,
    active_config,
    host_configuration,
)

VECTORS = Path(__file__).parents[1] / "vectors" / "relay_state"
SAMPLES: list[dict[str, Any]] = json.loads((VECTORS / "active_config.json").read_text())
CHANNELS: list[dict[str, str]] = json.loads((VECTORS / "hrmp_channels.json").read_text())
NEWEST = next(sample for sample in SAMPLES if sample["chain"] == "moonbeam")


def _raw(sample: dict[str, Any]) -> bytes:
    return bytes.fromhex(sample["active_config"].removeprefix("0x"))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: f"{s['chain']}-{s['block']}")
def test_what_cumulus_reads_of_a_real_configuration_re_encodes_to_its_first_bytes(sample: dict[str, Any]) -> None:
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
    assert replace(HostConfiguration(), executor_params=found.executor_params, node_features=found.node_features) == (
        found
    )


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
    raw = bytes.fromhex(sample["value"].removeprefix("0x"))
    channel = hrmp.channel.decode(raw)
    assert hrmp.channel.encode(channel) == raw
    key = bytes.fromhex(sample["key"].removeprefix("0x"))
    which = hrmp.channel_id.decode(key[-8:])
    assert hrmp.CHANNELS.key_for(which) == key
    assert channel.msg_count <= channel.max_capacity


def test_a_scheduled_configuration_holds_from_its_session_on() -> None:
    storage, pallet = Storage(State()), Configuration()
    assert active_config(storage) == HostConfiguration()
    pallet.genesis(storage)
    raw = storage.get(item_prefix("Configuration", "ActiveConfig"))
    assert raw == host_configuration.encode(HostConfiguration())
    first, second = (replace(HostConfiguration(), max_pov_size=size) for size in (6_000_000, 7_000_000))
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
def test_a_configuration_that_no_parachain_could_work_with_is_refused(change: dict[str, int]) -> None:
    with pytest.raises(IntegrityError):
        Configuration(replace(HostConfiguration(), **change)).integrity_test()
    Configuration().integrity_test()
