"""Metadata in the versions that clients request, as `frame-metadata` encodes them.

    "meta" u8 version, then
    V14  types, pallets, (ty, u8 version, [extension]), runtime type
    V15  types, pallets with docs, (u8 version, address, call, signature, extra, [extension]),
         runtime type, apis, outer enums, custom
    V16  types, pallets with associated types and deprecations, ([u8] versions, address, call,
         signature, {version: [extension]}, [extension]), apis with versions, outer enums, custom

The extrinsic's types are numbered first, so that a type has the same number in all versions.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from pubsub_emulator.primitives import type_info
from pubsub_emulator.primitives.errors import DefensiveFailure
from pubsub_emulator.primitives.scale import encode_bytes, encode_compact
from pubsub_emulator.primitives.type_info import Composite, TupleOf, TypeInfo
from pubsub_emulator.runtime.framework.definitions import Api, ApiMethod, RuntimeDefinition
from pubsub_emulator.runtime.framework.hashers import Hasher
from pubsub_emulator.runtime.framework.hooks import Hooks
from pubsub_emulator.runtime.framework.origin import MULTI_ADDRESS
from pubsub_emulator.runtime.framework.pallet import AnyItem, Constant, Pallet, described
from pubsub_emulator.runtime.metadata import outer
from pubsub_emulator.runtime.metadata.registry import Registry, text, texts, vector

VERSIONS: Final = (14, 15, 16)
EXTRINSIC_VERSIONS: Final = (4, 5)
"""Version 4 for signed extrinsics, 5 for bare ones.

