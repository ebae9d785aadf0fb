"""The notes of an audit, and the judgements that need the whole trace (IC-51, RP-14)."""

from collections.abc import Iterable, Mapping
from itertools import chain as chained
from typing import Final, NamedTuple

from interchain_events.icrc72 import keys
from interchain_events.icrc72.alerts import BrokerAlert
from interchain_events.icrc72.facts import Width, is_late
from interchain_events.icrc72.filters import lets_pass
from interchain_events.icrc72.headers import read
from interchain_events.icrc72.ic.errors import shown
from interchain_events.icrc72.ic.messaging import Happening
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.messages import Event, EventNotification, Result
from interchain_events.icrc72.methods import (
    ARCHIVE_PAGE,
    CANCEL_REPLAY,
    PUBLISH,
    REGISTER_REPLAY,
    REPLAY_STATUS,
)
from interchain_events.icrc72.namespaces import matches
from interchain_events.icrc72.values import Pairs, Value


class Finding(NamedTuple):
    """An act of a participant that no honest participant commits."""

    cheat: str
    """The name of the cheat."""
    actor: Principal
    round: int
    """The round of the act; 0 if it cannot be given."""
    evidence: str


Logs = Mapping[Principal, Mapping[tuple[str, int], Event]]
"""For each publisher, its events by namespace and id."""

EventKey = tuple[str, Principal, int]
"""Namespace, source and id of an event."""

ORDER: Final = {header.name: position for position, header in enumerate(keys.HEADERS)}
"""The position of each header in the order in which headers are appended."""
PATIENCE: Final = 200
"""The rounds without a report or answer after which a participant counts as silent (RP-13a)."""


REPEATS: Final = 6
"""How many times a notification may be sent before its subscriber must have confirmed it."""


