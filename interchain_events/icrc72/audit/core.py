"""The audit of a trace (IC-51).

The audit only uses the messages of a network, and in the end the publishers' logs. It reports a
cheat only if an honest participant could not have done the same under any schedule. So it does not
report effects that deaths, suspensions or crossing alerts can explain.

`Audit` observes and judges messages one by one. `record.Record`, its base class, holds the notes
and judges those that need the whole trace.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

from interchain_events.icrc72 import keys, methods
from interchain_events.icrc72.alerts import BrokerAlert, MemberAlert
from interchain_events.icrc72.audit.record import PATIENCE, Finding, Logs, Record, error_of
from interchain_events.icrc72.config import (
    changed_subscription,
    new_subscription,
    read_publication,
    read_subscription,
)
from interchain_events.icrc72.errors import ConfigError
from interchain_events.icrc72.facts import (
    EVERYBODY,
    WIDE,
    PublisherFact,
    RelayerFact,
    RelayFact,
    SubscriberFact,
    Width,
)
from interchain_events.icrc72.filters import lets_pass
from interchain_events.icrc72.headers import Headers, read
from interchain_events.icrc72.ic.errors import CandidError, shown
from interchain_events.icrc72.ic.messaging import Happening
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.messages import Error, Event, EventNotification, changes
from interchain_events.icrc72.namespaces import is_system, matches, system_owner
from interchain_events.icrc72.subscriber.core import RUN
from interchain_events.icrc72.values import Value, first

_REPLAY_ID: Final = keys.REPLAY_ID.encode()
"""Bytes that a call with replayed events contains. Other calls need not be decoded."""

_OWN_ALERTS: Final = frozenset(
    [keys.SUBSCRIBER_ERROR, keys.SUBSCRIBER_REPLAY_ADD, keys.SUBSCRIBER_REPLAY_REMOVE]
)
"""The keys of system events that broadcasters send by themselves (IC-38g)."""
_NEVER: Final = 1 << 62
"""A round so late that a report which is due from then on is never missing."""
_ASSIGNED: Final = (SubscriberFact, PublisherFact, RelayFact, RelayerFact)
"""The facts after whose removal chains may begin anew."""


class Audit(Record):
    """An observer of a network that finds cheats."""

    def happened(self, happening: Happening) -> None:
        """Note an entry of the trace, and judge it where this is possible at once."""
        self._now = happening.round
        match happening.kind, happening.method:
            case "execute", _:
                self._execute(happening)
            case "respond", _:
                self._respond(happening)
            case "send", methods.CONFIRM.name:
                self._confirms(happening)
            case "send", _ if happening.sender == self.orchestrator:
                self._told(happening)
            case "send", methods.PUBLISH.name if _REPLAY_ID in happening.data:
                self._replays_again(happening)
            case "answer", methods.PUBLISH.name:
                # From now on, the publisher knows that its events were accepted. It then has no
                # reason to send them again.
                if not happening.code:
                    self._known.update(self._taken.pop(happening.number, ()))
            case "trap", _ if b"unreadable" in happening.data:
                reason = happening.data.decode(errors="replace")[:120]
                self._find("Bombs", happening.sender, happening.round, reason)
            case "stop" | "uninstall" | "upgrade", _:
                self._unsteady.add(happening.receiver)

    def _execute(self, happening: Happening) -> None:
        """Note a request that is being executed, if its argument can be decoded."""
        with suppress(CandidError):
            self._noted(happening)
            self._calls[happening.number] = happening

    def _noted(self, happening: Happening) -> None:
        """Note the content of a request that is being executed."""
        sender = happening.sender
        match happening.method:
            case methods.CONFIRM.name:
                numbers = methods.CONFIRM.value(happening.data)
                self._confirmers.add(sender)
                if happening.receiver == self.orchestrator:
                    for number in numbers:
                        self._applied(sender, number, happening.round)
            case methods.REPLAY_STATUS.name:
                for item in methods.REPLAY_STATUS.value(happening.data):
                    due = (sender, item.replayId)
                    # After one report in time, no other one is due.
                    if happening.round - self._due.get(due, happening.round) <= PATIENCE:
                        self._due[due] = _NEVER
            case methods.HANDLE.name | methods.HANDLE_TRUSTED.name:
                for note in methods.HANDLE.value(happening.data):
                    self._notification(happening, note)

    def _confirms(self, happening: Happening) -> None:
        """Note confirmations when they are sent, because their sender is not to blame for loss."""
        with suppress(CandidError):
            for number in methods.CONFIRM.value(happening.data):
                self._came.pop((happening.receiver, happening.sender, number), None)

    def _respond(self, happening: Happening) -> None:
        """Judge a response together with its request.

        A subscriber runs its handler in a call to itself. If this call fails in the round of its
        execution, the handler has trapped.
        """
        call = self._calls.pop(happening.number, None)
        if call is None:
            return
        if call.method == RUN:
            if happening.code == 5 and happening.data == b"" and call.round == happening.round:
                self._find("AlwaysTraps", call.receiver, happening.round, "its handler trapped")
            return
        judge = _JUDGES.get(call.method)
        if judge is not None and not happening.code:
            with suppress(CandidError):
                judge(self, call, happening.data)

    def _told(self, happening: Happening) -> None:
        """Note the system events in a message of the orchestrator."""
        for method in (methods.PUBLISH, methods.HANDLE):
            if happening.method == method.name:
                with suppress(CandidError):
                    for event in method.value(happening.data):
                        if is_system(event.namespace):
                            self._system_event(event.namespace, event.eventId, event.data)

    def _system_event(self, namespace: str, identifier: int, data: Value) -> None:
        """Note a system event, and whether it gives a publisher its entries."""
        self._sent[namespace, identifier] = data
        owner = system_owner(namespace)
        if owner is None:
            return
        role, member = owner
        if role == "publisher" and any(_alert_in(data).entries().values()):
            self._told_entries.add(member)

    def _notification(self, call: Happening, note: EventNotification) -> None:
        """Judge a notification that was executed: sender, repetition, order and entitlement."""
        sender = call.sender
        receiver = call.receiver
        if is_system(note.namespace):
            self._system(call, note)
            return
        event = f"event {shown(note.eventId)}"
        notification = (sender, receiver, note.notificationId)
        self._came[notification] = self._came.get(notification, 0) + 1
        if sender not in self.broadcasters:
            evidence = f"notified {receiver.text} of {event}"
            self._find("FakeBroadcaster", sender, call.round, evidence)
            return
        self._seen.append((call.round, sender, receiver, note))
        headers = read(note.headers)
        replay = headers.replay or 0
        key = (note.namespace, note.source, note.eventId)
        known = self._notified.get((sender, receiver, key, replay))
        if known is not None and known != note.notificationId:
            evidence = f"{event} as notification {shown(known)} and again"
            self._find("Repeats", sender, call.round, evidence)
        if known is None and not replay and note.prevEventId is not None:
            self._in_order(call, note, headers)
        self._notified[sender, receiver, key, replay] = note.notificationId
        if replay:
            subscriber = self._replays.get(replay)
            if subscriber is not None and subscriber != receiver:
                evidence = f"replay {shown(replay)} went to {receiver.text}"
                self._find("ReplaysToAll", sender, call.round, evidence)
        else:
            self._entitled(call, note)
            place = headers.priority[0] if headers.priority else None
            if place is not None:
                self._places.setdefault((sender, key), {})[receiver] = place

    def _in_order(self, call: Happening, note: EventNotification, headers: Headers) -> None:
        """Judge the order of live events of a chain from one broadcaster to one subscriber."""
        partition = 0
        if headers.partition:
            # The index is `None` if the header is malformed.
            partition = headers.partition[0] or 0
        chain = (call.sender, call.receiver, note.namespace, note.source, partition)
        last = self._last.get(chain)
        if last is not None and note.eventId < last:
            evidence = f"event {shown(note.eventId)} after event {shown(last)}"
            self._find("Reorders", call.sender, call.round, evidence)
        self._last[chain] = max(note.eventId, last or 0)

    def _system(self, call: Happening, note: EventNotification) -> None:
        """Judge a system event.

        Only broadcasters may deliver system events of the orchestrator, and only those that it has
        sent. All others must be of the kinds that broadcasters send by themselves.
        """
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
                evidence = f"system event {shown(note.eventId)} was never sent"
                self._find("ForgesSystemEvent", sender, call.round, evidence)
        elif note.data.tag != "Map" or any(name not in _OWN_ALERTS for name, _ in note.data.value):
            evidence = "an alert that only the orchestrator sends"
            self._find("ForgesSystemEvent", sender, call.round, evidence)
        elif first(note.data.value, keys.SUBSCRIBER_ERROR) is not None:
            self._suspended.add(call.receiver)
        # From now on, the publisher owes a report on each replay that it is told to make.
        if sender in self.broadcasters and note.source == self.orchestrator:
            for number in _alert_in(note.data).due():
                self._due.setdefault((call.receiver, number), call.round)

    def _assigned(self, call: Happening, note: EventNotification) -> None:
        """Note an assignment to a broadcaster.

        After a removal, chains may begin anew, so the broadcaster is not judged by the order of
        former events, or by missing ones.
        """
        try:
            content = BrokerAlert.read(note.data)
        except ConfigError:
            return
        broadcaster = call.receiver
        if any(isinstance(fact, _ASSIGNED) for fact in content.removes):
            self._unsteady.add(broadcaster)
            self._notified = {
                key: number for key, number in self._notified.items() if key[0] != broadcaster
            }
            self._last = {
                chain: last for chain, last in self._last.items() if chain[0] != broadcaster
            }
        self._alerts[broadcaster, note.notificationId] = content

    def _applied(self, broadcaster: Principal, number: int, round_: int) -> None:
        """Note that a broadcaster has confirmed an assignment, on which it must act from now on.

        Only relays that let all events through for all subscribers are judged.
        """
        content = self._alerts.pop((broadcaster, number), None)
        if content is None:
            return
        for fact, value in content.adds.items():
            match fact:
                case SubscriberFact(namespace, who):
                    self._served.setdefault((broadcaster, namespace, who), round_)
                case RelayFact(namespace, target, who) if value == WIDE and who == EVERYBODY:
                    self._relays.setdefault((broadcaster, namespace, target), round_)

    def _entitled(self, call: Happening, note: EventNotification) -> None:
        """Judge whether any present or former subscription of the receiver lets an event pass."""
        widths: list[Width] = []
        for pattern, pattern_widths in self._configs.get(call.receiver, {}).items():
            if matches(pattern, note.namespace):
                widths += pattern_widths
        passing_skip = [width for width in widths if lets_pass(Width(None, width.skip), note)]
        if widths and not passing_skip:
            evidence = f"event {shown(note.eventId)} does not pass the skip"
            self._find("IgnoresSkip", call.sender, call.round, evidence)
        elif not any(lets_pass(width, note) for width in passing_skip):
            evidence = f"event {shown(note.eventId)} passes no filter"
            self._find("IgnoresFilter", call.sender, call.round, evidence)

    def _published(self, call: Happening, response: bytes) -> None:
        """Note the accepted events of a batch, and judge the refused ones."""
        for event, result in zip(
            methods.PUBLISH.value(call.data), methods.PUBLISH.result(response), strict=False
        ):
            if result is None or is_system(event.namespace):
                continue
            replay = read(event.headers).replay
            if result.tag == "Err":
                self._refused(call, event, result.value, replay)
            elif replay is None:
                key = (event.namespace, event.source, event.eventId)
                self._accepted.setdefault((call.receiver, key), (call.round, event))
            else:
                for number in result.value:
                    self._claimed[call.receiver, number] = (call.round, replay)
                if call.sender == event.source:
                    self._replay_taken(event, replay)
                    taken = self._taken.setdefault(call.number, [])
                    taken.append((call.sender, replay, event.eventId))

    def _refused(self, call: Happening, event: Event, error: Error, replay: int | None) -> None:
        """Judge the sender of an event that a broadcaster has refused.

        For ImproperId, the accepted events show the cheat: another publisher has used the id, or
        the same event was accepted with other data. Otherwise the order of the chain is wrong. A
        repetition of a broadcaster or a replay can be refused although everybody is honest.
        """
        sender = call.sender
        evidence = f"event {shown(event.eventId)} in {event.namespace} was answered {error.tag}"
        if error.tag == "Unauthorized":
            self._unauthorized(call, event, evidence, replay)
        elif error.tag == "ImproperId" and sender not in self.broadcasters and replay is None:
            cheat = "BreaksChain"
            for (_, (namespace, source, identifier)), (_, accepted) in self._accepted.items():
                if (namespace, identifier) != (event.namespace, event.eventId):
                    continue
                if source != sender:
                    cheat = "UsesForeignIds"
                    break
                if source == event.source and accepted.data != event.data:
                    cheat = "Equivocates"
            self._find(cheat, sender, call.round, evidence)

    def _unauthorized(
        self, call: Happening, event: Event, evidence: str, replay: int | None
    ) -> None:
        """Judge the sender of an event that was refused as unauthorized.

        A broadcaster whose assignment has just been removed may be honest, so it is only judged by
        the headers. A publisher that has ever got entries may have lost them.
        """
        sender = call.sender
        headers = read(event.headers)
        cheat = ""
        if sender in self.broadcasters:
            if headers.relayed and headers.broadcaster == call.receiver:
                cheat = "RelaysInLoop"
            elif headers.relayed:
                cheat = "RelaysTwice"
            elif headers.broadcaster != sender:
                cheat = "RelaysForeign"
        elif event.source != sender:
            cheat = "ForgesSource"
        elif headers.planted:
            cheat = "PlantsHeaders"
        elif replay is not None:
            if replay not in self._replays:
                cheat = "ReplaysUnasked"
        elif sender not in self._told_entries:
            cheat = "PublishesEarly"
        if cheat:
            self._find(cheat, sender, call.round, evidence)

    def _confirmed(self, call: Happening, response: bytes) -> None:
        """Judge a canister that has confirmed notifications of another one."""
        result = methods.CONFIRM.result(response)
        if result.tag != "itemized":
            return
        if any(error_of(answer) == "Unauthorized" for answer in result.value):
            evidence = "confirmed another's notification"
            self._find("ConfirmsOthers", call.sender, call.round, evidence)

    def _subscribed(self, call: Happening, response: bytes) -> None:
        """Note filters and skips of registered subscriptions, and judge who asks for too many."""
        method = methods.REGISTER_SUBSCRIPTION
        for item, result in zip(method.value(call.data), method.result(response), strict=False):
            if result is not None and result.tag == "Ok":
                # Malformed values are ignored here, because the orchestrator may have accepted a
                # configuration that it had to refuse (IC-26).
                config = read_subscription(item.config)
                configs = self._configs.setdefault(call.sender, {})
                configs.setdefault(item.namespace, []).append(Width(config.filter, config.skip))
            elif error_of(result) == keys.QUOTA:
                self._find("Floods", call.sender, call.round, "more subscriptions than its quota")

    def _changed(self, call: Happening, response: bytes) -> None:
        """Note filters and skips after changes of subscriptions.

        It is unknown when a change takes effect, which subscription it concerns, and which of the
        two values it leaves unchanged. All combinations of old and new values are therefore added,
        and any of them justifies a notification.
        """
        method = methods.UPDATE_SUBSCRIPTION
        for item, result in zip(method.value(call.data), method.result(response), strict=False):
            if result is None or result.tag != "Ok":
                continue
            subscriber = item.subscriber or call.sender
            for widths in self._configs.get(subscriber, {}).values():
                try:
                    changed = new_subscription(subscriber, ())
                    for key, value in changes(item.config):
                        changed = changed_subscription(changed, key, value)
                except ConfigError:
                    continue
                former = list(widths)
                widths.append(Width(changed.filter, changed.skip))
                widths.extend(Width(changed.filter, width.skip) for width in former)
                widths.extend(Width(width.filter, changed.skip) for width in former)

    def _registered_publication(self, call: Happening, response: bytes) -> None:
        """Note priorities of registered publications, and judge who asks for too many."""
        method = methods.REGISTER_PUBLICATION
        for item, result in zip(method.value(call.data), method.result(response), strict=False):
            if result is not None and result.tag == "Ok":
                config = read_publication(item.config)
                if config.mode == "priority":
                    self._ranks[item.namespace] = config.priorities
            elif error_of(result) == keys.QUOTA:
                self._find("Floods", call.sender, call.round, "more publications than its quota")

    def finish(
        self, logs: Logs, running: Iterable[Principal], *, at_rest: bool = True
    ) -> list[Finding]:
        """Judge what only the whole trace can show, and return all findings.

        `running` are the canisters that still run. With `at_rest`, the network has had time to
        deliver everything, and broadcasters are blamed for missing notifications.
        """
        alive = set(running)
        for round_, sender, receiver, note in self._seen:
            self._compare(round_, sender, receiver, note=note, logs=logs)
        for call in self._calls.values():
            if call.method == methods.HANDLE_TRUSTED.name and self._now - call.round > PATIENCE:
                count = len(methods.HANDLE_TRUSTED.value(call.data))
                evidence = f"{count} notifications of round {call.round} are not answered"
                self._find("WithholdsReply", call.receiver, call.round, evidence)
                # If this subscriber then misses events, its broadcaster is not to blame.
                self._suspended.add(call.receiver)
        self._judge_places()
        self._judge_replays(logs)
        if at_rest:
            self._judge_missing(alive)
        return list(self.findings)


def _alert_in(data: Value) -> MemberAlert:
    """Return the content of a system event, or an empty one if the data are malformed."""
    try:
        return MemberAlert.read(data)
    except ConfigError:
        return MemberAlert({}, ())


_JUDGES: Final[Mapping[str, Callable[[Audit, Happening, bytes], None]]] = {
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
"""The methods that judge the response to a request, by the name of the request's method."""
