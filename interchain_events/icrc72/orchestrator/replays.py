"""Replays: requests, states, and recovery from failures (RP-1, RP-5, RP-13).

A subscriber asks for a range of past events. The orchestrator checks the request, takes the price,
and plans a path: the publisher sends its events again to the entry, which forwards them to the
subscriber's exit. Only publishers that advertise ICRC-77 are asked. If there are several, they
replay one after the other: first the creator, then the others in the order in which they joined.
Each sends its events in the order of their ids. The publisher reports its progress; when it is
done, the orchestrator polls the entry until this has handed over everything.

Every replay ends and so frees its slot. It ends with an error if its publisher is silent, if its
entry does not hand over the events, or if a member has no broadcaster for too long.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from interchain_events.icrc72 import keys, methods
from interchain_events.icrc72.config import check_memo, check_size, replay_config
from interchain_events.icrc72.errors import ConfigError
from interchain_events.icrc72.facts import DueFact
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.errors import shown
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.messages import (
    Err,
    Ok,
    ReplayRegistration,
    ReplayStatusUpdate,
    Result,
    StateName,
)
from interchain_events.icrc72.methods import err, forbidden, generic, ok, refused, too_many
from interchain_events.icrc72.namespaces import OWN, is_system, matches
from interchain_events.icrc72.orchestrator.access import Access
from interchain_events.icrc72.orchestrator.escrow import Escrow
from interchain_events.icrc72.orchestrator.planner import Planner
from interchain_events.icrc72.orchestrator.state import Part, Publication, Replay
from interchain_events.icrc72.values import Pairs, as_nat

LIVE: Final = frozenset(["pending", "running"])
"""The states of replays that have not ended."""


@dataclass
class Replays(Part):
    """The part that manages replays."""

    planner: Planner
    access: Access

    def __post_init__(self) -> None:
        self.escrow = Escrow(self.settings, self.role)

    def register(self, ctx: Context, items: tuple[ReplayRegistration, ...]) -> None:
        """Register replays one after the other.

        The price of a replay is taken before the next one is checked, because an accepted replay
        counts against the quotas of the next.
        """
        caller = ctx.caller
        taken = items[: self.settings.batch_items]
        results: list[Result[int]] = []

        def step(ctx: Context) -> None:
            # Continues with the next item. Returns when a payment is under way; `paid` continues.
            ctx.caller = caller
            while len(results) < len(taken):
                outcome = self._checked(ctx, taken[len(results)])
                if not isinstance(outcome, Replay):
                    results.append(outcome)
                elif not outcome.price:
                    results.append(self._accept(ctx, outcome))
                else:
                    self.escrow.pay(ctx, outcome, paid)
                    return
            if len(items) > len(taken):
                results.append(too_many(self.settings.batch_items))
            methods.REGISTER_REPLAY.reply(ctx, tuple(results))

        def paid(ctx: Context, replay: Replay, refusal: Err | None) -> None:
            ctx.caller = caller
            # Access and quotas may have changed before the ledger answered.
            outcome = self._checked(ctx, taken[len(results)]) if refusal is None else refusal
            if isinstance(outcome, Replay):
                results.append(self._accept(ctx, replay))
            else:
                if refusal is None:
                    self._refund(ctx, replay)
                results.append(outcome)
            step(ctx)

        step(ctx)

    def _checked(self, ctx: Context, item: ReplayRegistration) -> Replay | Err:
        """Make the checks of RP-3 in order. Return the replay with its price, or the first error.

        The replay has no id yet.
        """
        who = ctx.caller
        state = self.state
        if is_system(item.namespace):
            return err("Unauthorized")
        publication = state.publications.get(state.by_namespace.get(item.namespace, 0))
        if publication is None:
            return err("PublicationNotFound")
        if not self.access.may(publication, "subscribers", who):
            return forbidden("UnauthorizedSubscriber", item.namespace)
        subscriptions = [
            number
            for pattern, number in state.by_subscriber.get(who, {}).items()
            if matches(pattern, item.namespace)
        ]
        if not subscriptions:
            return err("SubscriptionNotFound")
        start, end = item.range
        default = state.subscriptions[min(subscriptions)].config
        if end is not None and not start < end:
            return refused("ImproperConfig", "the range is empty")
        try:
            check_memo(item.memo)
            check_size(item.config, self.settings)
            filter_, skip = replay_config(item.config, default.filter, default.skip)
        except ConfigError as error:
            return refused("ImproperConfig", str(error))
        publishers = [
            publisher
            for publisher, may in publication.publishers.items()
            if may and publication.replays(publisher)
        ]
        most = min(
            (publication.max_range(publisher, self.settings.max_range) for publisher in publishers),
            default=publication.config.max_range or self.settings.max_range,
        )
        # Each publisher's ids are a block of `OWN` numbers. A range that is open, or extends over
        # several blocks, costs as much as the longest one, and ends when the logs do.
        is_longest = end is None or start // OWN != (end - 1) // OWN
        count = most if end is None or is_longest else end - start
        if end is not None and count > most:
            return refused("RangeTooLarge", f"at most {shown(most)} ids, not {shown(count)}")
        if not publishers:
            return generic(keys.NO_REPLAY)
        if not self._within_quota(ctx, who):
            return generic(keys.QUOTA)
        replay = Replay(
            id=0,
            namespace=item.namespace,
            publication=publication.id,
            publisher=publishers[0],
            subscriber=who,
            start=start,
            end=end,
            filter=filter_,
            skip=skip,
            config=item.config,
            created=ctx.now,
            rest=tuple(publishers[1:]),
        )
        # If the count is `most`, the range may include that many events of every publisher.
        events = count * len(publishers) if count == most else count
        refusal = _set_price(replay, publication, publishers, events)
        return replay if refusal is None else refusal

    def _within_quota(self, ctx: Context, who: Principal) -> bool:
        """Return whether a subscriber may have another replay, and forget old requests."""
        settings = self.settings
        requests = self.state.requests
        oldest = ctx.now - settings.replay_window
        # Subscribers whose last request was longest ago come first, see `_accept`.
        while requests:
            subscriber = next(iter(requests))
            if requests[subscriber][-1] > oldest:
                break
            del requests[subscriber]
        live = [
            replay
            for replay in self.state.replays.values()
            if replay.subscriber == who and replay.state in LIVE
        ]
        recent = [round_ for round_ in requests.get(who, ()) if round_ > oldest]
        return len(live) < settings.live_replays and len(recent) < settings.replay_requests

    def _accept(self, ctx: Context, replay: Replay) -> Ok[int]:
        """Give a checked and paid replay its id, and start it if possible."""
        self.state.last_replay += 1
        replay.id = self.state.last_replay
        replay.settled = replay.payer is None
        replay.heard = ctx.now
        replay.since = ctx.now
        self.state.replays[replay.id] = replay
        oldest = ctx.now - self.settings.replay_window
        # Removed and inserted again, so that the dict is ordered by each subscriber's last request.
        former = self.state.requests.pop(replay.subscriber, ())
        recent = [round_ for round_ in former if round_ > oldest]
        self.state.requests[replay.subscriber] = [*recent, ctx.now]
        self._start_waiting(ctx)
        return ok(replay.id)

    def _refund(self, ctx: Context, replay: Replay) -> None:
        """Pay the whole price back for a replay that was refused after its payment.

        It is recorded as a replay that failed, so that the transfer is repeated until it succeeds.
        """
        self.state.last_replay += 1
        replay.id = self.state.last_replay
        replay.state = "errored"
        replay.text = "refused"
        replay.ended = ctx.now
        replay.exit_kept = False
        replay.settled = True
        replay.owed = [] if replay.payer is None else [(replay.payer, replay.paid)]
        self.state.replays[replay.id] = replay
        self.escrow.transfer(ctx, replay)

    def wake(self, ctx: Context) -> None:
        """Do the due work on each replay: start, poll its entry, end, settle or forget it."""
        self._start_waiting(ctx)
        for replay in list(self.state.replays.values()):
            if replay.state in LIVE:
                self._watch(ctx, replay)
            else:
                self._finish(ctx, replay)

    def due(self, now: int) -> int | None:
        """Return the next round in which a replay needs work."""
        ends: list[int] = []
        for replay in self.state.replays.values():
            if replay.state in LIVE or not replay.settled or replay.owed or replay.exit_kept:
                return now + 1
            if replay.ended is not None:
                ends.append(replay.ended)
        return min(ends) + self.settings.replay_forgotten if ends else None

    def _start_waiting(self, ctx: Context) -> None:
        """Start waiting replays, as many as may run at once for each publication.

        A replay needs an entry of its publisher and an exit of its subscriber.
        """
        live = [replay for replay in self.state.replays.values() if replay.state in LIVE]
        running = Counter(replay.publication for replay in live if replay.path is not None)
        for replay in live:
            publication = self.state.publications.get(replay.publication)
            if replay.path is not None or publication is None:
                continue
            most = publication.config.max_concurrent or self.settings.max_concurrent
            entries = publication.entries.get(replay.publisher, ())
            exit_ = self.state.exits.get(replay.subscriber)
            if running[publication.id] < most and entries and exit_ is not None:
                running[publication.id] += 1
                replay.path = (entries[0], exit_)
                replay.since = ctx.now
                self.planner.plan_replay(replay.id)

    def _watch(self, ctx: Context, replay: Replay) -> None:
        """End a live replay if its publisher or entry fails, or poll the entry (RP-13)."""
        settings = self.settings
        member = self.state.members.get(("publisher", replay.publisher))
        if replay.path is None:
            if self._served(replay):
                # It only waits until another replay of the publication ends.
                replay.since = ctx.now
            elif ctx.now - replay.since > settings.replay_silence:
                self._end(ctx, replay, "errored", text="no broadcaster")
            return
        # A member holds a fact when it was informed about it.
        if replay.alerted is None and member is not None and DueFact(replay.id) in member.holds:
            replay.alerted = ctx.now
            replay.heard = ctx.now
        if replay.done is None:
            # A publisher that cannot be informed about the replay counts as silent, too.
            silent_since = replay.since if replay.alerted is None else replay.heard
            if ctx.now - silent_since > settings.replay_silence:
                self._end(ctx, replay, "errored", text="publisher silent")
        elif ctx.now - replay.since > settings.replay_stalled:
            self._end(ctx, replay, "errored", text="stalled")
        elif ctx.now >= replay.polled_at + settings.replay_poll:
            self._ask_entry(ctx, replay)

    def _served(self, replay: Replay) -> bool:
        """Return whether the publisher has an entry and the subscriber an exit."""
        publication = self.state.publications.get(replay.publication)
        entries = () if publication is None else publication.entries.get(replay.publisher, ())
        return bool(entries) and self.state.exits.get(replay.subscriber) is not None

    def _finish(self, ctx: Context, replay: Replay) -> None:
        """Do the work after the end of a replay.

        The exit is released when the entry has no more events, the payment is settled, and the
        replay is forgotten later. After a cancellation, the settlement waits for some time until
        the publisher reports how many events it sent.
        """
        settings = self.settings
        ended = ctx.now if replay.ended is None else replay.ended
        if replay.exit_kept:
            stalled = ctx.now - ended > settings.replay_stalled
            if stalled or replay.path is None or replay.path[0] == replay.path[1]:
                self._release_exit(replay)
            elif ctx.now >= replay.polled_at + settings.replay_poll:
                self._ask_entry(ctx, replay)
        if not replay.settled:
            waits = replay.state == "canceled" and replay.reported is None
            if not waits or ctx.now - ended > settings.replay_settle:
                self._count_out(ctx, replay, ended)
        self.escrow.transfer(ctx, replay)
        if replay.settled and not replay.owed and ctx.now - ended > settings.replay_forgotten:
            del self.state.replays[replay.id]

    def _release_exit(self, replay: Replay) -> None:
        """Have the exit of a replay that has ended drop its facts."""
        replay.exit_kept = False
        self.planner.plan_replay(replay.id)

    def _ask_entry(self, ctx: Context, replay: Replay) -> None:
        """Ask the entry how many events of a replay it has accepted, and whether any are queued.

        If its queue for the replay is empty, the replay goes on to the next publisher or ends.
        """
        if replay.path is None:
            return
        replay.polled_at = ctx.now
        entry = replay.path[0]
        reports = (replay.done, replay.reported)
        before = _accepted_before(replay, entry)

        def answered(ctx: Context, pairs: Pairs | None) -> None:
            if pairs is None:
                return
            stats = {name: as_nat(value) for name, value in pairs}
            # If the publisher has reported in the meantime, the entry may have accepted more events
            # than this answer counts.
            if reports == (replay.done, replay.reported):
                accepted = stats.get(f"icrc77:replay:{replay.id}:accepted")
                if accepted is None:
                    # Without a count of the entry, the publisher's report is trusted.
                    accepted = before + self._reported(replay)
                replay.accepted = accepted
            if stats.get(f"icrc77:replay:{replay.id}:queued"):
                return
            if replay.state == "running" and replay.done is not None:
                self._part_ended(ctx, replay, replay.done)
            elif replay.state not in LIVE and replay.exit_kept:
                self._release_exit(replay)

        self.role.ask(ctx, entry, methods.GET_BROADCASTER_STATS, None, answered)

    def _part_ended(self, ctx: Context, replay: Replay, done: int) -> None:
        """Go on with the next publisher when one is done, or complete the replay.

        `done` is the number of events that the publisher reported. For the payment, only those
        count that the entry has accepted.
        """
        if not replay.rest:
            self._end(ctx, replay, "completed", done)
            return
        if replay.path is not None:
            entry = replay.path[0]
            accepted = (replay.accepted or 0) - _accepted_before(replay, entry)
            replay.parts.append((replay.publisher, entry, min(done, accepted)))
        replay.publisher, *rest = replay.rest
        replay.rest = tuple(rest)
        replay.path = None
        replay.alerted = None
        replay.done = None
        replay.accepted = None
        replay.since = ctx.now
        self.planner.plan_replay(replay.id)
        self._start_waiting(ctx)

    def _end(
        self, ctx: Context, replay: Replay, state: StateName, count: int = 0, *, text: str = ""
    ) -> None:
        """Put a replay into a final state, with the number of events or the text of an error."""
        replay.state = state
        replay.count = count
        replay.text = text
        replay.ended = ctx.now
        if state == "completed":
            replay.reported = count
            replay.count += sum(part for _, _, part in replay.parts)
            if replay.path is not None:
                replay.exit_kept = False
        self.planner.plan_replay(replay.id)
        self._start_waiting(ctx)

    @staticmethod
    def _reported(replay: Replay) -> int:
        """Return how many events the publisher reported; 0 if it was never asked to replay."""
        return 0 if replay.alerted is None else replay.done or replay.reported or 0

    def _count_out(self, ctx: Context, replay: Replay, ended: int) -> None:
        """Settle the payment by the number of events that were delivered (RP-4).

        The publisher is paid for the events that it reported, but not for more than the entry
        accepted. Settling waits for the entry's answer, unless the entry is dead or has not
        answered for `replay_stalled` rounds.
        """
        count = 0 if replay.state == "errored" else self._reported(replay)
        entry = None if replay.path is None else self.state.brokers.get(replay.path[0])
        waits = ctx.now - ended <= self.settings.replay_stalled
        if count and entry is not None and not entry.dead and waits:
            if replay.accepted is None:
                if ctx.now >= replay.polled_at + self.settings.replay_poll:
                    self._ask_entry(ctx, replay)
                return
            count = min(count, replay.accepted - _accepted_before(replay, entry.id))
        self.escrow.settle(ctx, replay, count)

    def report(self, ctx: Context, item: ReplayStatusUpdate, _silent: object) -> Result[int]:
        """Take a publisher's report on a replay (RP-5).

        A report of the present state only shows that the publisher is alive. After a cancellation,
        the first report of `canceled` states how many events were sent.
        """
        replay = self.state.replays.get(item.replayId)
        if replay is None:
            return err("NotFound")
        if ctx.caller != replay.publisher:
            return err("Unauthorized")
        status = item.status
        if replay.state == "canceled" and status.tag == "canceled" and replay.reported is None:
            replay.reported = status.value
            replay.count = status.value
            # The entry is asked again at once.
            replay.accepted = None
            replay.polled_at = 0
            return ok(replay.id)
        if replay.state == "running" and replay.done is not None:
            # The publisher is done with its part, and the replay waits for the entry.
            reported_before = "completed"
        else:
            reported_before = replay.state
        if status.tag != reported_before:
            match replay.state, status:
                case "pending", ("running", _) if replay.path is not None:
                    replay.state = "running"
                case "running", ("completed", count) if replay.done is None:
                    replay.done = count
                    replay.since = ctx.now
                    replay.polled_at = 0
                case "running", ("errored", text) if replay.done is None:
                    self._end(ctx, replay, "errored", text=text)
                case _:
                    return generic(keys.WRONG_STATE)
        replay.heard = ctx.now
        return ok(replay.id)

    def cancel(self, ctx: Context, number: int, _silent: object) -> Result[int]:
        """Cancel a replay, for its subscriber or a controller of the publication (RP-11)."""
        replay = self.state.replays.get(number)
        if replay is None:
            return err("NotFound")
        publication = self.state.publications.get(replay.publication)
        controllers = () if publication is None else publication.config.controllers
        if ctx.caller != replay.subscriber and ctx.caller not in controllers:
            return err("Unauthorized")
        if replay.state not in LIVE:
            return refused("CannotCancel", replay.state)
        self._end(ctx, replay, "canceled")
        return ok(number)

    def broadcaster_died(self, broadcaster: Principal) -> None:
        """End the replays whose path contains a dead broadcaster with an error (RP-13)."""
        for replay in self.state.replays.values():
            if replay.path is None or broadcaster not in replay.path:
                continue
            if replay.state in LIVE:
                replay.state = "errored"
                replay.text = "broadcaster died"
                replay.ended = self.state.last_wake
                self._release_exit(replay)
            elif replay.exit_kept:
                self._release_exit(replay)

    def cancel_of(
        self,
        publication: int,
        *,
        subscriber: Principal | None = None,
        publisher: Principal | None = None,
    ) -> None:
        """Cancel replays of a publication: all, or those of one subscriber or one publisher.

        Called when the publication is deleted or the member loses access.
        """
        for replay in self.state.replays.values():
            if replay.publication != publication or replay.state not in LIVE:
                continue
            same_subscriber = subscriber is None or subscriber == replay.subscriber
            same_publisher = publisher is None or publisher == replay.publisher
            if same_subscriber and same_publisher:
                replay.state = "canceled"
                replay.count = 0
                replay.ended = self.state.last_wake
                self.planner.plan_replay(replay.id)


def _set_price(
    replay: Replay, publication: Publication, publishers: list[Principal], events: int
) -> Err | None:
    """Set the price of a replay of `events` events to that of its dearest publisher.

    Returns an error if the publishers do not charge in the same currency.
    """
    prices = {publisher: publication.price(publisher) for publisher in publishers}
    replay.price = max(amount for amount, _ in prices.values())
    if not replay.price:
        return None
    ledgers = {ledger for amount, ledger in prices.values() if amount}
    if len(ledgers) > 1:
        return refused("ImproperConfig", "the publishers' prices are in several currencies")
    (replay.ledger,) = ledgers
    replay.prices = {
        publisher: amount for publisher, (amount, _) in prices.items() if amount != replay.price
    }
    replay.payer = replay.subscriber
    replay.paid = replay.price * events
    return None


def _accepted_before(replay: Replay, entry: Principal) -> int:
    """Return how many events an entry accepted from publishers that are done with their parts.

    The entry counts all events of a replay together, whichever publisher sent them.
    """
    return sum(count for _, broker, count in replay.parts if broker == entry)
