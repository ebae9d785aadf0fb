"""Methods, and the decorator that declares them."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from pubsub_emulator.node.rpc.params import Param

Json = object
Handler = Callable[..., Json | Awaitable[Json]]
H = TypeVar("H", bound=Handler)


@dataclass(frozen=True, slots=True)
class Method:
    """One method by all its names. `unsafe` ones need `--dev`, `live` ones a connection.

    `heavy` ones read or answer at length: they run beside the event loop, one of a connection at a time. So do those
    that are `executing` the runtime, which take longer and have threads of their own. A heavy one that names at most
    `few_keys` is answered at once: to hand it to a thread takes ten times as long as to read them.
    """

    name: str
    run: Handler
    params: tuple[Param, ...] = ()
    aliases: tuple[str, ...] = ()
    unsafe: bool = False
    live: bool = False
    heavy: bool = False
    executing: bool = False
    few_keys: int = 0

    def is_long(self, arguments: Iterable[object]) -> bool:
        """Whether a call with these arguments has to run beside the event loop."""
        return self.heavy and not any(isinstance(each, list) and 0 < len(each) <= self.few_keys for each in arguments)


DECLARED: Final[list[Method]] = []
"""The methods of the modules that are imported."""


def method(
    name: str,
    *params: Param,
    aliases: tuple[str, ...] = (),
    unsafe: bool = False,
    live: bool = False,
    heavy: bool = False,
    executing: bool = False,
    few_keys: int = 0,
) -> Callable[[H], H]:
    """Decorator: the function answers calls of `name`, its arguments being the call and the parameters."""

    def add(run: H) -> H:
        DECLARED.append(Method(name, run, params, aliases, unsafe, live, heavy or executing, executing, few_keys))
        return run

    return add
