"""The interface for authors of canisters, who publish and subscribe in a few lines.

    class Prices(App):
        publications = {"org.example.price": {}}

        def on_call(self, ctx, method, arg):
            self.emit(ctx, "org.example.price", {"DOT": 7, "KSM": 31})
            ctx.reply(b"")

    class Reader(App):
        subscriptions = {"org.example.*": {FILTER: "DOT > 5"}}

        def on_event(self, ctx, event):
            self.data.append((event.namespace, plain(event.data)))

An app registers itself when it is installed. `on_event` is called once for each event and in order.
Each call is an execution of its own, and a `Trap` or any other exception undoes only this
execution: its changes to `data`, and the events that it has emitted. `data` survives upgrades. It
may contain `None`, bools, integers, text, bytes, tuples, lists, dicts and sets.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, ClassVar

from interchain_events.icrc72.config import new_publication, new_subscription
from interchain_events.icrc72.errors import ConfigError, Icrc72Error
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.errors import Trap, shown
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.inbox import Inbox
from interchain_events.icrc72.keys import FILTER, REPLAY, SKIP
from interchain_events.icrc72.messages import Event, EventNotification
from interchain_events.icrc72.publisher.core import Publisher
from interchain_events.icrc72.publisher.foreign import ForeignArchive
from interchain_events.icrc72.role import ROLE_METHODS, Core, RoleCanister
from interchain_events.icrc72.settings import DEFAULTS, Settings
from interchain_events.icrc72.subscriber.core import RUN, Subscriber
from interchain_events.icrc72.values import Pairs, Value, of, plain

Config = Mapping[str, object]
"""A configuration: keys with plain Python values."""

_Emitted = tuple[str, Value, Pairs, int | None]
"""An emitted event: namespace, data, headers and the chosen id."""


class App(RoleCanister):
    """A canister that publishes, subscribes, or both. Authors make a subclass of it."""

    publications: ClassVar[Mapping[str, Config]] = {}
    """The namespaces in which it publishes, each with its configuration."""

    subscriptions: ClassVar[Mapping[str, Config]] = {}
    """The namespaces or patterns to which it subscribes, each with its configuration."""

    def __init__(
        self,
        orchestrator: Principal,
        settings: Settings = DEFAULTS,
        *,
        publications: Mapping[str, Config] | None = None,
        subscriptions: Mapping[str, Config] | None = None,
        extra: tuple[Core, ...] = (),
        archive: Principal | None = None,
        foreign_archive: Principal | None = None,
        keep: int = 1000,
    ) -> None:
        """Make an app; `publications` and `subscriptions` replace those of the class.

        `extra` are additional cores. With an `archive`, old events of the log go there, except the
        newest `keep`. A `foreign_archive` is written by others and only read, by the methods of
        ICRC-3. Raises `ConfigError` if a configuration is malformed.
        """
        if archive is not None and foreign_archive is not None:
            raise ConfigError("an app has one archive")
        # Any: the author chooses its type.
        self.data: Any = self.start()
        self._emitted: list[_Emitted] = []
        """The events of this execution, which are published when it has ended well."""
        published = self.publications if publications is None else publications
        subscribed = self.subscriptions if subscriptions is None else subscriptions
        self.inbox = Inbox(orchestrator, settings)
        cores: list[Core] = [_Own(self), *extra, self.inbox]
        self.publisher: Publisher | None = None
        self.subscriber: Subscriber | None = None
        if published or not subscribed:
            self.publisher = Publisher(
                self.inbox, _pairs(published, new_publication), archive, keep
            )
            self.publisher.on_refused = self.on_refused
            cores.append(self.publisher)
            if foreign_archive is not None:
                cores.append(ForeignArchive(self.publisher, foreign_archive, keep))
        if subscribed:
            self.subscriber = Subscriber(self.inbox, self, _pairs(subscribed, new_subscription))
            cores.append(self.subscriber)
        super().__init__(cores)

    # What authors write

    def start(self) -> object:
        """Return the first value of `data`."""
        return []

    def on_event(self, ctx: Context, event: EventNotification) -> None:
        """Handle an event."""

    def on_refused(self, ctx: Context, event: Event, why: str) -> None:
        """Handle an event of this app that no broadcaster will ever accept.

        `why` is the reason. It is also in `publisher.state.refused`.
        """

    def on_call(self, ctx: Context, method: str, arg: bytes) -> None:
        """Serve a method of the app, with a name that no standard uses. Raises `Trap`."""
        del ctx, arg
        raise Trap(f"IC0536: there is no method {method}")

    def keep_data(self) -> object:
        """Return a copy of `data`, from which `undo_data` restores it after a trap.

        Override both if `data` is large.
        """
        return deepcopy(self.data)

    def undo_data(self, before: Any) -> None:
        """Restore `data` from a copy that `keep_data` returned."""
        self.data = before

    # What authors call

    def emit(
        self,
        ctx: Context,
        namespace: str,
        data: object,
        headers: Pairs = (),
        *,
        number: int | None = None,
    ) -> None:
        """Publish plain data or an ICRC16 value when this execution has ended well.

        The id is `number`, or the next one. Raises `Icrc72Error` if the app does not have the
        namespace, the data has more than 1 MiB, or `number` is not greater than all ids before.
        """
        if self.publisher is None:
            raise Icrc72Error(f"{namespace!r} is not a publication of this app")
        value = of(data)
        self.publisher.check(ctx, namespace, value, headers)
        if number is not None:
            publication = self.publisher.state.mine[namespace]
            last = publication.last
            for emitted_namespace, _, _, emitted_number in self._emitted:
                if emitted_namespace == namespace:
                    last = max(last, emitted_number or 0)
            for _, _, waiting_number, _, _ in publication.waiting:
                last = max(last, waiting_number or 0)
            if number <= last:
                raise Icrc72Error(
                    f"event {shown(number)} of {namespace} does not come after all former ones"
                )
        self._emitted.append((namespace, value, headers, number))

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        """Execute a method of the standards, or one of the app with `on_call`."""
        if method.startswith(ROLE_METHODS) or method == RUN:
            super().update(ctx, method, arg)
            return
        before = self.keep_data()
        try:
            self.on_call(ctx, method, arg)
        # A defect of the author's code traps only this call, as on the Internet Computer.
        except Exception as error:
            self.restore_data(before)
            raise _trap(error) from error
        self.flush(ctx)

    def handle(self, ctx: Context, event: EventNotification) -> None:
        """Call `on_event`, and publish the events that it emitted. Raises `Trap` if it fails."""
        try:
            self.on_event(ctx, event)
        except Exception as error:
            raise _trap(error) from error
        self._publish(ctx)

    def flush(self, ctx: Context) -> None:
        """Publish the emitted events and set the timer.

        Authors call this in executions other than `on_call` and `on_event`, such as heartbeats.
        """
        self._publish(ctx)
        self.rearm(ctx)

    def _publish(self, ctx: Context) -> None:
        emitted = self._emitted
        self._emitted = []
        if self.publisher is None:
            return
        for namespace, data, headers, number in emitted:
            self.publisher.emit(ctx, namespace, data, headers, number=number)

    def restore_data(self, before: object) -> None:
        """Undo the changes of an execution to `data`, and drop the events that it emitted."""
        self.undo_data(before)
        self._emitted.clear()


class _Own(Core):
    """The core that keeps the author's `data` over upgrades."""

    name = "data"

    def __init__(self, app: App) -> None:
        self._app = app

    def saved(self) -> object:
        return self._app.data

    def resume(self, state: object) -> None:
        self._app.data = state


def _trap(error: Exception) -> Trap:
    """Return the trap for an exception of the author's code."""
    return error if isinstance(error, Trap) else Trap(f"{type(error).__name__}: {error}")


def _pairs(
    configs: Mapping[str, Config], check: Callable[[Principal, Pairs], object]
) -> dict[str, Pairs]:
    """Return configurations with ICRC16 values, checked like by the orchestrator.

    Raises `ConfigError` with the name of the malformed one.
    """
    pairs: dict[str, Pairs] = {}
    for name, config in configs.items():
        pairs[name] = tuple((key, of(value)) for key, value in config.items())
        try:
            check(Principal(), pairs[name])
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from error
    return pairs


__all__ = ["FILTER", "REPLAY", "SKIP", "App", "Context", "EventNotification", "Trap", "plain"]
