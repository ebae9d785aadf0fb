"""The format of vectors of hashes, storage keys and SCALE values.

`pubsub vectors check` reads it.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final

from pubsub_emulator.primitives import hashing, scale
from pubsub_emulator.primitives import storage_keys as sk
from pubsub_emulator.primitives.hexadecimal import hexed, unhex
from pubsub_emulator.primitives.pubsub import publisher_root_key
from pubsub_emulator.primitives.scale import AnyCodec, Codec
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.primitives.vectors import Case, Document, Format, Mismatch, cases_of, same

_HASHES: Final[dict[str, Callable[[bytes], bytes]]] = {
    "twox64": hashing.twox_64,
    "twox128": hashing.twox_128,
    "twox256": hashing.twox_256,
    "blake2_128": hashing.blake2_128,
    "blake2_256": hashing.blake2_256,
    "twox64_concat": hashing.twox64_concat,
    "blake2_128_concat": hashing.blake2_128_concat,
}
_HASHERS: Final[dict[str, Callable[[bytes], bytes]]] = {
    "Twox64Concat": hashing.twox64_concat,
    "Blake2_128Concat": hashing.blake2_128_concat,
    "Identity": hashing.identity,
}
_WELL_KNOWN: Final[dict[str, Callable[[ParaId], bytes]]] = {
    "para_head": sk.para_head,
    "dmq_mqc_head": sk.dmq_mqc_head,
    "relay_dispatch_queue_remaining_capacity": sk.relay_dispatch_queue_remaining_capacity,
    "hrmp_ingress_channel_index": sk.hrmp_ingress_channel_index,
    "hrmp_egress_channel_index": sk.hrmp_egress_channel_index,
    "upgrade_go_ahead_signal": sk.upgrade_go_ahead_signal,
    "upgrade_restriction_signal": sk.upgrade_restriction_signal,
    "pubsub_child_root_key": publisher_root_key,
}


def _hexed(codec: Codec[bytes]) -> AnyCodec:
    return codec.map("hex", hexed, unhex)


def _listed(codec: AnyCodec) -> AnyCodec:
    return codec.map("list", list, tuple)


def _signed(bits: int) -> Codec[int]:
    # The number is in two's complement: its highest bit counts as negative.
    half = 1 << bits - 1
    return scale.fixed(bits // 8).map(
        f"i{bits}",
        lambda raw: (int.from_bytes(raw, "little") ^ half) - half,
        lambda value: value.to_bytes(bits // 8, "little", signed=True),
    )


CODECS: Final[dict[str, AnyCodec]] = {
    "Compact<u128>": scale.compact_of(128),
    "u8": scale.u8,
    "u16": scale.u16,
    "u32": scale.u32,
    "u64": scale.u64,
    "u128": scale.u128,
    "i32": _signed(32),
    "i64": _signed(64),
    "bool": scale.boolean,
    "Bytes": _hexed(scale.bytes_),
    "[u8;32]": _hexed(scale.fixed(32)),
    "Option<u32>": scale.option(scale.u32),
    "Option<bool>": scale.option(scale.boolean),
    "Option<Option<bool>>": scale.option(scale.option(scale.boolean)),
    "Vec<u32>": scale.vec(scale.u32),
    "BTreeSet<u32>": scale.vec(scale.u32),
    "Vec<Bytes>": scale.vec(_hexed(scale.bytes_)),
    "(u32,Bytes)": _listed(scale.pair(scale.u32, _hexed(scale.bytes_))),
    "(u32,u32)": _listed(scale.pair(scale.u32, scale.u32)),
    "Vec<(u32,[u8;4])>": scale.vec(_listed(scale.pair(scale.u32, _hexed(scale.fixed(4))))),
    "BTreeMap<u32,Bytes>": scale.sorted_map(scale.u32, _hexed(scale.bytes_)).map(
        "list", lambda entries: [list(entry) for entry in entries.items()], dict
    ),
    "String": scale.bytes_.map("text", bytes.decode, str.encode),
}
_NUMBERS: Final = ("Compact<u128>", "u64", "u128", "i32", "i64")
_UNORDERED: Final = ("BTreeSet<u32>", "BTreeMap<u32,Bytes>")


def cases(document: Document) -> Iterator[Case]:
    """Yield a case for each hash, key and value."""
    yield from cases_of(document["hashes"], _hash, "hash")
    yield from cases_of(document["storage_keys"], _key, "storage key")
    yield from cases_of(document["relay_well_known_keys"], _well_known, "well-known keys")
    yield from cases_of(document["scale"], _value, "SCALE")


def _hash(vector: Document) -> None:
    data = unhex(vector["data"])
    for name, make in _HASHES.items():
        same(name, make(data), unhex(vector[name]))


def _key(vector: Document) -> None:
    key = sk.item_prefix(vector["pallet"], vector["item"])
    for hasher, part in zip(vector.get("hashers", []), vector["keys"], strict=True):
        key += _HASHERS[hasher](unhex(part))
    same(f"{vector['pallet']}.{vector['item']}", key, unhex(vector["key"]))


def _well_known(vector: Document) -> None:
    para = ParaId(vector["para_id"])
    other = ParaId(vector["other_para"])
    for name, make in _WELL_KNOWN.items():
        same(name, make(para), unhex(vector[name]))
    same(
        "hrmp_channel_other_to_para",
        sk.hrmp_channel(other, para),
        unhex(vector["hrmp_channel_other_to_para"]),
    )


def _value(vector: Document) -> None:
    kind = vector["type"]
    stated = vector["value"]
    encoded = unhex(vector["encoded"])
    if kind == "Result<u32,u8>":
        ((name, inner),) = stated.items()
        is_ok = name.lower() == "ok"
        same(
            kind,
            bytes((not is_ok,)) + (scale.u32 if is_ok else scale.u8).encode(int(inner)),
            encoded,
        )
        return
    codec = CODECS.get(kind)
    if codec is None:
        raise Mismatch(f"the type {kind} is not known here")
    value: Any = stated
    if kind in _NUMBERS:
        value = int(stated)
    elif kind in _UNORDERED:
        value = sorted(stated)
    same(f"{kind}, encoded", codec.encode(value), encoded)
    same(f"{kind}, decoded", codec.decode(encoded), value)


_FIELDS: Final = {"hashes", "storage_keys", "relay_well_known_keys", "scale"}
_UNCHECKED: Final = ("relay_well_known_keys[].relay_dispatch_queue_size",)
FORMATS: Final = (
    Format(
        "hashes, storage keys and SCALE values",
        lambda document: {*document} >= _FIELDS,
        cases,
        _UNCHECKED,
    ),
)
