"""Names, values, events and outcomes in front of people."""

from pubsub_emulator.emulator.network import Network
from pubsub_emulator.explorer.words import (
    VERDICTS,
    Names,
    execution_words,
    preview,
    short,
    static_labels,
    ttl_words,
    with_names,
)
from pubsub_emulator.primitives.pubsub import Infinite, TimedOut, ValidFor, key_from_data
from pubsub_emulator.primitives.storage_keys import hrmp_channel
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.static_keys import fixed_keys
from pubsub_emulator.runtime.parachain.block import Verdict


def test_every_verdict_is_explained() -> None:
    assert set(VERDICTS) == set(Verdict)


def test_values_are_text_where_all_of_them_is() -> None:
    assert preview(b"7.42") == '"7.42"'
    assert preview(b"\x007.42") == "0x00372e3432"
    assert preview(b"") == "0x"
    assert preview(b"v" * 100, 4) == f'"{"v" * 8}"…'
    assert preview(bytes(100), 4) == "0x00000000…"


def test_hashes_are_shortened_and_short_ones_are_not() -> None:
    assert short(bytes(range(32))) == "0x00010203…1e1f"
    assert short(b"\x01\x02") == "0x0102"


def test_keys_are_called_by_their_names_where_these_are_known() -> None:
    key = key_from_data(b"price")
    names = Names(keys={key: "price"})
    assert with_names(f"node at key {key.hex()}, lost", names) == "node at key price, lost"
    assert with_names(f"key {fixed_keys(ParaId(3000))[0].hex()}", names) == "Configuration.ActiveConfig"
    assert with_names(f"key {'ab' * 32} of {key.hex()}", names) == f"key {'ab' * 32} of {key.hex()}"


def test_lifetimes_are_said_in_blocks() -> None:
    assert ttl_words(Infinite()) == "never expires"
    assert ttl_words(ValidFor(1)) == "valid for 1 relay block"
    assert ttl_words(ValidFor(20)) == "valid for 20 relay blocks"
    assert ttl_words(TimedOut()) == "timed out"
    assert ttl_words(None) == ""


def test_every_static_key_has_a_name() -> None:
    keys = (*fixed_keys(ParaId(3000)), hrmp_channel(ParaId(1000), ParaId(3000)))
    labels = list(static_labels(keys).values())
    assert len(set(labels)) == len(keys)
    assert labels[0] == "Configuration.ActiveConfig"
    assert labels[-1] == "Hrmp.HrmpChannels 1000 → 3000"
    assert not any("no known" in label for label in labels)


def test_messages_say_how_they_ended_and_why() -> None:
    network = Network.of(publishers=[1000], subscribers={})
    key = key_from_data(b"key")
    network.publish(1000, key, b"v")
    network.step()
    network.publish(1000, key, b"v" * 3000)
    network.step()
    (done,) = network.relay.executions
    network.step()
    (failed,) = network.relay.executions
    names = Names({ParaId(1000): "prices"})
    assert execution_words(done, names).startswith("from 1000 prices: done, ")
    said = execution_words(failed, names)
    assert said.startswith("from 1000 prices: stopped, ")
    assert "instruction 0: " in said
    assert "ValueTooLong" in said
