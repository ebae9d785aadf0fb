"""Scenario files in TOML: a network with publishers, subscribers and faults.

Errors name the file, line and field. The strings below the fields are also the documentation's
table of fields, so each is one short sentence or phrase.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from interchain_events.icrc72.errors import FilterError, NamespaceError
from interchain_events.icrc72.filters import parse as parse_filter
from interchain_events.icrc72.ic.errors import PrincipalError
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.namespaces import check_namespace, check_pattern
from interchain_events.icrc72.settings import DEFAULTS
from pubsub_emulator.files.settings import Bundle, Location, Misplaced, Model, read
from pubsub_emulator.files.settings import parse as parse_settings

MOST_ROUNDS: Final = 1_000_000
"""How many rounds a scenario may have."""

_BROADCASTER: Final = re.compile(r"broadcaster [0-9]+")

Text = Annotated[str, Field(strict=True, min_length=1, max_length=1024)]
Subnet = Annotated[int, Field(strict=True, ge=0, le=63)]
Round = Annotated[int, Field(strict=True, ge=1, le=MOST_ROUNDS)]
Flag = Annotated[bool, Field(strict=True)]
Natural = Annotated[int, Field(strict=True, ge=0)]


class CanisterModel(Model):
    """The fields that all canisters of a scenario have."""

    name: Text
    """The name in faults and results."""
    subnet: Subnet
    """The number of its subnet, counted from 0."""


class PublisherModel(CanisterModel):
    """A publisher of a scenario."""

    namespace: Text
    """The namespace of its events; each publisher needs its own."""
    first: Annotated[int, Field(strict=True, alias="from", ge=1, le=MOST_ROUNDS)] = 60
    """The round of its first event."""
    until: Round = MOST_ROUNDS
    """The last round in which it may make an event; the scenario may end earlier."""
    every: Round = 1
    """The number of rounds from one event to the next."""
    replay: Flag = False
    """Whether its events can be replayed."""


class SubscriberModel(CanisterModel):
    """A subscriber of a scenario."""

    pattern: Text
    """A namespace, or a pattern with `*` and `**`."""
    filter: Text | None = None
    """A filter in CandyPath; the data of an event is its number `n`."""
    skip: tuple[Natural, ...] | None = None
    """Deliver only every mod-th event: [mod] or [mod, offset]."""


class ModuleModel(CanisterModel):
    """A canister that runs a WebAssembly module."""

    wasm: Text
    """The path of its module, relative to the scenario's folder."""
    bare: Flag = False
    """Whether it is installed without an argument; the default is the orchestrator's principal."""
    controllers: tuple[Text, ...] = ()
    """The principals of users who may stop, upgrade and reinstall it."""


class FaultModel(Model):
    """A fault in one round."""

    round: Round
    """The round before whose messages the fault happens."""
    what: Literal["kill", "stop", "start", "upgrade", "retire"]
    """The fault; `retire` moves all members of a broadcaster to other ones."""
    who: Text
    """The name of a canister, `orchestrator`, or `broadcaster N` with its position from 0."""


class ScenarioModel(Model):
    """A scenario."""

    subnets: Annotated[int, Field(strict=True, ge=1, le=64)]
    """The number of subnets."""
    seed: Annotated[str, Field(strict=True, max_length=64)] = "0"
    """The seed of the schedule; the same seed gives the same run."""
    rounds: Round
    """The number of rounds with faults and events; the run then goes on until it is at rest."""
    delay: Annotated[int, Field(strict=True, ge=0, le=20)] = 0
    """The most rounds by which a message is late."""
    refuse: Annotated[int, Field(strict=True, ge=0, le=90)] = 0
    """The percentage of requests that are refused."""
    kind: Literal["orchestrator", "broadcaster"] = "orchestrator"
    """Whether orchestrator and broadcasters are separate canisters, or one canister is both."""
    broadcasters: tuple[Subnet, ...] = (0,)
    """The subnet of each broadcaster."""
    queue: Annotated[int, Field(strict=True, ge=1)] = DEFAULTS.queue_notifications
    """The most notifications that wait for one subscriber."""
    publisher: tuple[PublisherModel, ...] = ()
    """The publishers."""
    subscriber: tuple[SubscriberModel, ...] = ()
    """The subscribers."""
    canister: tuple[ModuleModel, ...] = ()
    """The canisters that run WebAssembly modules."""
    fault: tuple[FaultModel, ...] = ()
    """The faults."""


BUNDLE: Final = Bundle("interchain_events.icrc72")


def load(place: str) -> ScenarioModel:
    """Read a scenario from a `.toml` file, or a bundled one by its name. Raises `SettingsError`."""
    if Path(place).suffix == ".toml":
        return read(Path(place), ScenarioModel, check)
    return parse(BUNDLE.text(place), place)


def parse(data: bytes | str, place: str) -> ScenarioModel:
    """Parse a scenario in TOML. Errors call it `place`. Raises `SettingsError`."""
    return parse_settings(data, place, ScenarioModel, check)


def check(model: ScenarioModel) -> list[Misplaced]:
    """Return all contradictions of a scenario, which types alone do not exclude."""
    return [
        *_places(model),
        *_names(model),
        *_texts(model),
        *_controllers(model),
        *_times(model),
        *_struck(model),
    ]


