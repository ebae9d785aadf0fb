"""Values by metadata's own descriptions: storage, events and extrinsics read and write as JSON."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.node.nodes import at
from support.plumbing.examples import scaled
from support.runtime.accounts import PUBLISHER, SUBSCRIBER, call, network, signed, signer

from pubsub_emulator.emulator.network.network import Network
from pubsub_emulator.node.at import At
from pubsub_emulator.node.types.bodies import decode_events, decode_extrinsic
from pubsub_emulator.node.types.rows import entry_of, parse_row, storage_entry
from pubsub_emulator.node.types.values import BadValue, from_json, to_json
from pubsub_emulator.primitives import type_info
from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.runtime.framework.system import EVENTS

BOB = signer("Bob").account


@pytest.fixture(scope="module")
def net() -> Network:
    made = network()
    made.give_turn(PUBLISHER)
    made.step(2)
    for chain in (None, PUBLISHER, SUBSCRIBER):
        transfer = call(made, chain, "Balances", "transfer_keep_alive", BOB, 5 * 10**10)
        made.offer(chain, [signed(made, chain, transfer, signer("Alice"))])
    made.step(1)
    return made


@pytest.mark.parametrize("chain", [None, PUBLISHER, SUBSCRIBER])
def test_nd17_every_row_of_a_state_round_trips_through_json(
    net: Network, chain: int | None
) -> None:
    here = at(net, chain)
    unread = []
    for key, value in here.state.top.items():
        row = parse_row(here, key, value)
        entry = entry_of(here, key)
        if row is None or entry is None:
            unread.append(key)
            continue
        row = json.loads(json.dumps(row))
        assert entry.key(row["key"]) == key
        assert entry.encode(row["value"]) == value
    assert unread == [b":code"]


def test_the_events_of_a_block_name_pallet_variant_and_arguments(net: Network) -> None:
    events = decode_events(at(net, SUBSCRIBER))
    names = [
        (event["section"], event["method"])
        for event in events
        if event["phase"] == {"ApplyExtrinsic": 1}
    ]
    assert names == [
        ("balances", "Withdraw"),
        ("balances", "Transfer"),
        ("transactionPayment", "TransactionFeePaid"),
        ("system", "ExtrinsicSuccess"),
    ]
    assert events[-3]["argObj"]["amount"] == 5 * 10**10


def test_an_extrinsic_names_its_call_and_who_signed_it(net: Network) -> None:
    here = at(net, PUBLISHER)
    transfer = call(net, PUBLISHER, "Balances", "transfer_keep_alive", BOB, 7)
    out = decode_extrinsic(here, signed(net, PUBLISHER, transfer, signer("Alice")))
    assert (out["section"], out["method"]) == ("balances", "transferKeepAlive")
    assert out["signer"] == "5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY"
    assert out["argObj"] == {
        "dest": {"Id": "5FHneW46xGXgs5mUiveU4sbTyGBzmstUspZC92UhjJM694ty"},
        "value": 7,
    }


def test_a_value_is_written_as_clients_write_it(net: Network) -> None:
    entry = storage_entry(at(net, None), "system", "account")
    assert entry is not None
    written = entry.encode({"data": {"free": "1,000"}, "nonce": "0x10"})
    assert entry.decode(written) == {
        "nonce": 16,
        "consumers": 0,
        "providers": 0,
        "sufficients": 0,
        "data": {"free": 1000, "reserved": 0, "frozen": 0, "flags": 0},
    }
    assert storage_entry(at(net, None), "System", "Nothing") is None
    assert entry.decode_keys(entry.key(["5FHneW46xGXgs5mUiveU4sbTyGBzmstUspZC92UhjJM694ty"])) == [
        "5FHneW46xGXgs5mUiveU4sbTyGBzmstUspZC92UhjJM694ty"
    ]


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"data": {"free": -1}}, "System.Account.data.free"),
        ({"data": {"free": 2**128}}, "System.Account.data.free"),
        ({"data": {"gratis": 1}}, "System.Account.data"),
        ({"data": [1]}, "System.Account.data"),
        ({"nonce": True}, "System.Account.nonce"),
        ("text", "System.Account"),
    ],
)
def test_a_value_of_another_type_is_refused_where_it_is_wrong(
    net: Network, value: object, place: str
) -> None:
    entry = storage_entry(at(net, None), "System", "Account")
    assert entry is not None
    with pytest.raises(BadValue, match=f"^{place}: "):
        entry.encode(value)


def test_events_of_a_broken_state_are_a_scale_error(net: Network) -> None:
    here = at(net, None)
    state = here.state.fork()
    state.apply({EVENTS: b"\x04\xff"}, {})
    with pytest.raises(ScaleError):
        decode_events(At(here.relay, here.header, state, here.genesis))


INFOS = st.recursive(
    st.sampled_from(
        [
            type_info.BOOL,
            type_info.STR,
            *(type_info.Primitive(f"u{bits}") for bits in (8, 32, 64, 128)),
        ]
    ),
    lambda inner: st.one_of(
        st.builds(type_info.option, inner.filter(lambda info: "Option" not in repr(info))),
        st.builds(type_info.SequenceOf, inner),
        st.builds(type_info.ArrayOf, st.integers(0, 3), inner),
        st.builds(
            lambda parts: type_info.TupleOf(tuple(parts)), st.lists(inner, min_size=1, max_size=3)
        ),
        st.builds(
            lambda first, second: type_info.struct("a::B", some_field=first, other=second),
            inner,
            inner,
        ),
        st.builds(
            lambda info: type_info.Variants(
                ("a", "C"),
                (
                    type_info.Variant("Plain", 3),
                    type_info.Variant("Full", 7, (type_info.Field(info),)),
                ),
            ),
            inner,
        ),
    ),
    max_leaves=6,
)


@settings(max_examples=scaled(50))
@given(INFOS, st.binary(max_size=60))
def test_whatever_reads_as_json_writes_back_to_the_same_bytes(
    info: type_info.TypeInfo, data: bytes
) -> None:
    try:
        value = to_json(info, data, {})
    except ScaleError:
        return
    if "�" in json.dumps(value, ensure_ascii=False):
        return  # text that is not UTF-8 is shown, not kept
    assert from_json(info, json.loads(json.dumps(value)), {}) == data
