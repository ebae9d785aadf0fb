"""The services of `did/`, ready to write and to read (IC-11): one codec per method, made when it is first needed."""

import re
from collections.abc import Sequence
from functools import cache, cached_property, partial
from importlib.resources import files
from typing import Final, cast

from pubsub_emulator.icrc72.ic.candid.decode import Decoder
from pubsub_emulator.icrc72.ic.candid.did import Interface, Method, parse
from pubsub_emulator.icrc72.ic.candid.encode import Encoder
from pubsub_emulator.icrc72.ic.candid.types import Make, Type
from pubsub_emulator.icrc72.ic.errors import CandidError
from pubsub_emulator.icrc72.messages import RECORDS
from pubsub_emulator.icrc72.values import Pairs, Value

SERVICES: Final = ("orchestrator", "broadcaster", "publisher", "subscriber", "list", "ledger", "archive")


STRICT: Final = frozenset(["icrc77_get_replays"])
"""Methods of which no optional part is ignored: ICRC-77 writes `prev` as `opt principal`, which would be page one."""


class Codec:
    """Writes and reads values of a list of types; what cannot be read as they are is read as one of `others`."""

    def __init__(
        self, types: tuple[Type, ...], others: Sequence[tuple[Type, ...]] = (), *, strict: bool = False
    ) -> None:
        self.types = types
        self._encoder = Encoder(types)
        self._decoders = [Decoder(each, strict=strict) for each in (types, *others)]
        self.encode = self._encoder.encode
        self.decode = self._read if others else self._decoders[0].decode
        self.size = self._encoder.size

    def _read(self, data: bytes) -> tuple[object, ...]:
        refused: CandidError | None = None
        for decoder in self._decoders:
            try:
                return decoder.decode(data)
            except CandidError as error:
                refused = refused or error
        raise refused or CandidError("there is nothing to read it as")


class MethodCodec:
    """Arguments and results of a method."""

    def __init__(self, method: Method, readings: Sequence[Method] = ()) -> None:
        self.method = method
        self._readings = readings

    @cached_property
    def args(self) -> Codec:
        """The arguments."""
        others = [each.arguments for each in self._readings if each.arguments]
        return Codec(self.method.arguments, others, strict=self.method.name in STRICT)

    @cached_property
    def rets(self) -> Codec:
        """The results."""
        return Codec(self.method.results, [each.results for each in self._readings if each.results])


@cache
def interface(service: str) -> Interface:
    """The interface in `did/<service>.did`."""
    text = (files("pubsub_emulator.icrc72") / "did" / f"{service}.did").read_text(encoding="utf-8")
    makers: dict[str, Make] = {name: partial(tuple.__new__, record) for name, record in RECORDS.items()}
    names = {name for name in re.findall(r"^type (\w+)", text, re.MULTILINE) if name.partition("_")[0] in makers}
    return parse(text, {name: makers[name.partition("_")[0]] for name in names})


@cache
def codec(method: str) -> MethodCodec:
    """The codec of a method; a method of several services has the same types in each."""
    for service in SERVICES:
        found = interface(service).methods.get(method)
        if found is not None:
            readings = interface("readings").methods.values()
            return MethodCodec(found, [each for each in readings if each.name.startswith(f"{method}__")])
    raise KeyError(method)


@cache
def type_codec(service: str, name: str) -> Codec:
    """The codec of one named type as the only value."""
    return Codec((interface(service).types[name],))


VALUE: Final = "ICRC16"
MAP: Final = "ICRC16Map"


def read_value(raw: bytes) -> Value:
    """An ICRC16 value from its Candid. Raises `CandidError`."""
    return cast("Value", type_codec("broadcaster", VALUE).decode(raw)[0])


def read_map(raw: bytes) -> Pairs:
    """An ICRC16Map from its Candid. Raises `CandidError`."""
    return cast("Pairs", type_codec("broadcaster", MAP).decode(raw)[0])
