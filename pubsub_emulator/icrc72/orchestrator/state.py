"""The state of the orchestrator: the registry, assignments, and what each member has been told."""

from dataclasses import dataclass, field

from pubsub_emulator.icrc72.config import PublicationConfig, SubscriptionConfig
from pubsub_emulator.icrc72.facts import Cause, Fact, Facts, FactValue, MemberFact, MemberValue
from pubsub_emulator.icrc72.ic.principal import Principal
from pubsub_emulator.icrc72.ic.stable import record, stable
from pubsub_emulator.icrc72.messages import Event, StateName
from pubsub_emulator.icrc72.role import RoleCanister
from pubsub_emulator.icrc72.settings import Settings
from pubsub_emulator.icrc72.values import Pairs, Skip

Said = tuple[Principal, str, Principal]  # a list canister, the name of its list, and who is on it or not

stable(Event)


@record
class Publication:
    """A registered publication."""

    id: int
    namespace: str
    config: PublicationConfig
    publishers: dict[Principal, bool]  # every registered publisher, and whether it may publish now
    subscribers: dict[Principal, dict[int, bool]] = field(default_factory=dict)
    """Of each subscriber, the subscriptions that match, and whether they are authorised now."""
    entries: dict[Principal, tuple[Principal, ...]] = field(default_factory=dict)  # by partition
    verdicts: dict[Said, bool] = field(default_factory=dict)  # what list canisters said last
    heard: dict[Said, int] = field(default_factory=dict)  # the round in which they said it
    version: int = 0
    draining: dict[Principal, tuple[Principal, ...]] = field(default_factory=dict)
    """Of each publisher that is being moved, the entries that must be empty first."""
    emptying: dict[Principal, int] = field(default_factory=dict)
    """Of these, since when no entry accepts their events: what is queued by then is to be delivered."""
    unserved: dict[Principal, None] = field(default_factory=dict)  # whose exit may not yet serve them


@record
class SubscriptionRecord:
    """A registered subscription, or the registration of a system namespace."""

    id: int
    pattern: str
    subscriber: Principal
    config: SubscriptionConfig
    version: int = 0


@record
class Alert:
    """A system event under way to a broadcaster."""

    id: int
    notification: int
    adds: dict[Fact, FactValue]
    removes: tuple[Fact, ...]
    message: bytes = b""
    age: int = 0  # rounds that the orchestrator ran and it was not confirmed
    sends: int = 0
    next: int = 0


@record
class Broker:
    """A broadcaster as the orchestrator knows it."""

    id: Principal
    subnet: int
    registered: bool = False
    want: dict[Fact, tuple[FactValue, int]] = field(default_factory=dict)
    """What it should be told: value, and how many reasons there are for it."""
    load: int = 0  # how many pairs of namespace and principal are assigned to it
    held: dict[Fact, FactValue] = field(default_factory=dict)  # what it has confirmed
    dirty: dict[Fact, None] = field(default_factory=dict)
    wanted_relays: dict[str, dict[Fact, None]] = field(default_factory=dict)  # of `want`, by namespace
    held_by_name: dict[tuple[str, str], dict[Fact, None]] = field(default_factory=dict)
    """Of `held`, the facts of each kind and namespace."""
    alert: Alert | None = None
    last_id: int = 0
    last_round: int = 0
    dead: bool = False
    sick: bool = False  # it was taken for dead and came back: first it drops everything
    retiring: bool = False  # it gets nobody new; who is there is moved
    leaves: int | None = None  # the round from which on relays to it may go: others serve its subscribers
    closed: int | None = None  # the round from which on nothing is relayed to it
    emptied: bool = False  # its queues are empty, so its subscribers may go
    stats: dict[str, int] = field(default_factory=dict)
    asked_stats: int = 0  # when it was asked for statistics last
    told_stats: int = 0  # when it was asked for those that it gave last

    def hold(self, facts: Facts) -> None:
        """Note facts that the broadcaster has confirmed."""
        self.held.update(facts)
        for fact in facts:
            name = _name_of(fact)
            if name is not None:
                self.held_by_name.setdefault(name, {})[fact] = None

    def release(self, fact: Fact) -> None:
        """Note that the broadcaster has confirmed the removal of a fact."""
        self.held.pop(fact, None)
        name = _name_of(fact)
        if name is not None:
            named = self.held_by_name.get(name, {})
            named.pop(fact, None)
            if not named:
                self.held_by_name.pop(name, None)

    def listed(self, kind: str, namespace: str) -> list[Principal]:
        """The principals of a kind's facts in a namespace on which it may act: subscribers, publishers or targets."""
        adds = () if self.alert is None else self.alert.adds
        found = [*self.held_by_name.get((kind, namespace), ()), *(f for f in adds if f[:2] == (kind, namespace))]
        return [fact[2] for fact in found if len(fact) > 2]


