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

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, ClassVar

from pubsub_emulator.eventplane.ic.canister import Context
from pubsub_emulator.eventplane.ic.errors import Trap
from pubsub_emulator.eventplane.ic.principal import Principal
from pubsub_emulator.eventplane.ic.words import shown
from pubsub_emulator.eventplane.icrc72.errors import Icrc72Error
from pubsub_emulator.eventplane.icrc72.inbox import Inbox
from pubsub_emulator.eventplane.icrc72.keys import FILTER, REPLAY, SKIP
from pubsub_emulator.eventplane.icrc72.messages import EventNotification
from pubsub_emulator.eventplane.icrc72.publisher.core import Publisher
from pubsub_emulator.eventplane.icrc72.role import ROLE_METHODS, Core, RoleCanister
from pubsub_emulator.eventplane.icrc72.settings import DEFAULTS, Settings
from pubsub_emulator.eventplane.icrc72.subscriber.core import HANDLE, Subscriber
from pubsub_emulator.eventplane.icrc72.values import Pairs, of, plain

Config = Mapping[str, Any]
"""Keys with plain values."""

_Emitted = tuple[str, Any, Pairs, int | None]


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
        self.data: Any = self.start()
        self._emitted: list[_Emitted] = []
        published = self.publications if publications is None else publications
        subscribed = self.subscriptions if subscriptions is None else subscriptions
        self.inbox = Inbox(orchestrator, settings)
        own = _Own(self)
        cores: list[Core] = [own, *extra, self.inbox]
        self.publisher: Publisher | None = None
        self.subscriber: Subscriber | None = None
        if published or not subscribed:
            self.publisher = Publisher(
                orchestrator, self.inbox, _pairs(published), settings, archive=archive, keep=keep
            )
            cores.append(self.publisher)
        if subscribed:
            self.subscriber = Subscriber(orchestrator, self.inbox, own, _pairs(subscribed), settings)
            cores.append(self.subscriber)
        super().__init__(cores)

    # What authors write

    def start(self) -> Any:
        """The first value of `data`."""
        return []

    def on_event(self, ctx: Context, event: EventNotification) -> None:
        """Handle an event."""

    def on_call(self, ctx: Context, method: str, arg: bytes) -> None:
        """Serve a method of one's own; anything goes but the names of the standards. Raises `Trap`."""
        del ctx, arg
        raise Trap(f"IC0536: there is no method {method}")

    def keep_data(self) -> Any:
        """What `undo_data` needs to undo an execution: a copy of `data`. Override both where `data` is large."""
        return deepcopy(self.data)

    def undo_data(self, before: Any) -> None:
        """Make `data` what it was when `keep_data` returned `before`."""
        self.data = before

    # What authors call

    def emit(self, ctx: Context, namespace: str, data: Any, headers: Pairs = (), *, number: int | None = None) -> None:
        """Publish plain data or an ICRC16 value when this execution ends well.

        Raises `Icrc72Error` for a namespace that the app does not have, data over 1 MiB and a `number` that is not
        above all former ones.
        """
        if self.publisher is None:
            raise Icrc72Error(f"{namespace!r} is no publication of this app")
        value = of(data)
        self.publisher.check(ctx, namespace, value, headers)
        last = max((each[3] or 0 for each in self._emitted if each[0] == namespace), default=0)
        if number is not None and number <= max(last, self.publisher.state.mine[namespace].last):
            raise Icrc72Error(f"event {shown(number)} of {namespace} does not come after all former ones")
        self._emitted.append((namespace, value, headers, number))

    # How it works

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        """Serve the standards, or the author's own methods."""
        if method.startswith(ROLE_METHODS) or method == HANDLE:
            super().update(ctx, method, arg)
            return
        before = self.keep_data()
        try:
            self.on_call(ctx, method, arg)
        except Exception as error:  # an author's defect traps the call, as on the Internet Computer
            self.restore_data(before)
            raise _trap(error) from error
        self._publish(ctx)
        self.rearm(ctx)

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

    def restore_data(self, before: Any) -> None:
        """Undo what an execution did."""
        self.undo_data(before)
        self._emitted.clear()


class _Own(Core):
    """The author's state as a part of the canister, and the author's handler as the subscriber calls it."""

    name = "data"

    def __init__(self, app: App) -> None:
        self._app = app

    def handle(self, ctx: Context, notification: EventNotification) -> None:
        self._app.handle(ctx, notification)

    def snapshot(self) -> Any:
        return self._app.keep_data()

    def restore(self, snapshot: Any) -> None:
        self._app.restore_data(snapshot)

    def saved(self) -> Any:
        return self._app.data

    def resume(self, state: Any) -> None:
        self._app.data = state


def _trap(error: Exception) -> Trap:
    """Whatever an author's code raises is a trap: its execution is undone, and nobody else notices."""
    return error if isinstance(error, Trap) else Trap(f"{type(error).__name__}: {error}")


def _pairs(configs: Mapping[str, Config]) -> dict[str, Pairs]:
    return {name: tuple((key, of(value)) for key, value in config.items()) for name, config in configs.items()}


__all__ = ["FILTER", "REPLAY", "SKIP", "App", "Context", "EventNotification", "Trap", "plain"]
