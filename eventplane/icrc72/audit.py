"""The audit: what a trace, the publishers' logs and the subscriptions say about everybody (IC-51).

It believes messages and nothing else: what was published, what was answered, who was notified of what, in which round.
It accuses only where an honest participant could not have done the same under any schedule; what deaths, suspensions
and crossing alerts explain is not held against anybody.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from pubsub_emulator.eventplane.ic.candid.types import Variant
from pubsub_emulator.eventplane.ic.errors import CandidError
from pubsub_emulator.eventplane.ic.principal import Principal
from pubsub_emulator.eventplane.ic.trace import Happening
from pubsub_emulator.eventplane.icrc72 import keys
from pubsub_emulator.eventplane.icrc72.alerts import MemberAlert, read_broker_alert
from pubsub_emulator.eventplane.icrc72.errors import ConfigError
from pubsub_emulator.eventplane.icrc72.filters import matches as filter_matches
from pubsub_emulator.eventplane.icrc72.identifiers import OWN
from pubsub_emulator.eventplane.icrc72.messages import Event, EventNotification
from pubsub_emulator.eventplane.icrc72.namespaces import is_system, matches, system_owner
from pubsub_emulator.eventplane.icrc72.orchestrator.config import changed_subscription, new_subscription
from pubsub_emulator.eventplane.icrc72.services import codec
from pubsub_emulator.eventplane.icrc72.values import Pairs, as_items, as_nat, as_principal, first


class Finding(NamedTuple):
    """Somebody did what no honest participant does."""

    cheat: str
    actor: Principal
    round: int
    evidence: str


EventKey = tuple[str, Principal, int]
"""Namespace, source and id."""

_ORDER: Final = {each.name: at for at, each in enumerate(keys.HEADERS)}
_PATIENCE: Final = 200
"""Rounds after which a publisher without a report is silent (RP-13a)."""

_REPLAY_ID: Final = keys.REPLAY_ID.encode()

_OWN_ALERTS: Final = frozenset([keys.SUBSCRIBER_ERROR, keys.SUBSCRIBER_REPLAY_ADD, keys.SUBSCRIBER_REPLAY_REMOVE])


class Audit:
    """An observer of a network that finds cheats."""

    def __init__(self, orchestrator: Principal, broadcasters: Iterable[Principal]) -> None:
        self.orchestrator = orchestrator
        self.broadcasters = frozenset(broadcasters)
        self.findings: dict[Finding, None] = {}
        self.said: set[tuple[str, Principal]] = set()
        self._calls: dict[int, tuple[Happening, Any]] = {}
        self._configs: dict[Principal, dict[str, list[tuple[str | None, Any]]]] = {}
        self._notified: dict[tuple[Principal, Principal, EventKey, int], int] = {}
        self._last: dict[tuple[Principal, Principal, str, Principal, int], int] = {}
        self._seen: list[tuple[int, Principal, Principal, EventNotification]] = []
        self._accepted: dict[tuple[Principal, EventKey], tuple[int, Event]] = {}
        self._brought: dict[tuple[Principal, EventKey], bytes] = {}
        self._served: dict[tuple[Principal, str, Principal], int] = {}
        self._relays: dict[tuple[Principal, str, Principal], int] = {}
        self._unsteady: set[Principal] = set()
        self._suspended: set[Principal] = set()
        self._sent: dict[tuple[str, int], Variant] = {}
        self._replays: dict[int, Principal] = {}
        self._ranges: dict[int, tuple[str, int, int | None]] = {}
        self._replayed: dict[int, dict[int, int]] = {}
        self._reports: dict[int, tuple[str, int, Principal, int]] = {}
        self._ranks: dict[str, dict[Principal, int]] = {}
        self._places: dict[tuple[Principal, EventKey], dict[Principal, int]] = {}
        self._registered: set[tuple[Principal, str]] = set()
        self._alerts: dict[tuple[Principal, int], Any] = {}
        self._claimed: dict[tuple[Principal, int], tuple[int, int]] = {}
        self._due: dict[tuple[Principal, int], int] = {}
        self._came: dict[tuple[Principal, Principal, int], int] = {}
        self._confirmers: set[Principal] = set()
        self._taken: dict[int, list[tuple[Principal, int, int]]] = {}
        self._known: set[tuple[Principal, int, int]] = set()
        self._told_entries: set[Principal] = set()
        """Publishers who were told where to publish; what they send may cross with a removal."""
        self._misled: set[Principal] = set()
        """Publishers to whom an archive handed over other data."""
        self._now = 0

    # Listening

    def happened(self, happening: Happening) -> None:
        """Note what happens."""
        kind = happening.kind
        self._now = happening.round
        if kind == "execute":
            self._execute(happening)
        elif kind == "respond":
            self._respond(happening)
        elif kind == "send" and happening.sender == self.orchestrator:
            self._told(happening)
        elif kind == "send" and happening.method == "icrc72_publish" and _REPLAY_ID in happening.data:
            self._replays_again(happening)
        elif kind == "answer" and happening.method == "icrc72_publish":
            # a publisher that has heard that its event was taken has no reason to send it again
            self._known.update(self._taken.pop(happening.number, ()) if not happening.code else ())
        elif kind == "trap" and b"unreadable" in happening.data:
            self._find("Bombs", happening.sender, happening.round, happening.data.decode(errors="replace")[:120])
        elif kind in {"stop", "uninstall", "upgrade"}:
            self._unsteady.add(happening.receiver)

    def _replays_again(self, happening: Happening) -> None:
        (events,) = codec("icrc72_publish").args.decode(happening.data)
        for event in events:
            replay = as_nat(first(event.headers, keys.REPLAY_ID)) or 0
            if (happening.sender, replay, event.eventId) in self._known:
                what = f"event {event.eventId} of replay {replay}, which was known to be taken"
                self._find("ReplaysTwice", happening.sender, happening.round, what)

    def _find(self, cheat: str, actor: Principal, round_: int, evidence: str) -> None:
        """One finding per cheat and actor: the first."""
        if (cheat, actor) not in self.said:
            self.said.add((cheat, actor))
            self.findings[Finding(cheat, actor, round_, evidence)] = None

    def _execute(self, happening: Happening) -> None:
        method = happening.method
        if method == "handle_event":
            self._calls[happening.number] = (happening, None)
            return
        if not method.startswith(("icrc72_", "icrc77_", "archive_page")):
            return
        try:
            values = codec(method).args.decode(happening.data)
        except (CandidError, KeyError):
            return
        self._calls[happening.number] = (happening, values)
        if method == "icrc72_confirm_notifications":
            self._confirmers.add(happening.sender)
        if method == "icrc77_replay_status":
            for each in values[0]:
                due = (happening.sender, each.replayId)
                if happening.round - self._due.get(due, happening.round) <= _PATIENCE:
                    self._due[due] = 1 << 62
        if method == "icrc72_confirm_notifications" and happening.receiver == self.orchestrator:
            for number in values[0]:
                self._applied(happening.sender, number, happening.round)
        if method.startswith("icrc72_handle_notification"):
            for each in values[0]:
                self._notification(happening, each)

    def _respond(self, happening: Happening) -> None:
        known = self._calls.pop(happening.number, None)
        if known is None:
            return
        call, values = known
        if call.method == "handle_event":
            if happening.code == 5 and happening.data == b"" and call.round == happening.round:
                self._find("AlwaysTraps", call.receiver, happening.round, "its handler trapped")
            return
        if happening.code:
            return
        try:
            results = codec(call.method).rets.decode(happening.data)
        except CandidError:
            return
        judge = _JUDGES.get(call.method)
        if judge is not None:
            judge(self, call, values, results[0])

    def _told(self, happening: Happening) -> None:
        """What the orchestrator tells everybody."""
        if happening.method not in {"icrc72_publish", "icrc72_handle_notification"}:
            return
        try:
            (items,) = codec(happening.method).args.decode(happening.data)
        except CandidError:
            return
        for each in items:
            if is_system(each.namespace):
                self._sent[each.namespace, each.eventId] = each.data
                owner = system_owner(each.namespace)
                if owner is not None and owner[0] == "publisher" and MemberAlert(each.data).entries:
                    self._told_entries.add(owner[1])

    # Notifications

    def _notification(self, call: Happening, note: EventNotification) -> None:
        sender, receiver = call.sender, call.receiver
        spot = (sender, receiver, note.notificationId)
        self._came[spot] = self._came.get(spot, 0) + 1
        if is_system(note.namespace):
            self._system(call, note)
            return
        if sender not in self.broadcasters:
            self._find("FakeBroadcaster", sender, call.round, f"notified {receiver.text} of event {note.eventId}")
            return
        self._seen.append((call.round, sender, receiver, note))
        replay = as_nat(first(note.headers, keys.REPLAY_ID)) or 0
        key = (note.namespace, note.source, note.eventId)
        known = self._notified.get((sender, receiver, key, replay))
        if known is not None and known != note.notificationId:
            self._find("Repeats", sender, call.round, f"event {note.eventId} as notification {known} and again")
        if known is None and not replay and note.prevEventId is not None:
            self._in_order(call, note)
        self._notified[sender, receiver, key, replay] = note.notificationId
        if replay:
            whose = self._replays.get(replay)
            if whose is not None and whose != receiver:
                self._find("ReplaysToAll", sender, call.round, f"replay {replay} went to {receiver.text}")
        else:
            self._entitled(call, note)
            parts = as_items(first(note.headers, keys.PRIORITY)) or ()
            place = as_nat(parts[0]) if parts else None
            if place is not None:
                self._places.setdefault((sender, key), {})[receiver] = place

    def _in_order(self, call: Happening, note: EventNotification) -> None:
        parts = as_items(first(note.headers, keys.PARTITION)) or ()
        partition = (as_nat(parts[0]) or 0) if parts else 0
        place = (call.sender, call.receiver, note.namespace, note.source, partition)
        last = self._last.get(place)
        if last is not None and note.eventId < last:
            self._find("Reorders", call.sender, call.round, f"event {note.eventId} after event {last}")
        self._last[place] = max(note.eventId, last or 0)

    def _system(self, call: Happening, note: EventNotification) -> None:
        sender = call.sender
        if sender == self.orchestrator:
            if note.namespace.startswith("icrc72:broadcaster:"):
                self._assigned(call, note)
            return
        if sender not in self.broadcasters:
            cheat = "FakeOrchestrator" if call.receiver in self.broadcasters else "FakeBroadcaster"
            self._find(cheat, sender, call.round, f"a system event to {call.receiver.text}")
        elif note.source == self.orchestrator:
            if self._sent.get((note.namespace, note.eventId)) != note.data:
                self._find("ForgesSystemEvent", sender, call.round, f"system event {note.eventId} was never sent")
        elif note.data.tag != "Map" or any(name not in _OWN_ALERTS for name, _ in note.data.value):
            self._find("ForgesSystemEvent", sender, call.round, "an alert that only the orchestrator sends")
        elif first(note.data.value, keys.SUBSCRIBER_ERROR) is not None:
            self._suspended.add(call.receiver)
        if sender in self.broadcasters and note.source == self.orchestrator:
            for number, _, _, _, _ in MemberAlert(note.data).replays:
                self._due.setdefault((call.receiver, number), call.round)

    def _assigned(self, call: Happening, note: EventNotification) -> None:
        adds, removes = read_broker_alert(note.data)
        who = call.receiver
        if any(fact[0] in {"sub", "pub", "relay", "relayer"} for fact in removes):
            self._unsteady.add(who)
            self._notified = {k: v for k, v in self._notified.items() if k[0] != who}
            self._last = {k: v for k, v in self._last.items() if k[0] != who}
        self._alerts[who, note.notificationId] = adds

    def _applied(self, broadcaster: Principal, number: int, round_: int) -> None:
        """A broadcaster confirms an alert: it acts on it now at the latest."""
        for fact, value in self._alerts.pop((broadcaster, number), ()):
            if fact[0] == "sub":
                self._served.setdefault((broadcaster, fact[1], fact[2]), round_)
            elif fact[0] == "relay" and value == (None, None) and not fact[3]:
                self._relays.setdefault((broadcaster, fact[1], fact[2]), round_)

    def _entitled(self, call: Happening, note: EventNotification) -> None:
        configs = self._configs.get(call.receiver, {})
        mine = [each for pattern, found in configs.items() if matches(pattern, note.namespace) for each in found]
        passing = [each for each in mine if each[1] is None or each[1].passes(note.eventId)]
        if mine and not passing:
            self._find("IgnoresSkip", call.sender, call.round, f"event {note.eventId} does not pass the skip")
        elif not any(each[0] is None or filter_matches(each[0], note.data) for each in passing):
            self._find("IgnoresFilter", call.sender, call.round, f"event {note.eventId} passes no filter")

    # Answers

    def _published(self, call: Happening, values: Any, results: Any) -> None:
        for event, result in zip(values[0], results, strict=False):
            if result is None or is_system(event.namespace):
                continue
            replay = as_nat(first(event.headers, keys.REPLAY_ID))
            if result.tag == "Ok":
                if replay is not None:
                    for number in result.value:
                        self._claimed[call.receiver, number] = (call.round, replay)
                    if call.sender == event.source:
                        self._replay_taken(event, replay)
                        self._taken.setdefault(call.number, []).append((call.sender, replay, event.eventId))
                    continue
                key = (event.namespace, event.source, event.eventId)
                self._accepted.setdefault((call.receiver, key), (call.round, event))
                self._brought[call.sender, key] = codec("icrc72_publish").args.encode((event,))
            else:
                self._refused(call, event, result.value, replay)

    def _replay_taken(self, event: Event, replay: int) -> None:
        taken = self._replayed.setdefault(replay, {})
        taken[event.eventId] = taken.get(event.eventId, 0) + 1

    def _refused(self, call: Happening, event: Event, error: Variant, replay: int | None) -> None:
        sender, at = call.sender, call.round
        what = f"event {event.eventId} in {event.namespace} was answered {error.tag}"
        if error.tag == "ImproperId":
            own = event.eventId // OWN in {0, int.from_bytes(event.source, "big")}
            if sender in self.broadcasters or replay is not None:
                return
            key = (event.namespace, event.source, event.eventId)
            if not own or (event.eventId // OWN == 0 and (sender, event.namespace) not in self._registered):
                self._find("UsesForeignIds", sender, at, what)
            elif any(known[1] == key and each[1].data != event.data for known, each in self._accepted.items()):
                self._find("Equivocates", sender, at, what)
            else:
                self._find("BreaksChain", sender, at, what)
        elif error.tag == "Unauthorized":
            self._unauthorized(call, event, what, replay)

    def _unauthorized(self, call: Happening, event: Event, what: str, replay: int | None) -> None:
        sender, at = call.sender, call.round
        if sender in self.broadcasters:
            if first(event.headers, keys.RELAY) is not None:
                looped = as_principal(first(event.headers, keys.BROADCASTER)) == call.receiver
                self._find("RelaysInLoop" if looped else "RelaysTwice", sender, at, what)
            elif as_principal(first(event.headers, keys.BROADCASTER)) != sender:
                self._find("RelaysForeign", sender, at, what)
        elif event.source != sender:
            self._find("ForgesSource", sender, at, what)
        elif any(name in keys.BROADCASTER_HEADERS for name, _ in event.headers or ()):
            self._find("PlantsHeaders", sender, at, what)
        elif replay is not None:
            if replay not in self._replays:
                self._find("ReplaysUnasked", sender, at, what)
        elif sender not in self._told_entries:
            self._find("PublishesEarly", sender, at, what)

    def _confirmed(self, call: Happening, _values: Any, result: Any) -> None:
        if result.tag == "itemized" and any(_error(each) == "Unauthorized" for each in result.value):
            self._find("ConfirmsOthers", call.sender, call.round, "confirmed another's notification")

    def _subscribed(self, call: Happening, values: Any, results: Any) -> None:
        for item, result in zip(values[0], results, strict=False):
            if result is not None and result.tag == "Ok":
                self._note_config(call.sender, item.namespace, item.config)
            elif _error(result) == keys.QUOTA:
                self._find("Floods", call.sender, call.round, "more subscriptions than its quota")

    def _note_config(self, who: Principal, pattern: str, config: Pairs) -> None:
        made = new_subscription(who, config)
        self._configs.setdefault(who, {}).setdefault(pattern, []).append((made.filter, made.skip))

    def _changed(self, call: Happening, values: Any, results: Any) -> None:
        """Whoever changes: the change may concern any pattern of the subscriber."""
        for item, result in zip(values[0], results, strict=False):
            if result is None or result.tag != "Ok":
                continue
            who = item.subscriber or call.sender
            for found in self._configs.get(who, {}).values():
                base = new_subscription(who, ())
                try:
                    changed = changed_subscription(base, *item.config)
                except ConfigError:
                    continue
                old = list(found)
                found.append((changed.filter, changed.skip))
                found.extend((changed.filter, skip) for _, skip in old)
                found.extend((text, changed.skip) for text, _ in old)

    def _registered_publication(self, call: Happening, values: Any, results: Any) -> None:
        for item, result in zip(values[0], results, strict=False):
            if result is not None and result.tag == "Ok":
                self._registered.add((call.sender, item.namespace))
                ranks = as_items(first(item.config, keys.PRIORITIES)) or ()
                mode = first(item.config, keys.MODE)
                if mode is not None and mode.value == "priority":
                    pairs = [as_items(each) or () for each in ranks]
                    self._ranks[item.namespace] = {
                        as_principal(pair[0]) or Principal(): as_nat(pair[1]) or 0 for pair in pairs if len(pair) == 2
                    }
            elif _error(result) == keys.QUOTA:
                self._find("Floods", call.sender, call.round, "more publications than its quota")

    def _replay_asked(self, call: Happening, values: Any, results: Any) -> None:
        for item, result in zip(values[0], results, strict=False):
            if result is not None and result.tag == "Ok":
                self._replays[result.value] = call.sender
                self._ranges[result.value] = (item.namespace, *item.range)
                continue
            error = _error(result)
            if error in {"RangeTooLarge", keys.QUOTA}:
                self._find("AsksForAll", call.sender, call.round, f"asked for {item.range}")
            elif error == "PaymentRequired":
                self._find("PaysNothing", call.sender, call.round, result.value.value)

    def _canceled(self, call: Happening, _values: Any, results: Any) -> None:
        if any(_error(each) == "Unauthorized" for each in results):
            self._find("CancelsOthers", call.sender, call.round, "canceled a replay that is not its own")

    def _reported(self, call: Happening, values: Any, results: Any) -> None:
        for item, result in zip(values[0], results, strict=False):
            if _error(result) == "Unauthorized":
                self._find("ReportsForAnother", call.sender, call.round, f"reported on replay {item.replayId}")
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
                self._find("Rewrites", call.receiver, call.round, f"event {event.eventId} has other data than it had")

    # At the end

    def finish(
        self,
        logs: Mapping[Principal, Mapping[tuple[str, int], Event]],
        running: Iterable[Principal],
        *,
        at_rest: bool = True,
    ) -> list[Finding]:
        """Compare with the publishers' logs; `at_rest` says that nothing is under way any more."""
        alive = set(running)
        for round_, sender, receiver, note in self._seen:
            self._compare(round_, sender, receiver, note, logs)
        for call, values in self._calls.values():
            if call.method == "icrc72_handle_notification_trusted" and self._now - call.round > _PATIENCE:
                what = f"{len(values[0])} notifications of round {call.round} are not answered"
                self._find("WithholdsReply", call.receiver, call.round, what)
                self._suspended.add(call.receiver)  # what it does not get is its own doing
        self._judge_places()
        self._judge_replays(logs)
        if at_rest:
            self._judge_missing(alive)
        return list(self.findings)

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
        what = f"event {note.eventId} to {receiver.text}"
        replay = as_nat(first(note.headers, keys.REPLAY_ID))
        if event is None:
            honest = replay is not None and self._relayed_so(note)
            actor = note.source if honest else sender
            self._find("ReplaysInvented" if honest else "Invents", actor, round_, what)
        elif event.data != note.data:
            honest = replay is not None
            self._find("ReplaysAltered" if honest else "AltersData", note.source if honest else sender, round_, what)
        elif event.prevEventId != note.prevEventId or not _grown(event.headers, note.headers):
            self._find("AltersHeaders", sender, round_, what)

    def _relayed_so(self, note: EventNotification) -> bool:
        replay = as_nat(first(note.headers, keys.REPLAY_ID))
        return replay is not None and note.eventId in self._replayed.get(replay, {})

    def _judge_places(self) -> None:
        for (sender, key), places in self._places.items():
            ranks = self._ranks.get(key[0])
            if not ranks:
                continue
            for one, place in places.items():
                for other, behind in places.items():
                    if place < behind and ranks.get(one, 0) < ranks.get(other, 0):
                        self._find("FavoursOne", sender, 0, f"{one.text} before {other.text} for event {key[2]}")

    def _judge_replays(self, logs: Mapping[Principal, Mapping[tuple[str, int], Event]]) -> None:
        for number, (_, count, publisher, round_) in self._reports.items():
            taken = self._replayed.get(number, {})
            if count > len(taken):
                self._find("Overcharges", publisher, round_, f"reported {count} events, {len(taken)} were accepted")
            if number not in self._ranges or publisher not in logs or not taken:
                continue
            name, start, end = self._ranges[number]
            last = max(taken) + 1 if end is None else end
            due = [i for space, i in logs[publisher] if space == name and start <= i < last]
            skipped = [i for i in due if i not in taken]
            if skipped and len(due) <= max(len(taken), 1) + len(skipped) and skipped[0] < max(taken):
                self._find("SkipsInReplay", publisher, round_, f"event {skipped[0]} of replay {number} was left out")

    def _judge_missing(self, alive: set[Principal]) -> None:
        told = {
            (receiver, (n.namespace, n.source, n.eventId))
            for _, _, receiver, n in self._seen
            if first(n.headers, keys.REPLAY_ID) is None
        }
        self._judge_claims(alive)
        forgotten: dict[Principal, list[bool]] = {}
        dropped: list[tuple[str, Principal, int, str]] = []
        for (broadcaster, key), (round_, event) in self._accepted.items():
            if broadcaster in self._unsteady or broadcaster not in alive:
                continue
            lost, due = self._lost(broadcaster, key, round_, event, told, alive)
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
                    dropped.append((cheat, broadcaster, round_, f"event {key[2]} never went to {losers[0].text}"))
        for broadcaster, all_lost in forgotten.items():
            if all(all_lost):
                self._find("AcceptsAndForgets", broadcaster, 0, f"nothing came of {len(all_lost)} accepted events")
        for cheat, broadcaster, round_, evidence in dropped:
            if ("AcceptsAndForgets", broadcaster) not in self.said:
                self._find(cheat, broadcaster, round_, evidence)

    def _judge_claims(self, alive: set[Principal]) -> None:
        """Notifications of replays that a broadcaster said it made, and that never came."""
        made = {(sender, n.notificationId) for _, sender, _, n in self._seen}
        for (broadcaster, number), (round_, replay) in self._claimed.items():
            whose = self._replays.get(replay)
            steady = whose in alive and whose not in self._unsteady and whose not in self._suspended
            if steady and broadcaster in alive and (broadcaster, number) not in made:
                self._find("DropsReplay", broadcaster, round_, f"notification {number} of replay {replay} never came")
        for (publisher, replay), round_ in self._due.items():
            if publisher in alive and publisher not in self._unsteady and self._now - round_ > _PATIENCE:
                self._find("NeverReports", publisher, round_, f"no report on replay {replay}")
        for (sender, receiver, number), count in self._came.items():
            if count > 4 and receiver in alive and receiver not in self._unsteady and receiver not in self._confirmers:
                self._find("NeverConfirms", receiver, 0, f"notification {number} of {sender.text} came {count} times")

    @staticmethod
    def _relayed_here(event: Event) -> bool:
        return first(event.headers, keys.BROADCASTER) is not None

    def _lost(  # noqa: PLR0917 — what a loss is judged by
        self,
        broadcaster: Principal,
        key: EventKey,
        round_: int,
        event: Event,
        told: set[tuple[Principal, EventKey]],
        alive: set[Principal],
    ) -> tuple[list[Principal], int]:
        lost: list[Principal] = []
        due = 0
        for (server, name, who), since in self._served.items():
            if server != broadcaster or name != key[0] or since >= round_ or who not in alive:
                continue
            if who in self._suspended or who in self._unsteady or who not in self._confirmers:
                continue
            configs = self._configs.get(who, {})
            mine = [each for pattern, found in configs.items() if matches(pattern, name) for each in found]
            if len(mine) != len({pattern for pattern in configs if matches(pattern, name)}):
                continue  # it changed what it wants
            if any(_passes(each, event) for each in mine):
                due += 1
                if (who, key) not in told:
                    lost.append(who)
        return lost, due


