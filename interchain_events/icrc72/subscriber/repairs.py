"""Repair of gaps by a subscriber (IC-45f, RP-10).

The subscriber first resumes suspended subscriptions, so that no more events are lost. Then it asks
for replays of its gaps, one after the other, and checks whether each replay has closed its gap.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from interchain_events.icrc72 import keys
from interchain_events.icrc72 import messages as m
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import GUARANTEED, Context
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.memory import newest, nothing, put, take_out
from interchain_events.icrc72.methods import GET_REPLAYS, REGISTER_REPLAY, UPDATE_SUBSCRIPTION
from interchain_events.icrc72.role import RoleCanister, earliest
from interchain_events.icrc72.settings import Settings
from interchain_events.icrc72.subscriber.state import Gap, GapReplay, SubscriberState
from interchain_events.icrc72.values import boolean


class _Follower(Protocol):
    """The part of a subscriber that the repair uses."""

    state: SubscriberState
    role: RoleCanister


@dataclass
class Repairs:
    """The repair of a subscriber's gaps."""

    orchestrator: Principal
    settings: Settings
    subscriber: _Follower
    _asking: Mapping[str, None] = field(default_factory=nothing)
    """The calls under way by name."""

    def resume(self) -> None:
        """Continue after an upgrade, before which calls under way have ended.

        A replay without an answer of the orchestrator is given up. Its gap stays and is asked for
        again.
        """
        state = self.subscriber.state
        self._asking = nothing()
        state.resuming = nothing()
        if state.current is not None:
            state.current.asking = False
            if state.current.id is None:
                state.current = None

    def due(self, now: int) -> int | None:
        """Return the next round in which there is work to do."""
        state = self.subscriber.state
        current = state.current
        if current is None and not state.gaps and not state.resuming:
            return None
        next_watch: int | None = None
        if current is not None and current.id is not None:
            next_watch = current.check if current.over else current.sign + self.settings.replay_sign
        asks = current is None and state.gaps and not state.resuming
        resumes = any(f"resume {number}" not in self._asking for number in state.resuming)
        if asks or resumes:
            return earliest((next_watch, state.wait), now)
        return next_watch

    def wake(self, ctx: Context) -> None:
        """Resume subscriptions, check the current replay, or ask for the next one."""
        state = self.subscriber.state
        for number in list(state.resuming):
            if f"resume {number}" not in self._asking and ctx.now >= state.wait:
                self._resume(ctx, number)
        current = state.current
        if current is not None:
            self._watch(ctx, current)
        elif state.gaps and not state.resuming and ctx.now >= state.wait:
            self._ask(ctx)

    def _resume(self, ctx: Context, number: int) -> None:
        """End the suspension of a subscription, by setting `stopped` to false (IC-45f)."""
        name = f"resume {number}"
        self._asking = put(self._asking, name, None)

        def answered(ctx: Context, results: m.Results[bool] | None) -> None:
            state = self.subscriber.state
            self._asking = take_out(self._asking, name)
            if results is not None:
                state.resuming = take_out(state.resuming, number)
            state.wait = ctx.now + 5

        subscription: Variant[Literal["id"], int] = Variant("id", number)
        update = m.SubscriptionUpdate(subscription, (keys.STOPPED, boolean(False)))
        self.subscriber.role.ask(
            ctx, self.orchestrator, UPDATE_SUBSCRIPTION, (update,), answered, kind=GUARANTEED
        )

    def _closed(self, gap: Gap) -> bool:
        """Return whether a gap is known to be closed.

        It is closed if handled events lead from its low to its high end, each naming the one before
        it as its predecessor. With a filter or skip, or for an open gap, this cannot be known.
        """
        state = self.subscriber.state
        if gap.low is None or gap.high is None or not state.plain(gap.namespace):
            return False
        origin = (gap.namespace, gap.source)
        for key, chain in state.chains.items():
            if key[:2] == origin and chain.handled.joins(gap.low, gap.high):
                return True
        return False

    def _ask(self, ctx: Context) -> None:
        """Ask for a replay of the first gap, or drop it if it is closed.

        If the gap is larger than the largest range of a replay, the replay is asked for without an
        end. The publisher then replays as many events as it may, and `_ended` has the rest asked
        for.
        """
        state = self.subscriber.state
        gap = state.gaps[0]
        if self._closed(gap) or (gap.high is not None and gap.start >= gap.high):
            state.gaps.pop(0)
            self.wake(ctx)
            return
        narrow = (
            gap.high is not None
            and gap.high - gap.start <= self.settings.max_range
            and not gap.wide
        )
        end = gap.high if narrow else None
        current = GapReplay(gap=gap, start=gap.start, end=end, top=gap.start - 1, sign=ctx.now)
        state.current = current
        state.ever_asked = True

        def answered(ctx: Context, results: m.Results[int] | None) -> None:
            # After an upgrade, or if another replay was begun, the answer comes too late.
            if state is not self.subscriber.state or state.current is not current:
                return
            result = results[0] if results else None
            if result is not None and result.tag == "Ok":
                self._begun(ctx, current, result.value)
            else:
                state.current = None
                self._refused(ctx, gap, None if result is None else result.value)

        item = m.ReplayRegistration(gap.namespace, (gap.start, end), gap.config)
        self.subscriber.role.ask(
            ctx,
            self.orchestrator,
            REGISTER_REPLAY,
            (item,),
            answered,
            kind=GUARANTEED,
            cycles=min(self.settings.replay_cycles, ctx.balance),
        )

    def _begun(self, ctx: Context, current: GapReplay, number: int) -> None:
        """Note the id of a replay that the orchestrator has accepted."""
        state = self.subscriber.state
        current.id = number
        current.sign = ctx.now
        # Only one replay is under way at a time, so old ones may be forgotten.
        state.own = newest(put(state.own, number, None), self.settings.gaps)
        # Its end may have been reported before the orchestrator's answer arrived.
        current.over = number in state.over

    def _refused(self, ctx: Context, gap: Gap, error: m.Error | None) -> None:
        """Ask again later for a replay that was refused, or drop the gap after enough attempts.

        `error` is `None` if the orchestrator did not answer.
        """
        state = self.subscriber.state
        if error is not None and error.tag == "RangeTooLarge" and not gap.wide:
            # The publication allows a smaller range than the default.
            gap.wide = True
            return
        state.wait = ctx.now + 20
        # A full quota is temporary, so like a missing answer it is not a failed attempt.
        if error is not None and not _is_quota(error):
            gap.tries += 1
        if gap.tries >= self.settings.replay_tries and gap in state.gaps:
            state.gaps.remove(gap)

    def _watch(self, ctx: Context, current: GapReplay) -> None:
        """Ask for the state of the current replay if it is over or was silent for too long.

        All of its events have been delivered only if its state is `completed` and a system event
        has reported its end.
        """
        if current.id is None or current.asking:
            return
        silent = ctx.now - current.sign >= self.settings.replay_sign
        if not silent and not (current.over and ctx.now >= current.check):
            return
        current.asking = True
        current.check = ctx.now + 20
        # A page begins after `prev`, so this page has exactly the one replay.
        page = m.ByNat(current.id - 1, 1, m.OrchestrationFilter(m.NO_STATISTICS, ()))

        def answered(ctx: Context, replays: tuple[m.ReplayStatus | None, ...] | None) -> None:
            current.asking = False
            if replays is None or self.subscriber.state.current is not current:
                return
            if silent:
                current.sign = ctx.now
            state = "forgotten"
            for status in replays:
                if status is not None and status.replayId == current.id:
                    state = status.status.tag
                    break
            if state in {"pending", "running"}:
                return
            if state == "completed" and current.over:
                self._ended(current)
            else:
                self._again(current)

        self.subscriber.role.ask(ctx, self.orchestrator, GET_REPLAYS, page, answered)

    def _again(self, current: GapReplay) -> None:
        """Give up a replay that failed, or whose end was not reported.

        Its gap is asked for again, up to `replay_tries` times (RP-10d).
        """
        state = self.subscriber.state
        gap = current.gap
        state.current = None
        gap.tries += 1
        if gap.tries > self.settings.replay_tries and gap in state.gaps:
            state.gaps.remove(gap)

    def _ended(self, current: GapReplay) -> None:
        """Drop the gap of a replay that is completed, or continue with the rest of the gap.

        If the range was open and events arrived, but not up to the end of the gap, the next replay
        begins after the last of them. If it is known that events are still missing, the gap is
        tried again.
        """
        state = self.subscriber.state
        gap = current.gap
        state.current = None
        delivered = current.top >= current.start
        reached_end = gap.high is not None and current.top >= gap.high - 1
        if current.end is None and delivered and not reached_end:
            gap.start = current.top + 1
            gap.tries = 0
            return
        gap.tries += 1
        has_ends = gap.high is not None and gap.low is not None
        can_be_known = has_ends and state.plain(gap.namespace)
        finished = not can_be_known or self._closed(gap) or gap.tries > self.settings.replay_tries
        if finished and gap in state.gaps:
            state.gaps.remove(gap)


def _is_quota(error: m.Error) -> bool:
    """Return whether a replay was refused because too many are under way or were asked for."""
    return error.tag == "GenericError" and error.value.error_code == keys.QUOTA