def _canisters(model: ScenarioModel) -> tuple[tuple[str, tuple[CanisterModel, ...]], ...]:
    """Return the canisters that the scenario names, by table."""
    return (
        ("publisher", model.publisher),
        ("subscriber", model.subscriber),
        ("canister", model.canister),
    )


def _places(model: ScenarioModel) -> Iterator[Misplaced]:
    """Yield an error for each reference to a subnet that does not exist."""
    references: list[tuple[Location, int]] = [
        (("broadcasters", index), subnet) for index, subnet in enumerate(model.broadcasters)
    ]
    for table, canisters in _canisters(model):
        for index, canister in enumerate(canisters):
            references.append(((table, index, "subnet"), canister.subnet))
    for location, subnet in references:
        if subnet >= model.subnets:
            yield Misplaced(
                location, f"there is no subnet {subnet}; the last one is {model.subnets - 1}"
            )


def _names(model: ScenarioModel) -> Iterator[Misplaced]:
    """Yield an error for each name that is reserved or used twice."""
    used: set[str] = set()
    for table, canisters in _canisters(model):
        for index, canister in enumerate(canisters):
            name = canister.name
            location = (table, index, "name")
            if name in {"orchestrator", "proxy"} or _BROADCASTER.fullmatch(name):
                yield Misplaced(
                    location, f"{name!r} is the name of a canister that is always there"
                )
            elif name in used:
                yield Misplaced(location, f"two canisters have the name {name!r}")
            used.add(name)


def _texts(model: ScenarioModel) -> Iterator[Misplaced]:
    """Yield an error for each namespace, pattern, filter or skip that an orchestrator refuses."""
    owners: dict[str, str] = {}
    for index, publisher in enumerate(model.publisher):
        location = ("publisher", index, "namespace")
        yield from _refused(location, check_namespace, publisher.namespace)
        if publisher.namespace in owners:
            yield Misplaced(
                location,
                f"only {owners[publisher.namespace]!r}, who is listed first, may publish there",
            )
        owners.setdefault(publisher.namespace, publisher.name)
    for index, subscriber in enumerate(model.subscriber):
        yield from _refused(("subscriber", index, "pattern"), check_pattern, subscriber.pattern)
        yield from _refused(("subscriber", index, "filter"), parse_filter, subscriber.filter or "a")
        skip = subscriber.skip
        if skip is not None and (len(skip) not in {1, 2} or not sum(skip[1:]) < skip[0]):
            reason = f"a skip is [mod] or [mod, offset] with the offset below mod, not {list(skip)}"
            yield Misplaced(("subscriber", index, "skip"), reason)


def _controllers(model: ScenarioModel) -> Iterator[Misplaced]:
    """Yield an error for each controller that is not a principal."""
    for index, module in enumerate(model.canister):
        for controller in module.controllers:
            yield from _refused(("canister", index, "controllers"), Principal.from_text, controller)


def _refused(location: Location, parse: Callable[[str], object], text: str) -> Iterator[Misplaced]:
    """Yield the error with which a parser refuses a text."""
    try:
        parse(text)
    except (FilterError, NamespaceError, PrincipalError) as error:
        yield Misplaced(location, str(error))


def _times(model: ScenarioModel) -> Iterator[Misplaced]:
    """Yield an error for each round after the last one, and for rounds in the wrong order."""
    for index, publisher in enumerate(model.publisher):
        if publisher.first > model.rounds:
            yield Misplaced(("publisher", index, "from"), f"the last round is {model.rounds}")
        elif publisher.until < publisher.first:
            yield Misplaced(("publisher", index, "until"), f"it begins in round {publisher.first}")
    for index, fault in enumerate(model.fault):
        if fault.round > model.rounds:
            yield Misplaced(("fault", index, "round"), f"the last round is {model.rounds}")


def _struck(model: ScenarioModel) -> Iterator[Misplaced]:
    """Yield an error for each fault that is impossible after the faults before it."""
    subnets = (0,) if model.kind == "broadcaster" else model.broadcasters
    brokers = {f"broadcaster {index}": subnet for index, subnet in enumerate(subnets)}
    known = ["orchestrator", *brokers]
    for _, canisters in _canisters(model):
        known += [canister.name for canister in canisters]
    last_faults: dict[str, str] = {}
    for index, fault in sorted(enumerate(model.fault), key=lambda entry: entry[1].round):
        name = fault.who
        location = ("fault", index, "who")
        # With the kind `broadcaster`, one canister is both orchestrator and broadcaster.
        is_orchestrator = name == "orchestrator" or (
            model.kind == "broadcaster" and name in brokers
        )
        others = [
            broker
            for broker, subnet in brokers.items()
            if broker != name and subnet == brokers.get(name)
        ]
        if name not in known:
            yield Misplaced(location, f"unknown canister {name!r}. Canisters: {', '.join(known)}")
        elif last_faults.get(name) == "kill":
            yield Misplaced(location, f"{name} was killed before round {fault.round}")
        elif fault.what == "start" and last_faults.get(name) != "stop":
            yield Misplaced(location, f"{name} is not stopped in round {fault.round}")
        elif fault.what == "upgrade" and is_orchestrator:
            yield Misplaced(location, "the orchestrator is not upgraded in scenarios")
        elif fault.what == "retire" and not others:
            reason = f"{name} cannot be retired: no other broadcaster serves its subnet"
            yield Misplaced(location, reason)
        last_faults[name] = fault.what
