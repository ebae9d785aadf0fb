"""The inbox of publishers and subscribers (IC-38f, IC-49a, b), and registration (IC-30, IC-39).

The inbox is a core of its own, because a canister may be both publisher and subscriber. It takes
notifications only from valid broadcasters, gives system events and events to the roles, and
confirms those that they take.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import lru_cache
from itertools import islice, zip_longest
from typing import Final, Literal, Protocol, TypeVar

from interchain_events.icrc72 import keys, methods
from interchain_events.icrc72.alerts import MemberAlert
from interchain_events.icrc72.errors import ConfigError
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import GUARANTEED, ONE_WAY, SECOND, Context
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.ic.stable import record
from interchain_events.icrc72.memory import (
    Shared,
    nothing,
    put,
    put_all,
    put_shared,
    put_single,
    shared,
    take_out,
)
from interchain_events.icrc72.messages import (
    EventNotification,
    PublicationRegistration,
    Results,
    Valid,
)
from interchain_events.icrc72.namespaces import is_system, system_namespace
from interchain_events.icrc72.role import Core, Handler, Query, restored
from interchain_events.icrc72.settings import DEFAULTS, Settings
from interchain_events.icrc72.values import Pairs, Value, nat

_ROLES: Final = ("publisher", "subscriber")
"""The roles whose system namespaces are read."""


class _Member(Protocol):
    """A role of the canister that gets system events: publisher or subscriber."""

    name: str
    """The role."""

    def told(self, ctx: Context, caller: Principal, alert: MemberAlert) -> None:
        """Apply a system event, which `caller` sent."""


class _Taker(Protocol):
    """The receiver of events other than system events, which is the subscriber."""

    def take(self, ctx: Context, caller: Principal, notification: EventNotification) -> bool: ...
    def taken(self, ctx: Context) -> None: ...
    def subscribed(self) -> int: ...
    def holding(self) -> int: ...


@record
class InboxState:
    """The state of an inbox."""

    valid: Mapping[Principal, None] = field(default_factory=nothing)
    """The valid broadcasters that are known."""
    valid_list: tuple[Principal, str] | None = None
    """The list canister and list of valid broadcasters; `None` if the orchestrator lists them."""
    unknown: Mapping[Principal, None] = field(default_factory=nothing)
    """Callers about which a list canister must be asked whether they are valid."""
    ask_next: int = 0
    """The round before which it does not ask again for valid broadcasters."""
    asks: int = 0
    """How many times it has asked since the last answer."""
    curious: bool = False
    """Whether it has to ask, because an unknown caller has called."""
    registered: Mapping[str, None] = field(default_factory=nothing)
    """The roles whose system namespaces are registered."""
    handled: Mapping[tuple[str, Principal], int] = field(default_factory=nothing)
    """The id of the last system event of each namespace and source."""
    confirm: Mapping[Principal, Mapping[int, None]] = field(default_factory=nothing)
    """For each broadcaster, the notifications that have to be confirmed."""
    confirmed: Mapping[Principal, int] = field(default_factory=nothing)
    """For each broadcaster, the round in which confirmations were last sent."""
    counts: dict[str, int] = field(default_factory=dict)
    """The counters of the statistics."""
    recent: Mapping[int, int] = field(default_factory=nothing)
    """How many notifications were received in each of the last 100 rounds."""


class Inbox(Core):
    """The core that receives notifications for the other roles of a canister."""

    name = "inbox"
    state: InboxState

    def __init__(self, orchestrator: Principal, settings: Settings = DEFAULTS) -> None:
        self.state = InboxState()
        self.orchestrator = orchestrator
        self.settings = settings
        self.members: tuple[_Member, ...] = ()
        """The roles that get system events."""
        self.taker: _Taker | None = None
        self._registering: Mapping[str, None] = nothing()
        """The roles whose registration is under way."""
        self._waiting = False
        """Whether a question about valid broadcasters is under way."""

    def updates(self) -> Mapping[str, Handler]:
        """Return the update methods by name."""
        return {
            "icrc72_handle_notification": self._handle,
            "icrc72_handle_notification_trusted": self._handle_trusted,
        }

    def queries(self) -> Mapping[str, Query]:
        """Return the queries by name.

        A publisher has the query of subscribers, too, because it subscribes to system events.
        """
        return {"icrc72_get_subscriber_stats": self._stats}

    def begin(self, ctx: Context) -> None:
        """Ask for valid broadcasters, and register the system namespaces of the roles (IC-39)."""
        self._ask_valid(ctx)
        self._register(ctx)

    def resume(self, state: object) -> None:
        """Continue with a saved state. Calls that were under way have ended before the upgrade."""
        self.state = restored(state, InboxState)
        self._registering = nothing()
        self._waiting = False

    def wake(self, ctx: Context) -> None:
        """Do the due work: register, ask for valid broadcasters, and confirm."""
        self._register(ctx)
        if self.state.curious:
            self._ask_valid(ctx)
        self._confirm(ctx)

    def due(self, now: int) -> int | None:
        """Return the next round for confirmations, questions or registrations."""
        state = self.state
        if any(state.confirm.values()):
            return now + 1
        rounds: list[int] = []
        if state.curious and not self._waiting:
            rounds.append(state.ask_next)
        for member in self.members:
            if member.name not in state.registered:
                rounds.append(now + 5)
                break
        return min(rounds) if rounds else None

    def count(self, name: str, more: int = 1) -> None:
        """Add to a counter of the statistics."""
        self.state.counts[name] = self.state.counts.get(name, 0) + more

    def ready(self, role: str) -> bool:
        """Return whether the system namespace of a role is registered."""
        return role in self.state.registered

    def _register(self, ctx: Context) -> None:
        """Register the roles that are not registered."""
        for member in self.members:
            role = member.name
            if role not in self.state.registered and role not in self._registering:
                self._register_role(ctx, role)

    def _register_role(self, ctx: Context, role: str) -> None:
        """Register a role for its system events. When it is registered, all cores may go on."""
        self._registering = put(self._registering, role, None)
        item = PublicationRegistration(system_namespace(role, ctx.me), ())

        # The type is quoted, here and below, because otherwise each call would build it anew.
        def answered(ctx: Context, results: "Results[int] | None") -> None:
            self._registering = take_out(self._registering, role)
            if methods.is_ok(results):
                self.state.registered = put_shared(self.state.registered, role, None)
                for core in self.role.cores:
                    core.wake(ctx)

        self.role.ask(
            ctx,
            self.orchestrator,
            methods.REGISTER_SUBSCRIPTION,
            (item,),
            answered,
            kind=GUARANTEED,
        )

    def _ask_valid(self, ctx: Context, caller: Principal | None = None) -> None:
        """Ask for the valid broadcasters because of an unknown `caller`, or at the start.

        If a list canister decides, it is asked about the unknown callers. Strangers can call at any
        rate. So only one question is under way, the waits between questions grow while they are not
        answered, and the number of remembered callers is bounded.
        """
        self.state.curious = True
        if caller is not None and len(self.state.unknown) < self.settings.confirmations:
            self.state.unknown = put(self.state.unknown, caller, None)
        if self._waiting or ctx.now < self.state.ask_next:
            return
        self.state.ask_next = ctx.now + min(
            1 << min(self.state.asks, 20), self.settings.publisher_wait
        )
        self.state.asks += 1
        self._waiting = True
        if self.state.valid_list is not None and self.state.unknown:
            self._ask_members(ctx, *self.state.valid_list)
            return

        def answered(ctx: Context, valid: Valid | None) -> None:
            self._waiting = False
            if valid is None:
                return
            self._note_answer(ctx)
            match valid:
                case ("list", broadcasters):
                    self.state.unknown = nothing()
                    self.state.valid = shared({**self.state.valid, **dict.fromkeys(broadcasters)})
                case ("icrc75", valid_list):
                    self.state.valid_list = valid_list
                    self.state.curious = bool(self.state.unknown)

        self.role.ask(ctx, self.orchestrator, methods.GET_VALID, None, answered)

    def _note_answer(self, ctx: Context) -> None:
        """Note that a question about valid broadcasters was answered."""
        self.state.curious = False
        self.state.asks = 0
        self.state.ask_next = ctx.now + 1

    def _ask_members(self, ctx: Context, canister: Principal, name: str) -> None:
        """Ask the list canister which of the unknown callers are valid broadcasters (IC-35e)."""
        callers = tuple(self.state.unknown)

        def answered(ctx: Context, answers: tuple[bool, ...] | None) -> None:
            self._waiting = False
            if answers is None or len(answers) != len(callers):
                return
            self._note_answer(ctx)
            for caller, is_valid in zip(callers, answers, strict=True):
                self.state.unknown = take_out(self.state.unknown, caller)
                if is_valid:
                    self.state.valid = put_shared(self.state.valid, caller, None)

        items = tuple(methods.member(caller, name) for caller in callers)
        self.role.ask(ctx, canister, methods.IS_MEMBER, items, answered)

    def _handle(self, ctx: Context, notifications: tuple[EventNotification, ...]) -> None:
        """Answer `icrc72_handle_notification`.

        A caller that is not known to be a broadcaster is rejected, so that it sends the batch
        again. Confirmations are sent in separate calls.
        """
        self._receive(ctx, notifications)
        if ctx.answered:
            return
        if ctx.caller in self.state.valid or ctx.caller == self.orchestrator:
            methods.HANDLE.reply(ctx, None)
        else:
            ctx.reject("the caller is not known to be a broadcaster")

    def _handle_trusted(self, ctx: Context, notifications: tuple[EventNotification, ...]) -> None:
        """Answer `icrc72_handle_notification_trusted`. Ok confirms the whole batch (IC-46)."""
        count = len(notifications)
        confirmed = self._receive(ctx, notifications)
        if confirmed == count:
            success: Variant[Literal["Ok"], Value] = Variant("Ok", nat(confirmed))
            methods.HANDLE_TRUSTED.reply(ctx, success)
        else:
            failure: Variant[Literal["err"], str] = Variant(
                "err", f"{count - confirmed} of {count} were not taken"
            )
            methods.HANDLE_TRUSTED.reply(ctx, failure)

    def _receive(self, ctx: Context, notifications: tuple[EventNotification, ...]) -> int:
        """Give the notifications of a batch to the roles, and return how many were taken.

        An unknown caller's notifications are not taken. The orchestrator may send system events
        directly even if it is not a broadcaster. System events for a broadcaster are left to that
        role of the canister.
        """
        caller = ctx.caller
        roles = {system_namespace(role, ctx.me): role for role in _ROLES}
        batch = [
            note for note in notifications if not note.namespace.startswith("icrc72:broadcaster:")
        ]
        if caller == self.orchestrator and caller not in self.state.valid:
            system_events = [note for note in batch if note.namespace in roles]
            if len(system_events) < len(batch):
                self._ask_valid(ctx, caller)
            batch = system_events
        elif caller not in self.state.valid:
            self.count("refused_callers")
            self._ask_valid(ctx, caller)
            return 0
        recent = self.state.recent
        outdated = [round_ for round_ in recent if round_ <= ctx.now - 100]
        for round_ in outdated:
            recent = take_out(recent, round_)
        self.state.recent = put_shared(recent, ctx.now, recent.get(ctx.now, 0) + len(batch))
        to_confirm = self.state.confirm.get(caller, nothing())
        confirmed = 0
        for note in batch:
            role = roles.get(note.namespace)
            taken = False
            if role is not None:
                taken = self._alert(ctx, role, note)
            elif self.taker is not None and not is_system(note.namespace):
                taken = self.taker.take(ctx, caller, note)
            if taken:
                to_confirm = put(to_confirm, note.notificationId, None)
                confirmed += 1
        self.state.confirm = put(self.state.confirm, caller, to_confirm)
        if self.taker is not None:
            self.taker.taken(ctx)
        self._confirm(ctx)
        return confirmed

    def _alert(self, ctx: Context, role: str, notification: EventNotification) -> bool:
        """Apply a system event, and return whether it has to be confirmed.

        A malformed one is neither applied nor confirmed. Known events, and events whose source is
        neither the orchestrator nor the caller, are confirmed and ignored. ICRC-77 names the
        publishers' namespace for the replays of subscribers, so these are read there, too.
        """
        key = (notification.namespace, notification.source)
        foreign = notification.source not in {self.orchestrator, ctx.caller}
        if foreign or notification.eventId <= self.state.handled.get(key, 0):
            return True
        try:
            alert = MemberAlert.read(notification.data)
        except ConfigError:
            self.count("unreadable")
            return False
        self.state.handled = put_single(self.state.handled, key, notification.eventId)
        self._tell(ctx, role, alert)
        replays = alert.begun()
        if role == "publisher" and replays is not None:
            self._tell(ctx, "subscriber", replays)
        return True

    def _tell(self, ctx: Context, role: str, alert: MemberAlert) -> None:
        """Have a role apply a system event, if the canister has the role."""
        for member in self.members:
            if member.name == role:
                member.told(ctx, ctx.caller, alert)

    def _confirm(self, ctx: Context) -> None:
        """Confirm notifications by one-way calls, one to each broadcaster in a round."""
        for broadcaster, numbers in list(self.state.confirm.items()):
            if not numbers:
                self.state.confirm = take_out(self.state.confirm, broadcaster)
                continue
            if self.state.confirmed.get(broadcaster, -1) >= ctx.now:
                continue
            self.state.confirmed = put_shared(self.state.confirmed, broadcaster, ctx.now)
            batch = tuple(numbers)[: min(self.settings.confirmations, self.settings.batch_items)]
            left = numbers
            for number in batch:
                left = take_out(left, number)
            self._set_to_confirm(broadcaster, left)
            self.count("confirmations", len(batch))
            self.role.ask(ctx, broadcaster, methods.CONFIRM, batch, kind=ONE_WAY)

    def _set_to_confirm(self, broadcaster: Principal, numbers: Mapping[int, None]) -> None:
        """Set the notifications of a broadcaster that have to be confirmed.

        Almost always there are none and no other broadcaster, in many inboxes at the same time.
        """
        if not numbers and len(self.state.confirm) == 1:
            self.state.confirm = _none_from(broadcaster)
        else:
            self.state.confirm = put(self.state.confirm, broadcaster, numbers)

    def _stats(self, _caller: Principal, time: int) -> Pairs:
        """Answer `icrc72_get_subscriber_stats`."""
        prefix = "icrc72:subscriber:stats:"
        since = time // SECOND - 100
        counts = dict.fromkeys(keys.STATISTICS[prefix], 0) | self.state.counts
        if self.taker is not None:
            counts["subscriptions"] = self.taker.subscribed()
            counts["held"] = self.taker.holding()
        counts["notifications_last_100_rounds"] = sum(
            count for round_, count in self.state.recent.items() if round_ > since
        )
        return tuple((prefix + name, nat(counts[name])) for name in keys.STATISTICS[prefix])


@lru_cache(maxsize=1 << 10)
def _none_from(broadcaster: Principal) -> Mapping[Principal, Mapping[int, None]]:
    """Return the notifications to confirm if there are none and only one broadcaster."""
    return Shared({broadcaster: nothing()})


class _Registrable(Protocol):
    """A publication or subscription that its owner registers."""

    config: Pairs
    id: int | None
    error: str


R = TypeVar("R", bound=_Registrable)
_Method = methods.Method[tuple[PublicationRegistration, ...], Results[int]]
_After = Callable[[Context], None]


class Registering:
    """The registration of a canister's publications or subscriptions."""

    def __init__(self) -> None:
        self.under_way: Mapping[str, None] = nothing()

    def register(
        self,
        ctx: Context,
        inbox: Inbox,
        method: _Method,
        items: Mapping[str, _Registrable],
        after: _After,
    ) -> None:
        """Register the items that have no id, in one guaranteed call of at most a batch.

        Items get their id or an error from the answer, then `after` is called. Items without an
        answer are registered again at the next call of this method.
        """
        lacking = ((name, item) for name, item in items.items() if self.lacks(name, item))
        asked = dict(islice(lacking, inbox.settings.batch_items))
        if not asked:
            return
        self.under_way = put_all(self.under_way, dict.fromkeys(asked))

        def answered(ctx: Context, results: "Results[int] | None") -> None:
            answers = (results or ())[: len(asked)]
            for (name, item), result in zip_longest(asked.items(), answers):
                self.under_way = take_out(self.under_way, name)
                match result:
                    case ("Ok", number):
                        item.id = number
                    case ("Err", error):
                        item.error = methods.words_of(error)
            after(ctx)

        batch = tuple(PublicationRegistration(name, item.config) for name, item in asked.items())
        inbox.role.ask(ctx, inbox.orchestrator, method, batch, answered, kind=GUARANTEED)

    def lacks(self, name: str, item: _Registrable) -> bool:
        """Return whether an item has to be registered and is not being registered."""
        return item.id is None and not item.error and name not in self.under_way


def renew(given: Mapping[str, R], known: dict[str, R]) -> None:
    """Add the items of new code to those that were saved by an upgrade.

    Registered items stay as they are. Items that are new or were refused get their new
    configuration and are registered.
    """
    for name, new in given.items():
        old = known.setdefault(name, new)
        if old.id is None:
            old.config = new.config
            old.error = ""
