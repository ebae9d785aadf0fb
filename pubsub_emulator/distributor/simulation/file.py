"""Scenario files of the distributor: TOML in, a checked `ScenarioFile` out, errors that name file, line and field."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, Final, Literal, get_args

from pydantic import Field

from pubsub_emulator.distributor.simulation.scenery import Faults
from pubsub_emulator.emulator.settings import Location, Misplaced, StrictModel, parse, read

MOST_STEPS: Final = 1_000
MOST_EVENTS: Final = 10_000
MOST_SECONDS: Final = 30 * 86_400

Name = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,32}$")]
Text = Annotated[str, Field(min_length=1, max_length=255)]
Seconds = Annotated[float, Field(ge=0, le=MOST_SECONDS)]
Number = Annotated[int, Field(ge=1, le=MOST_EVENTS)]
Form = Literal["all", "star", "types"]


class NetworkTable(StrictModel):
    """A network; `legacy` is the profile of public adapters, which show the newest event of each entity."""

    unique: bool = True
    legacy: bool = False
    tells_blocks: bool = True
    up: bool = True
    offers: list[Form] = Field(default_factory=lambda: list[Form](get_args(Form)))


class SubscriptionTable(StrictModel):
    """A subscriber, subscribed from the start."""

    types: Annotated[list[Text], Field(min_length=1, max_length=64)] = Field(default_factory=lambda: ["*"])
    metadata: Annotated[list[Text], Field(max_length=16)] = Field(default_factory=list)


class _Step(StrictModel):
    at: Seconds


class _OnEvent(_Step):
    event: Number
    entity: Annotated[int, Field(ge=0, le=MOST_EVENTS)] = 0
    type: Text = "ProductOffering"
    environment: Text = "sbx"


class PublishStep(_OnEvent):
    """A client publishes; `status` is what it must be answered within 30 seconds."""

    do: Literal["publish"]
    status: Literal[200, 201, 202, 409, 422, 503] | None = None


class StrangerStep(_OnEvent):
    """Somebody else publishes on one network; `notified = false` loses the notification."""

    do: Literal["stranger"]
    network: Name
    notified: bool = True


class NetworkStep(_Step):
    """An adapter is down, up, refuses, accepts, lies (a yes, no deed), is mute (a deed, no answer) or honest."""

    do: Literal["down", "up", "refuse", "accept", "lie", "mute", "honest"]
    network: Name


class SlowStep(_Step):
    """Publications on a network take so long from now on."""

    do: Literal["slow"]
    network: Name
    seconds: Seconds


class CutStep(_Step):
    """A network's log loses its last events."""

    do: Literal["rewind"]
    network: Name
    events: Number


class KillStep(_Step):
    """A replica, counted from 0, is killed, and starts again after `away` seconds."""

    do: Literal["kill"]
    replica: Annotated[int, Field(ge=0, le=9)] = 0
    away: Seconds = 3.0


class StoreStep(_Step):
    """The store does not answer, or does again."""

    do: Literal["store-down", "store-up"]


class SubscriberStep(_Step):
    """A subscriber answers with another status; 0 is no answer."""

    do: Literal["subscriber"]
    subscription: Name
    status: Annotated[int, Field(ge=0, le=599)]


class FaultsStep(_Step):
    """Other faults from now on."""

    do: Literal["faults"]
    faults: Faults


class RedriveStep(_Step):
    """An operator has every dead letter tried again."""

    do: Literal["redrive"]


class ExpectStep(_Step):
    """Expectations at a time: how often an event is on networks and was acknowledged, how many calls and letters."""

    do: Literal["expect"]
    event: Number | None = None
    on: dict[Name, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    acknowledged: dict[Name, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    calls: Annotated[int, Field(ge=0)] | None = None
    dead_letters: Annotated[int, Field(ge=0)] | None = None


_OnNetworks = PublishStep | StrangerStep | NetworkStep | SlowStep | CutStep
Steps = _OnNetworks | KillStep | StoreStep | SubscriberStep | FaultsStep | RedriveStep | ExpectStep
Step = Annotated[Steps, Field(discriminator="do")]
STEPS: Final[tuple[type[_Step], ...]] = get_args(Steps)


class ScenarioFile(StrictModel):
    """A scenario: networks, subscribers, and what happens when, in order of time."""

    title: Text
    replicas: Annotated[int, Field(ge=1, le=9)] = 1
    replication_delay: Seconds = 0.0
    networks: Annotated[dict[Name, NetworkTable], Field(min_length=1, max_length=16)]
    subscriptions: Annotated[dict[Name, SubscriptionTable], Field(max_length=64)] = Field(default_factory=dict)
    faults: Faults = Faults()
    steps: Annotated[list[Step], Field(min_length=1, max_length=MOST_STEPS)]


def read_scenario(path: Path) -> ScenarioFile:
    """The scenario in a file. Raises `SettingsError`, also where it cannot be read."""
    return read(path, ScenarioFile, _misplaced)


def parse_scenario(text: str, file: str) -> ScenarioFile:
    """The scenario of a text; `file` is its name in errors. Raises `SettingsError`."""
    return parse(text, file, ScenarioFile, _misplaced)


def _misplaced(scenario: ScenarioFile) -> Iterator[Misplaced]:
    """The first step that is well formed and makes no sense."""
    before = 0.0
    for number, step in enumerate(scenario.steps):
        here: Location = ("steps", number)
        if step.at < before:
            yield Misplaced((*here, "at"), f"{step.at:g} is before the step before it, at {before:g}")
        before = step.at
        for kind, names in ("network", scenario.networks), ("subscription", scenario.subscriptions):
            yield from _unknown((*here, kind), kind, getattr(step, kind, None), names)
        if isinstance(step, KillStep) and step.replica >= scenario.replicas:
            yield Misplaced((*here, "replica"), f"there are {scenario.replicas}, counted from 0")
        if isinstance(step, CutStep) and scenario.networks.get(step.network, NetworkTable()).legacy:
            reason = "the log of a legacy network is not compared, so it cannot be taken back"
            yield Misplaced((*here, "network"), reason)
        if isinstance(step, ExpectStep):
            yield from _expected(here, step, scenario)


def _expected(here: Location, step: ExpectStep, scenario: ScenarioFile) -> Iterator[Misplaced]:
    if step.event is None and (step.on or step.acknowledged):
        yield Misplaced(here, "on and acknowledged need an event")
    elif step.event is None and step.calls is None and step.dead_letters is None:
        yield Misplaced(here, "expects nothing: event, calls or dead_letters is needed")
    for name in step.on:
        yield from _unknown((*here, "on"), "network", name, scenario.networks)
    for name in step.acknowledged:
        yield from _unknown((*here, "acknowledged"), "subscription", name, scenario.subscriptions)


def _unknown(here: Location, kind: str, name: str | None, names: Collection[str]) -> Iterator[Misplaced]:
    if name is not None and name not in names:
        yield Misplaced(here, f"no {kind} is called {name!r}; there are: {', '.join(names) or 'none'}")
