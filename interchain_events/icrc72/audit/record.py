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

ORDER: Final = {each.name: at for at, each in enumerate(keys.HEADERS)}
"""The position of each header in the order in which headers are appended."""
PATIENCE: Final = 200
"""The rounds without a report or answer after which a participant is silent (RP-13a)."""


REPEATS: Final = 6
"""How often a notification may come before a subscriber that does not confirm it is accused."""


class Record:
    """The notes of an audit."""

    def __init__(self, orchestrator: Principal, broadcasters: Iterable[Principal]) -> None:
        self.orchestrator = orchestrator
        self.broadcasters = frozenset(broadcasters)
        self.findings: dict[Finding, None] = {}
        self.said: set[tuple[str, Principal]] = set()
        """The cheats and actors in the findings."""
        self._calls: dict[int, Happening] = {}
        """The requests that were executed and not answered, by number."""
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
        """For each broadcaster, namespace and subscriber, the round since when it must notify."""
        self._relays: dict[tuple[Principal, str, Principal], int] = {}
        """For each broadcaster, namespace and target, the round since when it must relay."""
        self._unsteady: set[Principal] = set()
        """Canisters that were stopped, upgraded or removed, or lost assignments."""
        self._suspended: set[Principal] = set()
        """Subscribers that were informed of missing events."""
        self._sent: dict[tuple[str, int], Value] = {}
        """The system events of the orchestrator by namespace and id."""
        self._replays: dict[int, Principal] = {}
        """The subscriber of each replay."""
        self._ranges: dict[int, tuple[str, int, int | None]] = {}
        """Namespace and range of each replay."""
        self._replayed: dict[int, dict[int, int]] = {}
        """For each replay and event, how often a broadcaster has accepted it."""
        self._reports: dict[int, tuple[str, int, Principal, int]] = {}
        """For each completed replay, state, number of events, publisher and round of the report."""
        self._ranks: dict[str, dict[Principal, int]] = {}
        """For each namespace in mode priority, the ranks of subscribers."""
        self._places: dict[tuple[Principal, EventKey], dict[Principal, int]] = {}
        """For each broadcaster and event, the positions of subscribers in its headers."""
        self._alerts: dict[tuple[Principal, int], BrokerAlert] = {}
        """Assignments that are not confirmed, by broadcaster and notification."""
        self._claimed: dict[tuple[Principal, int], tuple[int, int]] = {}
        """For each broadcaster, the notifications of replays that it answered: round and replay."""
        self._due: dict[tuple[Principal, int], int] = {}
        """For each publisher and replay, the round since when a report is due."""
        self._came: dict[tuple[Principal, Principal, int], int] = {}
        """For each notification (sender, receiver, id) not confirmed, how often it came."""
        self._confirmers: set[Principal] = set()
        """Canisters that have confirmed a notification."""
        self._taken: dict[int, list[tuple[Principal, int, int]]] = {}
        """For each call, the replayed events that were accepted: publisher, replay and id."""
        self._known: set[tuple[Principal, int, int]] = set()
        """Those of which the publisher has got the answer."""
        self._told_entries: set[Principal] = set()
        """Publishers that have ever got entries."""
        self._misled: set[Principal] = set()
        """Publishers that have got changed data from an archive."""
        self._now = 0

    def _find(self, cheat: str, actor: Principal, round_: int, evidence: str) -> None:
        """Add a finding, unless there is one of the same cheat and actor."""
        if (cheat, actor) not in self.said:
            self.said.add((cheat, actor))
            self.findings[Finding(cheat, actor, round_, evidence)] = None

    def _replays_again(self, happening: Happening) -> None:
        """Judge a publisher that sends events of a replay although it knows they were accepted."""
        for event in PUBLISH.value(happening.data):
            replay = read(event.headers).replay or 0
            if (happening.sender, replay, event.eventId) in self._known:
                what = (
                    f"event {shown(event.eventId)} of replay {shown(replay)}, which was known to be"
                    " taken"
                )
                self._find("ReplaysTwice", happening.sender, happening.round, what)

    def _replay_taken(self, event: Event, replay: int) -> None:
        """Note that a broadcaster has accepted an event of a replay from its publisher."""
        taken = self._replayed.setdefault(replay, {})
        taken[event.eventId] = taken.get(event.eventId, 0) + 1

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
                what = f"asked for ({shown(start)}, {end if end is None else shown(end)})"
                self._find("AsksForAll", call.sender, call.round, what)

    def _canceled(self, call: Happening, response: bytes) -> None:
        """Judge a canister that cancels the replay of another one."""
        if any(error_of(each) == "Unauthorized" for each in CANCEL_REPLAY.result(response)):
            self._find(
                "CancelsOthers", call.sender, call.round, "canceled a replay that is not its own"
            )

    def _reported(self, call: Happening, response: bytes) -> None:
        """Note reports on replays, and judge those on replays of others or of changed events."""
        for item, result in zip(
            REPLAY_STATUS.value(call.data), REPLAY_STATUS.result(response), strict=False
        ):
            if error_of(result) == "Unauthorized":
                self._find(
                    "ReportsForAnother",
                    call.sender,
                    call.round,
                    f"reported on replay {shown(item.replayId)}",
                )
            elif result is not None and result.tag == "Ok":
                match item.status:
                    case ("completed", count):
                        self._reports[item.replayId] = ("completed", count, call.sender, call.round)
                    case ("errored", words) if (
                        "hash mismatch" in words and call.sender not in self._misled
                    ):
                        self._find("Rewrites", call.sender, call.round, words)

    def _paged(self, call: Happening, response: bytes) -> None:
        """Judge an archive that returns other data than the publisher has published.

        The publisher is then not to blame for the hash mismatch that it reports.
        """
        for event in ARCHIVE_PAGE.result(response):
            key = (event.namespace, event.source, event.eventId)
            known = [each[1] for (_, found), each in self._accepted.items() if found == key]
            if known and all(each.data != event.data for each in known):
                self._misled.add(call.sender)
                what = f"event {shown(event.eventId)} has other data than it had"
                self._find("Rewrites", call.receiver, call.round, what)

    def _judge_replays(self, logs: Logs) -> None:
        """Compare the completed replays with the events that were accepted and with the logs."""
        for number, (_, count, publisher, round_) in self._reports.items():
            ids = {i for _, i in logs.get(publisher, ())}
            taken = {
                i: n
                for i, n in self._replayed.get(number, {}).items()
                if i in ids or publisher not in logs
            }
            if count > len(taken):
                what = f"reported {shown(count)} events, {len(taken)} were accepted"
                self._find("Overcharges", publisher, round_, what)
            if number not in self._ranges or publisher not in logs or not taken:
                continue
            name, start, end = self._ranges[number]
            last = max(taken) + 1 if end is None else end
            due = [i for space, i in logs[publisher] if space == name and start <= i < last]
            skipped = [i for i in due if i not in taken]
            if (
                skipped
                and len(due) <= max(len(taken), 1) + len(skipped)
                and skipped[0] < max(taken)
            ):
                what = f"event {shown(skipped[0])} of replay {shown(number)} was left out"
                self._find("SkipsInReplay", publisher, round_, what)

    def _judge_claims(self, alive: set[Principal]) -> None:
        """Judge promises that were not kept.

        These are notifications of replays that a broadcaster has answered but never sent, reports
        on replays that are missing, and notifications that are never confirmed.
        """
        made = {(sender, n.notificationId) for _, sender, _, n in self._seen}
        for (broadcaster, number), (round_, replay) in self._claimed.items():
            whose = self._replays.get(replay)
            steady = whose in alive and whose not in self._unsteady and whose not in self._suspended
            if steady and broadcaster in alive and (broadcaster, number) not in made:
                what = f"notification {shown(number)} of replay {shown(replay)} never came"
                self._find("DropsReplay", broadcaster, round_, what)
        for (publisher, replay), round_ in self._due.items():
            if (
                publisher in alive
                and publisher not in self._unsteady
                and self._now - round_ > PATIENCE
            ):
                self._find(
                    "NeverReports", publisher, round_, f"no report on replay {shown(replay)}"
                )
        for (sender, receiver, number), count in self._came.items():
            if count > REPEATS and receiver in alive and receiver not in self._unsteady:
                what = f"notification {shown(number)} of {sender.text} came {shown(count)} times"
                self._find("NeverConfirms", receiver, 0, what)

    def _compare(
        self, at: int, sender: Principal, receiver: Principal, note: EventNotification, logs: Logs
    ) -> None:
        """Compare a notification with the event in its publisher's log.

        For replayed events that the publisher itself has sent so, the publisher is to blame, and
        otherwise the broadcaster.
        """
        log = logs.get(note.source)
        # The publisher has no log, or is gone.
        if log is None:
            return
        event = log.get((note.namespace, note.eventId))
        what = f"event {shown(note.eventId)} to {receiver.text}"
        replay = read(note.headers).replay
        if event is None:
            honest = replay is not None and note.eventId in self._replayed.get(replay, {})
            actor = note.source if honest else sender
            self._find("ReplaysInvented" if honest else "Invents", actor, at, what)
        elif event.data != note.data:
            honest = replay is not None
            self._find(
                "ReplaysAltered" if honest else "AltersData",
                note.source if honest else sender,
                at,
                what,
            )
        elif event.prevEventId != note.prevEventId or not grown(
            event.headers, note.headers, sender
        ):
            self._find("AltersHeaders", sender, at, what)

    def _judge_places(self) -> None:
        """Judge the order of notifications of one event by the ranks of the subscribers."""
        for (sender, key), places in self._places.items():
            ranks = self._ranks.get(key[0])
            if not ranks:
                continue
            for one, place in places.items():
                for other, behind in places.items():
                    if place < behind and ranks.get(one, 0) < ranks.get(other, 0):
                        self._find(
                            "FavoursOne",
                            sender,
                            0,
                            f"{one.text} before {other.text} for event {shown(key[2])}",
                        )

    def _judge_missing(self, alive: set[Principal]) -> None:
        """Judge broadcasters that have accepted events and not delivered or relayed them.

        A broadcaster that has lost all accepted events gets one finding (AcceptsAndForgets) in
        place of one for each kind of loss.
        """
        live = [
            (receiver, each)
            for _, _, receiver, each in self._seen
            if read(each.headers).replay is None
        ]
        notified = {
            (receiver, (each.namespace, each.source, each.eventId)) for receiver, each in live
        }
        self._judge_claims(alive)
        forgotten: dict[Principal, list[bool]] = {}
        dropped: list[tuple[str, Principal, int, str]] = []
        for (broadcaster, key), (round_, event) in self._accepted.items():
            if broadcaster in self._unsteady or broadcaster not in alive:
                continue
            lost, due = self._lost(broadcaster, round_, event, notified, alive)
            relays: list[Principal] = []
            # An event with this header came from a relay and is not relayed again.
            if read(event.headers).broadcaster is None:
                for (source, name, target), since in self._relays.items():
                    if (
                        source == broadcaster
                        and name == key[0]
                        and since < round_
                        and target in alive
                    ):
                        relays.append(target)
            steady = [
                each
                for each in relays
                if event.source != broadcaster and each not in self._unsteady
            ]
            unsent = [each for each in steady if (each, key) not in self._accepted]
            if wanted := due + len(relays):
                forgotten.setdefault(broadcaster, []).append(len(lost) + len(unsent) == wanted)
            for cheat, losers in (("Drops", lost), ("RelayDrops", unsent)):
                if losers:
                    what = f"event {shown(key[2])} never went to {losers[0].text}"
                    dropped.append((cheat, broadcaster, round_, what))
        for broadcaster, all_lost in forgotten.items():
            if all(all_lost):
                self._find(
                    "AcceptsAndForgets",
                    broadcaster,
                    0,
                    f"nothing came of {len(all_lost)} accepted events",
                )
        for cheat, broadcaster, round_, evidence in dropped:
            if ("AcceptsAndForgets", broadcaster) not in self.said:
                self._find(cheat, broadcaster, round_, evidence)

    def _lost(
        self,
        broadcaster: Principal,
        at: int,
        event: Event,
        got: set[tuple[Principal, EventKey]],
        alive: set[Principal],
    ) -> tuple[list[Principal], int]:
        """Return the subscribers that did not get an event, and how many should have got it.

        Subscribers that may have a good reason are not counted: they are gone, suspended, do not
        confirm, or have changed their subscriptions.
        """
        lost: list[Principal] = []
        due = 0
        for (server, name, who), since in self._served.items():
            if server != broadcaster or name != event.namespace or since >= at or who not in alive:
                continue
            if who in self._suspended or who in self._unsteady or who not in self._confirmers:
                continue
            if ("NeverConfirms", who) in self.said:
                continue
            configs = {
                pattern: each
                for pattern, each in self._configs.get(who, {}).items()
                if matches(pattern, name)
            }
            mine = list(chained.from_iterable(configs.values()))
            # More than one width of a pattern means that the subscription was changed.
            if len(mine) != len(configs):
                continue
            if is_late(who, mine, read(event.headers).late):
                continue
            if any(lets_pass(each, event) for each in mine):
                due += 1
                if (who, (name, event.source, event.eventId)) not in got:
                    lost.append(who)
        return lost, due


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
    rest = new[len(old) :]
    places = [ORDER.get(name, -1) for name, _ in rest]
    said = read(rest)
    complete = said.broadcaster is not None and any(name == keys.SENT for name, _ in rest)
    ordered = new[: len(old)] == old and places == sorted(set(places)) and -1 not in places
    return ordered and complete and sender == (said.relay if said.relayed else said.broadcaster)
