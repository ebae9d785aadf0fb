"""PS-20: whatever the types can hold survives encoding and decoding."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.xcm.messages import PUBLISHES, messages, of_class, shown

from pubsub_emulator.primitives.errors import ScaleError
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.weights import Weight
from pubsub_emulator.xcm.assets import (
    ASSETS,
    Asset,
    AssetInstance,
    Fungible,
    NonFungible,
    sorted_assets,
)
from pubsub_emulator.xcm.instructions import XCM, DescendOrigin, Instruction, Publish, SetTopic, Xcm
from pubsub_emulator.xcm.location import HERE, PARENT, Junction, Location, OnlyChild, Parachain
from pubsub_emulator.xcm.message import decode, encode
from pubsub_emulator.xcm.outcome import (
    WEIGHT,
    Complete,
    Error,
    Incomplete,
    InstructionError,
    Outcome,
    Overweight,
    ProcessMessageError,
    XcmError,
    XcmErrorKind,
)
from pubsub_emulator.xcm.render import to_json
from pubsub_emulator.xcm.response import Hint
from pubsub_emulator.xcm.schema import XcmReader


@pytest.mark.parametrize("kind", Instruction.VARIANTS.values(), ids=lambda kind: kind.__name__)
@settings(max_examples=max(1, settings().max_examples // 6))
@given(data=st.data())
def test_every_instruction_survives_encoding_and_decoding(
    kind: type[Instruction], data: st.DataObject
) -> None:
    """PS-20: alone in a message, with whatever its fields can hold."""
    instruction = data.draw(of_class(kind))
    encoded = encode((instruction,))
    assert encoded[:3] == bytes((5, 4, kind.INDEX))
    assert decode(encoded) == (instruction,)


@given(messages())
def test_every_message_survives_encoding_and_decoding(message: Xcm) -> None:
    """PS-20: several instructions, messages within messages."""
    assert decode(encode(message)) == message


@given(messages())
def test_every_message_renders_as_json(message: Xcm) -> None:
    """PS-20: rendering knows every type and leaves nothing that JSON cannot say."""
    rendered = to_json(message)
    assert json.loads(json.dumps(rendered)) == rendered
    assert len(rendered["v5"]) == len(message)


@given(st.lists(PUBLISHES, max_size=10).map(tuple))
def test_the_fast_way_for_publish_equals_the_declared_codec(message: tuple[Publish, ...]) -> None:
    """PS-20: bytes written by hand and by the schema are equal, and each way reads what the other
    wrote.
    """
    by_schema = b"".join([Instruction.codec.encode(instruction) for instruction in message])
    assert XCM.encode(message) == bytes((len(message) << 2,)) + by_schema
    reader = XcmReader(by_schema)
    assert tuple(Instruction.codec.read(reader) for _ in message) == message
    assert decode(encode(message)) == message


@given(PUBLISHES, st.integers(0, 400))
def test_a_publish_cut_short_is_refused_both_ways(instruction: Publish, cut: int) -> None:
    """PS-20: the fast way falls back on the declared codec where bytes are missing."""
    whole = Instruction.codec.encode(instruction)
    cut = min(cut, len(whole) - 1)
    with pytest.raises(ScaleError):
        Instruction.codec.decode(whole[:cut])
    with pytest.raises(ScaleError):
        XCM.decode(b"\x04" + whole[:cut])


@pytest.mark.parametrize("prefix", ["0100", "fd00", "02000000", "0300000000"])
def test_a_publish_value_with_a_long_compact_length_is_refused(prefix: str) -> None:
    """PS-20: one message, one encoding."""
    length = bytes.fromhex(prefix)
    size = int.from_bytes(length[:4], "little") >> 2
    data = b"\x04\x34" + bytes(32) + length + bytes(size) + bytes(4)
    with pytest.raises(ScaleError, match="shortest form"):
        XCM.decode(data)


WithdrawAsset = Instruction.VARIANTS[0]
OUT_OF_RANGE: list[Instruction] = [
    Publish(bytes(31), b"", 0),
    Publish(bytes(33), b"", 0),
    Publish(bytes(32), b"", -1),
    Publish(bytes(32), b"", 2**32),
    SetTopic(bytes(31)),
    DescendOrigin((OnlyChild(),) * 9),
    DescendOrigin((Junction.VARIANTS[5](2**128),)),  # GeneralIndex
    DescendOrigin((Parachain(2**32),)),
    DescendOrigin((HERE,)),  # type: ignore[arg-type]  # the wrong type is what is tested
    WithdrawAsset(HERE),  # the wrong type is what is tested
    WithdrawAsset((Asset(HERE, Fungible(0)),)),
    WithdrawAsset((Asset(PARENT, Fungible(1)), Asset(HERE, Fungible(1)))),
    WithdrawAsset((Asset(HERE, Fungible(1)), Asset(HERE, Fungible(2)))),
    WithdrawAsset(tuple(Asset(Location(level, ()), Fungible(1)) for level in range(21))),
    Instruction.VARIANTS[51](
        (Hint.VARIANTS[0](HERE), Hint.VARIANTS[0](HERE))
    ),  # SetHints of two AssetClaimer
]


@pytest.mark.parametrize("instruction", OUT_OF_RANGE, ids=shown)
def test_what_a_type_cannot_hold_is_not_encoded(instruction: Instruction) -> None:
    """PS-20: encoding refuses what decoding would refuse."""
    with pytest.raises((ScaleError, TypeError)):
        encode((instruction,))


NFT = Asset(HERE, NonFungible(AssetInstance.VARIANTS[0]()))
NAMED = Asset(HERE, NonFungible(AssetInstance.VARIANTS[2](b"good")))
TEN = Asset(HERE, Fungible(10))
ABOVE = Asset(PARENT, Fungible(10))
BELOW = Asset(Location(0, (OnlyChild(),)), Fungible(10))


@pytest.mark.parametrize(
    "assets",
    [
        (),
        (TEN, ABOVE),
        (TEN, BELOW, ABOVE),
        (NFT, NAMED),
        (TEN, NAMED),
        (ABOVE, NFT),
        (NFT, ABOVE),
    ],
    ids=str,
)
def test_sorted_assets_survive(assets: tuple[Asset, ...]) -> None:
    """PS-20: fungibles before instances within a class; a larger class may always follow."""
    assert ASSETS.decode(ASSETS.encode(assets)) == assets


@pytest.mark.parametrize(
    "assets",
    [
        (TEN, TEN),
        (ABOVE, TEN),
        (ABOVE, BELOW),
        (NFT, NFT),
        (NAMED, NFT),
        (NFT, TEN),
    ],
    ids=str,
)
def test_unsorted_and_doubled_assets_are_refused(assets: tuple[Asset, ...]) -> None:
    """PS-20: in both directions, as Rust's `Assets` does."""
    plain = bytes((len(assets) << 2,)) + b"".join([Asset.codec.encode(asset) for asset in assets])
    with pytest.raises(ScaleError, match="out of order"):
        ASSETS.decode(plain)
    with pytest.raises(ScaleError, match="out of order"):
        ASSETS.encode(assets)


