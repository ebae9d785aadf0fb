"""Registration by publishers and subscribers: in batches, each name once at a time (IC-30, IC-39)."""

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Protocol, TypeVar

from pubsub_emulator.icrc72.ic.canister import GUARANTEED, Context
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.messages import PublicationRegistration, Results
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


class Registering:
    """The registrations under way, by name."""

    def __init__(self) -> None:
        self.under_way: dict[str, None] = {}

    def register(  # noqa: PLR0917 — who asks whom for what
        self,
        ctx: Context,
        role: RoleCanister,
        orchestrator: Principal,
        method: Method[tuple[PublicationRegistration, ...], Results[int]],
        mine: Mapping[str, Registrable],
        most: int,
        after: Callable[[Context], None] = lambda _ctx: None,
    ) -> None:
        """Register what has no id by a guaranteed call, so many at once; what is not answered may be asked again."""
        items = dict(islice(((name, each) for name, each in mine.items() if self.lacks(name, each)), most))
        if not items:
            return
        self.under_way.update(dict.fromkeys(items))

        def got(ctx: Context, results: Results[int] | None) -> None:
            for at, (name, each) in enumerate(items.items()):
                self.under_way.pop(name, None)
                match results[at] if results is not None and at < len(results) else None:
                    case ("Ok", number):
                        each.id = number
                    case ("Err", error):
                        each.error = words_of(error)
            after(ctx)

        batch = tuple(PublicationRegistration(name, each.config) for name, each in items.items())
        role.ask(ctx, orchestrator, method, batch, got, kind=GUARANTEED)

    def lacks(self, name: str, each: Registrable) -> bool:
        """True when something is to be registered, and is not under way."""
        return each.id is None and not each.error and name not in self.under_way


def renew(given: Mapping[str, R], known: dict[str, R]) -> None:
    """After an upgrade: have what only the new code has, and ask once more for what was refused, as it has it now.

    What is registered keeps the configuration that the orchestrator knows.
    """
    for name, new in given.items():
        old = known.setdefault(name, new)
        if old.id is None:
            old.config, old.error = new.config, ""
