"""Parameters by place or by name, read strictly: what is not of the wanted type is -32602 and named."""

import re
from binascii import unhexlify
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from pubsub_emulator.node.rpc.errors import invalid_params
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.types import U32_MAX, U64_MAX, ParaId, PubsubKey

T = TypeVar("T")
Read = Callable[[object], T]
"""Makes a value of its JSON. Raises `ValueError` that says what is wanted."""
_CAPITAL: Final = re.compile("[A-Z]")


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter; `aliases` are other names of it. Each may be written in camel case or with underscores."""

    name: str
    read: Read[object]
    optional: bool = False
    aliases: tuple[str, ...] = ()


def bind(params: tuple[Param, ...], given: object) -> list[object]:
    """The arguments of a call; `None` for optional ones that lack. Raises `RpcError`."""
    if given is None:
        given = []
    if isinstance(given, dict):
        given = _by_name(params, given)
    elif not isinstance(given, list):
        raise invalid_params("params is neither a list nor an object")
    if len(given) > len(params):
        raise invalid_params(f"{len(given)} parameters for a method that takes {len(params)}")
    out: list[object] = []
    for at, param in enumerate(params):
        value = given[at] if at < len(given) else None
        if value is None:
            if not param.optional:
                raise invalid_params(f"{param.name} is missing")
            out.append(None)
            continue
        try:
            out.append(param.read(value))
        except ValueError as error:
            raise invalid_params(f"{param.name}: {error}") from None
    return out


def _snake(name: str) -> str:
    return _CAPITAL.sub(r"_\g<0>", name).lower()


def _by_name(params: tuple[Param, ...], given: dict[str, object]) -> list[object]:
    listed = ((at, name) for at, param in enumerate(params) for name in (param.name, *param.aliases))
    names = {each: at for at, name in listed for each in (name, _snake(name))}
    out: list[object] = [None] * len(params)
    for name, value in given.items():
        if name not in names:
            raise invalid_params(f"no parameter is called {name!r}")
        out[names[name]] = value
    return out


def hexadecimal(value: object) -> bytes:
    """Bytes as hexadecimal digits, with `0x` before them or without, as a Substrate node takes them."""
    if not isinstance(value, str):
        raise ValueError("a string of hexadecimal digits is wanted")
    try:
        return unhexlify(value.removeprefix("0x"))  # unlike `bytes.fromhex`, it takes no spaces
    except ValueError:
        raise ValueError("not an even number of hexadecimal digits") from None


def block_hash(value: object) -> bytes:
    """32 bytes."""
    found = hexadecimal(value)
    if len(found) != 32:
        raise ValueError(f"a hash has 32 bytes, not {len(found)}")
    return found


def text(value: object) -> str:
    """A string."""
    if not isinstance(value, str):
        raise ValueError("a string is wanted")
    return value


def boolean(value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError("true or false is wanted")
    return value


def integer(most: int, least: int = 0) -> Read[int]:
    """Reads whole numbers of a range."""

    def read(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(f"a whole number from {least} to {most} is wanted")
        return value

    return read


u32: Final = integer(U32_MAX)
u64: Final = integer(U64_MAX)


def one_of(names: Collection[str]) -> Read[str]:
    """Reads one of a few words."""

    def read(value: object) -> str:
        if value not in names or not isinstance(value, str):
            raise ValueError(f"one of {', '.join(names)} is wanted")
        return value

    return read


def height(value: object) -> int:
    """A block number, as a number or in 64 hexadecimal digits at most: to read millions of them takes its time."""
    if isinstance(value, str) and value.startswith("0x") and len(value) <= 66 and value.isalnum():
        try:
            value = int(value, 0)
        except ValueError:
            raise ValueError("not a number in hexadecimal digits") from None
    return u64(value)


def para(value: object) -> ParaId:
    """A parachain's id."""
    return ParaId(u32(value))


def pubsub_key(value: object) -> PubsubKey:
    """A published key: 32 bytes, or a name to be hashed."""
    name = text(value)
    if name.startswith("0x"):
        found = hexadecimal(name)
        if len(found) != 32:
            raise ValueError(f"a key has 32 bytes, not {len(found)}")
        return PubsubKey(found)
    return PubsubKey(blake2_256(name.encode()))


def list_of(read: Read[T], most: int | None = None) -> Read[list[T]]:
    """A list whose items are read by `read`."""

    def read_list(value: object) -> list[T]:
        if not isinstance(value, list):
            raise ValueError("a list is wanted")
        if most is not None and len(value) > most:
            raise ValueError(f"at most {most} items are taken")
        return [read(item) for item in value]

    return read_list


def fields(make: Callable[..., T], known: Mapping[str, Read[object]], needed: Collection[str] = ()) -> Read[T]:
    """Reads an object: `make` gets the fields that are not null, by names_like_this. Those `needed` must be there."""

    def read(value: object) -> T:
        if not isinstance(value, dict):
            raise ValueError("an object is wanted")
        for name in value:
            if name not in known:
                raise ValueError(f"there is no {name!r}; there are {', '.join(known)}")
        found = {}
        for name, field in known.items():
            if value.get(name) is not None:
                try:
                    found[_snake(name)] = field(value[name])
                except ValueError as error:
                    raise ValueError(f"{name}: {error}") from None
            elif name in needed:
                raise ValueError(f"{name} is missing")
        return make(**found)

    return read


def hexadecimals(value: object) -> list[bytes]:
    """A list of byte strings, each as `hexadecimal` takes it."""
    if not isinstance(value, list):
        raise ValueError("a list is wanted")
    try:
        return [unhexlify(item.removeprefix("0x")) for item in value]
    except (AttributeError, ValueError):
        return [hexadecimal(item) for item in value]  # it says what is wrong


Pair = tuple[bytes, bytes | None]
"""A storage key and its value, `None` to remove it."""


def pairs_of(value: object) -> list[Pair]:
    """A list of `[key, value]`."""

    def pair(item: object) -> Pair:
        if not isinstance(item, list) or len(item) != 2:
            raise ValueError("pairs of key and value are wanted")
        return hexadecimal(item[0]), None if item[1] is None else hexadecimal(item[1])

    return list_of(pair)(value)


AT: Final = Param("at", block_hash, optional=True, aliases=("hash", "block"))
"""A block; the best one where it lacks."""
