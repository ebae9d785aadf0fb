"""Repair of gaps by a subscriber (IC-45f, RP-10).

The subscriber first resumes suspended subscriptions, so that no more events are lost. Then it asks
for replays of its gaps, one after the other, and checks whether each closed its gap.
"""

from dataclasses import dataclass, field
from typing import Literal, Protocol

from interchain_events.icrc72 import keys
from interchain_events.icrc72 import messages as m
from interchain_events.icrc72.ic.candid.types import Variant
from interchain_events.icrc72.ic.canister import GUARANTEED, Context
from interchain_events.icrc72.ic.principal import Principal
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
    _asking: dict[str, None] = field(default_factory=dict)
    """The calls under way by name."""

    def resume(self) -> None:
        """Continue after an upgrade, before which calls under way have ended.

        A replay whose id is unknown is given up. Its gap stays and is asked for again.
        """
        state = self.subscriber.state
        self._asking.clear()
        state.resuming.clear()
        if state.current is not None:
            state.current.asking = False
            if state.current.id is None:
                state.current = None

    def due(self, now: int) -> int | None:
        """Return the next round in which there is work to do."""
        state, current = self.subscriber.state, self.subscriber.state.current
        watched: int | None = None
        if current is not None and current.id is not None:
            watched = current.check if current.over else current.sign + self.settings.replay_sign
        asks = current is None and state.gaps and not state.resuming
        if asks or any(f"resume {number}" not in self._asking for number in state.resuming):
            return earliest((watched, state.wait), now)
        return watched

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
        self._asking[name] = None

        def got(ctx: Context, results: m.Results[bool] | None) -> None:
            self._asking.pop(name, None)
            if results is not None:
                self.subscriber.state.resuming.pop(number, None)
            self.subscriber.state.wait = ctx.now + 5

        which: Variant[Literal["id"], int] = Variant("id", number)
        update = m.SubscriptionUpdate(which, (keys.STOPPED, boolean(False)))
        self.subscriber.role.ask(
            ctx, self.orchestrator, UPDATE_SUBSCRIPTION, (update,), got, kind=GUARANTEED
        )

    def _closed(self, gap: Gap) -> bool:
        """Return whether the events around a gap are now joined by predecessors.

        With a filter or skip, or for an open gap, this cannot be known.
        """
        state, whose = self.subscriber.state, (gap.namespace, gap.source)
        if gap.low is None or gap.high is None or not state.plain(gap.namespace):
            return False
        mine = [chain.handled for key, chain in state.chains.items() if key[:2] == whose]
        return any(each.joins(gap.low, gap.high) for each in mine)

    def _ask(self, ctx: Context) -> None:
        """Ask for a replay of the first gap, or drop it if it is closed.

        A range that is too large is left open at its end: the publisher then replays as many events
        as it may, and the rest is asked for afterwards (`_ended`).
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
        current = state.current = GapReplay(gap, gap.start, end, gap.start - 1, ctx.now)
        state.ever_asked = True

        def got(ctx: Context, results: m.Results[int] | None) -> None:
            # An upgrade, or another replay, has come between the call and its answer.
            if state is not self.subscriber.state or state.current is not current:
                return
            result = results[0] if results else None
            if result is not None and result.tag == "Ok":
                current.id = result.value
                current.sign = ctx.now
                state.own[result.value] = None
                # Only one replay is under way at a time, so old ones may be forgotten.
                if len(state.own) > self.settings.gaps:
                    del state.own[next(iter(state.own))]
                # Its end may have been reported before this answer arrived.
                current.over = result.value in state.over
                return
            state.current = None
            # The publication allows a smaller range than the default.
            if result is not None and result.value.tag == "RangeTooLarge" and not gap.wide:
                gap.wide = True
                return
            state.wait = ctx.now + 20
            error = None if result is None else result.value
            quota = (
                error is not None
                and error.tag == "GenericError"
                and error.value.error_code == keys.QUOTA
            )
            # A quota is only temporary, so it does not count as a failed attempt.
            gap.tries += error is not None and not quota
            if gap.tries >= self.settings.replay_tries and gap in state.gaps:
                state.gaps.remove(gap)

        item = m.ReplayRegistration(gap.namespace, (gap.start, end), gap.config)
        cycles = min(self.settings.replay_cycles, ctx.balance)
        role = self.subscriber.role
        role.ask(
            ctx, self.orchestrator, REGISTER_REPLAY, (item,), got, kind=GUARANTEED, cycles=cycles
        )

    def _watch(self, ctx: Context, current: GapReplay) -> None:
        """Ask for the state of the current replay if it is over or was silent for too long.

        Both the system event about its end and the final state are needed: only then have all of
        its events been delivered.
        """
        if current.id is None or current.asking:
            return
        quiet = ctx.now - current.sign >= self.settings.replay_sign
        if not quiet and not (current.over and ctx.now >= current.check):
            return
        current.asking = True
        current.check = ctx.now + 20
        page = m.ByNat(current.id - 1, 1, m.OrchestrationFilter(m.NO_STATISTICS, ()))

        def got(ctx: Context, replays: tuple[m.ReplayStatus | None, ...] | None) -> None:
            current.asking = False
            if replays is None or self.subscriber.state.current is not current:
                return
            current.sign = ctx.now if quiet else current.sign
            found = [each for each in replays if each is not None and each.replayId == current.id]
            tag = found[0].status.tag if found else "forgotten"
            if tag in {"pending", "running"}:
                return
            if tag == "completed" and current.over:
                self._ended(current)
            else:
                self._again(current)

        self.subscriber.role.ask(ctx, self.orchestrator, GET_REPLAYS, page, got)

    def _again(self, current: GapReplay) -> None:
        """Give up a replay that failed or whose end was lost.

        Its gap is asked for again, up to `replay_tries` times (RP-10d).
        """
        state, gap = self.subscriber.state, current.gap
        state.current = None
        gap.tries += 1
        if gap.tries > self.settings.replay_tries and gap in state.gaps:
            state.gaps.remove(gap)

    def _ended(self, current: GapReplay) -> None:
        """Drop the gap of a replay that is completed, or continue with the rest of it.

        If the range was open and events came, but not up to the end of the gap, the next replay
        begins after the last one. A gap of which it is known that events are still missing is tried
        again.
        """
        state, gap = self.subscriber.state, current.gap
        state.current = None
        came = current.top >= current.start
        if current.end is None and came and (gap.high is None or current.top < gap.high - 1):
            gap.start, gap.tries = current.top + 1, 0
            return
        gap.tries += 1
        plain = (
            self.subscriber.state.plain(gap.namespace)
            and gap.high is not None
            and gap.low is not None
        )
        if (
            not plain or self._closed(gap) or gap.tries > self.settings.replay_tries
        ) and gap in state.gaps:
            state.gaps.remove(gap)
