"""The system events of the orchestrator and their confirmation (IC-38, IC-47c).

A broadcaster has at most one system event under way, which is sent again until it is confirmed. A
broadcaster that does not confirm for 50 rounds (`Settings.death`) counts as dead.

Members get their system events through their exit like other events. The orchestrator publishes
such an event at the exit, and considers it delivered as soon as the exit has accepted it. A member
without an exit is notified directly, until it confirms.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import Final

from interchain_events.icrc72.alerts import BrokerAlert, MemberAlert
from interchain_events.icrc72.facts import (
    DueFact,
    Fact,
    FactValue,
    ReplayFact,
    SubscriberFact,
)
from interchain_events.icrc72.ic.canister import ONE_WAY, Context
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.memory import nothing, put_all, put_single, take_out
from interchain_events.icrc72.messages import Event, EventNotification, Results
from interchain_events.icrc72.methods import HANDLE, PUBLISH
from interchain_events.icrc72.namespaces import system_namespace
from interchain_events.icrc72.orchestrator.planner import Planner
from interchain_events.icrc72.orchestrator.state import (
    Broker,
    Member,
    Part,
    SentToBroker,
    SentToMember,
)
from interchain_events.icrc72.role import Confirmed, earliest
from interchain_events.icrc72.services import encoded, type_codec
from interchain_events.icrc72.values import Value

MemberKey = tuple[str, Principal]
"""Role (`publisher` or `subscriber`) and id of a member."""

_CALLS: Final = 20
"""How many calls with members' system events may be under way to one exit."""


