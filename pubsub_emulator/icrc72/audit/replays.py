"""The audit of replays (RP-14)."""

from collections.abc import Mapping

from pubsub_emulator.icrc72 import keys
from pubsub_emulator.icrc72.audit.record import PATIENCE, REPEATS, Record, error_of
from pubsub_emulator.icrc72.headers import read
from pubsub_emulator.icrc72.ic.errors import shown
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.ic.trace import Happening
from pubsub_emulator.icrc72.messages import Event, EventNotification
from pubsub_emulator.icrc72.methods import ARCHIVE_PAGE, CANCEL_REPLAY, PUBLISH, REGISTER_REPLAY, REPLAY_STATUS


class Replays(Record):
    """Publishers, archives and broadcasters in replays."""

    def _replays_again(self, happening: Happening) -> None:
        for event in PUBLISH.value(happening.data):
            replay = read(event.headers).replay or 0
            if (happening.sender, replay, event.eventId) in self._known:
                what = f"event {shown(event.eventId)} of replay {shown(replay)}, which was known to be taken"
                self._find("ReplaysTwice", happening.sender, happening.round, what)

    def _replay_taken(self, event: Event, replay: int) -> None:
        taken = self._replayed.setdefault(replay, {})
        taken[event.eventId] = taken.get(event.eventId, 0) + 1

    def _replay_asked(self, call: Happening, response: bytes) -> None:
        for item, result in zip(REGISTER_REPLAY.value(call.data), REGISTER_REPLAY.result(response), strict=False):
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
        if any(error_of(each) == "Unauthorized" for each in CANCEL_REPLAY.result(response)):
            self._find("CancelsOthers", call.sender, call.round, "canceled a replay that is not its own")

    def _reported(self, call: Happening, response: bytes) -> None:
        for item, result in zip(REPLAY_STATUS.value(call.data), REPLAY_STATUS.result(response), strict=False):
            if error_of(result) == "Unauthorized":
                self._find("ReportsForAnother", call.sender, call.round, f"reported on replay {shown(item.replayId)}")
            elif result is not None and result.tag == "Ok":
                match item.status:
                    case ("completed", count):
                        self._reports[item.replayId] = ("completed", count, call.sender, call.round)
                    case ("errored", words) if "hash mismatch" in words and call.sender not in self._misled:
                        self._find("Rewrites", call.sender, call.round, words)

    def _paged(self, call: Happening, response: bytes) -> None:
        """Check that an archive hands over what its publisher had published."""
        for event in ARCHIVE_PAGE.result(response):
            key = (event.namespace, event.source, event.eventId)
            known = [each[1] for (_, found), each in self._accepted.items() if found == key]
            if known and all(each.data != event.data for each in known):
                self._misled.add(call.sender)
                self._find(
                    "Rewrites", call.receiver, call.round, f"event {shown(event.eventId)} has other data than it had"
                )

    def _relayed_so(self, note: EventNotification) -> bool:
        replay = read(note.headers).replay
        return replay is not None and note.eventId in self._replayed.get(replay, {})

    def _judge_replays(self, logs: Mapping[Principal, Mapping[tuple[str, int], Event]]) -> None:
        for number, (_, count, publisher, round_) in self._reports.items():
            ids = {i for _, i in logs.get(publisher, ())}
            taken = {i: n for i, n in self._replayed.get(number, {}).items() if i in ids or publisher not in logs}
            if count > len(taken):
                self._find(
                    "Overcharges", publisher, round_, f"reported {shown(count)} events, {len(taken)} were accepted"
                )
            if number not in self._ranges or publisher not in logs or not taken:
                continue
            name, start, end = self._ranges[number]
            last = max(taken) + 1 if end is None else end
            due = [i for space, i in logs[publisher] if space == name and start <= i < last]
            skipped = [i for i in due if i not in taken]
            if skipped and len(due) <= max(len(taken), 1) + len(skipped) and skipped[0] < max(taken):
                self._find(
                    "SkipsInReplay",
                    publisher,
                    round_,
                    f"event {shown(skipped[0])} of replay {shown(number)} was left out",
                )

    def _judge_claims(self, alive: set[Principal]) -> None:
        """Notifications of replays that a broadcaster said it made, and that never came."""
        made = {(sender, n.notificationId) for _, sender, _, n in self._seen}
        for (broadcaster, number), (round_, replay) in self._claimed.items():
            whose = self._replays.get(replay)
            steady = whose in alive and whose not in self._unsteady and whose not in self._suspended
            if steady and broadcaster in alive and (broadcaster, number) not in made:
                self._find(
                    "DropsReplay",
                    broadcaster,
                    round_,
                    f"notification {shown(number)} of replay {shown(replay)} never came",
                )
        for (publisher, replay), round_ in self._due.items():
            if publisher in alive and publisher not in self._unsteady and self._now - round_ > PATIENCE:
                self._find("NeverReports", publisher, round_, f"no report on replay {shown(replay)}")
        for (sender, receiver, number), count in self._came.items():
            if count > REPEATS and receiver in alive and receiver not in self._unsteady:
                self._find(
                    "NeverConfirms",
                    receiver,
                    0,
                    f"notification {shown(number)} of {sender.text} came {shown(count)} times",
                )
