"""Scenario files of the distributor: TOML in, a checked `ScenarioFile` out, errors that name file, line and field."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pubsub_emulator.emulator.scenario.check import Location
from pubsub_emulator.emulator.scenario.file import field_lines
from pubsub_emulator.emulator.untrusted import Unreadable, parse_toml, read_bytes
from pubsub_emulator.primitives.errors import PubsubError

MOST_STEPS: Final = 1_000
MOST_EVENTS: Final = 10_000
MOST_SECONDS: Final = 30 * 86_400

Name = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,32}$")]
Text = Annotated[str, Field(min_length=1, max_length=255)]
Seconds = Annotated[float, Field(ge=0, le=MOST_SECONDS)]
Number = Annotated[int, Field(ge=1, le=MOST_EVENTS)]
Thousandths = Annotated[int, Field(ge=0, le=1000)]
Form = Literal["all", "star", "types"]


class ScenarioFileError(PubsubError):
    """A scenario file that cannot be played; the message has a line for each problem, with its place."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class NetworkTable(_Model):
    """A network; `legacy` is the profile of public adapters, which show the newest event of each entity."""

    unique: bool = True
    legacy: bool = False
    tells_blocks: bool = True
    up: bool = True
    offers: list[Form] = ["all", "star", "types"]


class SubscriptionTable(_Model):
    """A subscriber, subscribed from the start."""

    types: Annotated[list[Text], Field(min_length=1, max_length=64)] = ["*"]
    metadata: Annotated[list[Text], Field(max_length=16)] = []


class FaultsTable(_Model):
    """How often what goes wrong, in thousandths of the occasions; see `Faults`."""

    lost: Thousandths = 0
    doubled: Thousandths = 0
    late: Thousandths = 0
    call_fails: Thousandths = 0
    answer_lost: Thousandths = 0
    lie: Thousandths = 0
    read_fails: Thousandths = 0
    post_fails: Thousandths = 0
    killed: Thousandths = 0


class _Step(_Model):
    at: Seconds


class _OnEvent(_Step):
    event: Number
    entity: Annotated[int, Field(ge=0, le=MOST_EVENTS)] = 0
    type: Text = "ProductOffering"
    environment: Text = "sbx"


class PublishStep(_OnEvent):
    """A client publishes; `status` is what it must be answered."""

    do: Literal["publish"]
    status: Literal[200, 201, 202, 409, 422, 503] | None = None


class StrangerStep(_OnEvent):
    """Somebody else publishes on one network; `notified = false` loses the notification."""

    do: Literal["stranger"]
    network: Name
    notified: bool = True


class NetworkStep(_Step):
    """A network's adapter changes."""

    do: Literal["down", "up", "refuse", "accept", "lie", "mute", "honest"]
    network: Name


class SlowStep(_Step):
    """Publications on a network take so long from now on."""

    do: Literal["slow"]
    network: Name
    seconds: Seconds


class CutStep(_Step):
    """A network's log is taken back by so many events."""

    do: Literal["rewind"]
    network: Name
    events: Number


class KillStep(_Step):
    """A replica, counted from 0, is killed, and starts again after `away` seconds."""

    do: Literal["kill"]
    replica: Annotated[int, Field(ge=0, le=9)] = 0
    away: Seconds = 3.0


class StoreStep(_Step):
    """The store goes down or comes up."""

    do: Literal["store-down", "store-up"]


class SubscriberStep(_Step):
    """A subscriber answers with another status; 0 is no answer."""

    do: Literal["subscriber"]
    subscription: Name
    status: Annotated[int, Field(ge=0, le=599)]


class FaultsStep(_Step):
    """Other faults from now on."""

    do: Literal["faults"]
    faults: FaultsTable


class RedriveStep(_Step):
    """An operator has every dead letter tried again."""

    do: Literal["redrive"]


class ExpectStep(_Step):
    """What must hold at a time: how often an event is on networks and was acknowledged, how many calls and letters."""

    do: Literal["expect"]
    event: Number | None = None
    on: dict[Name, Annotated[int, Field(ge=0)]] = {}
    acknowledged: dict[Name, Annotated[int, Field(ge=0)]] = {}
    calls: Annotated[int, Field(ge=0)] | None = None
    dead_letters: Annotated[int, Field(ge=0)] | None = None


Step = Annotated[
    PublishStep
    | StrangerStep
    | NetworkStep
    | SlowStep
    | CutStep
    | KillStep
    | StoreStep
    | SubscriberStep
    | FaultsStep
    | RedriveStep
    | ExpectStep,
    Field(discriminator="do"),
]


