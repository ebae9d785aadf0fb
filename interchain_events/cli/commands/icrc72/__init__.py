"""`pubsub icrc72`: its commands, their arguments and help."""

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from pubsub_emulator.cli.base import options
from pubsub_emulator.cli.base.extras import Need
from pubsub_emulator.cli.base.groups import Group
from pubsub_emulator.cli.base.options import option
from pubsub_emulator.cli.base.result import Result, with_json_option


def _may_have_modules(scenario: str) -> bool:
    """Return whether a scenario may have canisters in WebAssembly.

    Bundled scenarios have none.
    """
    return scenario.endswith(".toml")


@click.group("icrc72", cls=Group)
def command() -> None:
    """Publish, subscribe and replay between canisters (ICRC-72, ICRC-77) on emulated subnets."""


@command.command(
    "run",
    needs=(Need("canisters", "scenario", _may_have_modules),),
    epilog=(
        "\b\nExamples:\n  pubsub icrc72 run demo\n  pubsub icrc72 run my-subnets.toml"
        " --json\n\n\b\nExit codes:\n  0 every event due was handled, 1 events are missing or"
        " someone is accused\n"
    ),
)
@click.argument("scenario")
@with_json_option
def _run(scenario: str) -> Result:
    """Run SCENARIO and summarize which subscriber handled which events.

    SCENARIO is a TOML file or a bundled name.
    """
    from interchain_events.cli.commands.icrc72.run import run_scenario

    return run_scenario(scenario)


@command.command("demo", epilog="\b\nExamples:\n  pubsub icrc72 demo\n")
@with_json_option
def demo() -> Result:
    """Run three subnets with faults, a broadcaster that dies, and replay.

    The last line is a digest.
    """
    from interchain_events.cli.commands.icrc72.run import run_scenario

    return run_scenario("demo")


@command.command(
    "trace",
    needs=(Need("canisters", "scenario", _may_have_modules),),
    epilog=(
        "\b\nExamples:\n  pubsub icrc72 trace demo --namespace org.example.price --event 12\n "
        " pubsub icrc72 trace demo --namespace org.example.price --event 12 --svg"
        " out/event-12.svg\n"
    ),
)
@click.argument("scenario")
@option("--namespace", required=True, help="Namespace of the event.")
@option("--event", "number", type=click.IntRange(0), required=True, help="Id of the event.")
@option("--svg", type=options.NEW_FILE, help="Also draw it into this file.")
@with_json_option
def trace(scenario: str, namespace: str, number: int, svg: Path | None) -> Result:
    """Show the path of one event of SCENARIO, round by round.

    The event is published, relayed, notified and confirmed.
    """
    from interchain_events.cli.commands.icrc72.run import trace_event

    return trace_event(scenario, namespace, number, svg)


@command.command(
    "stories",
    epilog=(
        "\b\nExamples:\n  pubsub icrc72 stories --cases 200 --seed 7\n"
        "  pubsub icrc72 stories --cases 10000 --out out/stories\n"
        "  pubsub icrc72 stories --replay out/stories/7-113.json\n"
        "\n\b\nExit codes:\n  0 no surprise, 1 surprises\n"
    ),
)
@option("--cases", type=click.IntRange(min=0), default=50, help="Stories to play.")
@option("--first", type=click.IntRange(min=0), default=0, help="Number of the first story.")
@option("--seed", default="0", help="The same seed plays the same stories.")
@option("--cheats/--no-cheats", default=True, help="Also let every cheat act once.")
@option(
    "--out",
    type=options.OUT,
    default=Path("out/stories"),
    help="Folder for surprises, each shrunk.",
)
@option("--replay", "again", type=options.FILE, help="Play one surprise again instead.")
@with_json_option
def stories(
    cases: int, first: int, seed: str, out: Path, again: Path | None, *, cheats: bool
) -> Result:
    """Play networks under random schedules, refusals, crashes and upgrades.

    At the end the handled events are compared with the logs.
    """
    from interchain_events.cli.commands.icrc72.run import play_stories, replay_story

    return (
        replay_story(again)
        if again is not None
        else play_stories(cases, first, seed, out, cheats=cheats)
    )