class Record:
    """The notes of an audit."""

    def __init__(self, orchestrator: Principal, broadcasters: Iterable[Principal]) -> None:
        self.orchestrator = orchestrator
        self.broadcasters = frozenset(broadcasters)
        self.findings: dict[Finding, None] = {}
        self._found: set[tuple[str, Principal]] = set()
        """The cheats and actors in the findings."""
        self._calls: dict[int, Happening] = {}
        """The requests that were executed but not yet answered, by number."""
        self._configs: dict[Principal, dict[str, list[Width]]] = {}
        """For each subscriber and pattern, all filters and skips that the subscription has had."""
        self._notified: dict[tuple[Principal, Principal, EventKey, int], int] = {}
        """For each broadcaster, subscriber, event and replay, the id of the notification."""
        self._last: dict[tuple[Principal, Principal, str, Principal, int], int] = {}
        """For each broadcaster, subscriber and chain, the last event."""
        self._seen: list[tuple[int, Principal, Principal, EventNotification]] = []
        """All notifications of broadcasters: round, sender and receiver."""
        self._accepted: dict[tuple[Principal, EventKey], tuple[int, Event]] = {}
        """For each broadcaster, the live events that it has accepted, and the round."""
        self._served: dict[tuple[Principal, str, Principal], int] = {}
        """For each broadcaster, namespace and subscriber, the round from which it must notify."""
        self._relays: dict[tuple[Principal, str, Principal], int] = {}
        """For each broadcaster, namespace and target, the round from which it must relay."""
        self._unsteady: set[Principal] = set()
        """Canisters that were stopped, upgraded or removed, or lost assignments."""
        self._suspended: set[Principal] = set()
        """Subscribers that were informed about missing events."""
        self._sent: dict[tuple[str, int], Value] = {}
        """The system events of the orchestrator by namespace and id."""
        self._replays: dict[int, Principal] = {}
        """The subscriber of each replay."""
        self._ranges: dict[int, tuple[str, int, int | None]] = {}
        """Namespace and range of each replay."""
        self._replayed: dict[int, dict[int, int]] = {}
        """For each replay and event, how many times broadcasters have accepted it."""
        self._reports: dict[int, tuple[str, int, Principal, int]] = {}
        """For each completed replay, state, number of events, publisher and round of the report."""
        self._ranks: dict[str, dict[Principal, int]] = {}
        """For each namespace in mode priority, the ranks of subscribers."""
        self._places: dict[tuple[Principal, EventKey], dict[Principal, int]] = {}
        """For each broadcaster and event, the positions of subscribers in its headers."""
        self._alerts: dict[tuple[Principal, int], BrokerAlert] = {}
        """Assignments that are not confirmed, by broadcaster and notification."""
        self._claimed: dict[tuple[Principal, int], tuple[int, int]] = {}
        """For each broadcaster and each notification of a replay with whose id it has answered a
        publisher: the round, and the replay."""
        self._due: dict[tuple[Principal, int], int] = {}
        """For each publisher and replay, the round from which a report is due."""
        self._came: dict[tuple[Principal, Principal, int], int] = {}
        """For each notification (sender, receiver, id) that was not confirmed, how many times it
        arrived."""
        self._confirmers: set[Principal] = set()
        """Canisters that have confirmed a notification."""
        self._taken: dict[int, list[tuple[Principal, int, int]]] = {}
        """For each call, the replayed events that were accepted: publisher, replay and id."""
        self._known: set[tuple[Principal, int, int]] = set()
        """The accepted replayed events for which the publisher has got the answer."""
        self._told_entries: set[Principal] = set()
        """Publishers that have ever got entries."""
        self._misled: set[Principal] = set()
        """Publishers that have got changed data from an archive."""
        self._now = 0

    def _find(self, cheat: str, actor: Principal, round_: int, evidence: str) -> None:
        """Add a finding, unless there is one of the same cheat and actor."""
        if (cheat, actor) not in self._found:
            self._found.add((cheat, actor))
            self.findings[Finding(cheat, actor, round_, evidence)] = None

    def _replays_again(self, happening: Happening) -> None:
        """Judge a publisher that sends an event of a replay again that it knows to be accepted."""
        for event in PUBLISH.value(happening.data):
            replay = read(event.headers).replay or 0
            if (happening.sender, replay, event.eventId) in self._known:
                evidence = (
                    f"event {shown(event.eventId)} of replay {shown(replay)}, which was known to be"
                    " taken"
                )
                self._find("ReplaysTwice", happening.sender, happening.round, evidence)

    def _replay_taken(self, event: Event, replay: int) -> None:
        """Note that a broadcaster has accepted an event of a replay from its publisher."""
        counts = self._replayed.setdefault(replay, {})
        counts[event.eventId] = counts.get(event.eventId, 0) + 1

    def _replay_asked(self, call: Happening, response: bytes) -> None:
        """Note registered replays, and judge requests that were refused."""
        for item, result in zip(
            REGISTER_REPLAY.value(call.data), REGISTER_REPLAY.result(response), strict=False
        ):
            start, end = item.range
            match result:
                case ("Ok", number):
                    self._replays[number] = call.sender
                    self._ranges[number] = (item.namespace, start, end)
                case ("Err", ("PaymentRequired", words)):
                    self._find("PaysNothing", call.sender, call.round, words)
            if error_of(result) in {"RangeTooLarge", keys.QUOTA}:
                evidence = f"asked for ({shown(start)}, {end if end is None else shown(end)})"
                self._find("AsksForAll", call.sender, call.round, evidence)

    def _canceled(self, call: Happening, response: bytes) -> None:
        """Judge a canister that cancels the replay of another one."""
        results = CANCEL_REPLAY.result(response)
        if any(error_of(result) == "Unauthorized" for result in results):
            evidence = "canceled a replay that is not its own"
            self._find("CancelsOthers", call.sender, call.round, evidence)

    def _reported(self, call: Happening, response: bytes) -> None:
        """Note reports on replays, and judge two kinds of them.

        A report on the replay of another publisher is a cheat. So is a report of a hash mismatch,
        because the publisher's log or archive has then changed.
        """
        for item, result in zip(
            REPLAY_STATUS.value(call.data), REPLAY_STATUS.result(response), strict=False
        ):
            if error_of(result) == "Unauthorized":
                evidence = f"reported on replay {shown(item.replayId)}"
                self._find("ReportsForAnother", call.sender, call.round, evidence)
            elif result is not None and result.tag == "Ok":
                match item.status:
                    case ("completed", count):
                        self._reports[item.replayId] = ("completed", count, call.sender, call.round)
                    case ("errored", words) if (
                        "hash mismatch" in words and call.sender not in self._misled
                    ):
                        self._find("Rewrites", call.sender, call.round, words)

    def _paged(self, call: Happening, response: bytes) -> None:
        """Record a finding if an archive returns an event with other data than was published.

        The publisher that reads it is then not to blame if it reports a hash mismatch.
        """
        for event in ARCHIVE_PAGE.result(response):
            key = (event.namespace, event.source, event.eventId)
            published = [
                accepted
                for (_, accepted_key), (_, accepted) in self._accepted.items()
                if accepted_key == key
            ]
            if published and all(accepted.data != event.data for accepted in published):
                self._misled.add(call.sender)
                evidence = f"event {shown(event.eventId)} has other data than it had"
                self._find("Rewrites", call.receiver, call.round, evidence)

    def _judge_replays(self, logs: Logs) -> None:
        """Compare the completed replays with the events that were accepted and with the logs."""
        for number, (_, count, publisher, round_) in self._reports.items():
            accepted = set(self._replayed.get(number, {}))
            if publisher in logs:
                accepted &= {identifier for _, identifier in logs[publisher]}
            if count > len(accepted):
                evidence = f"reported {shown(count)} events, {len(accepted)} were accepted"
                self._find("Overcharges", publisher, round_, evidence)
            if number not in self._ranges or publisher not in logs or not accepted:
                continue
            namespace, start, end = self._ranges[number]
            if end is None:
                end = max(accepted) + 1
            due = [
                identifier
                for name, identifier in logs[publisher]
                if name == namespace and start <= identifier < end
            ]
            skipped = [identifier for identifier in due if identifier not in accepted]
            # A replay may end early, but no event before an accepted one may be left out.
            if skipped and skipped[0] < max(accepted):
                evidence = f"event {shown(skipped[0])} of replay {shown(number)} was left out"
                self._find("SkipsInReplay", publisher, round_, evidence)

    def _judge_claims(self, alive: set[Principal]) -> None:
        """Judge promises that were not kept.

        These are notifications of replays that a broadcaster has promised in an answer but never
        sent, missing reports on replays, and notifications that are never confirmed.
        """
        sent = {(sender, note.notificationId) for _, sender, _, note in self._seen}
        steady = alive - self._unsteady
        for (broadcaster, number), (round_, replay) in self._claimed.items():
            subscriber = self._replays.get(replay)
            reachable = subscriber in steady and subscriber not in self._suspended
            if reachable and broadcaster in alive and (broadcaster, number) not in sent:
                evidence = f"notification {shown(number)} of replay {shown(replay)} never came"
                self._find("DropsReplay", broadcaster, round_, evidence)
        for (publisher, replay), round_ in self._due.items():
            if publisher in steady and self._now - round_ > PATIENCE:
                evidence = f"no report on replay {shown(replay)}"
                self._find("NeverReports", publisher, round_, evidence)
        for (sender, receiver, number), count in self._came.items():
            if count > REPEATS and receiver in steady:
                evidence = (
                    f"notification {shown(number)} of {sender.text} came {shown(count)} times"
                )
                self._find("NeverConfirms", receiver, 0, evidence)

    def _compare(
        self,
        round_: int,
        sender: Principal,
        receiver: Principal,
        *,
        note: EventNotification,
        logs: Logs,
    ) -> None:
        """Compare a notification with the event in its publisher's log.

        If a replayed event differs, the publisher is to blame, because it has sent the event in
        this form. Otherwise the broadcaster is to blame.
        """
        log = logs.get(note.source)
        if log is None:
            # The publisher does not have a log, or is gone.
            return
        event = log.get((note.namespace, note.eventId))
        evidence = f"event {shown(note.eventId)} to {receiver.text}"
        replay = read(note.headers).replay
        if event is None:
            if replay is not None and note.eventId in self._replayed.get(replay, {}):
                self._find("ReplaysInvented", note.source, round_, evidence)
            else:
                self._find("Invents", sender, round_, evidence)
        elif event.data != note.data:
            if replay is not None:
                self._find("ReplaysAltered", note.source, round_, evidence)
            else:
                self._find("AltersData", sender, round_, evidence)
        elif event.prevEventId != note.prevEventId or not grown(
            event.headers, note.headers, sender
        ):
            self._find("AltersHeaders", sender, round_, evidence)

    def _judge_places(self) -> None:
        """Judge the order of notifications of one event by the ranks of the subscribers."""
        for (sender, (namespace, _, identifier)), places in self._places.items():
            ranks = self._ranks.get(namespace)
            if not ranks:
                continue
            for earlier, place in places.items():
                for later, later_place in places.items():
                    if place < later_place and ranks.get(earlier, 0) < ranks.get(later, 0):
                        evidence = (
                            f"{earlier.text} before {later.text} for event {shown(identifier)}"
                        )
                        self._find("FavoursOne", sender, 0, evidence)

    def _judge_missing(self, alive: set[Principal]) -> None:
        """Judge broadcasters that have accepted events but have not delivered or relayed them.

        A broadcaster that has lost all accepted events gets one finding (AcceptsAndForgets) instead
        of one for each kind of loss.
        """
        notified: set[tuple[Principal, EventKey]] = set()
        for _, _, receiver, note in self._seen:
            if read(note.headers).replay is None:
                notified.add((receiver, (note.namespace, note.source, note.eventId)))
        self._judge_claims(alive)
        # For each broadcaster and accepted event, whether it went to nobody to whom it was due.
        forgotten: dict[Principal, list[bool]] = {}
        dropped: list[tuple[str, Principal, int, str]] = []
        for (broadcaster, key), (round_, event) in self._accepted.items():
            if broadcaster in self._unsteady or broadcaster not in alive:
                continue
            receivers = self._receivers(broadcaster, round_, event, alive)
            lost = [receiver for receiver in receivers if (receiver, key) not in notified]
            targets = self._targets(broadcaster, round_, event, alive)
            unsent = [
                target
                for target in targets
                if event.source != broadcaster
                and target not in self._unsteady
                and (target, key) not in self._accepted
            ]
            due = len(receivers) + len(targets)
            if due:
                forgotten.setdefault(broadcaster, []).append(len(lost) + len(unsent) == due)
            for cheat, losers in (("Drops", lost), ("RelayDrops", unsent)):
                if losers:
                    evidence = f"event {shown(event.eventId)} never went to {losers[0].text}"
                    dropped.append((cheat, broadcaster, round_, evidence))
        for broadcaster, all_lost in forgotten.items():
            if all(all_lost):
                evidence = f"nothing came of {len(all_lost)} accepted events"
                self._find("AcceptsAndForgets", broadcaster, 0, evidence)
        for cheat, broadcaster, round_, evidence in dropped:
            if ("AcceptsAndForgets", broadcaster) not in self._found:
                self._find(cheat, broadcaster, round_, evidence)

    def _targets(
        self, broadcaster: Principal, round_: int, event: Event, alive: set[Principal]
    ) -> list[Principal]:
        """Return the living broadcasters to which an accepted event must be relayed."""
        if read(event.headers).broadcaster is not None:
            # An event with this header came from a relay and is not relayed again.
            return []
        return [
            target
            for (source, namespace, target), since in self._relays.items()
            if source == broadcaster
            and namespace == event.namespace
            and since < round_
            and target in alive
        ]

    def _receivers(
        self, broadcaster: Principal, round_: int, event: Event, alive: set[Principal]
    ) -> list[Principal]:
        """Return the subscribers that a broadcaster must notify of an event.

        A subscriber is left out if there may be a good reason why it is not notified: it is gone,
        suspended or late, does not confirm, or has changed its subscriptions.
        """
        receivers: list[Principal] = []
        for (server, namespace, subscriber), since in self._served.items():
            if server != broadcaster or namespace != event.namespace or since >= round_:
                continue
            if subscriber not in alive or subscriber in self._unsteady:
                continue
            if subscriber in self._suspended or subscriber not in self._confirmers:
                continue
            if ("NeverConfirms", subscriber) in self._found:
                continue
            configs = [
                widths
                for pattern, widths in self._configs.get(subscriber, {}).items()
                if matches(pattern, namespace)
            ]
            widths = list(chained.from_iterable(configs))
            # More than one width of a pattern means that the subscription was changed.
            if len(widths) != len(configs):
                continue
            if is_late(subscriber, widths, read(event.headers).late):
                continue
            if any(lets_pass(width, event) for width in widths):
                receivers.append(subscriber)
        return receivers


def error_of(result: Result[object] | None) -> str | int | None:
    """Return the tag of an error, or the code of a generic one, or `None` for Ok."""
    match result:
        case ("Err", ("GenericError", error)):
            return error.error_code
        case ("Err", error):
            return error.tag
    return None


def grown(before: Pairs | None, after: Pairs | None, sender: Principal) -> bool:
    """Return whether headers were only appended, in order, by the right broadcasters (I4, I5).

    The sender must be the last broadcaster that the headers name.
    """
    old = before or ()
    new = after or ()
    appended = new[len(old) :]
    positions = [ORDER.get(name, -1) for name, _ in appended]
    headers = read(appended)
    complete = headers.broadcaster is not None and any(name == keys.SENT for name, _ in appended)
    ordered = positions == sorted(set(positions)) and -1 not in positions
    last_broadcaster = headers.relay if headers.relayed else headers.broadcaster
    return new[: len(old)] == old and ordered and complete and sender == last_broadcaster
