"""Reads the parameters of calls, given by position or by name.

A value of the wrong type is an error -32602 that names the parameter. Nothing is converted
silently.
"""

import re
from binascii import unhexlify
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from pubsub_emulator.node.rpc.errors import invalid_params
from pubsub_emulator.primitives.pubsub import key_from_name
from pubsub_emulator.primitives.types import U32_MAX, U64_MAX, ParaId, PubsubKey

T = TypeVar("T")
Read = Callable[[object], T]
"""Converts a JSON value. Raises `ValueError` with a message that says which value is expected."""
_CAPITAL: Final = re.compile("[A-Z]")


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a method.

    Callers may write its names in camel case or in snake case.
    """

    name: str
    read: Read[object]
    optional: bool = False
    """Whether the parameter can be missing or null."""
    aliases: tuple[str, ...] = ()
    """Other names of the parameter."""


def bind(params: tuple[Param, ...], given: object) -> list[object]:
    """Return the arguments of a call. Missing optional parameters are `None`.

    Raises `RpcError` with code -32602.
    """
    if given is None:
        given = []
    if isinstance(given, dict):
        given = _by_name(params, given)
    elif not isinstance(given, list):
        raise invalid_params("params is neither a list nor an object")
    if len(given) > len(params):
        raise invalid_params(f"{len(given)} parameters for a method that takes {len(params)}")
    arguments: list[object] = []
    for index, param in enumerate(params):
        value = given[index] if index < len(given) else None
        if value is None:
            if not param.optional:
                raise invalid_params(f"{param.name} is missing")
            arguments.append(None)
            continue
        try:
            arguments.append(param.read(value))
        except ValueError as error:
            raise invalid_params(f"{param.name}: {error}") from None
    return arguments


def _snake(name: str) -> str:
    return _CAPITAL.sub(r"_\g<0>", name).lower()


def _by_name(params: tuple[Param, ...], given: dict[str, object]) -> list[object]:
    """Return the values of parameters that are given by name, in the order of `params`.

    Raises `RpcError` if a name is unknown.
    """
    indices: dict[str, int] = {}
    for index, param in enumerate(params):
        for name in (param.name, *param.aliases):
            indices[name] = index
            indices[_snake(name)] = index
    values: list[object] = [None] * len(params)
    for name, value in given.items():
        if name not in indices:
            raise invalid_params(f"unknown parameter {name!r}")
        values[indices[name]] = value
    return values


def hexadecimal(value: object) -> bytes:
    """Read bytes from hexadecimal digits. The prefix `0x` is optional, as in a Substrate node."""
    if not isinstance(value, str):
        raise ValueError("a string of hexadecimal digits is expected")
    try:
        # Unlike `bytes.fromhex`, `unhexlify` does not accept spaces.
        return unhexlify(value.removeprefix("0x"))
    except ValueError:
        raise ValueError("not an even number of hexadecimal digits") from None


def block_hash(value: object) -> bytes:
    """Read a hash of 32 bytes."""
    data = hexadecimal(value)
    if len(data) != 32:
        raise ValueError(f"a hash has 32 bytes, not {len(data)}")
    return data


def text(value: object) -> str:
    """Read a string."""
    if not isinstance(value, str):
        raise ValueError("a string is expected")
    return value


def boolean(value: object) -> bool:
    """Read a boolean."""
    if not isinstance(value, bool):
        raise ValueError("true or false is expected")
    return value


def integer(most: int, least: int = 0) -> Read[int]:
    """Return a reader for integers from `least` to `most`, including both."""

    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"a whole number from {least} to {most} is expected")
        return value

    return read


u32: Final = integer(U32_MAX)
u64: Final = integer(U64_MAX)


def one_of(names: Collection[str]) -> Read[str]:
    """Return a reader for one of several words."""

    def read(value: object) -> str:
        if value not in names or not isinstance(value, str):
            raise ValueError(f"one of {', '.join(names)} is expected")
        return value

    return read


def height(value: object) -> int:
    """Read a block number, as an integer or as hexadecimal digits.

    At most 64 digits are accepted, because converting millions of them would take long.
    """
    if isinstance(value, str) and value.startswith("0x") and len(value) <= 66 and value.isalnum():
        try:
            value = int(value, 0)
        except ValueError:
            raise ValueError("not a number in hexadecimal digits") from None
    return u64(value)


def para(value: object) -> ParaId:
    """Read the id of a parachain."""
    return ParaId(u32(value))


def pubsub_key(value: object) -> PubsubKey:
    """Read a published key: 32 bytes with `0x`, or a name whose BLAKE2 hash is the key."""
    name = text(value)
    if name.startswith("0x"):
        key = hexadecimal(name)
        if len(key) != 32:
            raise ValueError(f"a key has 32 bytes, not {len(key)}")
        return PubsubKey(key)
    return key_from_name(name)


def list_of(read: Read[T], most: int | None = None) -> Read[list[T]]:
    """Return a reader for lists whose items are read by `read`.

    `most` limits the number of items.
    """

    def read_list(value: object) -> list[T]:
        if not isinstance(value, list):
            raise ValueError("a list is expected")
        if most is not None and len(value) > most:
            raise ValueError(f"at most {most} items are allowed")
        return [read(item) for item in value]

    return read_list


def fields(
    make: Callable[..., T], known: Mapping[str, Read[object]], needed: Collection[str] = ()
) -> Read[T]:
    """Return a reader for objects with the fields `known`, of which `needed` are required.

    The reader passes all fields that are not null to `make`, as keyword arguments in snake case.
    Unknown fields are errors.
    """

    def read(value: object) -> T:
        if not isinstance(value, dict):
            raise ValueError("an object is expected")
        for name in value:
            if name not in known:
                raise ValueError(f"unknown field {name!r}. Fields: {', '.join(known)}")
        arguments = {}
        for name, read_field in known.items():
            if value.get(name) is not None:
                try:
                    arguments[_snake(name)] = read_field(value[name])
                except ValueError as error:
                    raise ValueError(f"{name}: {error}") from None
            elif name in needed:
                raise ValueError(f"{name} is missing")
        return make(**arguments)

    return read


def hexadecimals(value: object) -> list[bytes]:
    """Read a list of byte strings.

    A request can have a hundred thousand of them, so they are first read without individual checks.
    """
    if not isinstance(value, list):
        raise ValueError("a list is expected")
    try:
        return [unhexlify(item.removeprefix("0x")) for item in value]
    except (AttributeError, ValueError):
        # At least one item is invalid. Its reader raises the error with a useful message.
        return [hexadecimal(item) for item in value]


Pair = tuple[bytes, bytes | None]
"""A storage key with its new value, or `None` to remove the key."""


def pairs_of(value: object) -> list[Pair]:
    """Read a list of pairs `[key, value]`."""

    def pair(item: object) -> Pair:
        if not isinstance(item, list) or len(item) != 2:
            raise ValueError("pairs of key and value are expected")
        return hexadecimal(item[0]), None if item[1] is None else hexadecimal(item[1])

    return list_of(pair)(value)


AT: Final = Param("at", block_hash, optional=True, aliases=("hash", "block"))
"""A block by its hash. Methods use the best block if it is missing."""