@command.command(
    "serve",
    needs=(Need("canisters"),),
    epilog=(
        "\b\nExamples:\n  pubsub icrc72 serve demo\n  pubsub icrc72 serve my-subnets.toml --port"
        " 4943\n"
    ),
)
@click.argument("scenario")
@option("--host", default="127.0.0.1", help="Address to listen on.")
@options.names
@options.page_origins
@option("--port", type=options.PORT, default=4943, help="0 selects a free one.")
def _serve(
    scenario: str, host: str, names: tuple[str, ...], origins: tuple[str, ...], port: int
) -> None:
    """Serve SCENARIO to agents over the HTTP interface of the Internet Computer, until Ctrl-C.

    Agents fetch the root key. Users call the roles through the canister `proxy`.
    """
    from interchain_events.cli.commands.icrc72.serve import serve_scenario
    from pubsub_emulator.serving.guard import Names

    serve_scenario(scenario, Names(host, names, origins), port)


_ROLES = ("subscriber", "publisher", "broadcaster", "orchestrator")
_IN_NETWORK = ("publish", "register", "bare", "seed", "refuse", "trace")


@command.command(
    "conform",
    needs=(Need("canisters"),),
    epilog=(
        "\b\nExamples:\n  pubsub icrc72 conform --subscriber my.wasm --handled ids\n  pubsub icrc72"
        " conform --publisher my.wasm --publish publish --trace out/trace.txt\n  pubsub icrc72"
        " conform --url http://127.0.0.1:4943 --orchestrator"
        " rwlgt-iiaaa-aaaaa-aaaaa-cai\n\n\b\nExit codes:\n  0 every required rule that was met"
        " holds, 1 a required rule is broken\n"
    ),
)
@option("--subscriber", metavar="MODULE|ID", help="The module of a subscriber.")
@option("--publisher", metavar="MODULE|ID", help="The module of a publisher.")
@option("--broadcaster", metavar="MODULE|ID", help="The module of a broadcaster.")
@option("--orchestrator", metavar="MODULE|ID", help="The module of an orchestrator.")
@option("--url", help="A replica: the canister runs there, and has an id instead of a module.")
@option("--proxy", metavar="ID", help="With --url: the canister that makes the calls (see above).")
@option("--namespace", help="With --url: a namespace to which the subscriber subscribes.")
@option("--publish", help="The publisher's update, of a nat, that makes an event.")
@option("--handled", help="The subscriber's query, `vec nat`: ids of handled events, in order.")
@option("--register", help="An update without argument by which the canister registers.")
@option(
    "--with",
    "with_",
    type=click.Choice(["icrc77"]),
    multiple=True,
    help="An extension whose rules are required.",
)
@option(
    "--level",
    type=click.Choice(["required", "recommended", "extension"]),
    default="extension",
    help="Print rules down to this level.",
)
@option(
    "--bare",
    is_flag=True,
    help="The canister takes no argument; otherwise, a principal (see above).",
)
@option("--seed", default="0", help="The same seed gives the same trial.")
@option("--refuse", type=click.IntRange(0, 50), default=10, help="Percent of calls refused.")
@option("--trace", type=options.NEW_FILE, help="Write all that happened into this file.")
@with_json_option
@click.pass_context
def _conform(context: click.Context, /, url: str | None, **given: Any) -> Result:
    """Test a canister written by somebody else in one role, and print which rules hold.

    The emulator plays every other role, with refusals, delays, strangers and upgrades. The module
    is installed with the principal of the orchestrator, or, in the role of the orchestrator, with
    that of its broadcaster. Each rule is required, recommended or part of an extension of the
    draft. Only a required rule can be broken.

    A canister on a replica is tested with calls that any stranger may make. Rules that need more
    are "not testable there". If the canister lets no user in, a proxy can call it: a canister with
    the method `forward(canister, method, arg)`.
    """
    from interchain_events.cli.commands.icrc72.conform import conform, conform_url

    roles = [(role, place) for role in _ROLES if (place := given.pop(role)) is not None]
    if len(roles) != 1:
        raise click.UsageError(
            "name one canister: --subscriber, --publisher, --broadcaster or --orchestrator"
        )
    ((role, place),) = roles
    for name in _IN_NETWORK if url is not None else ("proxy", "namespace"):
        given.pop(name)
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT:
            kind = "a module" if url else "a replica: name its --url"
            raise click.UsageError(f"--{name} is for canisters of {kind}")
    return (
        conform(role, Path(place), **given)
        if url is None
        else conform_url(url, role, place, **given)
    )
