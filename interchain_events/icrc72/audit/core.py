"""The audit of a trace (IC-51).

The audit observes the messages of a network and uses nothing else, except the publishers' logs at
the end. It reports a cheat only if an honest participant could not have done the same under any
schedule. Effects that deaths, suspensions or crossing alerts can explain are therefore not
reported.

`Audit` observes and judges messages one by one. `record.Record`, its base class, holds the notes
and judges those that need the whole trace.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import chain as chained
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
                # A publisher that knows that its event was accepted has no reason to send it again.
                self._known.update(
                    self._taken.pop(happening.number, ()) if not happening.code else ()
                )
            case "trap", _ if b"unreadable" in happening.data:
                self._find(
                    "Bombs",
                    happening.sender,
                    happening.round,
                    happening.data.decode(errors="replace")[:120],
                )
            case "stop" | "uninstall" | "upgrade", _:
                self._unsteady.add(happening.receiver)

    def _execute(self, happening: Happening) -> None:
        """Note a request that is being executed, if its argument can be decoded."""
        with suppress(CandidError):
            self._noted(happening)
            self._calls[happening.number] = happening

    def _noted(self, happening: Happening) -> None:
        """Note the content of a request that is being executed."""
        sender, at = happening.sender, happening.round
        match happening.method:
            case methods.CONFIRM.name:
                numbers = methods.CONFIRM.value(happening.data)
                self._confirmers.add(sender)
                if happening.receiver == self.orchestrator:
                    for number in numbers:
                        self._applied(sender, number, at)
            case methods.REPLAY_STATUS.name:
                for item in methods.REPLAY_STATUS.value(happening.data):
                    due = (sender, item.replayId)
                    # A report in time clears the publisher for good.
                    if at - self._due.get(due, at) <= PATIENCE:
                        self._due[due] = 1 << 62
            case methods.HANDLE.name | methods.HANDLE_TRUSTED.name:
                for note in methods.HANDLE.value(happening.data):
                    self._notification(happening, note)

    def _confirms(self, happening: Happening) -> None:
        """Note confirmations when they are sent: their sender is not to blame if they get lost."""
        with suppress(CandidError):
            for number in methods.CONFIRM.value(happening.data):
                self._came.pop((happening.receiver, happening.sender, number), None)

    def _respond(self, happening: Happening) -> None:
        """Judge a response together with its request.

        A handler that traps is recognised by the call of a subscriber to itself that fails in the
        round of its execution.
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
                    for each in method.value(happening.data):
                        if is_system(each.namespace):
                            self._tells(each.namespace, each.eventId, each.data)

    def _tells(self, namespace: str, identifier: int, data: Value) -> None:
        """Note a system event, and whether it gives a publisher its entries."""
        self._sent[namespace, identifier] = data
        owner = system_owner(namespace)
        if owner is not None and owner[0] == "publisher" and any(_told(data).entries().values()):
            self._told_entries.add(owner[1])

    def _notification(self, call: Happening, note: EventNotification) -> None:
        """Judge a notification that was executed: sender, repetition, order and entitlement."""
        sender = call.sender
        receiver = call.receiver
        what = f"event {shown(note.eventId)}"
        spot = (sender, receiver, note.notificationId)
        if is_system(note.namespace):
            self._system(call, note)
            return
        self._came[spot] = self._came.get(spot, 0) + 1
        if sender not in self.broadcasters:
            self._find("FakeBroadcaster", sender, call.round, f"notified {receiver.text} of {what}")
            return
        self._seen.append((call.round, sender, receiver, note))
        headers = read(note.headers)
        replay = headers.replay or 0
        key = (note.namespace, note.source, note.eventId)
        known = self._notified.get((sender, receiver, key, replay))
        if known is not None and known != note.notificationId:
            self._find(
                "Repeats", sender, call.round, f"{what} as notification {shown(known)} and again"
            )
        if known is None and not replay and note.prevEventId is not None:
            self._in_order(call, note, headers)
        self._notified[sender, receiver, key, replay] = note.notificationId
        if replay:
            whose = self._replays.get(replay)
            if whose is not None and whose != receiver:
                self._find(
                    "ReplaysToAll",
                    sender,
                    call.round,
                    f"replay {shown(replay)} went to {receiver.text}",
                )
        else:
            self._entitled(call, note)
            place = headers.priority[0] if headers.priority else None
            if place is not None:
                self._places.setdefault((sender, key), {})[receiver] = place

    def _in_order(self, call: Happening, note: EventNotification, headers: Headers) -> None:
        """Judge the order of live events of a chain from one broadcaster to one subscriber."""
        partition = (headers.partition[0] or 0) if headers.partition else 0
        place = (call.sender, call.receiver, note.namespace, note.source, partition)
        last = self._last.get(place)
        if last is not None and note.eventId < last:
            self._find(
                "Reorders",
                call.sender,
                call.round,
                f"event {shown(note.eventId)} after event {shown(last)}",
            )
        self._last[place] = max(note.eventId, last or 0)

    def _system(self, call: Happening, note: EventNotification) -> None:
        """Judge a system event.

        Only broadcasters deliver system events of the orchestrator, and only those that it has
        sent. Other ones must be of the kinds that broadcasters send by themselves.
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
                what = f"system event {shown(note.eventId)} was never sent"
                self._find("ForgesSystemEvent", sender, call.round, what)
        elif note.data.tag != "Map" or any(name not in _OWN_ALERTS for name, _ in note.data.value):
            self._find(
                "ForgesSystemEvent", sender, call.round, "an alert that only the orchestrator sends"
            )
        elif first(note.data.value, keys.SUBSCRIBER_ERROR) is not None:
            self._suspended.add(call.receiver)
        if sender in self.broadcasters and note.source == self.orchestrator:
            for number in _told(note.data).due():
                self._due.setdefault((call.receiver, number), call.round)

    def _assigned(self, call: Happening, note: EventNotification) -> None:
        """Note an assignment to a broadcaster.

        After a removal, chains may begin anew, so order and missing events are not judged any more.
        """
        try:
            content = BrokerAlert.read(note.data)
        except ConfigError:
            return
        who = call.receiver
        if any(isinstance(fact, _ASSIGNED) for fact in content.removes):
            self._unsteady.add(who)
            self._notified = {k: v for k, v in self._notified.items() if k[0] != who}
            self._last = {k: v for k, v in self._last.items() if k[0] != who}
        self._alerts[who, note.notificationId] = content

    def _applied(self, broadcaster: Principal, number: int, round_: int) -> None:
        """Note that a broadcaster has confirmed an assignment, on which it must act from now on.

        Relays are only judged if they pass all events for all subscribers.
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
        configs = self._configs.get(call.receiver, {})
        matching = (
            widths for pattern, widths in configs.items() if matches(pattern, note.namespace)
        )
        mine = list(chained.from_iterable(matching))
        passing = [each for each in mine if lets_pass(Width(None, each.skip), note)]
        if mine and not passing:
            self._find(
                "IgnoresSkip",
                call.sender,
                call.round,
                f"event {shown(note.eventId)} does not pass the skip",
            )
        elif not any(lets_pass(each, note) for each in passing):
            self._find(
                "IgnoresFilter",
                call.sender,
                call.round,
                f"event {shown(note.eventId)} passes no filter",
            )

    def _published(self, call: Happening, response: bytes) -> None:
        """Note the accepted events of a batch, and judge the refused ones."""
        for event, result in zip(
            methods.PUBLISH.value(call.data), methods.PUBLISH.result(response), strict=False
        ):
            if result is None or is_system(event.namespace):
                continue
            replay = read(event.headers).replay
            if result.tag == "Ok":
                if replay is not None:
                    for number in result.value:
                        self._claimed[call.receiver, number] = (call.round, replay)
                    if call.sender == event.source:
                        self._replay_taken(event, replay)
                        self._taken.setdefault(call.number, []).append(
                            (call.sender, replay, event.eventId)
                        )
                    continue
                key = (event.namespace, event.source, event.eventId)
                self._accepted.setdefault((call.receiver, key), (call.round, event))
            else:
                self._refused(call, event, result.value, replay)

    def _refused(self, call: Happening, event: Event, error: Error, replay: int | None) -> None:
        """Judge the sender of an event that a broadcaster has refused.

        For ImproperId, the accepted events show the cheat: another publisher has used the id, the
        same event was accepted with other data, or else the order of the chain is wrong.
        Repetitions of broadcasters and replays can be refused without anybody's fault.
        """
        sender, at = call.sender, call.round
        what = f"event {shown(event.eventId)} in {event.namespace} was answered {error.tag}"
        if error.tag == "ImproperId":
            if sender in self.broadcasters or replay is not None:
                return
            key = (event.namespace, event.source, event.eventId)
            others = [
                k
                for (_, k) in self._accepted
                if (k[0], k[2]) == (key[0], key[2]) and k[1] != sender
            ]
            if others:
                self._find("UsesForeignIds", sender, at, what)
            elif any(
                known[1] == key and each[1].data != event.data
                for known, each in self._accepted.items()
            ):
                self._find("Equivocates", sender, at, what)
            else:
                self._find("BreaksChain", sender, at, what)
        elif error.tag == "Unauthorized":
            self._unauthorized(call, event, what, replay)

    def _unauthorized(self, call: Happening, event: Event, what: str, replay: int | None) -> None:
        """Judge the sender of an event that was refused as unauthorized.

        A broadcaster whose assignment has just been removed may be honest, so only wrong headers
        are held against it. A publisher that has ever got entries may have lost them.
        """
        sender, at = call.sender, call.round
        headers = read(event.headers)
        if sender in self.broadcasters:
            if headers.relayed:
                looped = headers.broadcaster == call.receiver
                self._find("RelaysInLoop" if looped else "RelaysTwice", sender, at, what)
            elif headers.broadcaster != sender:
                self._find("RelaysForeign", sender, at, what)
        elif event.source != sender:
            self._find("ForgesSource", sender, at, what)
        elif headers.planted:
            self._find("PlantsHeaders", sender, at, what)
        elif replay is not None:
            if replay not in self._replays:
                self._find("ReplaysUnasked", sender, at, what)
        elif sender not in self._told_entries:
            self._find("PublishesEarly", sender, at, what)

    def _confirmed(self, call: Happening, response: bytes) -> None:
        """Judge a canister that has confirmed notifications of another one."""
        result = methods.CONFIRM.result(response)
        if result.tag == "itemized" and any(
            error_of(each) == "Unauthorized" for each in result.value
        ):
            self._find(
                "ConfirmsOthers", call.sender, call.round, "confirmed another's notification"
            )

    def _subscribed(self, call: Happening, response: bytes) -> None:
        """Note the filters and skips of registered subscriptions."""
        method = methods.REGISTER_SUBSCRIPTION
        for item, result in zip(method.value(call.data), method.result(response), strict=False):
            if result is not None and result.tag == "Ok":
                # Read tolerantly: an orchestrator may have accepted a configuration that it had to
                # refuse (IC-26).
                made = read_subscription(item.config)
                configs = self._configs.setdefault(call.sender, {})
                configs.setdefault(item.namespace, []).append(Width(made.filter, made.skip))
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
            who = item.subscriber or call.sender
            for found in self._configs.get(who, {}).values():
                try:
                    changed = new_subscription(who, ())
                    for key, value in changes(item.config):
                        changed = changed_subscription(changed, key, value)
                except ConfigError:
                    continue
                old = list(found)
                found.append(Width(changed.filter, changed.skip))
                found.extend(Width(changed.filter, width.skip) for width in old)
                found.extend(Width(width.filter, changed.skip) for width in old)

    def _registered_publication(self, call: Happening, response: bytes) -> None:
        """Note the priorities of registered publications."""
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
        """Make the judgements that need the whole trace, and return all findings.

        `running` are the canisters that still run. `at_rest` says that the network has had time to
        deliver everything, so that missing notifications are held against broadcasters.
        """
        alive = set(running)
        for round_, sender, receiver, note in self._seen:
            self._compare(round_, sender, receiver, note, logs)
        for call in self._calls.values():
            if call.method == methods.HANDLE_TRUSTED.name and self._now - call.round > PATIENCE:
                count = len(methods.HANDLE_TRUSTED.value(call.data))
                what = f"{count} notifications of round {call.round} are not answered"
                self._find("WithholdsReply", call.receiver, call.round, what)
                # Its broadcaster is not to blame for events that it does not get.
                self._suspended.add(call.receiver)
        self._judge_places()
        self._judge_replays(logs)
        if at_rest:
            self._judge_missing(alive)
        return list(self.findings)


def _told(data: Value) -> MemberAlert:
    """Return the content of an alert, which is empty if the data are malformed."""
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