class ScenarioFile(_Model):
    """A scenario: networks, subscribers, and what happens when, in order of time."""

    title: Text
    replicas: Annotated[int, Field(ge=1, le=9)] = 1
    replication_delay: Seconds = 0.0
    networks: Annotated[dict[Name, NetworkTable], Field(min_length=1, max_length=16)]
    subscriptions: Annotated[dict[Name, SubscriptionTable], Field(max_length=64)] = {}
    faults: FaultsTable = FaultsTable()
    steps: Annotated[list[Step], Field(min_length=1, max_length=MOST_STEPS)]


def read_scenario(path: Path) -> ScenarioFile:
    """The scenario in a file. Raises `ScenarioFileError`, also where it cannot be read."""
    try:
        return parse_scenario(read_bytes(path).decode(), str(path))
    except (OSError, UnicodeDecodeError, Unreadable) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ScenarioFileError(reason if reason.startswith(str(path)) else f"{path}: {reason}") from error


def parse_scenario(text: str, file: str) -> ScenarioFile:
    """The scenario of a text; `file` is its name in errors. Raises `ScenarioFileError`."""
    try:
        document = parse_toml(text, "")
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column \d+\)", str(error))
        raise ScenarioFileError(f"{file}:{found.group(1)}: {error}" if found else f"{file}: {error}") from error
    except Unreadable as error:
        raise ScenarioFileError(f"{file}: {str(error).removeprefix(': ')}") from error
    lines = field_lines(text)
    try:
        scenario = ScenarioFile.model_validate(document)
    except ValidationError as error:
        problems = [(_place(each["loc"]), each["msg"]) for each in error.errors(include_url=False)]
        raise ScenarioFileError(_told(problems, lines, file)) from error
    misplaced = list(_misplaced(scenario))
    if misplaced:
        raise ScenarioFileError(_told(misplaced, lines, file))
    return scenario


def _place(location: tuple[int | str, ...]) -> Location:
    """A location in the file: the kind of a step, which follows its number, is no place."""
    return location[:2] + location[3:] if location[:1] == ("steps",) and len(location) > 2 else location


def _told(problems: list[tuple[Location, str]], lines: dict[Location, int], file: str) -> str:
    found = []
    for place, reason in problems:
        known = place
        while known and known not in lines:
            known = known[:-1]
        field = ".".join(map(str, place))
        line = lines.get(known)
        found.append((line or 0, f"{file}{f':{line}' if line else ''}: {f'{field}: ' if field else ''}{reason}"))
    return "\n".join(text for _, text in sorted(found))


def _misplaced(scenario: ScenarioFile) -> Iterator[tuple[Location, str]]:
    """What is well formed and makes no sense."""
    known: dict[str, Iterable[str]] = {"network": scenario.networks, "subscription": scenario.subscriptions}
    before = 0.0
    for number, step in enumerate(scenario.steps):
        here: Location = ("steps", number)
        if step.at < before:
            yield (*here, "at"), f"{step.at:g} is before the step before it, at {before:g}"
        before = step.at
        for kind, names in known.items():
            named = getattr(step, kind, None)
            if named is not None and named not in set(names):
                yield (*here, kind), _unknown(kind, named, names)
        if isinstance(step, KillStep) and step.replica >= scenario.replicas:
            yield (*here, "replica"), f"there are {scenario.replicas}, counted from 0"
        if isinstance(step, CutStep) and scenario.networks.get(step.network, NetworkTable()).legacy:
            yield (*here, "network"), "the log of a legacy network is not compared, so it cannot be taken back"
        if isinstance(step, ExpectStep):
            yield from _expected(here, step, scenario)


def _expected(here: Location, step: ExpectStep, scenario: ScenarioFile) -> Iterator[tuple[Location, str]]:
    if step.event is None and (step.on or step.acknowledged):
        yield here, "on and acknowledged need an event"
    elif step.event is None and step.calls is None and step.dead_letters is None:
        yield here, "expects nothing: event, calls or dead_letters is needed"
    for name in step.on:
        if name not in scenario.networks:
            yield (*here, "on"), _unknown("network", name, scenario.networks)
    for name in step.acknowledged:
        if name not in scenario.subscriptions:
            yield (*here, "acknowledged"), _unknown("subscription", name, scenario.subscriptions)


def _unknown(kind: str, name: str, names: Iterable[str]) -> str:
    return f"no {kind} is called {name!r}; there are: {', '.join(names) or 'none'}"
