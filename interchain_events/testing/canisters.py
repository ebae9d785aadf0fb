"""A network of subnets with publish-subscribe, for the fixture `pubsub_canisters`."""

from collections.abc import Sequence

from interchain_events.icrc72.client import App, Config
from interchain_events.icrc72.deployment import PubSub, deploy
from interchain_events.icrc72.ic.canister import BOUNDED, Answer, Canister, Context, Ticket
from interchain_events.icrc72.ic.errors import CandidError
from interchain_events.icrc72.ic.messaging import MessageLimits, Schedule
from interchain_events.icrc72.ic.network import CanisterNetwork
from interchain_events.icrc72.ic.principal import ANONYMOUS, Principal
from interchain_events.icrc72.messages import EventNotification
from interchain_events.icrc72.methods import HANDLE, Trusted
from interchain_events.icrc72.orchestrator.publications import Hook
from interchain_events.icrc72.services import codec
from interchain_events.icrc72.settings import DEFAULTS, Settings


class Probe(Canister):
    """A canister that makes the calls requested by a test, and stores its notifications."""

    heartbeat: bool = True

    def __init__(self) -> None:
        self.todo: list[tuple[Principal, str, bytes, str, int]] = []
        """The requested calls: canister, method, argument, kind of call, and number."""
        self.answers: dict[int, Answer] = {}
        """The answers to the calls, by number."""
        self.notified: list[tuple[Principal, EventNotification]] = []
        """The notifications with their senders."""
        self.trusted: Trusted | None = None

    def on_heartbeat(self, ctx: Context) -> None:
        """Make the requested calls."""
        todo = self.todo
        self.todo = []
        for to, method, arg, kind, number in todo:
            ctx.call(
                to,
                method,
                arg,
                lambda _ctx, answer, n=number: self.answers.update({n: answer}),  # type: ignore[misc]
                kind=kind,
            )

    def update(self, ctx: Context, method: str, arg: bytes) -> None:
        """Store notifications. Other methods get an empty answer."""
        if method.startswith("icrc72_handle_notification"):
            self.notified += [(ctx.caller, notification) for notification in HANDLE.value(arg)]
            if self.trusted is not None:
                ctx.reply(codec(method).rets.encode(self.trusted))
                return
        ctx.reply(codec("icrc72_handle_notification").rets.encode())

    def snapshot(self) -> None:
        """Do nothing: a probe does not trap."""

    def restore(self, snapshot: object) -> None:
        """Do nothing: a probe does not trap, so it is never restored."""


class Canisters:
    """Subnets with an orchestrator and broadcasters, to which tests add apps and probes."""

    def __init__(
        self,
        *,
        subnets: int = 2,
        kind: str = "orchestrator",
        broadcasters: Sequence[int] = (0, 1),
        settings: Settings = DEFAULTS,
        schedule: Schedule | None = None,
        limits: MessageLimits | None = None,
        may_publish: Hook | None = None,
    ) -> None:
        self.network = CanisterNetwork(subnets, schedule=schedule, limits=limits)
        self.settings = settings
        self.system: PubSub = deploy(
            self.network,
            kind,
            broadcasters=broadcasters,
            settings=settings,
            may_publish=may_publish,
        )
        self._number = 0

    @property
    def orchestrator(self) -> Principal:
        """Return the principal of the orchestrator."""
        return self.system.orchestrator

    @property
    def broadcasters(self) -> list[Principal]:
        """Return the principals of the broadcasters in the order of their installation."""
        return self.system.broadcasters

    def install(
        self,
        app: type[App],
        subnet: int = 0,
        *,
        publications: dict[str, Config] | None = None,
        subscriptions: dict[str, Config] | None = None,
    ) -> Principal:
        """Install an app and return its principal."""
        instance = app(
            self.orchestrator, self.settings, publications=publications, subscriptions=subscriptions
        )
        return self.network.create(subnet, instance)

    def app(self, who: Principal) -> object:
        """Return the instance of an app."""
        return self.system.app(who)

    def probe(self, subnet: int = 0) -> Principal:
        """Create a canister that the test controls and return its principal."""
        return self.network.create(subnet, Probe())

    def probed(self, who: Principal) -> Probe:
        """Return the instance of a probe. Raises `TypeError` if the canister is not a probe."""
        canister = self.network.canister(who)
        if not isinstance(canister, Probe):
            raise TypeError(f"{who.text} is not a probe")
        return canister

    def step(self, rounds: int = 1) -> None:
        """Run rounds of the network."""
        self.network.step(rounds)

    def call(self, who: Principal, method: str, arg: bytes = b"") -> Ticket:
        """Call a method of an app as an anonymous user."""
        return self.network.submit(ANONYMOUS, who, method, arg)

    def answer(
        self, probe: Principal, to: Principal, method: str, *values: object, kind: str = BOUNDED
    ) -> object:
        """Make a probe call a method, and run until the call is answered, at most 400 rounds.

        Returns the result, a list of several results, or the `Answer` if the call was rejected or
        its result cannot be decoded.
        """
        self._number += 1
        number = self._number
        self.probed(probe).todo.append(
            (to, method, codec(method).args.encode(*values), kind, number)
        )
        for _ in range(400):
            self.network.step()
            if number in self.probed(probe).answers:
                break
        answer = self.probed(probe).answers.pop(number)
        if not answer.ok:
            return answer
        try:
            results = codec(method).rets.decode(answer.data)
        except CandidError:
            return answer
        return results[0] if len(results) == 1 else results

    def ask(self, method: str, *values: object, to: Principal | None = None) -> object:
        """Query the orchestrator, or another canister, as an anonymous user."""
        arg = codec(method).args.encode(*values)
        answer = self.network.query(ANONYMOUS, to or self.orchestrator, method, arg)
        results = codec(method).rets.decode(answer.data)
        return results[0] if len(results) == 1 else results


__all__ = ["Canisters", "Probe"]
