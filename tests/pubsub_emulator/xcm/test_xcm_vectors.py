"""PS-20: index tables made by independent implementations, and what the vectors of messages
hold.
"""

from typing import Any

import pytest
from support.xcm.messages import VECTORS, classes_below

from pubsub_emulator.primitives.hexadecimal import unhex
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.xcm import assets, instructions, location, outcome, response
from pubsub_emulator.xcm.instructions import XCM, Instruction, Publish, SetTopic
from pubsub_emulator.xcm.location import HERE, PARENT, Location, parachain, sibling
from pubsub_emulator.xcm.message import decode
from pubsub_emulator.xcm.outcome import XcmErrorKind
from pubsub_emulator.xcm.render import to_json
from pubsub_emulator.xcm.schema import Kind, XcmCodec

MESSAGES = VECTORS["messages"] + VECTORS["random_messages"]


def test_the_messages_hold_every_instruction_of_the_table() -> None:
    """PS-20: otherwise `pubsub vectors check` would prove less of them than it says."""
    met = {
        type(instruction) for vector in MESSAGES for instruction in decode(unhex(vector["encoded"]))
    }
    assert met >= set(Instruction.VARIANTS.values()) - {Publish}


def test_each_message_is_shown_as_its_vector_states() -> None:
    """PS-20: tuples, and variants with one value, have forms of their own in JSON."""
    for vector in MESSAGES:
        assert to_json(decode(unhex(vector["encoded"]))) == vector["value"]


def test_publish_stands_at_the_next_free_discriminant() -> None:
    """PS-20: 52, as the vectors and the Rust attempt have it."""
    assert Publish.INDEX == VECTORS["publish_instruction"]["index"] == 52
    assert max(Instruction.VARIANTS) == 52


def test_the_helpers_name_the_locations_of_the_vectors() -> None:
    """PS-21: what the relay chain calls a parachain."""
    plain = {vector["name"]: unhex(vector["plain"]) for vector in VECTORS["locations"]}
    assert Location.codec.encode(HERE) == plain["here"]
    assert Location.codec.encode(PARENT) == plain["parent"]
    assert Location.codec.encode(parachain(ParaId(1000))) == plain["para 1000"]
    assert Location.codec.encode(sibling(ParaId(2004))) == plain["sibling 2004"]


TABLES: dict[str, Any] = {
    "staging_xcm::v5::Instruction": Instruction,
    "staging_xcm::v5::junction::Junction": location.Junction,
    "staging_xcm::v5::junction::NetworkId": location.NetworkId,
    "xcm::v3::junction::BodyId": location.BodyId,
    "xcm::v3::junction::BodyPart": location.BodyPart,
    "xcm::v3::MaybeErrorCode": response.MaybeErrorCode,
    "xcm::v3::OriginKind": response.OriginKind,
    "xcm::v3::WeightLimit": response.WeightLimit,
    "staging_xcm::v5::asset::Fungibility": assets.Fungibility,
    "staging_xcm::v5::asset::AssetInstance": assets.AssetInstance,
    "staging_xcm::v5::Response": response.Response,
    "xcm::v5::traits::Error": XcmErrorKind,
    "staging_xcm::v5::asset::AssetFilter": assets.AssetFilter,
    "staging_xcm::v5::asset::WildAsset": assets.WildAsset,
    "staging_xcm::v5::asset::WildFungibility": assets.WildFungibility,
    "staging_xcm::v5::asset::AssetTransferFilter": assets.AssetTransferFilter,
    "staging_xcm::v5::Hint": response.Hint,
    "staging_xcm::v5::traits::Outcome": outcome.Outcome,
}
OURS_ALONE = {"Publish", "PublishFailed"}


