"""The items in metadata version 15 of a runtime, each with the shape of its bytes.

Items are storage, calls, events, constants and APIs.

A shape is the text of a type without names: `(u32,[u8;32])`, `{0:(),1:u32}`. A struct of one field
has the field's shape. The enums of a whole runtime, such as its calls, have their name as shape,
for they differ between any two runtimes.
"""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from pubsub_emulator.client import metadata as reading
from pubsub_emulator.client.metadata import (
    Array,
    Bits,
    Compact,
    Composite,
    Enum,
    PalletMetadata,
    Primitive,
    Sequence,
    Tuple,
    Type,
)
from pubsub_emulator.primitives.scale import Reader

REAL: Final = Path(__file__).parents[2] / "vectors" / "metadata" / "real"
OUTER: Final = frozenset({"RuntimeCall", "RuntimeEvent", "RuntimeError", "OriginCaller"})
KINDS: Final = ("storage", "calls", "events", "constants")


class Method(NamedTuple):
    """A function of a runtime API."""

    name: str
    inputs: tuple[int, ...]
    output: int


class Runtime:
    """A runtime's metadata, version 15."""

    def __init__(self, data: bytes) -> None:
        reader = Reader(data)
        assert reader.take(5) == b"meta\x0f"
        self.types, self.paths = reading._types(reader)
        pallets = []
        for _ in range(reader.length()):
            pallets.append(reading._pallet(reader))
            reading._skip_texts(reader)
        self.pallets: dict[str, PalletMetadata] = {each.name: each for each in pallets}
        # The extrinsic: version, types of address, call, signature and extra, and the extensions.
        reader.u8()
        for _ in range(4):
            reading._number(reader)
        for _ in range(reader.length()):
            reading._text(reader)
            reading._number(reader)
            reading._number(reader)
        reading._number(reader)  # the type of the runtime
        self.apis: dict[str, tuple[Method, ...]] = {}
        for _ in range(reader.length()):
            name = reading._text(reader)
            self.apis[name] = tuple(_method(reader) for _ in range(reader.length()))
            reading._skip_texts(reader)
        self._shapes: dict[int, str] = {}

    def items(self) -> dict[str, dict[str, str]]:
        """Return the shapes of all items by name, by `Pallet.kind` and by `apis.NAME`."""
        out: dict[str, dict[str, str]] = {}
        for pallet in self.pallets.values():
            for kind in KINDS:
                out[f"{pallet.name}.{kind}"] = dict(getattr(self, f"_{kind}")(pallet))
        for name, methods in self.apis.items():
            shapes = {}
            for method in methods:
                inputs = ",".join(map(self.shape, method.inputs))
                shapes[method.name] = f"({inputs}) -> {self.shape(method.output)}"
            out[f"apis.{name}"] = shapes
        return out

    def _storage(self, pallet: PalletMetadata) -> Iterator[tuple[str, str]]:
        for name, item in pallet.storage.items():
            key = "" if item.key is None else f"{'+'.join(item.hashers)}({self.shape(item.key)}) "
            yield name, key + self.shape(item.value)

    def _calls(self, pallet: PalletMetadata) -> Iterator[tuple[str, str]]:
        yield from self._variants(pallet.calls)

    def _events(self, pallet: PalletMetadata) -> Iterator[tuple[str, str]]:
        yield from self._variants(pallet.events)

    def _constants(self, pallet: PalletMetadata) -> Iterator[tuple[str, str]]:
        for name, constant in pallet.constants.items():
            yield name, self.shape(constant.type)

    def _variants(self, kind: int | None) -> Iterator[tuple[str, str]]:
        if kind is None:
            return
        found = self.types[kind]
        assert isinstance(found, Enum)
        for index, variant in found.variants.items():
            fields = ",".join(self.shape(field.type) for field in variant.fields)
            yield variant.name, f"{index}({fields})"

    def shape(self, kind: int) -> str:
        """Return the shape of a type. A type within itself has the shape `…`."""
        if kind not in self._shapes:
            self._shapes[kind] = "…"
            path = self.paths.get(kind, ())
            name = path[-1] if path else ""
            self._shapes[kind] = name if name in OUTER else self._made(self.types[kind])
        return self._shapes[kind]

    def _made(self, found: Type) -> str:
        match found:
            case Primitive(name):
                return name
            case Composite(fields):
                return _joined([self.shape(field.type) for field in fields])
            case Tuple(kinds):
                return _joined([self.shape(each) for each in kinds])
            case Sequence(item):
                return f"[{self.shape(item)}]"
            case Array(item, length):
                return f"[{self.shape(item)};{length}]"
            case Compact(item):
                return f"compact {self.shape(item)}"
            case Bits(store, _):
                return f"bits {self.shape(store)}"
            case Enum(variants):
                rows = []
                for index, variant in sorted(variants.items()):
                    fields = _joined([self.shape(field.type) for field in variant.fields])
                    rows.append(f"{index}:{fields}")
                return f"{{{','.join(rows)}}}"


def _joined(shapes: list[str]) -> str:
    return shapes[0] if len(shapes) == 1 else f"({','.join(shapes)})"


def _method(reader: Reader) -> Method:
    name = reading._text(reader)
    inputs = []
    for _ in range(reader.length()):
        reading._text(reader)
        inputs.append(reading._number(reader))
    output = reading._number(reader)
    reading._skip_texts(reader)
    return Method(name, tuple(inputs), output)


def real(name: str) -> Runtime:
    """Return the runtime of a real chain, such as `polkadot-15`."""
    return Runtime(gzip.decompress((REAL / f"{name}.scale.gz").read_bytes()))
