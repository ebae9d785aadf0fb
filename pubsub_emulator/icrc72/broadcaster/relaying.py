"""Relaying: events of a chain, or of a replay, go to another broadcaster in order (IC-43d)."""

from dataclasses import dataclass
from typing import Final

from pubsub_emulator.icrc72.broadcaster.delivery import Delivery
from pubsub_emulator.icrc72.broadcaster.state import Forward, Lane, Part
from pubsub_emulator.icrc72.ic.canister import Context
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.messages import Event, Results
from pubsub_emulator.icrc72.methods import PUBLISH
from pubsub_emulator.icrc72.settings import fitting

_HEADERS_BYTES: Final = 200  # most bytes of what a relay adds to an event, without those who are late

_LATE_BYTES: Final = 40  # bytes of a principal in the header of an event that waits for a relay


@dataclass
class Relaying(Part):
    """The lanes of a broadcaster."""

    delivery: Delivery

    def lanes(self) -> list[Lane]:
        """Every lane."""
        lanes = [lane for relay in self.state.relays.values() for lane in relay.lanes.values()]
        return lanes + [each.lane for each in self.state.forwarded.values()]

    def drop(self, lane: Lane) -> None:
        """Give up what waits in a lane."""
        while lane.queue:
            self.delivery.release(lane.queue.popleft().stored)

    def pump(self, ctx: Context) -> None:
        """Send what waits in each lane whose turn it is, one batch of a lane at a time."""
        for (_, target), relay in self.state.relays.items():
            for lane in relay.lanes.values():
                self._pump_lane(ctx, target, lane)
        for forwarded in self.state.forwarded.values():
            self._pump_lane(ctx, forwarded.target, forwarded.lane)

    def _bytes_of(self, forward: Forward) -> int:
        return self.state.events[forward.stored].size + _HEADERS_BYTES + _LATE_BYTES * len(forward.late)

    def _pump_lane(self, ctx: Context, target: Principal, lane: Lane) -> None:
        if lane.busy or not lane.queue or ctx.now < lane.next:
            return
        batch: list[Event] = []
        for forward in fitting(lane.queue, self._bytes_of, self.settings):
            forward.sent = forward.sent or ctx.time
            batch.append(self.delivery.relayed(forward, self.state.events[forward.stored].event))
        lane.busy = True

        def answered(ctx: Context, results: Results[tuple[int, ...]] | None) -> None:
            if not any(each is lane for each in self.lanes()):
                return  # it was given up
            lane.busy = False
            for result in (results or ())[: len(batch)] or (None,):
                if result is None or result.tag != "Ok":
                    break
                self.delivery.release(lane.queue.popleft().stored)
                lane.tries = 0
            else:
                lane.next = ctx.now
                return
            lane.next = ctx.now + min(self.settings.repeat_first << min(lane.tries, 20), self.settings.repeat_most)
            lane.tries += 1

        self.role.ask(ctx, target, PUBLISH, tuple(batch), answered)
