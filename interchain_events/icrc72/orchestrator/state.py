"""The state of the orchestrator: registrations, assignments, and the knowledge of each canister.

These records are saved in upgrades.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from interchain_events.icrc72.alerts import BrokerAlert, MemberAlert
from interchain_events.icrc72.config import (
    PublicationConfig,
    PublisherConfig,
    SubscriptionConfig,
)
from interchain_events.icrc72.facts import (
    Cause,
    Fact,
    Facts,
    FactValue,
    MemberFact,
    MemberValue,
    PublisherFact,
    RelayFact,
    SubscriberFact,
    Trouble,
)
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.ic.stable import record, stable
from interchain_events.icrc72.memory import nothing, put_single, take_out
from interchain_events.icrc72.messages import Event, StateName
from interchain_events.icrc72.role import RoleCanister
from interchain_events.icrc72.settings import Settings
from interchain_events.icrc72.values import Pairs, Skip

_LOOKED_UP: Final = (SubscriberFact, PublisherFact, RelayFact)
"""The facts that are looked up by their kind and namespace."""

AnswerKey = tuple[Principal, str, Principal]
"""The key of a list canister's answer: canister, name of the list, and principal in question."""

UNCONFIGURED: Final = PublisherConfig()
"""The configuration of a publisher that joined without one."""

stable(Event)


@record
class Publication:
    """A registered publication."""

    id: int
    namespace: str
    config: PublicationConfig
    publishers: dict[Principal, bool]
    """All registered publishers, and whether each may publish now."""
    subscribers: dict[Principal, Mapping[int, bool]] = field(default_factory=dict)
    """For each subscriber, the subscriptions that match, and whether each is authorised now."""
    entries: dict[Principal, tuple[Principal, ...]] = field(default_factory=dict)
    """For each publisher, its entries by partition."""
    verdicts: dict[AnswerKey, bool] = field(default_factory=dict)
    """Whether each list contains the principal, by the last answers of list canisters."""
    heard: dict[AnswerKey, int] = field(default_factory=dict)
    """The rounds in which the answers in `verdicts` were received."""
    version: int = 0
    """How often the configuration was updated."""
    draining: dict[Principal, tuple[Principal, ...]] = field(default_factory=dict)
    """For each publisher that is being moved, its former entries, which must become empty first."""
    emptying: dict[Principal, int] = field(default_factory=dict)
    """For each publisher that is being moved, the round since which no entry accepts its events."""
    unserved: dict[Principal, None] = field(default_factory=dict)
    """Subscribers whose exit may not yet serve them."""
    joined: dict[Principal, PublisherConfig] = field(default_factory=dict)
    """The configurations of the publishers other than the creator."""

    def replays(self, publisher: Principal) -> bool:
        """Return whether a publisher advertises that it replays its events (ICRC-77)."""
        if publisher == self.config.creator:
            return self.config.replay
        return self.joined.get(publisher, UNCONFIGURED).replay

    def price(self, publisher: Principal) -> tuple[int, Principal | None]:
        """Return the price of an event that a publisher replays, and its ledger or `None`."""
        own = self.joined.get(publisher, UNCONFIGURED).price
        return own or self.config.price or (0, None)

    def max_range(self, publisher: Principal, default: int) -> int:
        """Return how many ids of a publisher a replay may have."""
        own = self.joined.get(publisher, UNCONFIGURED).max_range
        return own or self.config.max_range or default


@record
class SubscriptionRecord:
    """A registered subscription, or the registration of a canister for its system events."""

    id: int
    pattern: str
    subscriber: Principal
    config: SubscriptionConfig
    version: int = 0
    """How often the subscription, or the priorities of its publications, were updated."""


@record
class SentToBroker:
    """A system event under way to a broadcaster."""

    id: int
    notification: int
    content: BrokerAlert
    message: bytes = b""
    """The encoded argument of the call."""
    age: int = 0
    """For how many rounds it has waited for its confirmation, while the orchestrator was running.
    """
    sends: int = 0
    """How many times it was sent."""
    next: int = 0
    """The round in which it is sent again."""


