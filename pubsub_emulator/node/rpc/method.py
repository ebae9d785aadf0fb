"""Methods, and the table of them by name."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from pubsub_emulator.node.rpc.params import Param
from pubsub_emulator.primitives.errors import DefensiveFailure

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


class Methods:
    """A group of methods that a module defines."""

    def __init__(self) -> None:
        self.methods: list[Method] = []

    def method(
        self,
        name: str,
        *params: Param,
        aliases: Iterable[str] = (),
        unsafe: bool = False,
        live: bool = False,
        heavy: bool = False,
        executing: bool = False,
        few_keys: int = 0,
    ) -> Callable[[H], H]:
        """Decorator: the function answers calls of `name`, its arguments being the call and the parameters."""

        def add(run: H) -> H:
            self.methods.append(
                Method(name, run, params, tuple(aliases), unsafe, live, heavy or executing, executing, few_keys)
            )
            return run

        return add


def table(groups: Iterable[Methods], *, unsafe: bool) -> Mapping[str, Method]:
    """Every method that may be called, by each of its names. Raises `DefensiveFailure` for a name used twice."""
    found: dict[str, Method] = {}
    for group in groups:
        for method in group.methods:
            if method.unsafe and not unsafe:
                continue
            for name in (method.name, *method.aliases):
                if name in found:
                    raise DefensiveFailure(f"two methods are called {name}")
                found[name] = method
    return found
