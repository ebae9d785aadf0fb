"""ND-17 to ND-20: metadata in three versions, made of the pallets' own definitions and pinned to
the byte.
"""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scalecodec.base import RuntimeConfigurationObject, ScaleBytes
from scalecodec.type_registry import load_type_registry_preset
from support.node.nodes import at as newest
from support.runtime.accounts import SUBSCRIBER, network

from pubsub_emulator.client.metadata import parse_metadata
from pubsub_emulator.node.api import FUNCTIONS
from pubsub_emulator.node.at import (
    METADATA_VERSIONS,
    At,
    UnknownMetadataVersion,
    metadata,
    runtime_version,
)
from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.hashing import blake2_64, blake2_256
from pubsub_emulator.primitives.scale import Codec
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.primitives.type_info import Named, SequenceOf, wrapper
from pubsub_emulator.runtime.framework.pallet import described
from pubsub_emulator.runtime.metadata.apis import APIS, OFFSET_APIS, PARACHAIN_APIS
from pubsub_emulator.runtime.metadata.registry import Registry

VECTORS = Path(__file__).parents[2] / "vectors" / "metadata" / "metadata.json"
CHAINS = {"relay": None, "para": SUBSCRIBER}
NO_SCALE_TYPE = {
    "Subscriber.CachedTrieNodes",
    "Subscriber.CacheSlots",
    "Subscriber.LastDeliveredPacked",
}


@pytest.fixture(scope="module")
def at() -> Callable[[str], At]:
    net = network()

    return lambda chain: newest(net, CHAINS[chain])


@pytest.mark.parametrize("version", METADATA_VERSIONS)
@pytest.mark.parametrize("chain", CHAINS)
def test_nd18_the_bytes_are_the_pinned_ones(
    at: Callable[[str], At], chain: str, version: int
) -> None:
    """Other bytes on one chain need another spec version; PUBSUB_PIN=1 writes them down anew."""
    data = metadata(at(chain), version)
    found = {"length": len(data), "blake2_256": blake2_256(data).hex()}
    if os.environ.get("PUBSUB_PIN") == "1":
        pinned = json.loads(VECTORS.read_text()) if VECTORS.exists() else {}
        pinned[f"{chain}/{version}"] = found
        VECTORS.write_text(json.dumps(pinned, indent=2, sort_keys=True) + "\n")
    assert json.loads(VECTORS.read_text())[f"{chain}/{version}"] == found


def read(data: bytes) -> dict[str, Any]:
    """Metadata 14 by scalecodec, which must write the same bytes again."""
    config = RuntimeConfigurationObject(implements_scale_info=True)
    config.update_type_registry(load_type_registry_preset("core"))
    found = config.create_scale_object("MetadataVersioned", ScaleBytes(data))
    found.decode()
    assert bytes(config.create_scale_object("MetadataVersioned").encode(found.value).data) == data
    versioned: dict[str, Any] = found.value[1]["V14"]
    return versioned


@pytest.mark.parametrize("chain", CHAINS)
def test_nd17_nd19_scalecodec_reads_in_version_14_what_clients_look_for(
    at: Callable[[str], At], chain: str
) -> None:
    found = read(metadata(at(chain), 14))
    types = [row["type"] for row in found["types"]["types"]]
    assert [row["id"] for row in found["types"]["types"]] == list(range(len(types)))
    assert len(set(map(repr, types))) == len(types)
    crate = f"pubsub_{chain}_runtime"
    assert {"::".join(each["path"]) for each in types} >= {
        "sp_core::crypto::AccountId32",
        "sp_runtime::multiaddress::MultiAddress",
        "sp_runtime::generic::era::Era",
        "frame_system::EventRecord",
        f"{crate}::RuntimeEvent",
        f"{crate}::RuntimeCall",
        f"{crate}::OriginCaller",
        "sp_runtime::DispatchError",
        *(
            ("staging_xcm::v5::Instruction", "staging_xcm::v5::location::Location")
            if chain == "relay"
            else ()
        ),
    }
    shown = {
        f"{pallet['name']}.{item['name']}"
        for pallet in found["pallets"]
        for item in (pallet["storage"] or {"entries": ()})["entries"]
    }
    pallets = (each.pallet for each in at(chain).runtime.definition.pallets)
    known = {item.name for pallet in pallets for item in pallet.items.values()}
    assert known - shown == (NO_SCALE_TYPE if chain == "para" else set())
    for pallet in found["pallets"]:
        for part in ("calls", "event", "error"):
            for variant in (
                types[pallet[part]["ty"]]["def"]["variant"]["variants"] if pallet[part] else ()
            ):
                assert variant["docs"], f"{pallet['name']}.{variant['name']}"


