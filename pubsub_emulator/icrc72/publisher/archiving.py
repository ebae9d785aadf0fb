"""Archiving by a publisher: it hands old blocks of its log over to a canister and forgets their data (RP-7c).

The ids, the hashes of the data and all that orders events stay. A block is handed over when everything in it has been
published and the newest `keep` rows follow it, in parts that fit into a call. The archive says how far it is, so a lost
answer costs a call and nothing else.
"""

from dataclasses import dataclass

from pubsub_emulator.icrc72.ic.canister import Context
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.messages import ArchivePart, Event
from pubsub_emulator.icrc72.methods import ARCHIVE_APPEND
from pubsub_emulator.icrc72.publisher.replays import Log
from pubsub_emulator.icrc72.settings import Settings, fitting
from pubsub_emulator.icrc72.values import boolean

_NOTHING = boolean(False)


@dataclass(slots=True)
class Archiving:
    """The way of a log's old blocks into an archive."""

    archive: Principal
    keep: int
    settings: Settings
    publisher: Log
    _busy: bool = False

    def resume(self) -> None:
        """After an upgrade: calls under way have ended."""
        self._busy = False

    def due(self, now: int) -> int | None:
        """The next round in which there is something to do."""
        if self._busy or not self._ready():
            return None
        return max(self.publisher.state.archive_wait, now + 1)

    def wake(self, ctx: Context) -> None:
        """Hand over the next part of the oldest block that is due."""
        state = self.publisher.state
        if self._busy or ctx.now < state.archive_wait or not self._ready():
            return
        block = state.blocks[state.archived]
        parent = state.blocks[state.archived - 1].hash if state.archived else bytes(32)
        offset = state.archived_events
        events = self._part(block.first + offset, block.first + block.count)
        part = ArchivePart(state.archived + 1, block.round, parent, block.hash, offset, block.count, tuple(events))
        self._busy = True

        def got(ctx: Context, place: tuple[int, int] | None) -> None:
            self._busy = False
            if place is None:
                state.archive_wait = ctx.now + self.settings.publisher_wait
                return
            blocks, state.archived_events = place
            while state.archived < min(blocks, len(state.blocks)):
                self._forget(state.archived)
                state.archived += 1

        self.publisher.role.ask(ctx, self.archive, ARCHIVE_APPEND, part, got)

    def _ready(self) -> bool:
        """True when a block is old enough and published."""
        state = self.publisher.state
        if state.archived >= len(state.blocks):
            return False
        block = state.blocks[state.archived]
        end = block.first + block.count
        senders = [sender for mine in state.mine.values() for sender in mine.senders.values()]
        unsent = [sender.events[sender.next] for sender in senders if sender.next < len(sender.events)]
        return end + self.keep <= self.publisher.appended() and end <= min(unsent, default=end)

    def _part(self, first: int, end: int) -> list[Event]:
        rows = self.publisher.state.log[first:end]
        return [row.event for row in fitting(rows, lambda row: row.size, self.settings)]

    def _forget(self, number: int) -> None:
        block = self.publisher.state.blocks[number]
        for row in self.publisher.state.log[block.first : block.first + block.count]:
            row.archived = True
            row.event = row.event._replace(data=_NOTHING, headers=None)