@record
class Broker:
    """A broadcaster as the orchestrator knows it."""

    id: Principal
    subnet: int
    registered: bool = False
    want: dict[Fact, tuple[FactValue, int]] = field(default_factory=dict)
    """The facts that it should have, each with its value and the number of its causes."""
    load: int = 0
    """How many pairs of a namespace and a subscriber or publisher are assigned to it."""
    held: dict[Fact, FactValue] = field(default_factory=dict)
    """The facts that it has confirmed."""
    dirty: dict[Fact, None] = field(default_factory=dict)
    """Facts for which `want` and `held` may differ."""
    wanted_relays: dict[str, dict[Fact, None]] = field(default_factory=dict)
    """The relay facts in `want`, by namespace."""
    held_by_name: dict[tuple[str, str], Mapping[Fact, None]] = field(default_factory=dict)
    """The facts in `held` that are looked up by their kind and namespace."""
    alert: SentToBroker | None = None
    """The system event that is under way."""
    last_id: int = 0
    """The id of its last system event."""
    last_round: int = 0
    """The round in which its last system event was made."""
    dead: bool = False
    """Whether it counts as dead because it has not confirmed a system event for too long."""
    sick: bool = False
    """Whether it counted as dead and has come back. It must first drop all of its facts."""
    retiring: bool = False
    """Whether it gets no new members and its members are moved."""
    leaves: int | None = None
    """The round from which relays to it may be removed: other exits then serve its subscribers."""
    closed: int | None = None
    """The round since which no broadcaster relays to it."""
    emptied: bool = False
    """Whether its queues are empty, so that its subscribers may be removed."""
    stats: dict[str, int] = field(default_factory=dict)
    asked_stats: int = 0
    """The round in which it was last asked for statistics."""
    told_stats: int = 0
    """The round in which the statistics in `stats` were asked for."""

    def hold(self, facts: Facts) -> None:
        """Note facts that the broadcaster has confirmed."""
        self.held.update(facts)
        for fact in facts:
            if isinstance(fact, _LOOKED_UP):
                name = (fact.kind, fact.namespace)
                named = self.held_by_name.get(name, nothing())
                self.held_by_name[name] = put_single(named, fact, None)

    def release(self, fact: Fact) -> None:
        """Note that the broadcaster has confirmed the removal of a fact."""
        self.held.pop(fact, None)
        if isinstance(fact, _LOOKED_UP):
            name = (fact.kind, fact.namespace)
            named = take_out(self.held_by_name.get(name, nothing()), fact)
            if named:
                self.held_by_name[name] = named
            else:
                self.held_by_name.pop(name, None)

    def under_way(self) -> Facts:
        """Return the additions in the system event that is under way."""
        return {} if self.alert is None else self.alert.content.adds

    def subscribers(self, namespace: str) -> list[Principal]:
        """Return the subscribers whom the broadcaster may notify.

        These are the subscribers of confirmed facts, and of facts under way to the broadcaster.
        """
        facts = [*self.held_by_name.get(("subscriber", namespace), ()), *self.under_way()]
        return [
            fact.subscriber
            for fact in facts
            if isinstance(fact, SubscriberFact) and fact.namespace == namespace
        ]

    def publishers(self, namespace: str) -> list[Principal]:
        """Return the publishers from which the broadcaster may accept events.

        These are the publishers of confirmed facts, and of facts under way to the broadcaster.
        """
        facts = [*self.held_by_name.get(("publisher", namespace), ()), *self.under_way()]
        return [
            fact.publisher
            for fact in facts
            if isinstance(fact, PublisherFact) and fact.namespace == namespace
        ]

    def relay_targets(self, namespace: str) -> list[Principal]:
        """Return the broadcasters to which this one may relay events.

        These are the targets of confirmed facts, and of facts under way to the broadcaster.
        """
        facts = [*self.held_by_name.get(("relay", namespace), ()), *self.under_way()]
        return [
            fact.target
            for fact in facts
            if isinstance(fact, RelayFact) and fact.namespace == namespace
        ]


@record
class SentToMember:
    """A system event under way to a publisher or subscriber."""

    id: int
    content: MemberAlert
    exit: Principal | None
    """The exit through which it goes; `None` if it is sent directly."""
    message: bytes = b""
    """The encoded argument of the call, if it is sent directly."""
    event: Event | None = None
    """The event that is published at the exit."""
    notification: int = 0
    """The id of the notification, if it is sent directly."""
    busy: bool = False
    """Whether a call that publishes it is under way."""
    sent: bool = False
    """Whether it was sent, so that its facts count as known."""


@record
class Member:
    """A canister in the role of publisher or subscriber, and its knowledge of facts."""

    role: str
    id: Principal
    want: Mapping[MemberFact, tuple[MemberValue, int]] = field(default_factory=nothing)
    """The facts that it should know, each with its value and the number of its causes."""
    holds: Mapping[MemberFact, MemberValue] = field(default_factory=nothing)
    """The facts that it was informed about, with their values."""
    may: Mapping[MemberFact, None] = field(default_factory=nothing)
    """Facts that it may know or not, because a system event about them was given up."""
    errors: Mapping[Trouble, None] = field(default_factory=nothing)
    """Errors about which it has to be informed."""
    alert: SentToMember | None = None
    """The system event that is under way."""
    last_id: int = 0
    """The id of its last system event."""
    tries: int = 0
    """How many times its system event was sent without success."""
    next: int = 0
    """The round before which it is not sent again."""
    fresh: bool = False
    """Whether it must be informed about all of its facts again."""


