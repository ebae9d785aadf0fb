"""The core of a publisher: its log, and publishing (IC-39, IC-48).

An event is first added to the log. At the end of a round, all its events form a block of the log,
and only events in blocks are published. Events of each publication and partition go to their entry
in order, with one batch under way.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from itertools import chain as chained
from itertools import groupby
from typing import Final

from interchain_events.icrc72 import keys
from interchain_events.icrc72 import messages as m
from interchain_events.icrc72.alerts import MemberAlert
from interchain_events.icrc72.config import read_publication
from interchain_events.icrc72.errors import Icrc72Error
from interchain_events.icrc72.facts import DueFact
from interchain_events.icrc72.headers import read
from interchain_events.icrc72.ic.canister import Context
from interchain_events.icrc72.ic.errors import shown
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.inbox import Inbox, Registering, renew
from interchain_events.icrc72.methods import (
    GET_PUBLICATIONS,
    PUBLISH,
    REGISTER_PUBLICATION,
    words_of,
)
from interchain_events.icrc72.namespaces import OWN, first_id, to_text
from interchain_events.icrc72.publisher.replays import Archiving, Replays
from interchain_events.icrc72.publisher.state import (
    LogBlock,
    Logged,
    Mine,
    PublisherState,
    Replaying,
    Sender,
)
from interchain_events.icrc72.role import Core, restored
from interchain_events.icrc72.services import type_codec
from interchain_events.icrc72.settings import fitting
from interchain_events.icrc72.values import Pairs, Value, array, blob, boolean, nat, value_hash
from pubsub_emulator.primitives.hashing import blake2_256

_PATIENCE: Final = 2
"""How often an event may be refused for good and sent again before its publisher gives it up."""


_NOTHING: Final = boolean(False)
"""The data of a logged event that is in the archive."""


class TooLarge(Icrc72Error):
    """An event is too large to be published, and so was not logged."""


class Publisher(Core):
    """The role of a publisher.

    With an `archive`, old blocks of the log are handed over to this canister, except the newest
    `keep` events.
    """

    name = "publisher"
    state: PublisherState

    def __init__(
        self, inbox: Inbox, publications: Mapping[str, Pairs], archive: Principal | None, keep: int
    ) -> None:
        self.state = PublisherState(
            {name: Mine(name, tuple(config)) for name, config in publications.items()}
        )
        self.orchestrator, self.inbox, self.settings = inbox.orchestrator, inbox, inbox.settings
        inbox.on_alert["publisher"] = self._told
        self.on_refused: Callable[[Context, m.Event, str], None] = lambda _ctx, _event, _why: None
        """Called with an event that no broadcaster will ever accept, and with the reason."""
        self._asking = Registering()
        self.archive = archive
        self.archiving = None if archive is None else Archiving(archive, keep, self.settings, self)
        self.replays = Replays(self.orchestrator, self.settings, self)

    def resume(self, state: object) -> None:
        """Continue with a saved state.

        Calls that were under way have ended before the upgrade. Publications that only the new code
        has are registered.
        """
        given = self.state.mine
        self.state = restored(state, PublisherState)
        renew(given, self.state.mine)
        self._asking.under_way.clear()
        if self.archiving is not None:
            self.archiving.resume()
        for each in self.state.replays.values():
            each.busy = each.reporting = False
        for mine in self.state.mine.values():
            for sender in mine.senders.values():
                sender.busy = 0

    def emit(
        self,
        ctx: Context,
        namespace: str,
        data: Value,
        headers: Pairs = (),
        *,
        number: int | None = None,
    ) -> None:
        """Add an event to the log, to be published.

        Its id is `number`, which must be greater than all ids before, or the next one. Until the
        publication is registered and its creator is known, no ids can be given and the event waits.
        Raises `TooLarge`, `Icrc72Error` if it cannot be published for other reasons, and
        `CandidError` if the data is not an ICRC16 value.
        """
        mine = self.check(ctx, namespace, data, headers)
        made = max([mine.last, *(each[2] or 0 for each in mine.waiting)])
        if number is not None and number <= made:
            raise Icrc72Error(f"event {shown(number)} does not come after event {shown(made)}")
        if mine.creator is None:
            mine.waiting.append((data, headers, number, ctx.time, ctx.now))
        else:
            self._log(mine, ctx.me, (data, headers, number, ctx.time, ctx.now))

    def check(self, ctx: Context, namespace: str, data: Value, headers: Pairs) -> Mine:
        """Check an event without logging it, and return its publication. Raises like `emit`."""
        mine = self.state.mine.get(namespace)
        if mine is None:
            raise Icrc72Error(f"{namespace!r} is not a publication of this publisher")
        said = read(headers)
        if said.planted:
            raise Icrc72Error("an event has headers that only broadcasters append")
        if said.hash is not None and said.hash != value_hash(data):
            raise Icrc72Error(f"the header {keys.HASH} is not the hash of the data")
        # Ids of this size are the longest that can occur.
        trial = m.Event(OWN * OWN, OWN * OWN, ctx.time, namespace, data, ctx.me, headers)
        size = type_codec("broadcaster", "Event").size(trial)
        if size > self.settings.event_bytes:
            raise TooLarge(f"an event has at most {self.settings.event_bytes} bytes, not {size}")
        return mine

    def add_publication(self, ctx: Context, namespace: str, config: Pairs = ()) -> None:
        """Add a publication and register it. Its events wait until it is registered."""
        if namespace not in self.state.mine:
            self.state.mine[namespace] = Mine(namespace, config)
            self.wake(ctx)

    def published(self, namespace: str) -> int:
        """Return how many events of a namespace were accepted by their entries."""
        mine = self.state.mine.get(namespace)
        return 0 if mine is None else sum(sender.next for sender in mine.senders.values())

    def row_of(self, namespace: str, identifier: int) -> int | None:
        """Return the row of the log that has an event, or `None`."""
        mine = self.state.mine.get(namespace)
        for sender in () if mine is None else mine.senders.values():
            events = sender.events
            at = bisect_left(events, identifier, key=lambda row: self.state.log[row].event.eventId)
            if at < len(events) and self.state.log[events[at]].event.eventId == identifier:
                return events[at]
        return None

    def may_archive(self, keep: int) -> bool:
        """Return whether the next block may leave the log.

        Its events must be published, and not be among the newest `keep` ones.
        """
        state = self.state
        if state.archived >= len(state.blocks):
            return False
        block = state.blocks[state.archived]
        end = block.first + block.count
        senders = list(chained.from_iterable(mine.senders.values() for mine in state.mine.values()))
        unsent = [
            sender.events[sender.next] for sender in senders if sender.next < len(sender.events)
        ]
        return end + keep <= state.appended() and end <= min(unsent, default=end)

    def forget_block(self) -> None:
        """Forget data and headers of the next block, which is in the archive."""
        state = self.state
        block = state.blocks[state.archived]
        for row in state.log[block.first : block.first + block.count]:
            row.archived = True
            row.event = row.event._replace(data=_NOTHING, headers=None)
        state.archived += 1

    def _log(
        self, mine: Mine, me: Principal, made: tuple[Value, Pairs, int | None, int, int]
    ) -> None:
        """Give an event its id and predecessor, and add it to the log and to its sender.

        `made` has data, headers, the chosen id or `None`, time (ns) and round.
        """
        data, headers, number, time, at = made
        state = self.state
        following = mine.last + 1 if mine.last else first_id(me, mine.creator or me)
        identifier = mine.last = following if number is None else number
        partition = identifier % OWN % mine.partitions
        prev = None if mine.mode == "unordered" else mine.lasts.get(partition)
        mine.lasts[partition] = identifier
        hashed = value_hash(data)
        head = [*headers, (keys.HASH, blob(hashed))]
        if mine.partitions > 1:
            head.append((keys.PARTITION, array([nat(partition), nat(mine.partitions)])))
        event = m.Event(identifier, prev, time, mine.namespace, data, me, tuple(head))
        index = state.log[-1].index + 1 if state.log and state.log[-1].round == at else 0
        mine.senders.setdefault(partition, Sender(self._entry(mine, partition))).events.append(
            len(state.log)
        )
        state.log.append(
            Logged(event, hashed, at, index, type_codec("broadcaster", "Event").size(event))
        )

    @staticmethod
    def _entry(mine: Mine, partition: int) -> Principal | None:
        """Return the entry of a partition."""
        return mine.entries[partition % len(mine.entries)] if mine.entries else None

    def wake(self, ctx: Context) -> None:
        """Do the due work: register, close blocks of the log, publish, replay and archive."""
        if not self.inbox.ready("publisher"):
            return
        self._register(ctx)
        self._append(ctx)
        for mine in self.state.mine.values():
            for sender in mine.senders.values():
                self._send(ctx, sender)
        self.replays.wake(ctx)
        if self.archiving is not None:
            self.archiving.wake(ctx)

    def due(self, now: int) -> int | None:
        """Return the next round in which there is work to do."""
        if not self.inbox.ready("publisher"):
            return None
        found = [self.replays.due(now), None if self.archiving is None else self.archiving.due(now)]
        for mine in self.state.mine.values():
            unknown = mine.id is None or mine.creator is None
            if unknown and not mine.error and mine.namespace not in self._asking.under_way:
                found.append(now + 5)
            for sender in mine.senders.values():
                waits = (
                    sender.entry is not None
                    and not sender.busy
                    and sender.next < len(sender.events)
                )
                found += [max(sender.wait, now + 1)] if waits else []
        return min((each for each in found if each is not None), default=None)

    def _register(self, ctx: Context) -> None:
        """Register new publications, and ask for the configuration of registered ones."""
        self._asking.register(ctx, self.inbox, REGISTER_PUBLICATION, self.state.mine, self.wake)
        for each in self.state.mine.values():
            if (
                each.id is not None
                and each.creator is None
                and each.namespace not in self._asking.under_way
            ):
                self._look_up(ctx, each)

    def _look_up(self, ctx: Context, mine: Mine) -> None:
        """Ask for the configuration of a publication, and log the events that wait for it.

        Another publisher may have created the publication with another configuration. Its creator
        decides about the first id, its mode and partitions about predecessors.
        """
        self._asking.under_way[mine.namespace] = None
        page = m.ByText(
            None, 1, m.OrchestrationFilter(m.NO_STATISTICS, (m.by_namespace(mine.namespace),))
        )

        def got(ctx: Context, infos: tuple[m.PublicationInfo, ...] | None) -> None:
            self._asking.under_way.pop(mine.namespace, None)
            for info in infos or ():
                if info.namespace == mine.namespace:
                    config = read_publication(info.config)
                    mine.creator = config.creator or ctx.me
                    mine.mode = config.mode
                    mine.partitions = config.partitions
                    waiting, mine.waiting = mine.waiting, []
                    for made in waiting:
                        self._log(mine, ctx.me, (*made[:4], ctx.now))
            self.wake(ctx)

        self.role.ask(ctx, self.orchestrator, GET_PUBLICATIONS, page, got)

    def _append(self, ctx: Context) -> None:
        """Close the blocks of all rounds before this one (EV-2).

        The hash of a block covers the hash of the block before it, and the ids and hashes of its
        events.
        """
        state = self.state
        for made, group in groupby(state.log[state.appended() :], key=lambda row: row.round):
            if made >= ctx.now:
                break
            rows = list(group)
            running = state.blocks[-1].hash if state.blocks else bytes(32)
            running += b"".join(to_text(row.event.eventId).encode() + row.hash for row in rows)
            state.blocks.append(LogBlock(made, state.appended(), len(rows), blake2_256(running)))

    def _send(self, ctx: Context, sender: Sender) -> None:
        """Publish the next batch of a sender, and go on with the answers.

        Events count as accepted up to the first one that is refused, which is sent again after a
        wait that grows. An event that is refused for good repeatedly is given up.
        """
        if sender.entry is None or sender.busy or ctx.now < sender.wait:
            return
        batch = self._batch(
            sender.events[sender.next : sender.next + self.settings.batch_notifications]
        )
        if not batch:
            return
        self.state.batches += 1
        token = sender.busy = self.state.batches

        def got(ctx: Context, results: m.Results[tuple[int, ...]] | None) -> None:
            # The sender has got another entry in the meantime.
            if sender.busy != token:
                return
            sender.busy = 0
            for event, result in zip(batch, results or (), strict=False):
                if (
                    result is not None
                    and result.tag == "Err"
                    and sender.tries >= _PATIENCE
                    and _is_final(result.value)
                ):
                    self._give_up(ctx, sender, event, result.value)
                    sender.tries = 0
                    return
                if result is None or result.tag != "Ok":
                    break
                sender.next += 1
                sender.tries = 0
            else:
                # The timer sends the next batch. In a stopping canister timers do not run, but
                # answers arrive: calls made here would keep it from ever stopping.
                if results is not None:
                    return
            sender.wait = ctx.now + min(1 << min(sender.tries, 20), self.settings.publisher_wait)
            sender.tries += 1

        self.role.ask(ctx, sender.entry, PUBLISH, tuple(batch), got)

    def _give_up(self, ctx: Context, sender: Sender, event: m.Event, error: m.Error) -> None:
        """Give up an event that no broadcaster will ever accept.

        The author is informed. The next event of the chain names the event before this one as its
        predecessor, so the chain has no gap.
        """
        state = self.state
        why = state.log[sender.events.pop(sender.next)].refused = words_of(error)
        state.refused.append((event.namespace, event.eventId, why))
        del state.refused[: -self.settings.gaps]
        if sender.next < len(sender.events):
            row = state.log[sender.events[sender.next]]
            if row.event.prevEventId == event.eventId:
                row.event = row.event._replace(prevEventId=event.prevEventId)
        else:
            mine = state.mine[event.namespace]
            last = state.log[sender.events[-1]].event.eventId if sender.events else None
            mine.lasts = {
                at: last if each == event.eventId else each for at, each in mine.lasts.items()
            }
        self.on_refused(ctx, event, why)

    def _batch(self, rows: list[int]) -> list[m.Event]:
        """Return the events of these rows that are in blocks and fit into a call."""
        appended = [self.state.log[row] for row in rows if row < self.state.appended()]
        return [row.event for row in fitting(appended, lambda row: row.size, self.settings)]

    def _told(self, ctx: Context, _caller: Principal, alert: MemberAlert) -> None:
        """Apply a system event: entries, errors, and replays that begin or end."""
        by_id = {each.id: each for each in self.state.mine.values() if each.id is not None}
        for number, entries in alert.entries().items():
            if number in by_id:
                self._assign(by_id[number], entries)
        self.state.errors += alert.errors
        del self.state.errors[:-100]
        for fact in alert.removes:
            if isinstance(fact, DueFact):
                ended = self.state.replays.pop(fact.replay, None)
                if ended is not None and ended.state == "running":
                    self.state.canceled[fact.replay] = ended.count
        for number, due in alert.due().items():
            if number not in self.state.replays:
                self.state.replays[number] = Replaying(
                    due.namespace, due.start, due.end, due.entry, due.start, since=ctx.now
                )
        self.wake(ctx)

    def _assign(self, mine: Mine, entries: tuple[Principal, ...]) -> None:
        """Set the entries of a publication.

        If an entry changes, the batch that is under way is sent again to the new one.
        """
        mine.entries = entries
        for partition, sender in mine.senders.items():
            entry = self._entry(mine, partition)
            if entry != sender.entry:
                sender.entry, sender.busy, sender.wait, sender.tries = entry, 0, 0, 0


def _is_final(error: m.Error) -> bool:
    """Return whether an event with this error would be refused by every broadcaster, every time."""
    if error.tag == "GenericError":
        return error.value.error_code in {keys.TOO_LARGE, keys.HASH_MISMATCH}
    return error.tag == "ImproperId"