def _passes(config: tuple[str | None, Any], event: Event) -> bool:
    text, skip = config
    if skip is not None and not skip.passes(event.eventId):
        return False
    return text is None or filter_matches(text, event.data)


def _error(result: Any) -> Any:
    """The tag of an error, or the code of a generic one; `None` for Ok."""
    if result is None or result.tag != "Err":
        return None
    error = result.value
    return error.value.error_code if error.tag == "GenericError" else error.tag


def _grown(before: Pairs | None, after: Pairs | None) -> bool:
    """True when headers only grew at the end, in the order of the page; replay marks are the publisher's own."""
    old, new = list(before or ()), list(after or ())
    if new[: len(old)] != old:
        return False
    rest = [name for name, _ in new[len(old) :]]
    places = [_ORDER.get(name, -1) for name in rest]
    return -1 not in places and places == sorted(places) and keys.BROADCASTER in rest and keys.SENT in rest


_JUDGES: Final[Mapping[str, Any]] = {
    "icrc72_publish": Audit._published,  # noqa: SLF001 — the table of this class
    "icrc72_confirm_notifications": Audit._confirmed,  # noqa: SLF001 — the table of this class
    "icrc72_register_subscription": Audit._subscribed,  # noqa: SLF001 — the table of this class
    "icrc72_update_subscription": Audit._changed,  # noqa: SLF001 — the table of this class
    "icrc72_register_publication": Audit._registered_publication,  # noqa: SLF001 — the table of this class
    "icrc77_register_replay": Audit._replay_asked,  # noqa: SLF001 — the table of this class
    "icrc77_cancel_replay": Audit._canceled,  # noqa: SLF001 — the table of this class
    "icrc77_replay_status": Audit._reported,  # noqa: SLF001 — the table of this class
    "archive_page": Audit._paged,  # noqa: SLF001 — the table of this class
}

__all__ = ["Audit", "Finding"]
