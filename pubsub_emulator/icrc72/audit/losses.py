"""The comparison of notifications with logs at the end of an audit (IC-51)."""

from collections.abc import Mapping

from pubsub_emulator.icrc72.audit.record import EventKey, grown
from pubsub_emulator.icrc72.audit.replays import Replays
from pubsub_emulator.icrc72.facts import is_late
from pubsub_emulator.icrc72.filters import lets_pass
from pubsub_emulator.icrc72.headers import read
from pubsub_emulator.icrc72.ic.errors import shown
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.messages import Event, EventNotification
from pubsub_emulator.icrc72.namespaces import matches


class Losses(Replays):
    """Notifications against logs: altered, invented, out of turn, lost."""

    def _compare(
        self,
        round_: int,
        sender: Principal,
        receiver: Principal,
        note: EventNotification,
        logs: Mapping[Principal, Mapping[tuple[str, int], Event]],
    ) -> None:
        log = logs.get(note.source)
        if log is None:
            return  # a publisher without a log: nothing to compare with
        event = log.get((note.namespace, note.eventId))
        what = f"event {shown(note.eventId)} to {receiver.text}"
        replay = read(note.headers).replay
        if event is None:
            honest = replay is not None and self._relayed_so(note)
            actor = note.source if honest else sender
            self._find("ReplaysInvented" if honest else "Invents", actor, round_, what)
        elif event.data != note.data:
            honest = replay is not None
            self._find("ReplaysAltered" if honest else "AltersData", note.source if honest else sender, round_, what)
        elif event.prevEventId != note.prevEventId or not grown(event.headers, note.headers, sender):
            self._find("AltersHeaders", sender, round_, what)

    def _judge_places(self) -> None:
        for (sender, key), places in self._places.items():
            ranks = self._ranks.get(key[0])
            if not ranks:
                continue
            for one, place in places.items():
                for other, behind in places.items():
                    if place < behind and ranks.get(one, 0) < ranks.get(other, 0):
                        self._find("FavoursOne", sender, 0, f"{one.text} before {other.text} for event {shown(key[2])}")

    def _judge_missing(self, alive: set[Principal]) -> None:
        notified = {
            (receiver, (n.namespace, n.source, n.eventId))
            for _, _, receiver, n in self._seen
            if read(n.headers).replay is None
        }
        self._judge_claims(alive)
        forgotten: dict[Principal, list[bool]] = {}
        dropped: list[tuple[str, Principal, int, str]] = []
        for (broadcaster, key), (round_, event) in self._accepted.items():
            if broadcaster in self._unsteady or broadcaster not in alive:
                continue
            lost, due = self._lost(broadcaster, key, round_, event, notified, alive)
            relays = [
                target
                for (source, name, target), since in self._relays.items()
                if source == broadcaster and name == key[0] and since < round_ and target in alive
            ]
            unsent = [
                target
                for target in relays
                if event.source != broadcaster
                and not self._relayed_here(event)
                and target not in self._unsteady
                and (target, key) not in self._accepted
            ]
            wanted = due + len(relays) if not self._relayed_here(event) else due
            if wanted:
                forgotten.setdefault(broadcaster, []).append(len(lost) + len(unsent) == wanted)
            for cheat, losers in (("Drops", lost), ("RelayDrops", unsent)):
                if losers:
                    dropped.append(
                        (cheat, broadcaster, round_, f"event {shown(key[2])} never went to {losers[0].text}")
                    )
        for broadcaster, all_lost in forgotten.items():
            if all(all_lost):
                self._find("AcceptsAndForgets", broadcaster, 0, f"nothing came of {len(all_lost)} accepted events")
        for cheat, broadcaster, round_, evidence in dropped:
            if ("AcceptsAndForgets", broadcaster) not in self.said:
                self._find(cheat, broadcaster, round_, evidence)

    @staticmethod
    def _relayed_here(event: Event) -> bool:
        return read(event.headers).broadcaster is not None

    def _lost(  # noqa: PLR0917 — what a loss is judged by
        self,
        broadcaster: Principal,
        key: EventKey,
        round_: int,
        event: Event,
        notified: set[tuple[Principal, EventKey]],
        alive: set[Principal],
    ) -> tuple[list[Principal], int]:
        lost: list[Principal] = []
        due = 0
        for (server, name, who), since in self._served.items():
            if server != broadcaster or name != key[0] or since >= round_ or who not in alive:
                continue
            if who in self._suspended or who in self._unsteady or who not in self._confirmers:
                continue
            if ("NeverConfirms", who) in self.said:
                continue
            configs = self._configs.get(who, {})
            mine = [each for pattern, found in configs.items() if matches(pattern, name) for each in found]
            if len(mine) != len({pattern for pattern in configs if matches(pattern, name)}):
                continue  # it changed what it wants
            if is_late(who, mine, read(event.headers).late):
                continue
            if any(lets_pass(each, event.eventId, event.data) for each in mine):
                due += 1
                if (who, key) not in notified:
                    lost.append(who)
        return lost, due