@record
class Replay:
    """A replay that a subscriber has asked for (ICRC-77)."""

    id: int
    namespace: str
    publication: int
    publisher: Principal
    """The publisher that is replaying now."""
    subscriber: Principal
    start: int
    end: int | None
    """The id after the last one; `None` for all events that exist."""
    filter: str | None
    skip: Skip | None
    config: Pairs
    created: int
    """The round in which it was asked for."""
    state: StateName = "pending"
    count: int = 0
    """How many events were replayed, if the state is final."""
    text: str = ""
    """The error, if the state is `errored`."""
    path: tuple[Principal, Principal] | None = None
    """Entry and exit; `None` while it waits."""
    alerted: int | None = None
    """The round in which its publisher was informed."""
    heard: int = 0
    """The round of the last report."""
    done: int | None = None
    """The number of events that the publisher reported as completed, while the entry is polled."""
    polled_at: int = 0
    """The round in which the entry was last polled."""
    since: int = 0
    """The round in which its present step began; a step that takes too long ends the replay.

    A step begins when the replay gets its path, when the publisher is done, and when the next
    publisher's turn comes. Without a path, this is the last round in which both its publisher and
    its subscriber were served by a broadcaster.
    """
    ended: int | None = None
    """The round in which it reached a final state."""
    exit_kept: bool = True
    """Whether the exit still expects events that may be queued at the entry."""
    reported: int | None = None
    """How many events the publisher reported when the replay was completed or canceled."""
    payer: Principal | None = None
    """The subscriber who paid; `None` if it is free."""
    price: int = 0
    """The highest price of an event."""
    prices: dict[Principal, int] = field(default_factory=dict)
    """The prices of the publishers that charge less than `price`."""
    ledger: Principal | None = None
    """The ledger of the price; `None` for cycles."""
    paid: int = 0
    """The amount in escrow."""
    settled: bool = True
    """Whether the amount was divided between publishers and payer, as listed in `owed`."""
    owed: list[tuple[Principal, int]] = field(default_factory=list)
    """The transfers that are still to be made: receiver and amount."""
    paying: bool = False
    """Whether a transfer is under way."""
    next_pay: int = 0
    """The round before which a failed transfer is not tried again."""
    accepted: int | None = None
    """How many events of all publishers the entry has accepted, by its last answer."""
    rest: tuple[Principal, ...] = ()
    """The publishers that replay after this one."""
    parts: list[tuple[Principal, Principal, int]] = field(default_factory=list)
    """The publishers that are done, with their entries and numbers of events."""


@record
class Registry:
    """The whole state of the orchestrator."""

    publications: dict[int, Publication] = field(default_factory=dict)
    by_namespace: dict[str, int] = field(default_factory=dict)
    """Ids of publications by namespace."""
    subscriptions: dict[int, SubscriptionRecord] = field(default_factory=dict)
    by_subscriber: dict[Principal, dict[str, int]] = field(default_factory=dict)
    """For each subscriber, the ids of its subscriptions by pattern, including system namespaces."""
    patterns: dict[int, None] = field(default_factory=dict)
    """Subscriptions whose patterns have wildcards."""
    exact: dict[str, dict[int, None]] = field(default_factory=dict)
    """The other subscriptions by namespace."""
    by_publisher: dict[Principal, int] = field(default_factory=dict)
    """How many publications each publisher has."""
    exits: dict[Principal, Principal | None] = field(default_factory=dict)
    """For each member its exit; `None` if its subnet has no usable broadcaster."""
    brokers: dict[Principal, Broker] = field(default_factory=dict)
    """The broadcasters on the list, whether registered or not."""
    members: dict[tuple[str, Principal], Member] = field(default_factory=dict)
    """The members by role and id."""
    restless: dict[tuple[str, Principal], None] = field(default_factory=dict)
    """The members for which the next wake checks whether a system event is due.

    A member that waits for a broadcaster to confirm a fact is not listed; `Planner.settled` lists
    it again.
    """
    reasons: dict[Cause, list[tuple[Principal, Fact]]] = field(default_factory=dict)
    """For each cause, the facts that broadcasters should have because of it."""
    member_reasons: dict[Cause, list[tuple[tuple[str, Principal], MemberFact]]] = field(
        default_factory=dict
    )
    """For each cause, the facts that members should know because of it."""
    last_publication: int = 0
    last_subscription: int = 0
    last_replay: int = 0
    replays: dict[int, Replay] = field(default_factory=dict)
    requests: dict[Principal, list[int]] = field(default_factory=dict)
    """For each subscriber, the rounds in which it asked for replays.

    The subscriber with the latest request comes last, so that outdated ones are found first.
    """
    direct: dict[int, tuple[str, Principal]] = field(default_factory=dict)
    """Members that are notified directly, by the id of the notification."""
    last_check: int = 0
    """The round in which list canisters were last asked."""
    last_wake: int = 0
    """The round in which the orchestrator last ran."""


@dataclass
class Part:
    """A part of an orchestrator, with the state and services that all parts share."""

    state: Registry
    settings: Settings
    role: RoleCanister
