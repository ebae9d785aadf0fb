"""ND-12, ND-13: bytes of strangers are an extrinsic that re-encodes to them, or undecodable; never
anything else.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.runtime.accounts import (
    KEY,
    PUBLISHER,
    SUBSCRIBER,
    call,
    network,
    runtime_of,
    signed,
    signer,
)

from pubsub_emulator.emulator.network.network import Network
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import encode_bytes
from pubsub_emulator.primitives.signatures import Scheme
from pubsub_emulator.runtime.accounts.extrinsic import (
    BareExtrinsic,
    Era,
    UndecodableExtrinsic,
    decode,
)
from pubsub_emulator.runtime.framework.calls import CallTable
from pubsub_emulator.runtime.framework.origin import Root, Signed
from pubsub_emulator.xcm import Parachain
from pubsub_emulator.xcm.location import Location
from pubsub_emulator.xcm.message import decode as decode_xcm

EVE = signer("Eve", Scheme.ED25519)


def _samples(net: Network) -> list[tuple[int | None, bytes]]:
    eve = EVE.account
    rows: list[tuple[int | None, str, str, tuple[object, ...]]] = [
        (None, "Balances", "transfer_all", (eve, True)),
        (None, "System", "set_storage", ([(b"key", b"value")],)),
        (
            None,
            "XcmPallet",
            "send",
            (Location(0, (Parachain(1),)), decode_xcm(bytes.fromhex("05042f0000"))),
        ),
        (None, "Broadcaster", "delete_keys", (PUBLISHER, [KEY])),
        (PUBLISHER, "Publisher", "publish", ([(KEY, b"value", 7)],)),
        (SUBSCRIBER, "Subscriber", "redeliver", (PUBLISHER,)),
    ]
    out = []
    for chain, pallet, name, args in rows:
        inner = call(net, chain, pallet, name, *args)
        kinds = (
            inner,
            call(net, chain, "Utility", "batch", [inner, inner]),
            call(
                net,
                chain,
                "Sudo",
                "sudo",
                call(net, chain, "Utility", "dispatch_as", Signed(eve), inner),
            ),
            call(net, chain, "Utility", "dispatch_as", Root(), inner),
        )
        out += [(chain, signed(net, chain, what, EVE, era=Era(64, 0), tip=3)) for what in kinds]
    return out


NET = network()
NET.step(1)
SAMPLES = _samples(NET)


TABLES: dict[int | None, CallTable] = {
    chain: runtime_of(NET, chain).calls for chain in (None, PUBLISHER, SUBSCRIBER)
}


def undecodable_or_the_same(chain: int | None, raw: bytes) -> bool:
    try:
        extrinsic = decode(raw, TABLES[chain])
    except UndecodableExtrinsic:
        return False
    if isinstance(extrinsic, BareExtrinsic):
        assert raw.endswith(extrinsic.body)
    else:
        assert extrinsic.encode() == raw
        assert extrinsic.length == len(raw)
    return True


@pytest.mark.parametrize(("chain", "raw"), SAMPLES)
def test_what_clients_send_reads_back_to_its_bytes(chain: int | None, raw: bytes) -> None:
    assert undecodable_or_the_same(chain, raw)
    assert not undecodable_or_the_same(chain, raw + b"\0")
    for end in range(0, len(raw), 7):
        assert not undecodable_or_the_same(chain, raw[:end])


@given(
    st.sampled_from(SAMPLES),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), min_size=1, max_size=4),
)
def test_changed_bytes_are_another_extrinsic_or_none(
    sample: tuple[int | None, bytes], changes: list[tuple[int, int]]
) -> None:
    chain, raw = sample
    data = bytearray(raw)
    for at, value in changes:
        data[at % len(data)] = value
    undecodable_or_the_same(chain, bytes(data))


@given(
    st.sampled_from([None, PUBLISHER, SUBSCRIBER]),
    st.sampled_from([b"", b"\x84", b"\x84\x00" + bytes(32)]),
    st.binary(),
)
def test_any_bytes_are_an_extrinsic_or_none(chain: int | None, head: bytes, tail: bytes) -> None:
    undecodable_or_the_same(chain, encode_bytes(head + tail))
    undecodable_or_the_same(chain, head + tail)


def test_a_chain_has_only_its_own_calls() -> None:
    set_code = bytes((0, 2)) + encode_bytes(b"")
    assert TABLES[SUBSCRIBER].decode(set_code).name == "set_code"
    with pytest.raises(ScaleError, match=r"no call 0\.2"):
        TABLES[None].decode(set_code)
