"""For authors of canisters: publish and subscribe in a few lines.

    class Prices(App):
        publications = {"org.example.price": {}}

        def on_call(self, ctx, method, arg):
            self.emit(ctx, "org.example.price", {"DOT": 7, "KSM": 31})
            ctx.reply(b"")

    class Reader(App):
        subscriptions = {"org.example.*": {FILTER: "DOT > 5"}}

        def on_event(self, ctx, event):
            self.data.append((event.namespace, plain(event.data)))

An app registers itself when it is installed. `on_event` is called once for each event, in order, in an execution of
its own: a `Trap`, or any other exception, undoes it and nothing else. `data` is kept over upgrades and restored after
a trap; it may hold None, bools, integers, text, bytes, tuples, lists, dicts and sets. What is emitted in an execution
that traps is not published.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, ClassVar

from pubsub_emulator.icrc72.config import new_publication, new_subscription
from pubsub_emulator.icrc72.errors import ConfigError, Icrc72Error
from pubsub_emulator.icrc72.ic.canister import Context
from pubsub_emulator.icrc72.ic.errors import Trap, shown
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.inbox import Inbox
from pubsub_emulator.icrc72.keys import FILTER, REPLAY, SKIP
from pubsub_emulator.icrc72.messages import Event, EventNotification
from pubsub_emulator.icrc72.publisher.core import Publisher
from pubsub_emulator.icrc72.role import ROLE_METHODS, Core, RoleCanister
from pubsub_emulator.icrc72.settings import DEFAULTS, Settings
from pubsub_emulator.icrc72.subscriber.core import RUN, Subscriber
from pubsub_emulator.icrc72.values import Pairs, Value, of, plain

Config = Mapping[str, object]
"""Keys with plain values."""

_Emitted = tuple[str, Value, Pairs, int | None]


class App(RoleCanister):
    """A canister that publishes, subscribes, or both; make a subclass of it."""

    publications: ClassVar[Mapping[str, Config]] = {}
    """Namespaces to publish under, each with its configuration."""

    subscriptions: ClassVar[Mapping[str, Config]] = {}
    """Namespaces or patterns to subscribe to, each with its configuration."""

    def __init__(
        self,
        orchestrator: Principal,
        settings: Settings = DEFAULTS,
        *,
        publications: Mapping[str, Config] | None = None,
        subscriptions: Mapping[str, Config] | None = None,
        extra: tuple[Core, ...] = (),
        archive: Principal | None = None,
        keep: int = 1000,
    ) -> None:
        self.data: Any = self.start()  # its type is the author's
        self._emitted: list[_Emitted] = []
        published = self.publications if publications is None else publications
        subscribed = self.subscriptions if subscriptions is None else subscriptions
        self.inbox = Inbox(orchestrator, settings)
        cores: list[Core] = [_Own(self), *extra, self.inbox]
        self.publisher: Publisher | None = None
        self.subscriber: Subscriber | None = None
        if published or not subscribed:
            self.publisher = Publisher(self.inbox, _pairs(published, new_publication), archive, keep)
            self.publisher.on_refused = self.on_refused
            cores.append(self.publisher)
        if subscribed:
            self.subscriber = Subscriber(self.inbox, self, _pairs(subscribed, new_subscription))
            cores.append(self.subscriber)
        super().__init__(cores)

    # What authors write

    def start(self) -> object:
        """The first value of `data`."""
        return []

    def on_event(self, ctx: Context, event: EventNotification) -> None:
        """Handle an event."""

    def on_refused(self, ctx: Context, event: Event, why: str) -> None:
        """Called with an event of this app that no broadcaster will ever take. It is in `publisher.state.refused`."""

    def on_call(self, ctx: Context, method: str, arg: bytes) -> None:
        """Serve a method of one's own; anything goes but the names of the standards. Raises `Trap`."""
        del ctx, arg
        raise Trap(f"IC0536: there is no method {method}")

    def keep_data(self) -> object:
        """The copy of `data` by which `undo_data` undoes an execution. Override both where `data` is large."""
        return deepcopy(self.data)

    def undo_data(self, before: Any) -> None:
        """Make `data` what it was when `keep_data` returned `before`."""
        self.data = before

    # What authors call

    def emit(
        self, ctx: Context, namespace: str, data: object, headers: Pairs = (), *, number: int | None = None
    ) -> None:
        """Publish plain data or an ICRC16 value when this execution ends well.

        Raises `Icrc72Error` for a namespace that the app does not have, data over 1 MiB and a `number` that is not
        above all former ones.
        """
        if self.publisher is None:
            raise Icrc72Error(f"{namespace!r} is no publication of this app")
        value = of(data)
        self.publisher.check(ctx, namespace, value, headers)
        mine = self.publisher.state.mine[namespace]
        made = [*(each[3] for each in self._emitted if each[0] == namespace), *(each[2] for each in mine.waiting)]
        if number is not None and number <= max([mine.last, *(each or 0 for each in made)]):
            raise Icrc72Error(f"event {shown(number)} of {namespace} does not come after all former ones")
        self._emitted.append((namespace, value, headers, number))

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        """Serve the standards, or the author's own methods."""
        if method.startswith(ROLE_METHODS) or method == RUN:
            super().update(ctx, method, arg)
            return
        before = self.keep_data()
        try:
            self.on_call(ctx, method, arg)
        except Exception as error:  # an author's defect traps the call, as on the Internet Computer
            self.restore_data(before)
            raise _trap(error) from error
        self.flush(ctx)

    def handle(self, ctx: Context, event: EventNotification) -> None:
        """Let the author handle an event, and publish what was emitted."""
        try:
            self.on_event(ctx, event)
        except Exception as error:  # as above: the event's own execution traps
            raise _trap(error) from error
        self._publish(ctx)

    def flush(self, ctx: Context) -> None:
        """Publish what was emitted and set the timer: for executions that are neither calls nor events."""
        self._publish(ctx)
        self.rearm(ctx)

    def _publish(self, ctx: Context) -> None:
        emitted, self._emitted = self._emitted, []
        if self.publisher is None:
            return
        for namespace, data, headers, number in emitted:
            self.publisher.emit(ctx, namespace, data, headers, number=number)

    def restore_data(self, before: object) -> None:
        """Undo what an execution did."""
        self.undo_data(before)
        self._emitted.clear()


class _Own(Core):
    name = "data"

    def __init__(self, app: App) -> None:
        self._app = app

    def saved(self) -> object:
        return self._app.data

    def resume(self, state: object) -> None:
        self._app.data = state


def _trap(error: Exception) -> Trap:
    return error if isinstance(error, Trap) else Trap(f"{type(error).__name__}: {error}")


def _pairs(configs: Mapping[str, Config], check: Callable[[Principal, Pairs], object]) -> dict[str, Pairs]:
    """Configurations as values, each checked as the orchestrator will. Raises `ConfigError`, which names it."""
    found: dict[str, Pairs] = {}
    for name, config in configs.items():
        found[name] = tuple((key, of(value)) for key, value in config.items())
        try:
            check(Principal(), found[name])
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from error
    return found


__all__ = ["FILTER", "REPLAY", "SKIP", "App", "Context", "EventNotification", "Trap", "plain"]