@given(st.lists(of_class(Asset), max_size=6, unique_by=str))
def test_sorting_assets_gives_an_order_that_encodes(assets: list[Asset]) -> None:
    """PS-20: one amount a class, in Rust's order."""
    by_class = {
        (asset.id, asset.fun.INDEX, asset.fun if asset.fun.INDEX else None): asset
        for asset in assets
    }
    ordered = sorted_assets(by_class.values())
    assert ASSETS.decode(ASSETS.encode(ordered)) == ordered


OUTCOMES: list[tuple[Any, str]] = [
    (Complete(Weight(1, 2)), "000408"),
    (
        Incomplete(Weight(64, 0), InstructionError(3, XcmError(XcmErrorKind.Trap, 42))),
        "0101010003152a00000000000000",
    ),
    (Incomplete(Weight(0, 0), InstructionError(0, XcmError(XcmErrorKind.BadOrigin))), "0100000006"),
    (
        Incomplete(Weight(0, 0), InstructionError(255, XcmError(XcmErrorKind.PublishFailed))),
        "010000ff29",
    ),
    (Error(InstructionError(0, XcmError(XcmErrorKind.Barrier))), "020026"),
    (
        Error(InstructionError(1, XcmError(XcmErrorKind.WeightLimitReached, Weight(1, 1)))),
        "0201250404",
    ),
]


@pytest.mark.parametrize(("outcome", "encoded"), OUTCOMES, ids=str)
def test_outcomes_are_the_bytes_that_a_rust_client_reads(outcome: Outcome, encoded: str) -> None:
    """PS-21: variant, weight used, index and error, written out by hand from the metadata's
    types.
    """
    assert Outcome.codec.encode(outcome).hex() == encoded
    assert Outcome.codec.decode(bytes.fromhex(encoded)) == outcome


def test_the_pallets_error_is_no_part_of_an_encoded_outcome() -> None:
    """PS-21: it stands beside the `XcmError`, invisible to Rust clients."""
    plain = InstructionError(0, XcmError(XcmErrorKind.PublishFailed))
    telling = InstructionError(0, XcmError(XcmErrorKind.PublishFailed), ScaleError("why"))
    assert (
        InstructionError.codec.encode(telling)
        == InstructionError.codec.encode(plain)
        == b"\x00\x29"
    )
    assert telling == plain
    assert str(telling.cause) == "why"
    assert InstructionError.codec.decode(b"\x00\x29").cause is None


@pytest.mark.parametrize(
    "error",
    [
        XcmError(XcmErrorKind.Trap),
        XcmError(XcmErrorKind.Trap, Weight(1, 1)),
        XcmError(XcmErrorKind.BadOrigin, 1),
        XcmError(XcmErrorKind.WeightLimitReached, 5),
    ],
    ids=str,
)
def test_an_error_with_the_wrong_detail_is_not_encoded(error: XcmError) -> None:
    """PS-21: only `Trap` has a code and only `WeightLimitReached` a weight."""
    with pytest.raises(ScaleError):
        InstructionError.codec.encode(InstructionError(0, error))


def test_process_message_errors_have_their_substrate_discriminants() -> None:
    """PS-22: `frame_support::traits::ProcessMessageError`."""
    names = ["BadFormat", "Corrupt", "Unsupported", "Overweight", "Yield", "StackLimitReached"]
    assert [(index, kind.__name__) for index, kind in ProcessMessageError.VARIANTS.items()] == list(
        enumerate(names)
    )
    assert ProcessMessageError.codec.encode(Overweight(Weight(1, 2))) == b"\x03\x04\x08"


def test_a_weight_is_two_compact_integers() -> None:
    """PS-20: both of at most 64 bits."""
    assert WEIGHT.encode(Weight(2**64 - 1, 0)) == b"\x13" + b"\xff" * 8 + b"\x00"
    with pytest.raises(ScaleError):
        WEIGHT.decode(b"\x17" + b"\xff" * 9 + b"\x00")


def test_types_that_nest_want_a_reader_that_counts() -> None:
    """PS-20: reading them with a plain `Reader` would be unbounded, so it is a defect of the
    caller.
    """
    with pytest.raises(AssertionError, match="XcmReader"):
        XCM.read(Reader(b"\x00"))
