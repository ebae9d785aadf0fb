"""Codecs for the methods of the services in `did/` (IC-11).

A codec encodes and decodes the arguments or results of one method. It is made when it is first
needed and shared by all canisters.
"""

import re
from collections.abc import Sequence
from functools import cache, cached_property, partial
from importlib.resources import files
from typing import Final, cast

from interchain_events.icrc72.ic.candid.carried import EncodedVariant, Message
from interchain_events.icrc72.ic.candid.decode import Decoder
from interchain_events.icrc72.ic.candid.did import Interface, Method, parse
from interchain_events.icrc72.ic.candid.encode import Encoder
from interchain_events.icrc72.ic.candid.types import Make, Type
from interchain_events.icrc72.ic.errors import CandidError
from interchain_events.icrc72.messages import RECORDS
from interchain_events.icrc72.values import Pairs, Value

SERVICES: Final = (
    "orchestrator",
    "broadcaster",
    "publisher",
    "subscriber",
    "list",
    "ledger",
    "archive",
)


_SMALL: Final = 200
"""The bytes of values that cannot be nested too deep: a level takes a byte at least (IC-11b)."""


class Codec:
    """An encoder and decoder for a list of types.

    A message that cannot be decoded as `types` is decoded as one of `others`: forms that other
    implementations write.
    """

    def __init__(
        self,
        types: tuple[Type, ...],
        others: Sequence[tuple[Type, ...]] = (),
    ) -> None:
        self.types = types
        self._encoder = Encoder(types)
        self._decoders = [Decoder(accepted) for accepted in (types, *others)]
        self.encode = self._encoder.encode
        self._written = self._encoder.written
        self._empty: Message | None = None
        """The message without values, which answers most notifications."""
        self._small = len(self._encoder.header) + _SMALL
        self.decode = self._read if others else self._decoders[0].decode
        self.size = self._encoder.size
        self.encoded = self._encoder.encoded

    def message(self, *values: object, proven: bool = False) -> bytes:
        """Return the message with these values.

        The message also carries the Python values, so that another emulated role need not decode
        it. Decoding refuses values that are nested too deep. A short message cannot contain such
        values; a long one carries its values only if they are `proven`, which means that they were
        themselves decoded from messages. Raises `CandidError` like `encode`.
        """
        if not values and self._empty is not None:
            return self._empty
        written = self._written(values)
        if not proven and len(written) > self._small:
            return bytes(written)
        made = Message(written)
        made.made_by = self
        made.values = values
        if not values:
            self._empty = made
        return made

    def values(self, data: bytes) -> tuple[object, ...]:
        """Return the values that a message carries, or decode it. Raises `CandidError`."""
        if isinstance(data, Message) and data.made_by is self:
            return data.values
        return self.decode(data)

    def _read(self, data: bytes) -> tuple[object, ...]:
        """Decode a message with the first decoder that can.

        Raises the `CandidError` of the first decoder if none can.
        """
        refused: CandidError | None = None
        for decoder in self._decoders:
            try:
                return decoder.decode(data)
            except CandidError as error:
                refused = refused or error
        try:
            raise refused or CandidError("there is nothing to read it as")
        finally:
            # The error refers to this frame. If the frame referred to the error, too, the message
            # would stay in memory until the garbage collector runs.
            del refused


class MethodCodec:
    """The codecs of a method's arguments and results.

    `readings` are variants of the method from `readings.did` whose types are also accepted.
    """

    def __init__(self, method: Method, readings: Sequence[Method] = ()) -> None:
        self.method = method
        self._readings = readings

    @cached_property
    def args(self) -> Codec:
        """Return the codec of the arguments."""
        others = [reading.arguments for reading in self._readings if reading.arguments]
        return Codec(self.method.arguments, others)

    @cached_property
    def rets(self) -> Codec:
        """Return the codec of the results."""
        others = [reading.results for reading in self._readings if reading.results]
        return Codec(self.method.results, others)


@cache
def interface(service: str) -> Interface:
    """Return the interface in `did/<service>.did`.

    Records become instances of the classes in `messages.RECORDS`. A type whose name continues after
    an underscore, such as `PublicationUpdate_map`, uses the class of the name before it.
    """
    text = (files("interchain_events.icrc72") / "did" / f"{service}.did").read_text(
        encoding="utf-8"
    )
    # `tuple.__new__` makes a named tuple from the tuple of fields, faster than its own constructor.
    makers: dict[str, Make] = {
        name: partial(tuple.__new__, record) for name, record in RECORDS.items()
    }
    names = {
        name
        for name in re.findall(r"^type (\w+)", text, re.MULTILINE)
        if name.partition("_")[0] in makers
    }
    return parse(text, {name: makers[name.partition("_")[0]] for name in names})


@cache
def codec(method: str) -> MethodCodec:
    """Return the codec of a method. Raises `KeyError` if no service has it.

    A method of several services has the same types in each of them.
    """
    for service in SERVICES:
        definition = interface(service).methods.get(method)
        if definition is not None:
            variants = interface("readings").methods.values()
            return MethodCodec(
                definition,
                [variant for variant in variants if variant.name.startswith(f"{method}__")],
            )
    raise KeyError(method)


@cache
def type_codec(service: str, name: str) -> Codec:
    """Return the codec of messages with one value of a named type of a service."""
    return Codec((interface(service).types[name],))


VALUE: Final = "ICRC16"
"""The name of the type of ICRC16 values."""
MAP: Final = "ICRC16Map"
"""The name of the type of ICRC16 maps."""


def encoded(value: Value) -> EncodedVariant:
    """Return an ICRC16 value with its encoding, for a value that several canisters send on."""
    if isinstance(value, EncodedVariant):
        return value
    return type_codec("broadcaster", VALUE).encoded(value)


def read_value(raw: bytes) -> Value:
    """Decode a message with one ICRC16 value. Raises `CandidError`."""
    return cast("Value", type_codec("broadcaster", VALUE).decode(raw)[0])


def read_map(raw: bytes) -> Pairs:
    """Decode a message with one ICRC16Map. Raises `CandidError`."""
    return cast("Pairs", type_codec("broadcaster", MAP).decode(raw)[0])