def table_of(enum: Any) -> list[tuple[int, str, list[str | None]]]:
    """Discriminant, name and field names of every variant that upstream has too."""
    if isinstance(enum, type) and issubclass(enum, outcome.XcmErrorKind):
        detailed = ("Trap", "WeightLimitReached")
        rows = [(kind.value, kind.name, [None] if kind.name in detailed else []) for kind in enum]
    elif hasattr(enum, "VARIANTS"):
        rows = [
            (index, kind.__name__, [None if name == "inner" else name for name, _ in kind.FIELDS])
            for index, kind in enum.VARIANTS.items()
        ]
    else:
        rows = [(kind.value, kind.name, []) for kind in enum]
    return sorted(row for row in rows if row[1] not in OURS_ALONE)


@pytest.mark.parametrize("name", TABLES)
def test_discriminants_names_and_fields_are_those_of_the_metadata(name: str) -> None:
    """PS-20: the index tables, `Publish` and `PublishFailed` aside, which the metadata does not
    know.
    """
    theirs = [
        (row["index"], row["name"], [field["name"] for field in row["fields"]])
        for row in VECTORS["tables"][name]
    ]
    assert table_of(TABLES[name]) == theirs


def test_here_and_eight_junctions_are_the_discriminants_of_junctions() -> None:
    """PS-20: `Here`, `X1` to `X8`."""
    names = [
        (row["index"], row["name"])
        for row in VECTORS["tables"]["staging_xcm::v5::junctions::Junctions"]
    ]
    assert names == [(0, "Here"), *((count, f"X{count}") for count in range(1, 9))]
    assert location.JUNCTIONS.shape.size == len(names) - 1


# How the metadata names what our codecs stand for. `Compact<T>` is written as T there.
_RENAMED = {
    "u8": {"u8"},
    "u32": {"u32", "super::Version"},
    "u64": {"u64"},
    "u128": {"u128"},
    "bool": {"bool"},
    "Compact<u32>": {"u32"},
    "Compact<u64>": {"u64", "QueryId"},
    "Compact<u128>": {"u128"},
    "Xcm": {"Xcm<()>", "Xcm<Call>"},
    "Junctions": {"InteriorLocation"},
    "DoubleEncoded": {"DoubleEncoded<Call>"},
    "Location": {"Location", "AssetId"},
    "Option<Junctions>": {"Option<InteriorLocation>"},
    "Vec<Hint>": {"BoundedVec<Hint, HintNumVariants>"},
    "Vec<AssetTransferFilter>": {"BoundedVec<AssetTransferFilter, MaxAssetTransferFilters>"},
    "Vec<PalletInfo>": {"BoundedVec<PalletInfo, MaxPalletsInfo>"},
    "BoundedVec<u8, 128>": {"BoundedVec<u8, MaxDispatchErrorLen>"},
}


@pytest.mark.parametrize("name", [name for name in TABLES if hasattr(TABLES[name], "VARIANTS")])
def test_the_types_of_the_fields_are_those_of_the_metadata(name: str) -> None:
    """PS-20: each field's codec carries the name of the metadata's type, or the one it stands
    for.
    """
    for row in VECTORS["tables"][name]:
        kind = TABLES[name].VARIANTS[row["index"]]
        for field, (_, codec) in zip(row["fields"], kind.FIELDS, strict=True):
            assert field["type"] in _RENAMED.get(codec.name, {codec.name}), (kind, field)


def test_every_declared_class_is_reached_from_a_message_or_an_outcome() -> None:
    """PS-20: no type is declared and never encoded."""
    reached = {*classes_below(XCM), *classes_below(outcome.Outcome.codec)}
    reached |= {*classes_below(outcome.ProcessMessageError.codec)}
    declared = {
        kind
        for module in (location, assets, response, instructions, outcome)
        for kind in vars(module).values()
        if isinstance(kind, type) and hasattr(kind, "FIELDS")
    }
    assert declared <= reached


def test_the_codec_of_a_message_is_a_sequence_of_instructions() -> None:
    """PS-20: what walks values by shape relies on it."""
    codec: XcmCodec[Any] = XCM
    assert codec.shape.kind is Kind.SEQUENCE
    assert codec.decode(unhex("0x042d")) == (instructions.ClearTopic(),)
    assert codec.encode((SetTopic(bytes(32)),)) == b"\x04\x2c" + bytes(32)
