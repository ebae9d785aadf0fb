"""The description of a JSON-RPC method, and the decorator that declares one."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from pubsub_emulator.node.rpc.params import Param

Json = object
"""A value that can be written as JSON."""
Handler = Callable[..., Json | Awaitable[Json]]
"""A function that answers calls. It may be a coroutine function."""
H = TypeVar("H", bound=Handler)


@dataclass(frozen=True, slots=True)
class Method:
    """A JSON-RPC method."""

    name: str
    run: Handler
    """The function that answers calls."""
    params: tuple[Param, ...] = ()
    aliases: tuple[str, ...] = ()
    """Other names of the method."""
    unsafe: bool = False
    """Whether the method needs `--dev`."""
    live: bool = False
    """Whether the method needs a connection that can receive events (WebSocket)."""
    heavy: bool = False
    """Whether a call can take long. It then runs in another thread, and a connection processes only
    one such call at a time.
    """
    executing: bool = False
    """Whether the method runs the runtime. Such calls take even longer, and have threads of their
    own.
    """
    few_keys: int = 0
    """The maximum number of keys with which a heavy call is answered in the event loop. Handing it
    to a thread would take ten times as long as reading them.
    """

    def is_long(self, arguments: Iterable[object]) -> bool:
        """Return whether a call with these arguments must run in another thread."""
        return self.heavy and not any(
            isinstance(argument, list) and 0 < len(argument) <= self.few_keys
            for argument in arguments
        )


DECLARED: Final[list[Method]] = []
"""All declared methods of the modules that have been imported so far."""


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
    """Declare a function as a JSON-RPC method.

    The function's arguments are the `RpcCall` and the parameters. The first paragraph of its
    docstring is printed in the documentation of the node's methods.
    """

    def add(run: H) -> H:
        DECLARED.append(
            Method(
                name,
                run,
                params,
                aliases=aliases,
                unsafe=unsafe,
                live=live,
                heavy=heavy or executing,
                executing=executing,
                few_keys=few_keys,
            )
        )
        return run

    return add