@dataclass
class Messenger(Part):
    """The part that sends system events and takes their confirmations."""

    planner: Planner
    _later: list[tuple[int, MemberKey]] = field(default_factory=list)
    """A heap of members and the rounds in which they are informed again."""
    _outbox: dict[Principal, dict[MemberKey, None]] = field(default_factory=dict)
    """For each exit, the members whose system event has to be published there."""
    _calls: dict[Principal, int] = field(default_factory=dict)
    """For each exit, how many calls with such events are under way."""

    def __post_init__(self) -> None:
        # `_later` and `_outbox` are not saved, so after an upgrade every member with a system event
        # under way is checked again.
        for key, member in self.state.members.items():
            if member.alert is not None:
                self.state.restless[key] = None

    def wake(self, ctx: Context, elapsed: int) -> list[Principal]:
        """Send due system events, and return the broadcasters that count as dead from now on.

        `elapsed` is the number of rounds by which alerts have aged since the last call.
        """
        dead = [
            broker.id
            for broker in self.state.brokers.values()
            if self._tell_broker(ctx, broker, elapsed)
        ]
        while self._later and self._later[0][0] <= ctx.now:
            self.state.restless[heapq.heappop(self._later)[1]] = None
        keys = list(self.state.restless)
        self.state.restless.clear()
        for key in keys:
            self._tell_member(ctx, self.state.members[key])
        for exit_, waiting in list(self._outbox.items()):
            self._publish(ctx, exit_, waiting)
        return dead

    def due(self, now: int) -> int | None:
        """Return the next round in which a system event may have to be sent."""
        return earliest(self._dues(now), now)

    def _dues(self, now: int) -> Iterator[int]:
        """Yield the next rounds in which members and each broadcaster may need a system event."""
        if self.state.restless:
            yield now + 1
        if self._later:
            yield self._later[0][0]
        for broker in self.state.brokers.values():
            if broker.alert is not None:
                yield min(broker.alert.next, now + self.settings.system_repeat)
            elif broker.registered:
                yield now + 1 if broker.dirty else broker.last_round + self.settings.ping

    def _tell_broker(self, ctx: Context, broker: Broker, elapsed: int) -> bool:
        """Send or repeat a broadcaster's system event, and return whether it has just died.

        A dead broadcaster still gets the event, less and less often, because it may come back.
        """
        settings = self.settings
        alert = broker.alert
        if alert is None:
            if broker.registered and not broker.dead:
                self._compose(ctx, broker)
            return False
        alert.age += elapsed
        if alert.age > settings.death and not broker.dead:
            return True
        if ctx.now >= alert.next:
            wait = settings.system_repeat
            if broker.dead:
                wait = min(settings.repeat_first << min(alert.sends, 20), settings.repeat_most)
            alert.sends += 1
            alert.next = ctx.now + wait
            self.role.send(ctx, broker.id, HANDLE, alert.message, kind=ONE_WAY)
        return False

    def _compose(self, ctx: Context, broker: Broker) -> None:
        """Make a system event of the changes for which the broadcaster is ready, and send it.

        Changes stay in `dirty` until the facts on which they depend are confirmed (IC-40). If there
        are no changes, an empty event is sent every `ping` rounds, because its confirmation shows
        that the broadcaster is alive. A sick broadcaster only gets removals, of all its facts.
        """
        adds: dict[Fact, FactValue] = {}
        removes: list[Fact] = []
        want = {} if broker.sick else broker.want
        for fact in list(broker.dirty):
            if len(adds) + len(removes) >= self.settings.alert_entries:
                break
            wanted = want.get(fact)
            if wanted is None:
                if fact not in broker.held:
                    del broker.dirty[fact]
                elif self.planner.removable(broker, fact):
                    removes.append(fact)
                    del broker.dirty[fact]
                continue
            value, _ = wanted
            if fact in broker.held and broker.held[fact] == value:
                del broker.dirty[fact]
                self.planner.settled(fact)
            elif self.planner.ready(broker, fact, value):
                adds[fact] = value
                del broker.dirty[fact]
        if not adds and not removes and ctx.now < broker.last_round + self.settings.ping:
            return
        broker.last_id += 1
        broker.last_round = ctx.now
        content = BrokerAlert(adds, tuple(removes))
        alert = SentToBroker(broker.last_id, self.role.next_notification(), content)
        broker.alert = alert
        namespace = system_namespace("broadcaster", broker.id)
        alert.message = self._notification(
            ctx, alert.notification, alert.id, namespace, content.data()
        )
        alert.sends = 1
        alert.next = ctx.now + self.settings.system_repeat
        self.role.send(ctx, broker.id, HANDLE, alert.message, kind=ONE_WAY)

    def _notification(
        self, ctx: Context, number: int, identifier: int, namespace: str, data: Value
    ) -> bytes:
        """Return the encoded argument of a call that notifies of one system event."""
        notification = EventNotification(
            number,
            identifier,
            None,
            timestamp=ctx.time,
            namespace=namespace,
            data=data,
            headers=None,
            source=ctx.me,
            filter=None,
        )
        return HANDLE.argument((notification,))

    def confirmed(self, broker: Broker, notification: int) -> bool:
        """Take a broadcaster's confirmation of its system event.

        Returns false if no event with this notification id is under way. The broadcaster now holds
        the facts of the event, so changes that waited for them go on. A dead broadcaster that
        confirms is sick: it first has to drop all facts, and then gets those that it should have.
        """
        alert = broker.alert
        if alert is None or alert.notification != notification:
            return False
        broker.alert = None
        for fact in alert.content.removes:
            broker.release(fact)
        broker.hold(alert.content.adds)
        for fact in alert.content.facts:
            self._mark_if_changed(broker, fact)
            self.planner.settled(fact)
            match fact:
                case SubscriberFact(namespace, subscriber) if namespace in self.state.by_namespace:
                    publication = self.state.publications[self.state.by_namespace[namespace]]
                    self.planner.plan_pair(publication, subscriber)
                case ReplayFact(number) if number in self.state.replays and fact not in broker.held:
                    self.planner.plan_replay(number)
        if broker.dead:
            broker.dead = False
            broker.sick = True
            broker.dirty.update(dict.fromkeys(broker.held))
        if broker.sick and not broker.held:
            broker.sick = False
            broker.dirty.update(dict.fromkeys(broker.want))
            self.planner.move_all()
        return True

    @staticmethod
    def _mark_if_changed(broker: Broker, fact: Fact) -> None:
        """Mark a fact as dirty if it changed again while the system event was under way."""
        wanted = broker.want.get(fact)
        if wanted is None:
            differs = fact in broker.held
        else:
            value, _ = wanted
            differs = fact not in broker.held or broker.held[fact] != value
        if differs:
            broker.dirty[fact] = None

    def _tell_member(self, ctx: Context, member: Member) -> None:
        """Make a member's system event if facts have changed, and send it or send it again.

        Nothing is sent before the exit has confirmed that it serves the member's system namespace.
        A member that is fresh, or whose event was meant for another exit, is informed about all its
        facts again, because it is unknown which events have reached it. An event that is published
        at an exit waits in `_outbox` for its batch.
        """
        exit_ = self.state.exits.get(member.id)
        namespace = system_namespace(member.role, member.id)
        if exit_ is not None and not self.planner.sure(exit_, SubscriberFact(namespace, member.id)):
            return
        if member.fresh or (member.alert is not None and member.alert.exit != exit_):
            member.fresh = False
            self._drop(member)
            member.may = put_all(member.may, dict.fromkeys(member.holds))
            member.holds = nothing()
        if member.alert is None and not self._compose_member(ctx, member, exit_):
            return
        alert = member.alert
        if alert is None or alert.busy:
            return
        key = (member.role, member.id)
        if ctx.now < member.next:
            heapq.heappush(self._later, (member.next, key))
            return
        if not alert.sent:
            # The member counts as informed from the first sending on.
            alert.sent = True
            for fact, value in alert.content.adds.items():
                member.holds = put_single(member.holds, fact, value)
            for fact in alert.content.removes:
                member.holds = take_out(member.holds, fact)
                # The publisher knows now that the replay has ended, so broadcasters may drop its
                # facts.
                if isinstance(fact, DueFact):
                    self.planner.plan_replay(fact.replay)
        if exit_ is None:
            wait = min(
                self.settings.repeat_first << min(member.tries, 20), self.settings.repeat_most
            )
            member.tries += 1
            member.next = ctx.now + wait
            self.state.direct[alert.notification] = key
            heapq.heappush(self._later, (member.next, key))
            self.role.send(ctx, member.id, HANDLE, alert.message, kind=ONE_WAY)
        else:
            self._outbox.setdefault(exit_, {})[key] = None

    def _publish(self, ctx: Context, exit_: Principal, waiting: dict[MemberKey, None]) -> None:
        """Publish the waiting members' system events at an exit, in batches of bounded size.

        Events that do not fit into the allowed calls wait until one of these is answered.
        """
        while waiting and self._calls.get(exit_, 0) < _CALLS:
            batch: list[tuple[MemberKey, Event]] = []
            size = 0
            for key in list(waiting):
                alert = self.state.members[key].alert
                # The event may have been dropped or replaced while it waited.
                if alert is None or alert.event is None or alert.exit != exit_ or alert.busy:
                    del waiting[key]
                    continue
                size += type_codec("broadcaster", "Event").size(alert.event)
                if batch and (
                    size > self.settings.batch_bytes
                    or len(batch) >= self.settings.batch_notifications
                ):
                    break
                del waiting[key]
                alert.busy = True
                batch.append((key, alert.event))
            if batch:
                self._publish_batch(ctx, exit_, batch)
        if not waiting:
            del self._outbox[exit_]

    def _publish_batch(
        self, ctx: Context, exit_: Principal, batch: list[tuple[MemberKey, Event]]
    ) -> None:
        """Publish one batch. When it is answered, publish the events that still wait."""
        self._calls[exit_] = self._calls.get(exit_, 0) + 1

        def published(ctx: Context, results: Results[tuple[int, ...]] | None) -> None:
            self._calls[exit_] -= 1
            for (key, event), result in zip_longest(batch, (results or ())[: len(batch)]):
                self._published(
                    ctx, key, event.eventId, taken=result is not None and result.tag == "Ok"
                )
            if exit_ in self._outbox:
                self._publish(ctx, exit_, self._outbox[exit_])

        # The data of system events are nested only a few levels deep.
        events = PUBLISH.argument(tuple(event for _, event in batch), proven=True)
        self.role.send(ctx, exit_, PUBLISH, events, published)

    def _published(self, ctx: Context, key: MemberKey, number: int, *, taken: bool) -> None:
        """Finish a member's system event that its exit has accepted, or have it sent again."""
        member = self.state.members.get(key)
        if member is None or member.alert is None or member.alert.id != number:
            return
        member.alert.busy = False
        if taken:
            member.alert = None
            member.tries = 0
        else:
            # The wait doubles with each failure, up to 16 rounds.
            member.tries = min(member.tries + 1, 4)
            member.next = ctx.now + (1 << member.tries)
        self.state.restless[key] = None

    def _compose_member(self, ctx: Context, member: Member, exit_: Principal | None) -> bool:
        """Make a member's system event of the facts that it lacks or must forget, and of errors.

        Returns false if there are none. An event has at most `alert_entries` entries: removals
        first, then additions, then errors. The others wait for the next event.
        """
        most = self.settings.alert_entries
        unwanted = [fact for fact in {**member.holds, **member.may} if fact not in member.want]
        removes = tuple(unwanted[:most])
        ready = (
            (fact, value)
            for fact, (value, _) in member.want.items()
            if member.holds.get(fact) != value and self.planner.member_ready(member, fact, value)
        )
        adds = dict(islice(ready, most - len(removes)))
        errors = tuple(member.errors)[: most - len(removes) - len(adds)]
        if not adds and not removes and not errors:
            return False
        for fact in (*removes, *adds):
            member.may = take_out(member.may, fact)
        for error in errors:
            member.errors = take_out(member.errors, error)
        member.last_id += 1
        member.tries = 0
        member.next = 0
        content = MemberAlert(adds, removes, errors)
        alert = SentToMember(member.last_id, content, exit_)
        member.alert = alert
        namespace = system_namespace(member.role, member.id)
        data = encoded(content.data(member.role))
        if exit_ is None:
            alert.notification = self.role.next_notification()
            alert.message = self._notification(ctx, alert.notification, alert.id, namespace, data)
        else:
            alert.event = Event(
                alert.id,
                None,
                ctx.time,
                namespace=namespace,
                data=data,
                source=ctx.me,
                headers=None,
            )
        return True

    def _drop(self, member: Member) -> None:
        """Give up a member's system event.

        Its errors will be sent again. The member may or may not know its facts.
        """
        if member.alert is not None:
            self.state.direct.pop(member.alert.notification, None)
            content = member.alert.content
            member.errors = put_all(member.errors, dict.fromkeys(content.errors))
            member.may = put_all(member.may, dict.fromkeys((*content.adds, *content.removes)))
            member.alert = None

    def direct_confirmed(self, caller: Principal, notification: int) -> Confirmed:
        """Take a confirmation by a member that was notified directly.

        Returns `Ok`, `Unauthorized` if the notification was for another member, or `NotFound`.
        """
        key = self.state.direct.get(notification)
        if key is None:
            return "NotFound"
        if key[1] != caller:
            return "Unauthorized"
        del self.state.direct[notification]
        member = self.state.members[key]
        if member.alert is not None and member.alert.notification == notification:
            member.alert = None
            member.tries = 0
            self.state.restless[key] = None
        return "Ok"