def test_nd20_apis_are_listed_with_their_versions_and_only_what_can_be_called(
    at: Callable[[str], At],
) -> None:
    assert {each.name: each.version for each in APIS} == {
        "Core": 5,
        "Metadata": 2,
        "TaggedTransactionQueue": 3,
        "AccountNonceApi": 1,
        "TransactionPaymentApi": 4,
        "DryRunApi": 2,
    }
    assert [(each.name, each.version) for each in PARACHAIN_APIS if each not in APIS] == [
        ("KeyToIncludeInRelayProof", 1)
    ]
    assert [(each.name, each.version) for each in OFFSET_APIS if each not in PARACHAIN_APIS] == [
        ("RelayParentOffsetApi", 1)
    ]
    functions = {f"{each.name}_{method.name}" for each in OFFSET_APIS for method in each.methods}
    assert functions == set(FUNCTIONS)
    for chain, apis in (("relay", APIS), ("para", PARACHAIN_APIS)):
        versions = {blake2_64(each.name.encode()): each.version for each in apis}
        assert dict(runtime_version(at(chain)).apis) == versions


@pytest.mark.parametrize("chain", CHAINS)
def test_nd20_the_constants_are_there(at: Callable[[str], At], chain: str) -> None:
    pallets = parse_metadata(metadata(at(chain), 14)).pallets.values()
    constants = {
        f"{each.name}.{name}": found.value
        for each in pallets
        for name, found in each.constants.items()
    }
    assert constants["System.SS58Prefix"] == b"\x2a\x00"
    assert constants["System.BlockHashCount"] == scale.u32.encode(4096)
    assert constants["System.Version"] == runtime_version(at(chain)).encode()
    assert constants["Balances.ExistentialDeposit"] == scale.u128.encode(10**10)
    assert constants["Timestamp.MinimumPeriod"] == scale.u64.encode(3000)
    if chain == "relay":
        assert constants["Babe.ExpectedBlockTime"] == scale.u64.encode(6000)
        assert constants["Babe.EpochDuration"] == scale.u64.encode(50)
    assert {"System.BlockWeights", "System.BlockLength"} <= constants.keys()


def test_nd10_the_relay_chains_code_names_its_runtime_and_the_hash_of_metadata_16(
    at: Callable[[str], At],
) -> None:
    here = at("relay")
    expected = (
        scale.bytes_.encode(b"pubsub-relay") + scale.u32.encode(1) + blake2_256(metadata(here, 16))
    )
    assert here.state.top.get(CODE) == expected


def test_nd18_a_parachains_subscriptions_are_no_constant_and_its_other_figures_are(
    at: Callable[[str], At],
) -> None:
    here = at("para")
    net = network()
    spec = net.parachain(SUBSCRIBER).spec()
    with pytest.raises(UnknownMetadataVersion):
        metadata(here, 13)
    for newer, same in (
        (replace(spec, subscriptions={}), True),
        (replace(spec, max_stored_keys=7), False),
    ):
        state = here.state.fork()
        state.apply({CODE: newer.encode()}, {})
        assert (metadata(replace(here, state=state), 16) == metadata(here, 16)) is same


def test_nd17_a_codec_without_a_description_never_becomes_bytes() -> None:
    nameless: Codec[bytes] = Codec("raw", bytes, lambda reader: reader.take(reader.remaining()))
    with pytest.raises(DefensiveFailure, match="raw has no type description"):
        described(scale.vec(nameless) if scale.vec(nameless).info else nameless)
    assert scale.pair(scale.u8, nameless).info is None
    assert scale.option(nameless).info is None


def test_a_type_that_contains_itself_has_one_number() -> None:
    tree = wrapper("a::Tree", SequenceOf(Named("Tree")))
    registry = Registry({"Tree": tree})
    assert registry.id_of(Named("Tree")) == registry.id_of(tree) == 0
    assert registry.id_of(SequenceOf(Named("Tree"))) == 1