def _name_of(fact: Fact) -> tuple[str, str] | None:
    return fact[:2] if fact[0] == "sub" or fact[0] == "pub" or fact[0] == "relay" else None


@record
class MemberAlert:
    """A system event under way to a publisher or subscriber."""

    id: int
    adds: dict[MemberFact, MemberValue]
    removes: tuple[MemberFact, ...]
    errors: tuple[tuple[int, int, str], ...]
    exit: Principal | None
    message: bytes = b""  # what is sent where there is no exit
    event: Event | None = None  # what is published at the exit
    notification: int = 0
    busy: bool = False
    sent: bool = False


@record
class Member:
    """A principal in one role, as the orchestrator tells it what concerns it."""

    role: str
    id: Principal
    want: dict[MemberFact, tuple[MemberValue, int]] = field(default_factory=dict)
    holds: dict[MemberFact, MemberValue] = field(default_factory=dict)
    may: dict[MemberFact, None] = field(default_factory=dict)  # what it may still believe until it knows all again
    errors: dict[tuple[int, int, str], None] = field(default_factory=dict)
    alert: MemberAlert | None = None
    last_id: int = 0
    tries: int = 0
    next: int = 0
    fresh: bool = False


@record
class Replay:
    """A replay that was asked for (ICRC-77)."""

    id: int
    namespace: str
    publication: int
    publisher: Principal
    subscriber: Principal
    start: int
    end: int | None
    filter: str | None
    skip: Skip | None
    config: Pairs
    created: int
    state: StateName = "pending"
    count: int = 0
    text: str = ""
    path: tuple[Principal, Principal] | None = None
    alerted: int | None = None  # the round in which its publisher was told
    heard: int = 0  # the round of the last report
    done: int | None = None  # what the publisher reported as completed, while the entry has some of it queued
    polled_at: int = 0
    since: int = 0  # since when the entry is known to hold some of it, once the publisher is done
    ended: int | None = None
    exit_kept: bool = True  # the exit still expects events that are queued at the entry
    reported: int | None = None  # n, as the publisher gave it for a final state
    payer: Principal | None = None
    price: int = 0
    ledger: Principal | None = None
    paid: int = 0
    settled: bool = True
    owed: list[tuple[Principal, int]] = field(default_factory=list)  # transfers out that are still to be made
    paying: bool = False
    next_pay: int = 0
    accepted: int | None = None
    rest: tuple[Principal, ...] = ()  # the publishers that follow when this one is done
    parts: list[tuple[Principal, Principal, int]] = field(default_factory=list)  # who is done, entry, events


@record
class Registry:
    """The whole state of the orchestrator."""

    publications: dict[int, Publication] = field(default_factory=dict)
    by_namespace: dict[str, int] = field(default_factory=dict)
    subscriptions: dict[int, SubscriptionRecord] = field(default_factory=dict)
    by_subscriber: dict[Principal, dict[str, int]] = field(default_factory=dict)  # by pattern; system ones too
    patterns: dict[int, None] = field(default_factory=dict)  # subscriptions with wildcards
    exact: dict[str, dict[int, None]] = field(default_factory=dict)  # subscriptions by exact namespace
    by_publisher: dict[Principal, int] = field(default_factory=dict)  # how many publications each publisher has
    exits: dict[Principal, Principal | None] = field(default_factory=dict)
    brokers: dict[Principal, Broker] = field(default_factory=dict)
    members: dict[tuple[str, Principal], Member] = field(default_factory=dict)
    restless: dict[tuple[str, Principal], None] = field(default_factory=dict)
    """Members to whom something may have to be told now; who waits for a broadcaster is not listed meanwhile."""
    reasons: dict[Cause, list[tuple[Principal, Fact]]] = field(default_factory=dict)
    """What each cause makes broadcasters want, so that it can be taken back."""
    member_reasons: dict[Cause, list[tuple[tuple[str, Principal], MemberFact]]] = field(default_factory=dict)
    last_publication: int = 0
    last_subscription: int = 0
    last_replay: int = 0
    replays: dict[int, Replay] = field(default_factory=dict)
    requests: dict[Principal, list[int]] = field(default_factory=dict)  # when each asked for replays; newest last
    direct: dict[int, tuple[str, Principal]] = field(default_factory=dict)  # members that are told from here
    last_check: int = 0
    last_wake: int = 0


@dataclass
class Part:
    """A part of an orchestrator, and what all of them work with."""

    state: Registry
    settings: Settings
    role: RoleCanister