Some clients build extrinsics of the first version in this list.
"""

_MAGIC: Final = b"meta"
_HASHERS: Final = {
    "Blake2_128Concat": 2,
    "Twox64Concat": 5,
    "Identity": 6,
    "Blake2_256": 1,
    "Twox64": None,
}
_NOT_DEPRECATED: Final = b"\x00"
_NOTHING: Final = b"\x00"
"""An empty `Vec` or map, or an `Option` that is `None`."""


@lru_cache(maxsize=32)
def metadata(
    version: int, runtime: RuntimeDefinition, names: Callable[[], Mapping[str, TypeInfo]]
) -> bytes:
    """Return a runtime's metadata with its prefix.

    Raises `ValueError` for an unknown version.
    """
    if version not in VERSIONS:
        raise ValueError(
            f"metadata has the versions {', '.join(map(str, VERSIONS))}, not {version}"
        )
    return _Writer(runtime, version, names()).whole()


class _Writer:
    """A writer of one version of one runtime's metadata."""

    def __init__(
        self, runtime: RuntimeDefinition, version: int, names: Mapping[str, TypeInfo]
    ) -> None:
        self.runtime = runtime
        self.version = version
        self.registry = Registry({**names, **outer.type_names(runtime)})

    def id(self, info: TypeInfo) -> bytes:
        """Return a type's number."""
        return self.registry.compact(info)

    def deprecation(self) -> bytes:
        """Return the mark of an item that is not deprecated; it is empty before V16."""
        return _NOT_DEPRECATED if self.version >= 16 else b""

    def documented(self, docs: str) -> bytes:
        """Return the end of a description.

        It consists of the docs and the mark of an item that is not deprecated.
        """
        return texts(type_info.docs(docs)) + self.deprecation()

    def whole(self) -> bytes:
        """Return prefix, types and parts.

        The parts are encoded first and in order, because types are numbered at their first use.
        """
        types = self.id(MULTI_ADDRESS) + self.id(outer.CALL) + self.id(outer.SIGNATURE)
        extensions = vector(
            text(name) + self.id(info) + self.id(implicit)
            for name, info, implicit in outer.EXTENSIONS
        )
        if self.version == 14:
            extrinsic = (
                self.id(outer.UNCHECKED_EXTRINSIC) + bytes(EXTRINSIC_VERSIONS[:1]) + extensions
            )
        elif self.version == 15:
            extrinsic = bytes(EXTRINSIC_VERSIONS[:1]) + types + self.id(outer.EXTRA) + extensions
        else:
            indices = vector(encode_compact(index) for index in range(len(outer.EXTENSIONS)))
            # All extensions are in version 0 of the set.
            by_version = vector((bytes((0,)) + indices,))
            extrinsic = encode_bytes(bytes(EXTRINSIC_VERSIONS)) + types + by_version + extensions
        parts = [vector(map(self.pallet, self.runtime.pallets)), extrinsic]
        if self.version < 16:
            # This is the runtime itself, which has no fields.
            parts.append(self.id(Composite((self.runtime.crate, "Runtime"))))
        if self.version >= 15:
            apis = vector(map(self.api, self.runtime.apis))
            parts += (
                apis,
                self.id(outer.CALL) + self.id(outer.EVENT) + self.id(outer.ERROR),
                _NOTHING,
            )
        return _MAGIC + bytes((self.version,)) + self.registry.encode() + b"".join(parts)

    def pallet(self, hooks: Hooks) -> bytes:
        """Return one pallet, in the order of its fields."""
        pallet = hooks.pallet
        parts = [text(pallet.name), self.storage(pallet)]
        parts += (self.part(outer.call_enum(hooks)), self.part(outer.event_enum(pallet)))
        parts += (
            vector(map(self.constant, hooks.constants())),
            self.part(outer.error_enum(pallet)),
        )
        if self.version >= 16:
            # The last part has the view functions, and there are none.
            parts += (self.associated_types(pallet), _NOTHING)
        parts.append(bytes((pallet.index,)))
        if self.version >= 15:
            parts.append(texts(type_info.docs(pallet.docs)))
        return b"".join((*parts, self.deprecation()))

    def part(self, info: TypeInfo | None) -> bytes:
        """Return the call, event or error type of a pallet, if it has one."""
        if info is None:
            return _NOTHING
        # From V16 on, the list of deprecated variants follows, which is empty.
        return b"\x01" + self.id(info) + (_NOTHING if self.version >= 16 else b"")

    def associated_types(self, pallet: Pallet) -> bytes:
        """Return the associated types of `System`: the chain's hasher."""
        if pallet.name != "System":
            return _NOTHING
        return vector(
            (
                text("Hashing")
                + self.id(outer.HASHING)
                + texts(("The hashing of blocks and extrinsics.",)),
            )
        )

    def storage(self, pallet: Pallet) -> bytes:
        """Return the storage items of a pallet, if it has any.

        Items whose values are not SCALE types are omitted.
        """
        items = [item for item in pallet.items.values() if item.codec.info is not None]
        return b"\x01" + text(pallet.name) + vector(map(self.item, items)) if items else _NOTHING

    def item(self, item: AnyItem) -> bytes:
        """Return one storage item: name, modifier, type, default, docs."""
        modifier, default = (b"\x00", _NOTHING) if item.default is None else (b"\x01", item.default)
        name = text(item.item) + modifier
        kind = self.item_type(item)
        return name + kind + encode_bytes(default) + self.documented(item.docs)

    def item_type(self, item: AnyItem) -> bytes:
        """Return `Plain(value)` or `Map { hashers, key, value }`."""
        value = described(item.codec)
        if not item.key_parts:
            return b"\x00" + self.id(value)
        hashers = b"".join(_hasher(hasher) for hasher, _ in item.key_parts)
        infos = tuple(described(codec) for _, codec in item.key_parts)
        key = infos[0] if len(infos) == 1 else TupleOf(infos)
        return b"\x01" + encode_compact(len(infos)) + hashers + self.id(key) + self.id(value)

    def constant(self, constant: Constant) -> bytes:
        """Return one constant."""
        value = self.id(constant.info) + encode_bytes(constant.value)
        return text(constant.name) + value + self.documented(constant.docs)

    def api(self, api: Api) -> bytes:
        """Return one runtime API: its methods, docs, and from V16 on its version."""
        version = encode_compact(api.version) if self.version >= 16 else b""
        methods = vector(map(self.method, api.methods))
        return (
            text(api.name)
            + methods
            + texts(type_info.docs(api.docs))
            + version
            + self.deprecation()
        )

    def method(self, method: ApiMethod) -> bytes:
        """Return one method of a runtime API: name, inputs, output, docs."""
        inputs = vector(text(name) + self.id(info) for name, info in method.inputs)
        return text(method.name) + inputs + self.id(method.output) + self.documented(method.docs)


def _hasher(hasher: Hasher) -> bytes:
    number = _HASHERS.get(hasher.name)
    if number is None:
        raise DefensiveFailure(f"metadata has no number for the hasher {hasher.name}")
    return bytes((number,))
