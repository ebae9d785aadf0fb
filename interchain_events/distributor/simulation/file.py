"""The scenario files of the distributor: TOML that is parsed into a checked `ScenarioFile`.

Errors name the file, the line and the field.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, Final, Literal, get_args

from pydantic import Field

from interchain_events.distributor.simulation.scenery import Faults
from pubsub_emulator.files.settings import Location, Misplaced, StrictModel, parse, read

MOST_STEPS: Final = 1_000
"""The greatest number of steps."""
MOST_EVENTS: Final = 10_000
"""The greatest number of an event."""
MOST_SECONDS: Final = 30 * 86_400
"""The greatest time, 30 days."""

Name = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,32}$")]
Text = Annotated[str, Field(min_length=1, max_length=255)]
Seconds = Annotated[float, Field(ge=0, le=MOST_SECONDS)]
Number = Annotated[int, Field(ge=1, le=MOST_EVENTS)]
Form = Literal["all", "star", "types"]
"""A form of subscription to everything, see `rules.FORMS`."""


class NetworkTable(StrictModel):
    """A network of the scenario. The fields are those of `SimulatedNetwork`."""

    unique: bool = True
    legacy: bool = False
    """Whether its adapter is a public one, which shows only the newest event of each entity."""
    tells_blocks: bool = True
    up: bool = True
    offers: list[Form] = Field(default_factory=lambda: list[Form](get_args(Form)))
    """The forms of subscription to everything that its adapter offers."""


class SubscriptionTable(StrictModel):
    """A subscriber, which is subscribed from the start."""

    types: Annotated[list[Text], Field(min_length=1, max_length=64)] = Field(
        default_factory=lambda: ["*"]
    )
    metadata: Annotated[list[Text], Field(max_length=16)] = Field(default_factory=list)


class _Step(StrictModel):
    """The field that all steps have."""

    at: Seconds
    """Seconds since the beginning."""


class _OnEvent(_Step):
    """The event of a step: its number, entity, type and environment."""

    event: Number
    entity: Annotated[int, Field(ge=0, le=MOST_EVENTS)] = 0
    type: Text = "ProductOffering"
    environment: Text = "sbx"


class PublishStep(_OnEvent):
    """A client publishes an event. `status` is the answer that it must get within 30 seconds."""

    do: Literal["publish"]
    status: Literal[200, 201, 202, 409, 422, 503] | None = None


class StrangerStep(_OnEvent):
    """Somebody else publishes on one network. With `notified = false` the notification is lost."""

    do: Literal["stranger"]
    network: Name
    notified: bool = True


class NetworkStep(_Step):
    """An adapter changes. `lie` accepts without publishing, `mute` publishes without an answer."""

    do: Literal["down", "up", "refuse", "accept", "lie", "mute", "honest"]
    network: Name


class SlowStep(_Step):
    """Publications on a network take this long from now on."""

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
    """The store stops or starts to answer."""

    do: Literal["store-down", "store-up"]


class SubscriberStep(_Step):
    """A subscriber answers with another status from now on; 0 stands for no answer."""

    do: Literal["subscriber"]
    subscription: Name
    status: Annotated[int, Field(ge=0, le=599)]


class FaultsStep(_Step):
    """The rates of faults change."""

    do: Literal["faults"]
    faults: Faults


class RedriveStep(_Step):
    """An operator tries every dead letter again."""

    do: Literal["redrive"]


class ExpectStep(_Step):
    """Checks how often an event is on networks and acknowledged, and counts calls and letters."""

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
"""The classes of all steps."""


class ScenarioFile(StrictModel):
    """A scenario: its networks, its subscribers, and its steps in order of time."""

    title: Text
    replicas: Annotated[int, Field(ge=1, le=9)] = 1
    """The number of processes of the distributor."""
    replication_delay: Seconds = 0.0
    networks: Annotated[dict[Name, NetworkTable], Field(min_length=1, max_length=16)]
    subscriptions: Annotated[dict[Name, SubscriptionTable], Field(max_length=64)] = Field(
        default_factory=dict
    )
    faults: Faults = Faults()
    """The faults from the start on."""
    steps: Annotated[list[Step], Field(min_length=1, max_length=MOST_STEPS)]


def read_scenario(path: Path) -> ScenarioFile:
    """Return the scenario in a file.

    Raises `SettingsError` if the file cannot be read or is not a valid scenario.
    """
    return read(path, ScenarioFile, _misplaced)


def parse_scenario(text: str, file: str) -> ScenarioFile:
    """Return the scenario in a text. `file` names it in errors. Raises `SettingsError`."""
    return parse(text, file, ScenarioFile, _misplaced)


def _misplaced(scenario: ScenarioFile) -> Iterator[Misplaced]:
    """Yield the errors of steps that are well formed but do not fit the scenario."""
    before = 0.0
    for number, step in enumerate(scenario.steps):
        location: Location = ("steps", number)
        if step.at < before:
            yield Misplaced(
                (*location, "at"), f"{step.at:g} is before the step before it, at {before:g}"
            )
        before = step.at
        for kind, names in ("network", scenario.networks), ("subscription", scenario.subscriptions):
            yield from _unknown((*location, kind), kind, getattr(step, kind, None), names)
        if isinstance(step, KillStep) and step.replica >= scenario.replicas:
            yield Misplaced(
                (*location, "replica"),
                f"the last replica is {scenario.replicas - 1}, counted from 0",
            )
        if isinstance(step, CutStep) and scenario.networks.get(step.network, NetworkTable()).legacy:
            reason = "a legacy network may hide that its log was cut, so its log cannot be cut here"
            yield Misplaced((*location, "network"), reason)
        if isinstance(step, ExpectStep):
            yield from _expected(location, step, scenario)


def _expected(location: Location, step: ExpectStep, scenario: ScenarioFile) -> Iterator[Misplaced]:
    """Yield the errors of an expectation."""
    if step.event is None and (step.on or step.acknowledged):
        yield Misplaced(location, "on and acknowledged need an event")
    elif step.event is None and step.calls is None and step.dead_letters is None:
        yield Misplaced(location, "expects nothing: event, calls or dead_letters is needed")
    for name in step.on:
        yield from _unknown((*location, "on"), "network", name, scenario.networks)
    for name in step.acknowledged:
        yield from _unknown(
            (*location, "acknowledged"), "subscription", name, scenario.subscriptions
        )


def _unknown(
    location: Location, kind: str, name: str | None, names: Collection[str]
) -> Iterator[Misplaced]:
    """Yield an error if a step names a network or subscription that the scenario does not have."""
    if name is not None and name not in names:
        yield Misplaced(location, f"unknown {kind} {name!r}; known: {', '.join(names) or 'none'}")
