"""The core of a publisher: its log, and publishing (IC-39, IC-48).

An event is first added to the log. At the end of a round, all its events form a block of the log,
and only events in blocks are published. Events of each publication and partition go to their entry
in order, with one batch under way.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping
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
from interchain_events.icrc72.memory import nothing, put, take_out
from interchain_events.icrc72.methods import (
    GET_PUBLICATIONS,
    PUBLISH,
    REGISTER_PUBLICATION,
    words_of,
)
from interchain_events.icrc72.namespaces import OWN, first_id, partition_of, to_text
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
"""How many times an event that was refused for good is sent again before it is given up."""


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
        self.orchestrator = inbox.orchestrator
        self.inbox = inbox
        self.settings = inbox.settings
        inbox.members = (*inbox.members, self)
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
        new_publications = self.state.mine
        self.state = restored(state, PublisherState)
        renew(new_publications, self.state.mine)
        self._asking.under_way = nothing()
        if self.archiving is not None:
            self.archiving.resume()
        for replay in self.state.replays.values():
            replay.busy = False
            replay.reporting = False
        for publication in self.state.mine.values():
            for sender in publication.senders.values():
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
        """Add an event to the log, from which it is published.

        Its id is `number`, which must be greater than all ids before. Without `number` it is the
        next id. Ids depend on the publication's creator, so until it is known, events wait without
        ids. Raises `TooLarge`, `Icrc72Error` if the event cannot be published for other reasons,
        and `CandidError` if the data is not an ICRC16 value.
        """
        publication = self.check(ctx, namespace, data, headers)
        chosen = [waiting_number or 0 for _, _, waiting_number, _, _ in publication.waiting]
        last = max([publication.last, *chosen])
        if number is not None and number <= last:
            raise Icrc72Error(f"event {shown(number)} does not come after event {shown(last)}")
        event = (data, headers, number, ctx.time, ctx.now)
        if publication.creator is None:
            publication.waiting.append(event)
        else:
            self._log(publication, ctx.me, event)

    def check(self, ctx: Context, namespace: str, data: Value, headers: Pairs) -> Mine:
        """Check an event without logging it, and return its publication. Raises like `emit`."""
        publication = self.state.mine.get(namespace)
        if publication is None:
            raise Icrc72Error(f"{namespace!r} is not a publication of this publisher")
        known = read(headers)
        if known.planted:
            raise Icrc72Error("an event has headers that only broadcasters append")
        if known.hash is not None and known.hash != value_hash(data):
            raise Icrc72Error(f"the header {keys.HASH} is not the hash of the data")
        # Ids that the publisher gives are never longer than these.
        trial = m.Event(
            OWN * OWN,
            OWN * OWN,
            ctx.time,
            namespace=namespace,
            data=data,
            source=ctx.me,
            headers=headers,
        )
        size = type_codec("broadcaster", "Event").size(trial)
        if size > self.settings.event_bytes:
            raise TooLarge(f"an event has at most {self.settings.event_bytes} bytes, not {size}")
        return publication

    def add_publication(self, ctx: Context, namespace: str, config: Pairs = ()) -> None:
        """Add a publication and register it. Its events wait until it is registered."""
        if namespace not in self.state.mine:
            self.state.mine[namespace] = Mine(namespace, config)
            self.wake(ctx)

    def published(self, namespace: str) -> int:
        """Return how many events of a namespace were accepted by their entries."""
        publication = self.state.mine.get(namespace)
        if publication is None:
            return 0
        return sum(sender.next for sender in publication.senders.values())

    def row_of(self, namespace: str, identifier: int) -> int | None:
        """Return the row of the log that has an event, or `None`."""
        publication = self.state.mine.get(namespace)
        if publication is None:
            return None
        log = self.state.log
        for sender in publication.senders.values():
            rows = sender.events
            index = bisect_left(rows, identifier, key=lambda row: log[row].event.eventId)
            if index < len(rows) and log[rows[index]].event.eventId == identifier:
                return rows[index]
        return None

    def may_archive(self, keep: int) -> bool:
        """Return whether the data of the next block may be moved from the log into the archive.

        Its events must be published, and not be among the newest `keep` ones.
        """
        state = self.state
        if state.archived >= len(state.blocks):
            return False
        block = state.blocks[state.archived]
        end = block.first + block.count
        if end + keep > state.appended():
            return False
        for publication in state.mine.values():
            for sender in publication.senders.values():
                if sender.next < len(sender.events) and sender.events[sender.next] < end:
                    return False
        return True

    def forget_block(self) -> None:
        """Forget data and headers of the events in the next block, which is in the archive."""
        state = self.state
        block = state.blocks[state.archived]
        for row in state.log[block.first : block.first + block.count]:
            row.archived = True
            row.event = row.event._replace(data=_NOTHING, headers=None)
        state.archived += 1

    def _log(
        self, publication: Mine, me: Principal, event: tuple[Value, Pairs, int | None, int, int]
    ) -> None:
        """Give an event its id and predecessor, and add it to the log and to its sender.

        `event` has data, headers, the chosen id or `None`, time (ns) and round.
        """
        data, headers, number, time, round_ = event
        state = self.state
        if number is None and publication.last:
            number = publication.last + 1
        elif number is None:
            number = first_id(me, publication.creator or me)
        publication.last = number
        partition = partition_of(number, publication.partitions)
        prev = None if publication.mode == "unordered" else publication.lasts.get(partition)
        publication.lasts[partition] = number
        data_hash = value_hash(data)
        headers = (*headers, (keys.HASH, blob(data_hash)))
        if publication.partitions > 1:
            index_and_count = [nat(partition), nat(publication.partitions)]
            headers = (*headers, (keys.PARTITION, array(index_and_count)))
        logged = m.Event(
            number,
            prev,
            time,
            namespace=publication.namespace,
            data=data,
            source=me,
            headers=headers,
        )
        index = state.log[-1].index + 1 if state.log and state.log[-1].round == round_ else 0
        if partition not in publication.senders:
            publication.senders[partition] = Sender(self._entry(publication, partition))
        publication.senders[partition].events.append(len(state.log))
        size = type_codec("broadcaster", "Event").size(logged)
        state.log.append(Logged(logged, data_hash, round_, index, size))

    @staticmethod
    def _entry(publication: Mine, partition: int) -> Principal | None:
        """Return the entry of a partition, or `None` if the publication has no entries yet."""
        entries = publication.entries
        return entries[partition % len(entries)] if entries else None

    def wake(self, ctx: Context) -> None:
        """Do the due work: register, close blocks of the log, publish, replay and archive."""
        if not self.inbox.ready("publisher"):
            return
        self._register(ctx)
        self._append(ctx)
        for publication in self.state.mine.values():
            for sender in publication.senders.values():
                self._send(ctx, sender)
        self.replays.wake(ctx)
        if self.archiving is not None:
            self.archiving.wake(ctx)

    def due(self, now: int) -> int | None:
        """Return the next round in which there is work to do."""
        if not self.inbox.ready("publisher"):
            return None
        rounds = [self.replays.due(now)]
        if self.archiving is not None:
            rounds.append(self.archiving.due(now))
        for publication in self.state.mine.values():
            unknown = publication.id is None or publication.creator is None
            asking = publication.namespace in self._asking.under_way
            if unknown and not publication.error and not asking:
                # Register, or ask for the configuration, again after five rounds.
                rounds.append(now + 5)
            for sender in publication.senders.values():
                has_events = sender.next < len(sender.events)
                if has_events and sender.entry is not None and not sender.busy:
                    rounds.append(max(sender.wait, now + 1))
        return min((round_ for round_ in rounds if round_ is not None), default=None)

    def _register(self, ctx: Context) -> None:
        """Register new publications, and ask for the configuration of registered ones."""
        self._asking.register(ctx, self.inbox, REGISTER_PUBLICATION, self.state.mine, self.wake)
        for publication in self.state.mine.values():
            registered = publication.id is not None and publication.creator is None
            if registered and publication.namespace not in self._asking.under_way:
                self._look_up(ctx, publication)

    def _look_up(self, ctx: Context, publication: Mine) -> None:
        """Ask for the configuration of a publication, and log the events that wait for it.

        Another publisher may have created the publication with another configuration. The first id
        depends on its creator, and predecessors depend on its mode and partitions.
        """
        namespace = publication.namespace
        self._asking.under_way = put(self._asking.under_way, namespace, None)
        slices = (m.by_namespace(namespace),)
        page = m.ByText(None, 1, m.OrchestrationFilter(m.NO_STATISTICS, slices))

        def answered(ctx: Context, infos: tuple[m.PublicationInfo, ...] | None) -> None:
            self._asking.under_way = take_out(self._asking.under_way, namespace)
            for info in infos or ():
                if info.namespace == namespace:
                    config = read_publication(info.config)
                    publication.creator = config.creator or ctx.me
                    publication.mode = config.mode
                    publication.partitions = config.partitions
                    self._log_waiting(ctx, publication)
            self.wake(ctx)

        self.role.ask(ctx, self.orchestrator, GET_PUBLICATIONS, page, answered)

    def _log_waiting(self, ctx: Context, publication: Mine) -> None:
        """Log the events that have waited for the publication's creator.

        They belong to the block of this round, not to those of the rounds in which they were made.
        """
        waiting = publication.waiting
        publication.waiting = []
        for data, headers, number, time, _ in waiting:
            self._log(publication, ctx.me, (data, headers, number, time, ctx.now))

    def _append(self, ctx: Context) -> None:
        """Close the blocks of all rounds before this one (EV-2).

        The hash of a block covers the hash of the block before it, and the ids and hashes of its
        events.
        """
        state = self.state
        for round_, group in groupby(state.log[state.appended() :], key=lambda row: row.round):
            if round_ >= ctx.now:
                break
            rows = list(group)
            parent = state.blocks[-1].hash if state.blocks else bytes(32)
            content = b"".join(to_text(row.event.eventId).encode() + row.hash for row in rows)
            block_hash = blake2_256(parent + content)
            state.blocks.append(LogBlock(round_, state.appended(), len(rows), block_hash))

    def _send(self, ctx: Context, sender: Sender) -> None:
        """Publish the next batch of a sender, and continue with the answers.

        The events before the first refused one are accepted. The refused one is sent again after a
        wait that grows with each failure. It is given up if it is refused for good repeatedly.
        """
        if sender.entry is None or sender.busy or ctx.now < sender.wait:
            return
        end = sender.next + self.settings.batch_notifications
        batch = self._batch(sender.events[sender.next : end])
        if not batch:
            return
        self.state.batches += 1
        number = self.state.batches
        sender.busy = number

        def answered(ctx: Context, results: m.Results[tuple[int, ...]] | None) -> None:
            # If the sender has got another entry in the meantime, the answer comes too late.
            if sender.busy == number:
                sender.busy = 0
                if not self._take_answers(ctx, sender, batch, results):
                    wait = min(1 << min(sender.tries, 20), self.settings.publisher_wait)
                    sender.wait = ctx.now + wait
                    sender.tries += 1

        self.role.ask(ctx, sender.entry, PUBLISH, tuple(batch), answered)

    def _take_answers(
        self,
        ctx: Context,
        sender: Sender,
        batch: list[m.Event],
        results: m.Results[tuple[int, ...]] | None,
    ) -> bool:
        """Take an entry's answers to a batch; return whether the sender may continue at once.

        It does not send the next batch here, but leaves this to the timer. In a stopping canister,
        answers arrive but timers do not run, so calls made here would keep it from ever stopping.
        """
        if results is None:
            return False
        for event, result in zip(batch, results, strict=False):
            if result is None:
                return False
            if result.tag == "Err":
                if sender.tries < _PATIENCE or not _is_final(result.value):
                    return False
                self._give_up(ctx, sender, event, result.value)
                sender.tries = 0
                return True
            sender.next += 1
            sender.tries = 0
        return True

    def _give_up(self, ctx: Context, sender: Sender, event: m.Event, error: m.Error) -> None:
        """Give up an event that no broadcaster will ever accept.

        The author is informed. The next event of the chain names the event before this one as its
        predecessor, so that the chain has no gap.
        """
        state = self.state
        reason = words_of(error)
        refused_row = sender.events.pop(sender.next)
        state.log[refused_row].refused = reason
        state.refused.append((event.namespace, event.eventId, reason))
        del state.refused[: -self.settings.gaps]
        if sender.next < len(sender.events):
            row = state.log[sender.events[sender.next]]
            if row.event.prevEventId == event.eventId:
                row.event = row.event._replace(prevEventId=event.prevEventId)
        else:
            # The event was the last one of its partition.
            last = state.log[sender.events[-1]].event.eventId if sender.events else None
            lasts = state.mine[event.namespace].lasts
            for partition, identifier in lasts.items():
                if identifier == event.eventId:
                    lasts[partition] = last
        self.on_refused(ctx, event, reason)

    def _batch(self, rows: list[int]) -> list[m.Event]:
        """Return the events of these rows that are in blocks and fit into a call."""
        appended = [self.state.log[row] for row in rows if row < self.state.appended()]
        return [row.event for row in fitting(appended, lambda row: row.size, self.settings)]

    def told(self, ctx: Context, _caller: Principal, alert: MemberAlert) -> None:
        """Apply a system event: entries, errors, and replays that begin or end."""
        publications = {publication.id: publication for publication in self.state.mine.values()}
        for number, entries in alert.entries().items():
            if number in publications:
                self._assign(publications[number], entries)
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
                    namespace=due.namespace,
                    start=due.start,
                    end=due.end,
                    entry=due.entry,
                    place=due.start,
                    since=ctx.now,
                )
        self.wake(ctx)

    def _assign(self, publication: Mine, entries: tuple[Principal, ...]) -> None:
        """Set the entries of a publication.

        If an entry changes, the batch that is under way is sent again to the new one.
        """
        publication.entries = entries
        for partition, sender in publication.senders.items():
            entry = self._entry(publication, partition)
            if entry != sender.entry:
                sender.entry = entry
                sender.busy = 0
                sender.wait = 0
                sender.tries = 0


def _is_final(error: m.Error) -> bool:
    """Return whether every broadcaster would answer the event with this error, at any time."""
    if error.tag == "GenericError":
        return error.value.error_code in {keys.TOO_LARGE, keys.HASH_MISMATCH}
    return error.tag == "ImproperId"
