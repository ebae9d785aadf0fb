"""The core of a subscriber: order, gaps and the handler (IC-49).

Events of a chain are handled in order. An event whose predecessor was not handled is held back. If
the predecessor does not arrive for 64 rounds (`Settings.gap_wait`), the event is handled without
it. The missing events are then a gap, for which `Repairs` asks for a replay. Replayed events are
handled when they arrive, so they are out of order.

The handler runs in a call of the canister to itself, one for each event. If it traps, only the
effects of this call are undone, and not the bookkeeping of the subscriber.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

from interchain_events.icrc72 import keys
from interchain_events.icrc72.alerts import MemberAlert
from interchain_events.icrc72.facts import BegunFact, ExitFact
from interchain_events.icrc72.filters import parse
from interchain_events.icrc72.headers import Headers, read
from interchain_events.icrc72.ic.canister import STOPPING, Answer, Context
from interchain_events.icrc72.ic.errors import Trap
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.inbox import Inbox, Registering, renew
from interchain_events.icrc72.memory import newest, nothing, put, put_single, take_out
from interchain_events.icrc72.messages import EventNotification
from interchain_events.icrc72.methods import REGISTER_SUBSCRIPTION
from interchain_events.icrc72.role import Core, Private, restored
from interchain_events.icrc72.subscriber.repairs import Repairs
from interchain_events.icrc72.subscriber.state import (
    Followed,
    Gap,
    HeldBack,
    SubscriberState,
    Wanted,
)
from interchain_events.icrc72.values import Pairs

RUN: Final = "handle_event"
"""The method by which a subscriber calls itself."""


class _Handler(Protocol):
    """The author's code and state.

    `keep_data` returns a copy of the state with which `restore_data` undoes a `handle` that
    trapped.
    """

    def handle(self, ctx: Context, event: EventNotification) -> None: ...
    def keep_data(self) -> object: ...
    def restore_data(self, before: object) -> None: ...


class Subscriber(Core):
    """The role of a subscriber."""

    name = "subscriber"
    state: SubscriberState

    def __init__(self, inbox: Inbox, handler: _Handler, subscriptions: Mapping[str, Pairs]) -> None:
        self.state = SubscriberState(
            {name: Wanted(name, tuple(config)) for name, config in subscriptions.items()}
        )
        self.inbox = inbox
        self.handler = handler
        self.orchestrator = inbox.orchestrator
        self.settings = inbox.settings
        self.repairs = Repairs(self.orchestrator, self.settings, self)
        inbox.members = (*inbox.members, self)
        inbox.taker = self
        self._asking = Registering()

    def private(self) -> Mapping[str, Private]:
        """Return the method that runs the handler."""
        return {RUN: self.run}

    def resume(self, state: object) -> None:
        """Continue with a saved state.

        Events that wait for the handler are handed over again. Subscriptions that only the new code
        has are registered.
        """
        new_wanted = self.state.wanted
        self.state = restored(state, SubscriberState)
        renew(new_wanted, self.state.wanted)
        self._asking.under_way = nothing()
        self.state.called = nothing()
        self.repairs.resume()

    def wake(self, ctx: Context) -> None:
        """Do the due work: register, find gaps, run the handler, and ask for replays."""
        if self.inbox.ready("subscriber"):
            self._asking.register(
                ctx, self.inbox, REGISTER_SUBSCRIPTION, self.state.wanted, lambda _ctx: None
            )
        self._notice(ctx)
        self._hand_over(ctx)
        self.repairs.wake(ctx)

    def due(self, now: int) -> int | None:
        """Return the next round for the handler, repairs, registrations or missing events."""
        state = self.state
        if len(state.waiting) > len(state.called):
            return now + 1
        rounds: list[int] = []
        repair = self.repairs.due(now)
        if repair is not None:
            rounds.append(repair)
        if self.inbox.ready("subscriber"):
            for pattern, wanted in state.wanted.items():
                if self._asking.lacks(pattern, wanted):
                    rounds.append(now + 5)
        for chain in state.chains.values():
            rounds += [
                held_back.since + self.settings.gap_wait for held_back in chain.held.values()
            ]
            if chain.late is not None:
                _, late_round = chain.late
                rounds.append(late_round + self.settings.gap_wait)
        return min(rounds) if rounds else None

    def subscribe(self, ctx: Context, pattern: str, config: Pairs = ()) -> None:
        """Add a subscription and register it. Raises `FilterError` if its filter is malformed."""
        for key, value in config:
            if keys.canonical(key) == keys.FILTER and value.tag == "Text":
                parse(value.value)
        if pattern not in self.state.wanted:
            self.state.wanted[pattern] = Wanted(pattern, config)
            self.wake(ctx)

    def take(self, ctx: Context, caller: Principal, notification: EventNotification) -> bool:
        """Take a notification of an event, and return whether it has to be confirmed.

        It is confirmed if the event was already known, is held back, or will be handled. If too
        many events are held back, it is not, so that the broadcaster repeats it.
        """
        state = self.state
        self.inbox.count("notifications")
        if state.exit is None:
            state.met = caller
        headers = read(notification.headers)
        chain = self._chain(notification, headers)
        identifier = notification.eventId
        if headers.replay is not None:
            return self._take_replayed(ctx, notification, chain, headers.replay)
        if identifier in chain.handled or identifier in chain.held:
            self.inbox.count("duplicates")
            return True
        if self._in_order(notification, headers.prev, chain):
            self._handle(notification, chain)
            self._note_if_late(ctx, chain, identifier)
            return True
        if self._held_back() >= self.settings.held:
            return False
        chain.held = put(chain.held, identifier, HeldBack(notification, ctx.now))
        return True

    def taken(self, ctx: Context) -> None:
        """Handle events that were held back and are now in order. Called after each batch."""
        for chain in self.state.chains.values():
            self._drain(chain)
        self._hand_over(ctx)

    def subscribed(self) -> int:
        """Return the number of registered subscriptions."""
        return sum(1 for wanted in self.state.wanted.values() if wanted.id is not None)

    def holding(self) -> int:
        """Return how many events wait, for events before them or for the handler."""
        return len(self.state.waiting) + self._held_back()

    def _held_back(self) -> int:
        """Return how many events are held back, in all chains."""
        return sum(len(chain.held) for chain in self.state.chains.values())

    def _take_replayed(
        self, ctx: Context, notification: EventNotification, chain: Followed, replay: int
    ) -> bool:
        """Take a replayed event, which is handled at once even if events before it are missing.

        Events of a replay that this subscriber never asked for are confirmed and dropped. Its own
        replay may begin before the orchestrator has answered with its id. So if it has ever asked
        for a replay, every announced one counts as its own.
        """
        state = self.state
        if replay not in state.own and not (state.ever_asked and replay in state.announced):
            self.inbox.count("unasked")
            return True
        state.replayed = put(state.replayed, replay, state.replayed.get(replay, 0) + 1)
        current = state.current
        # `None` stands for the current replay's id before the orchestrator has answered.
        if current is not None and current.id in {None, replay}:
            current.top = max(current.top, notification.eventId)
            current.sign = ctx.now
        if notification.eventId in chain.handled:
            self.inbox.count("duplicates")
        else:
            self._handle(notification, chain)
        return True

    def _chain(self, notification: EventNotification, headers: Headers) -> Followed:
        """Return the chain of an event, which is made when it is first needed."""
        parts = headers.partition or ()
        partition = (parts[0] or 0) if len(parts) == 2 else 0
        key = (notification.namespace, notification.source, partition)
        if key not in self.state.chains:
            self.state.chains[key] = Followed(moved=self.state.moved)
        return self.state.chains[key]

    def _in_order(
        self, notification: EventNotification, former: int | None, chain: Followed
    ) -> bool:
        """Return whether an event may be handled now.

        Its predecessor must have been handled, except for the first event of a chain. With a filter
        or skip, the publisher's predecessor may have been left out. It is then enough that the
        event before it in the broadcaster's chain to this subscriber (`former`) was handled.
        """
        prev = notification.prevEventId
        if prev is None or prev in chain.handled:
            return True
        if not chain.handled:
            return not chain.moved
        if former is None or former not in chain.handled:
            return False
        return not self.state.plain(notification.namespace)

    def _handle(self, notification: EventNotification, chain: Followed) -> None:
        """Count an event as handled, and queue it for the handler."""
        state = self.state
        chain.held = take_out(chain.held, notification.eventId)
        chain.handled.add(notification.eventId, notification.prevEventId, self.settings.ranges)
        state.last += 1
        state.waiting = put(state.waiting, state.last, notification)

    def _note_if_late(self, ctx: Context, chain: Followed, identifier: int) -> None:
        """Note an event that was handled after later ones, because events between may be missing.

        `_notice` looks for these later.
        """
        if chain.handled.above(identifier) is not None:
            chain.late = (identifier, ctx.now)

    def _drain(self, chain: Followed) -> None:
        """Handle the events that a chain holds back and that are now in order.

        An event may bring another one into order, so all are checked again after each success.
        """
        changed = bool(chain.held)
        while changed:
            changed = False
            for identifier in sorted(chain.held):
                notification = chain.held[identifier].notification
                if identifier in chain.handled:
                    chain.held = take_out(chain.held, identifier)
                    changed = True
                elif self._in_order(notification, read(notification.headers).prev, chain):
                    self._handle(notification, chain)
                    changed = True

    def _notice(self, ctx: Context) -> None:
        """Record gaps for events that have been missing for `gap_wait` rounds (IC-49e).

        Events may be missing after an event that came late, or before one that is held back. The
        latter is then handled without them.
        """
        gap_wait = self.settings.gap_wait
        for (namespace, source, _), chain in self.state.chains.items():
            self._drain(chain)
            if chain.late is not None:
                identifier, late_round = chain.late
                if ctx.now - late_round >= gap_wait:
                    chain.late = None
                    high = chain.handled.above(identifier)
                    low = None if high is None else chain.handled.below(high)
                    if low is not None:
                        self._gap(Gap(namespace, source, low, high, low + 1))
            while chain.held:
                due = [
                    identifier
                    for identifier, held_back in chain.held.items()
                    if ctx.now - held_back.since >= gap_wait
                ]
                if not due:
                    break
                identifier = min(due)
                low = chain.handled.below(identifier)
                start = low + 1 if low is not None else max(identifier - self.settings.max_range, 0)
                self._gap(Gap(namespace, source, low, identifier, start))
                self._handle(chain.held[identifier].notification, chain)
                self._note_if_late(ctx, chain, identifier)
                self._drain(chain)

    def _gap(self, gap: Gap) -> None:
        """Record a gap once for each replay configuration with which to ask for its events.

        Gaps beyond `settings.gaps` are only counted.
        """
        self.inbox.count("gaps")
        for config in self.state.asks_for(gap.namespace):
            if len(self.state.gaps) < self.settings.gaps:
                self.state.gaps.append(replace(gap, config=config))

    def _hand_over(self, ctx: Context) -> None:
        """Call the canister itself for each event that waits for the handler, in order (IC-49g)."""
        for number in self.state.waiting:
            if number not in self.state.called:
                if len(self.state.called) >= self.settings.confirmations:
                    break
                self.state.called = put(self.state.called, number, None)
                answered = partial(self._answered, number=number)
                ctx.call(ctx.me, RUN, number.to_bytes(8, "big"), answered)

    def run(self, ctx: Context, arg: bytes) -> None:
        """Run the handler for an event, in the call of the canister to itself.

        The argument is the event's number in `waiting`. If an event before it has not been handled,
        this does nothing and the event is handed over again. Raises `Trap` if the handler does.
        """
        state = self.state
        number = int.from_bytes(arg, "big")
        notification = state.waiting.get(number)
        due = next((waiting for waiting in state.waiting if waiting not in state.run), None)
        if notification is None or number != due:
            ctx.reply(b"\0")
            return
        before = self.handler.keep_data()
        try:
            self.handler.handle(ctx, notification)
        except Trap:
            self.handler.restore_data(before)
            raise
        state.run = put(state.run, number, None)
        ctx.reply(b"\1")

    def _answered(self, ctx: Context, answer: Answer, number: int) -> None:
        """Forget an event that was handled or for which the handler trapped, and go on.

        A call that was rejected because the canister is stopping will be repeated.
        """
        state = self.state
        state.called = take_out(state.called, number)
        done = number in state.run
        if not done and not answer.ok and answer.message != STOPPING:
            self.inbox.count("handler_failures")
            done = True
        if done:
            state.run = take_out(state.run, number)
            state.waiting = take_out(state.waiting, number)
        # A stopping canister must not call itself again. After the next start, its timer does.
        if answer.message != STOPPING:
            self._hand_over(ctx)
        self.role.rearm(ctx)

    def told(self, ctx: Context, _caller: Principal, alert: MemberAlert) -> None:
        """Apply a system event: exits, errors, and replays that begin or end."""
        state = self.state
        self._apply_exits(alert)
        for fact in alert.removes:
            if isinstance(fact, BegunFact):
                state.over = put(state.over, fact.replay, None)
                if state.current is not None and state.current.id == fact.replay:
                    state.current.over = True
        for fact in alert.adds:
            if isinstance(fact, BegunFact):
                state.announced = put(state.announced, fact.replay, None)
        for error in alert.errors:
            state.errors.append(error)
            if error.code == keys.SUSPENDED and error.missed is not None:
                self._suspended(error.id, error.namespace, error.missed)
        del state.errors[:-100]
        state.announced = newest(state.announced, self.settings.gaps)
        state.over = newest(state.over, self.settings.gaps)
        self.wake(ctx)

    def _apply_exits(self, alert: MemberAlert) -> None:
        """Note the exits that serve the subscriptions, by a system event.

        The exit has changed or restarted if another one is named, if the same one is named again
        for a subscription, or if no subscription was served before. Events may have been lost then.
        """
        state = self.state
        for fact in alert.removes:
            if isinstance(fact, ExitFact):
                state.served = take_out(state.served, fact)
        exits = [fact for fact in alert.adds if isinstance(fact, ExitFact)]
        restarted = not state.served or any(
            fact in state.served or fact.broadcaster != state.exit for fact in exits
        )
        for new in exits:
            for fact in list(state.served):
                if fact.broadcaster != new.broadcaster:
                    state.served = take_out(state.served, fact)
            state.served = put_single(state.served, new, None)
        if not exits:
            return
        exit_ = exits[-1].broadcaster
        # The first exit that is named may differ from the one that has served before.
        moved_before = state.exit is None and state.met not in {None, exit_}
        if moved_before or (state.exit is not None and restarted):
            self._after_move()
        state.exit = exit_

    def _after_move(self) -> None:
        """Record open gaps at the ends of all chains after the exit has changed.

        Events lost there would otherwise be noticed only with the next event, which may never come.
        """
        self.state.moved = True
        for key, chain in self.state.chains.items():
            chain.moved = True
            highest = chain.handled.highest()
            if highest is not None:
                self._gap(Gap(key[0], key[1], highest, None, highest + 1))

    def _suspended(self, subscription: int, namespace: str, missed: int) -> None:
        """Have a suspended subscription resumed, and record the gap from its first missed event.

        The system event does not name the source of the missed event. It is taken from the chain
        with the highest handled event before it.
        """
        self.state.resuming = put(self.state.resuming, subscription, None)
        low: int | None = None
        source: Principal | None = None
        for (chain_namespace, chain_source, _), chain in self.state.chains.items():
            if chain_namespace != namespace:
                continue
            below = chain.handled.below(missed)
            if below is not None and (low is None or below > low):
                low = below
                source = chain_source
        self._gap(Gap(namespace, source, low, None, missed if low is None else low + 1))
