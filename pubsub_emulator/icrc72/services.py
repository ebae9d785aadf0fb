"""The services of `did/`, ready to write and to read (IC-11): one codec per method, made when it is first needed."""

from functools import cache, cached_property
from importlib.resources import files
from typing import Any, Final

from pubsub_emulator.eventplane.ic.candid.decode import Decoder
from pubsub_emulator.eventplane.ic.candid.did import Interface, Method, parse
from pubsub_emulator.eventplane.ic.candid.encode import Encoder
from pubsub_emulator.eventplane.ic.candid.types import Type
from pubsub_emulator.eventplane.icrc72.messages import RECORDS

SERVICES: Final = ("orchestrator", "broadcaster", "publisher", "subscriber", "list", "ledger", "archive")


class Codec:
    """Writes and reads values of a list of types."""

    def __init__(self, types: tuple[Type, ...]) -> None:
        self.types = types
        self._encoder = Encoder(types)
        self._decoder = Decoder(types)
        self.encode = self._encoder.encode
        self.decode = self._decoder.decode
        self.size = self._encoder.size


class MethodCodec:
    """Arguments and results of a method."""

    def __init__(self, method: Method) -> None:
        self.method = method

    @cached_property
    def args(self) -> Codec:
        """What is sent."""
        return Codec(self.method.arguments)

    @cached_property
    def rets(self) -> Codec:
        """What is answered."""
        return Codec(self.method.results)


@cache
def interface(service: str) -> Interface:
    """What `did/<service>.did` describes."""
    text = (files("pubsub_emulator.eventplane.icrc72") / "did" / f"{service}.did").read_text(encoding="utf-8")
    makers: dict[str, Any] = {name: record._make for name, record in RECORDS.items()}
    return parse(text, makers)


@cache
def codec(method: str) -> MethodCodec:
    """The codec of a method; a method of several services has the same types in each."""
    for service in SERVICES:
        found = interface(service).methods.get(method)
        if found is not None:
            return MethodCodec(found)
    raise KeyError(method)


@cache
def type_codec(service: str, name: str) -> Codec:
    """The codec of one named type as the only value."""
    return Codec((interface(service).types[name],))


VALUE: Final = "ICRC16"
MAP: Final = "ICRC16Map"

__all__ = ["MAP", "SERVICES", "VALUE", "Codec", "MethodCodec", "codec", "interface", "type_codec"]
