"""Registration by publishers and subscribers: in batches, each name once at a time (IC-30, IC-39)."""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from pubsub_emulator.icrc72.ic.canister import GUARANTEED, Context
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.messages import Results
from pubsub_emulator.icrc72.methods import Method
from pubsub_emulator.icrc72.results import words_of
from pubsub_emulator.icrc72.role import RoleCanister
from pubsub_emulator.icrc72.values import Pairs


class Registrable(Protocol):
    """A publication or subscription as its owner knows it."""

    config: Pairs
    id: int | None
    error: str


R = TypeVar("R", bound=Registrable)
I = TypeVar("I")  # noqa: E741 — an item of a batch

Registered = Callable[[str, int | None, str], None]
"""What is done with an answer: the name, and its id or why it was refused."""


class Registering:
    """The registrations under way, by name."""

    def __init__(self) -> None:
        self.under_way: dict[str, None] = {}

    def register(  # noqa: PLR0917 — who asks whom for what
        self,
        ctx: Context,
        role: RoleCanister,
        orchestrator: Principal,
        method: Method[tuple[I, ...], Results[int]],
        items: Mapping[str, I],
        registered: Registered,
        after: Callable[[Context], None],
    ) -> None:
        """Register `items` by a guaranteed call; what is not answered may be asked again."""
        self.under_way.update(dict.fromkeys(items))

        def got(ctx: Context, results: Results[int] | None) -> None:
            for at, name in enumerate(items):
                self.under_way.pop(name, None)
                match results[at] if results is not None and at < len(results) else None:
                    case ("Ok", number):
                        registered(name, number, "")
                    case ("Err", error):
                        registered(name, None, words_of(error))
            after(ctx)

        role.ask(ctx, orchestrator, method, tuple(items.values()), got, kind=GUARANTEED)


def renew(given: Mapping[str, R], known: dict[str, R]) -> None:
    """After an upgrade: have what only the new code has, and ask once more for what was refused, as it has it now.

    What is registered keeps the configuration that the orchestrator knows.
    """
    for name, new in given.items():
        old = known.setdefault(name, new)
        if old.id is None:
            old.config, old.error = new.config, ""
