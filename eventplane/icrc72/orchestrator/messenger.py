"""How the orchestrator tells everybody what concerns them (IC-38, IC-47c).

To a broadcaster one system event is under way; it is repeated until confirmed, and one that stays unconfirmed for 50
rounds in which the orchestrator ran means that the broadcaster is dead. Members are told at their exit, once: the event
counts as known when it was handed over.
"""

from typing import Any

from pubsub_emulator.eventplane.ic.canister import ONE_WAY, Answer, Context
from pubsub_emulator.eventplane.ic.principal import Principal
from pubsub_emulator.eventplane.icrc72.alerts import broker_alert, member_alert
from pubsub_emulator.eventplane.icrc72.messages import Event, EventNotification
from pubsub_emulator.eventplane.icrc72.namespaces import system_namespace
from pubsub_emulator.eventplane.icrc72.orchestrator.planner import Planner
from pubsub_emulator.eventplane.icrc72.orchestrator.state import Alert, Broker, Fact, Member, MemberAlert, Registry
from pubsub_emulator.eventplane.icrc72.role import RoleCanister
from pubsub_emulator.eventplane.icrc72.services import codec
from pubsub_emulator.eventplane.icrc72.settings import Settings


class Messenger:
    """Sends system events and hears of their confirmation."""

    def __init__(self, state: Registry, planner: Planner, settings: Settings, role: RoleCanister) -> None:
        self.state = state
        self.planner = planner
        self.settings = settings
        self.role = role

    def wake(self, ctx: Context, elapsed: int) -> list[Principal]:
        """Send what is due; returns the broadcasters that are taken for dead now."""
        dead = [each.id for each in self.state.brokers.values() if self._tell_broker(ctx, each, elapsed)]
        for key in list(self.state.restless):
            self._tell_member(ctx, self.state.members[key])
        return dead

    def due(self, now: int) -> int | None:
        """The next round in which something may be to be sent."""
        found: int | None = None
        for broker in self.state.brokers.values():
            if broker.alert is not None:
                due = min(broker.alert.next, now + self.settings.system_repeat)
            elif broker.registered:
                due = now + 1 if broker.dirty else broker.last_round + self.settings.ping
            else:
                continue
            found = due if found is None else min(found, due)
        if self.state.restless:
            found = now + 1 if found is None else min(found, now + 1)
        return found

    # Broadcasters

    def _tell_broker(self, ctx: Context, broker: Broker, elapsed: int) -> bool:
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
            waits = settings.system_repeat
            if broker.dead:
                waits = min(settings.repeat_first << min(alert.sends, 20), settings.repeat_most)
            alert.sends += 1
            alert.next = ctx.now + waits
            self.role.send(ctx, broker.id, "icrc72_handle_notification", alert.message, kind=ONE_WAY)
        return False

    def _compose(self, ctx: Context, broker: Broker) -> None:
        adds: dict[Fact, Any] = {}
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
            elif fact in broker.held and broker.held[fact] == wanted[0]:
                del broker.dirty[fact]
            elif self.planner.ready(broker, fact, wanted[0]):
                adds[fact] = wanted[0]
                del broker.dirty[fact]
        if not adds and not removes and ctx.now < broker.last_round + self.settings.ping:
            return
        broker.last_id += 1
        broker.last_round = ctx.now
        alert = broker.alert = Alert(broker.last_id, self.role.next_notification(), adds, tuple(removes))
        namespace = system_namespace("broadcaster", broker.id)
        alert.message = self._notification(ctx, alert.notification, alert.id, namespace, broker_alert(adds, removes))
        alert.sends, alert.next = 1, ctx.now + self.settings.system_repeat
        self.role.send(ctx, broker.id, "icrc72_handle_notification", alert.message, kind=ONE_WAY)

    def _notification(self, ctx: Context, number: int, identifier: int, namespace: str, data: Any) -> bytes:
        made = EventNotification(number, identifier, None, ctx.time, namespace, data, None, ctx.me, None)
        return codec("icrc72_handle_notification").args.encode((made,))

    def confirmed(self, broker: Broker, notification: int) -> bool:
        """A broadcaster confirms: what it was told is now held. False when nothing of that id is under way."""
        alert = broker.alert
        if alert is None or alert.notification != notification:
            return False
        broker.alert = None
        for fact in alert.removes:
            broker.held.pop(fact, None)
        broker.held.update(alert.adds)
        for fact in (*alert.removes, *alert.adds):
            self._check(broker, fact)
            if fact[0] == "sub" and fact[1] in self.state.by_namespace:
                publication = self.state.publications[self.state.by_namespace[fact[1]]]
                self.planner.plan_pair(publication, fact[2])
            elif fact[0] == "rp" and fact[1] in self.state.replays and fact not in broker.held:
                self.planner.plan_replay(fact[1])
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
    def _check(broker: Broker, fact: Fact) -> None:
        wanted = broker.want.get(fact)
        if (wanted is None) != (fact not in broker.held) or (wanted is not None and broker.held[fact] != wanted[0]):
            broker.dirty[fact] = None

    # Members

    def _tell_member(self, ctx: Context, member: Member) -> None:
        exit_ = self.state.exits.get(member.id)
        namespace = system_namespace(member.role, member.id)
        if exit_ is not None and not self.planner.sure(exit_, ("sub", namespace, member.id)):
            return
        if member.fresh or (member.alert is not None and member.alert.exit != exit_):
            member.fresh = False
            self._drop(member)
            member.may.update(dict.fromkeys(member.told))
            member.told = {}
        if member.alert is None and not self._compose_member(ctx, member, exit_):
            if all(member.told.get(fact) == wanted[0] for fact, wanted in member.want.items()):
                self.state.restless.pop((member.role, member.id), None)
            return
        alert = member.alert
        if alert is None or alert.busy or ctx.now < member.next:
            return
        if not alert.sent:
            alert.sent = True
            member.told.update(alert.adds)
            for fact in alert.removes:
                member.told.pop(fact, None)
            self._recheck(alert)
        if exit_ is None:
            wait = min(self.settings.repeat_first << min(member.tries, 20), self.settings.repeat_most)
            member.tries += 1
            member.next = ctx.now + wait
            self.state.direct[alert.notification] = (member.role, member.id)
            self.role.send(ctx, member.id, "icrc72_handle_notification", alert.message, kind=ONE_WAY)
            return
        alert.busy = True
        key, number = (member.role, member.id), alert.id

        def published(ctx: Context, values: tuple[Any, ...] | None, _answer: Answer) -> None:
            self._published(ctx, key, number, values)

        self.role.send(ctx, exit_, "icrc72_publish", alert.message, published, kind="bounded")

    def _published(self, ctx: Context, key: tuple[str, Principal], number: int, values: tuple[Any, ...] | None) -> None:
        member = self.state.members.get(key)
        if member is None or member.alert is None or member.alert.id != number:
            return
        member.alert.busy = False
        results: tuple[Any, ...] = values[0] if values is not None else ()
        if len(results) == 1 and results[0] is not None and results[0].tag == "Ok":
            member.alert = None
            member.tries = 0
        else:
            member.tries = min(member.tries + 1, 4)
            member.next = ctx.now + (1 << member.tries)

    def _compose_member(self, ctx: Context, member: Member, exit_: Principal | None) -> bool:
        adds = {
            fact: wanted[0]
            for fact, wanted in member.want.items()
            if member.told.get(fact) != wanted[0] and self.planner.member_ready(member, fact, wanted[0])
        }
        removes = tuple(fact for fact in {**member.told, **member.may} if fact not in member.want)
        errors = tuple(member.errors)
        if not adds and not removes and not errors:
            return False
        member.may.clear()
        member.errors.clear()
        member.last_id += 1
        member.tries = member.next = 0
        alert = member.alert = MemberAlert(member.last_id, adds, removes, errors, exit_)
        namespace = system_namespace(member.role, member.id)
        data = member_alert(member.role, adds, removes, errors)
        if exit_ is None:
            alert.notification = self.role.next_notification()
            alert.message = self._notification(ctx, alert.notification, alert.id, namespace, data)
        else:
            event = Event(alert.id, None, ctx.time, namespace, data, ctx.me, None)
            alert.message = codec("icrc72_publish").args.encode((event,))
        return True

    def _recheck(self, alert: MemberAlert) -> None:
        """Facts of broadcasters that waited until a member was told."""
        for fact in alert.removes:
            if fact[0] == "rp":
                self.planner.plan_replay(fact[1])
            for broker in self.state.brokers.values():
                broker.dirty.update({each: None for each in broker.held if each not in broker.want})

    def _drop(self, member: Member) -> None:
        if member.alert is not None:
            self.state.direct.pop(member.alert.notification, None)
            member.errors.update(dict.fromkeys(member.alert.errors))
            member.may.update(dict.fromkeys(member.alert.adds))
            member.alert = None

    def direct_confirmed(self, caller: Principal, notification: int) -> str:
        """A member that was notified from here confirms: Ok, Unauthorized or NotFound."""
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
        return "Ok"
