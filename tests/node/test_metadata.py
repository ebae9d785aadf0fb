"""ND-17 to ND-20: metadata in three versions, made of the pallets' own definitions and pinned to the byte."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scalecodec.base import RuntimeConfigurationObject, ScaleBytes
from scalecodec.type_registry import load_type_registry_preset
from support.accounts import SUBSCRIBER, network
from support.node import at as newest

from pubsub_emulator.node.api import FUNCTIONS
from pubsub_emulator.node.at import At
from pubsub_emulator.node.types import METADATA_VERSIONS, UnknownMetadataVersion, metadata, runtime_version
from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.hashing import blake2_64, blake2_256
from pubsub_emulator.primitives.scale import Codec, Reader
from pubsub_emulator.primitives.storage_keys import CODE
from pubsub_emulator.primitives.type_info import Named, SequenceOf, wrapper
from pubsub_emulator.runtime.framework.definitions import RuntimeDefinition
from pubsub_emulator.runtime.framework.pallet import described
from pubsub_emulator.runtime.metadata.registry import Registry

VECTORS = Path(__file__).parents[1] / "vectors" / "metadata" / "metadata.json"
CHAINS = {"relay": None, "para": SUBSCRIBER}
NO_SCALE_TYPE = {"Subscriber.CachedTrieNodes", "Subscriber.CacheSlots", "Subscriber.LastDeliveredPacked"}


@pytest.fixture(scope="module")
def at() -> Callable[[str], At]:
    net = network()

    return lambda chain: newest(net, CHAINS[chain])


@pytest.mark.parametrize("version", METADATA_VERSIONS)
@pytest.mark.parametrize("chain", CHAINS)
def test_nd18_the_bytes_are_the_pinned_ones(at: Callable[[str], At], chain: str, version: int) -> None:
    """Other bytes on one chain need another spec version; PUBSUB_PIN=1 writes them down anew."""
    data = metadata(at(chain), version)
    found = {"length": len(data), "blake2_256": blake2_256(data).hex()}
    if os.environ.get("PUBSUB_PIN") == "1":
        pinned = json.loads(VECTORS.read_text()) if VECTORS.exists() else {}
        pinned[f"{chain}/{version}"] = found
        VECTORS.write_text(json.dumps(pinned, indent=2, sort_keys=True) + "\n")
    assert json.loads(VECTORS.read_text())[f"{chain}/{version}"] == found


@pytest.mark.parametrize("chain", CHAINS)
def test_nd17_scalecodec_reads_version_14_and_writes_the_same_bytes(at: Callable[[str], At], chain: str) -> None:
    data = metadata(at(chain), 14)
    config = RuntimeConfigurationObject(implements_scale_info=True)
    config.update_type_registry(load_type_registry_preset("core"))
    read = config.create_scale_object("MetadataVersioned", ScaleBytes(data))
    read.decode()
    assert bytes(config.create_scale_object("MetadataVersioned").encode(read.value).data) == data


# A reader of its own, after frame-metadata, for the versions that scalecodec does not know.


class MetadataReader(Reader):
    def text(self) -> str:
        return self.bytes_().decode()

    def many(self, read: Callable[[], Any]) -> list[Any]:
        return [read() for _ in range(self.compact())]

    def maybe(self, read: Callable[[], Any]) -> Any:
        return read() if self.boolean() else None

    def field(self) -> Any:
        return self.maybe(self.text), self.compact(), self.maybe(self.text), self.many(self.text)

    def portable_type(self) -> Any:
        number = self.compact()
        path = self.many(self.text)
        params = self.many(lambda: (self.text(), self.maybe(self.compact)))
        kind = self.u8()
        definition: Any = {
            0: lambda: self.many(self.field),
            1: lambda: self.many(lambda: (self.text(), self.many(self.field), self.u8(), self.many(self.text))),
            2: self.compact,
            3: lambda: (self.uint(4), self.compact()),
            4: lambda: self.many(self.compact),
            5: self.u8,
            6: self.compact,
            7: lambda: (self.compact(), self.compact()),
        }[kind]()
        return number, path, params, kind, definition, self.many(self.text)

    def deprecation(self, version: int) -> None:
        if version >= 16:
            assert self.u8() == 0

    def item(self, version: int) -> Any:
        name, modifier = self.text(), self.u8()
        kind = self.compact() if self.u8() == 0 else (self.many(self.u8), self.compact(), self.compact())
        default, docs = self.bytes_(), self.many(self.text)
        self.deprecation(version)
        return name, modifier, kind, default, docs

    def part(self, version: int) -> int:
        number = self.compact()
        if version >= 16:
            assert self.compact() == 0
        return number

    def constant(self, version: int) -> Any:
        out = self.text(), self.compact(), self.bytes_(), self.many(self.text)
        self.deprecation(version)
        return out

    def pallet(self, version: int) -> dict[str, Any]:
        out: dict[str, Any] = {"name": self.text()}
        out["storage"] = self.maybe(lambda: (self.text(), self.many(lambda: self.item(version))))
        out["calls"] = self.maybe(lambda: self.part(version))
        out["events"] = self.maybe(lambda: self.part(version))
        out["constants"] = self.many(lambda: self.constant(version))
        out["errors"] = self.maybe(lambda: self.part(version))
        if version >= 16:
            out["associated"] = self.many(lambda: (self.text(), self.compact(), self.many(self.text)))
            assert self.compact() == 0
        out["index"] = self.u8()
        if version >= 15:
            self.many(self.text)
        self.deprecation(version)
        return out

    def api(self, version: int) -> Any:
        name = self.text()

        def method() -> Any:
            out = self.text(), self.many(lambda: (self.text(), self.compact())), self.compact(), self.many(self.text)
            self.deprecation(version)
            return out

        methods = self.many(method)
        self.many(self.text)
        number = self.compact() if version >= 16 else None
        self.deprecation(version)
        return name, methods, number


def read_metadata(data: bytes) -> dict[str, Any]:
    reader = MetadataReader(data)
    assert reader.take(4) == b"meta"
    version = reader.u8()
    out: dict[str, Any] = {"types": reader.many(reader.portable_type)}
    out["pallets"] = reader.many(lambda: reader.pallet(version))
    extension = lambda: (reader.text(), reader.compact(), reader.compact())  # noqa: E731  # said once, used twice
    if version == 14:
        out["extrinsic"] = reader.compact()
        out["versions"] = [reader.u8()]
        out["extensions"] = reader.many(extension)
        reader.compact()
    elif version == 15:
        out["versions"] = [reader.u8()]
        out["extrinsic"] = [reader.compact() for _ in range(4)]
        out["extensions"] = reader.many(extension)
        reader.compact()
    else:
        out["versions"] = list(reader.bytes_())
        out["extrinsic"] = [reader.compact() for _ in range(3)]
        out["by_version"] = reader.many(lambda: (reader.u8(), reader.many(reader.compact)))
        out["extensions"] = reader.many(extension)
    if version >= 15:
        out["apis"] = reader.many(lambda: reader.api(version))
        out["outer"] = [reader.compact() for _ in range(3)]
        assert reader.compact() == 0
    reader.end()
    return out


@pytest.mark.parametrize("version", METADATA_VERSIONS)
@pytest.mark.parametrize("chain", CHAINS)
def test_nd17_types_are_numbered_in_order_and_equal_ones_are_one(
    at: Callable[[str], At], chain: str, version: int
) -> None:
    read = read_metadata(metadata(at(chain), version))
    types = read["types"]
    assert [row[0] for row in types] == list(range(len(types)))
    assert len({repr(row[1:]) for row in types}) == len(types)


@pytest.mark.parametrize("chain", CHAINS)
def test_nd18_all_versions_tell_of_the_same_pallets(at: Callable[[str], At], chain: str) -> None:
    reads = [read_metadata(metadata(at(chain), version)) for version in METADATA_VERSIONS]
    for read in reads[1:]:
        for ours, theirs in zip(read["pallets"], reads[0]["pallets"], strict=True):
            assert {name: value for name, value in ours.items() if name in {"name", "index"}} == {
                name: theirs[name] for name in ("name", "index")
            }
            assert [item[0] for item in (ours["storage"] or ("", []))[1]] == [
                item[0] for item in (theirs["storage"] or ("", []))[1]
            ]
    assert [read["versions"] for read in reads] == [[4], [4], [4, 5]]
    assert reads[2]["by_version"] == [(0, list(range(9)))]
    assert [name for name, _, _ in reads[2]["extensions"]] == [
        "CheckNonZeroSender",
        "CheckSpecVersion",
        "CheckTxVersion",
        "CheckGenesis",
        "CheckMortality",
        "CheckNonce",
        "CheckWeight",
        "ChargeTransactionPayment",
        "CheckMetadataHash",
    ]


@pytest.mark.parametrize("chain", CHAINS)
def test_nd19_the_paths_that_clients_look_for_are_there(at: Callable[[str], At], chain: str) -> None:
    read = read_metadata(metadata(at(chain), 16))
    paths = {"::".join(row[1]) for row in read["types"]}
    crate = f"pubsub_{chain}_runtime"
    assert paths >= {
        "sp_core::crypto::AccountId32",
        "sp_runtime::multiaddress::MultiAddress",
        "sp_runtime::generic::era::Era",
        "frame_system::EventRecord",
        f"{crate}::RuntimeEvent",
        f"{crate}::RuntimeCall",
        f"{crate}::OriginCaller",
        "sp_runtime::DispatchError",
        "sp_runtime::traits::BlakeTwo256",
        "staging_xcm::v5::Instruction",
        "staging_xcm::v5::location::Location",
    }
    [hashing] = [pallet["associated"] for pallet in read["pallets"] if pallet["name"] == "System"]
    assert [(name, read["types"][number][1]) for name, number, _ in hashing] == [
        ("Hashing", ["sp_runtime", "traits", "BlakeTwo256"])
    ]


@pytest.mark.parametrize("chain", CHAINS)
def test_nd17_every_item_is_there_but_those_without_a_scale_type(at: Callable[[str], At], chain: str) -> None:
    read = read_metadata(metadata(at(chain), 16))
    told = {f"{pallet['name']}.{item[0]}" for pallet in read["pallets"] for item in (pallet["storage"] or ("", []))[1]}
    pallets = (each.pallet for each in at(chain).runtime.definition.pallets)
    known = {item.name for pallet in pallets for item in pallet.items.values()}
    assert known - told == (NO_SCALE_TYPE if chain == "para" else set())


@pytest.mark.parametrize("chain", CHAINS)
def test_nd17_every_call_event_and_error_says_what_it_is(at: Callable[[str], At], chain: str) -> None:
    read = read_metadata(metadata(at(chain), 16))
    for pallet in read["pallets"]:
        for part in ("calls", "events", "errors"):
            if pallet[part] is not None:
                for name, _, _, docs in read["types"][pallet[part]][4]:
                    assert docs, f"{pallet['name']}.{name}"


def test_nd20_apis_are_listed_with_their_versions_and_only_what_can_be_called(at: Callable[[str], At]) -> None:
    here = at("relay")
    read = read_metadata(metadata(here, 16))
    assert {(name, number) for name, _, number in read["apis"]} == {
        ("Core", 5),
        ("Metadata", 2),
        ("TaggedTransactionQueue", 3),
        ("AccountNonceApi", 1),
        ("TransactionPaymentApi", 4),
        ("DryRunApi", 2),
    }
    assert {f"{name}_{method[0]}" for name, methods, _ in read["apis"] for method in methods} == set(FUNCTIONS)
    assert dict(runtime_version(here).apis) == {blake2_64(name.encode()): version for name, _, version in read["apis"]}


@pytest.mark.parametrize("chain", CHAINS)
def test_nd20_the_constants_are_there(at: Callable[[str], At], chain: str) -> None:
    read = read_metadata(metadata(at(chain), 16))
    constants = {
        f"{pallet['name']}.{name}": value for pallet in read["pallets"] for name, _, value, _ in pallet["constants"]
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


def test_nd10_the_relay_chains_code_names_its_runtime_and_the_hash_of_metadata_16(at: Callable[[str], At]) -> None:
    here = at("relay")
    expected = scale.bytes_.encode(b"pubsub-relay") + scale.u32.encode(1) + blake2_256(metadata(here, 16))
    assert here.state.top.get(CODE) == expected


def test_nd18_a_parachains_subscriptions_are_no_constant_and_its_other_figures_are(at: Callable[[str], At]) -> None:
    here = at("para")
    net = network()
    spec = net.parachain(SUBSCRIBER).spec()
    for newer, same in ((replace(spec, subscriptions={}), True), (replace(spec, max_stored_keys=7), False)):
        state = here.state.fork()
        state.apply({CODE: newer.encode()}, {})
        assert (metadata(replace(here, state=state), 16) == metadata(here, 16)) is same


def test_nd17_a_codec_without_a_description_never_becomes_bytes() -> None:
    nameless: Codec[bytes] = Codec("raw", bytes, lambda reader: reader.take(reader.remaining()))
    with pytest.raises(DefensiveFailure, match="raw has no type description"):
        described(scale.vec(nameless) if scale.vec(nameless).info else nameless)
    assert scale.pair(scale.u8, nameless).info is None
    assert scale.option(nameless).info is None


def test_nd18_other_versions_are_not_known(at: Callable[[str], At]) -> None:
    with pytest.raises(UnknownMetadataVersion):
        metadata(at("relay"), 13)


def test_a_type_that_contains_itself_has_one_number() -> None:
    tree = wrapper("a::Tree", SequenceOf(Named("Tree")))
    registry = Registry({"Tree": tree})
    assert registry.id_of(Named("Tree")) == registry.id_of(tree) == 0
    assert registry.id_of(SequenceOf(Named("Tree"))) == 1


def test_definitions_are_what_caches_are_kept_by(at: Callable[[str], At]) -> None:
    first = at("para").runtime.definition
    assert isinstance(first, RuntimeDefinition)
    assert at("para").runtime.definition is first
