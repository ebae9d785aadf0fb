"""The audit of replays (RP-14)."""

from collections.abc import Mapping
from typing import Any

from pubsub_emulator.eventplane.ic.principal import Principal
from pubsub_emulator.eventplane.ic.trace import Happening
from pubsub_emulator.eventplane.ic.words import shown
from pubsub_emulator.eventplane.icrc72 import keys
from pubsub_emulator.eventplane.icrc72.audit.record import PATIENCE, Record, error_of
from pubsub_emulator.eventplane.icrc72.messages import Event, EventNotification
from pubsub_emulator.eventplane.icrc72.services import codec
from pubsub_emulator.eventplane.icrc72.values import as_nat, first


class Replays(Record):
    """Publishers, archives and broadcasters in replays."""

    def _replays_again(self, happening: Happening) -> None:
        (events,) = codec("icrc72_publish").args.decode(happening.data)
        for event in events:
            replay = as_nat(first(event.headers, keys.REPLAY_ID)) or 0
            if (happening.sender, replay, event.eventId) in self._known:
                what = f"event {shown(event.eventId)} of replay {shown(replay)}, which was known to be taken"
                self._find("ReplaysTwice", happening.sender, happening.round, what)

    def _replay_taken(self, event: Event, replay: int) -> None:
        taken = self._replayed.setdefault(replay, {})
        taken[event.eventId] = taken.get(event.eventId, 0) + 1

    def _replay_asked(self, call: Happening, values: Any, results: Any) -> None:
        for item, result in zip(values[0], results, strict=False):
            if result is not None and result.tag == "Ok":
                self._replays[result.value] = call.sender
                self._ranges[result.value] = (item.namespace, *item.range)
                continue
            error = error_of(result)
            if error in {"RangeTooLarge", keys.QUOTA}:
                start, end = item.range
                what = f"asked for ({shown(start)}, {end if end is None else shown(end)})"
                self._find("AsksForAll", call.sender, call.round, what)
            elif error == "PaymentRequired":
                self._find("PaysNothing", call.sender, call.round, result.value.value)

    def _canceled(self, call: Happening, _values: Any, results: Any) -> None:
        if any(error_of(each) == "Unauthorized" for each in results):
            self._find("CancelsOthers", call.sender, call.round, "canceled a replay that is not its own")

    def _reported(self, call: Happening, values: Any, results: Any) -> None:
        for item, result in zip(values[0], results, strict=False):
            if error_of(result) == "Unauthorized":
                self._find("ReportsForAnother", call.sender, call.round, f"reported on replay {shown(item.replayId)}")
            elif result is not None and result.tag == "Ok":
                tag, inside = item.status
                if tag == "completed":
                    self._reports[item.replayId] = (tag, inside, call.sender, call.round)
                elif tag == "errored" and "hash mismatch" in inside and call.sender not in self._misled:
                    self._find("Rewrites", call.sender, call.round, inside)

    def _paged(self, call: Happening, _values: Any, events: Any) -> None:
        """What an archive hands over is what its publisher had published."""
        for event in events:
            key = (event.namespace, event.source, event.eventId)
            known = [each[1] for (_, found), each in self._accepted.items() if found == key]
            if known and all(each.data != event.data for each in known):
                self._misled.add(call.sender)
                self._find(
                    "Rewrites", call.receiver, call.round, f"event {shown(event.eventId)} has other data than it had"
                )

    def _relayed_so(self, note: EventNotification) -> bool:
        replay = as_nat(first(note.headers, keys.REPLAY_ID))
        return replay is not None and note.eventId in self._replayed.get(replay, {})

    def _judge_replays(self, logs: Mapping[Principal, Mapping[tuple[str, int], Event]]) -> None:
        for number, (_, count, publisher, round_) in self._reports.items():
            taken = self._replayed.get(number, {})
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
            if count > 4 and receiver in alive and receiver not in self._unsteady and receiver not in self._confirmers:
                self._find(
                    "NeverConfirms",
                    receiver,
                    0,
                    f"notification {shown(number)} of {sender.text} came {shown(count)} times",
                )


__all__ = ["Replays"]
