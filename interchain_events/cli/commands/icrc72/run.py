"""`pubsub icrc72`: runs scenarios, traces and stories."""

import json
from pathlib import Path

from interchain_events.icrc72.campaign import campaign, play_cheat, play_plan, read, shrink, written
from interchain_events.icrc72.cheats.catalogue import CHEATS
from interchain_events.icrc72.errors import Icrc72Error
from interchain_events.icrc72.ic.canister import EMPTY
from interchain_events.icrc72.ic.messaging import Observer, Recorder
from interchain_events.icrc72.ic.network import seldom_collected
from interchain_events.icrc72.scenario import Outcome, Run
from interchain_events.icrc72.scenario_file import load
from interchain_events.icrc72.sequence import as_svg, as_text, way
from pubsub_emulator.cli.base.result import Result
from pubsub_emulator.cli.screen import say
from pubsub_emulator.files.atomic import write_whole
from pubsub_emulator.files.untrusted import read_json
from pubsub_emulator.primitives.words import counted

_PROGRESS = 100
"""The number of stories between two lines of progress."""


def _run(place: str, *observers: Observer) -> Run:
    """Return a run of a scenario that is about to begin.

    The machinery of modules is imported only if the scenario has canisters in WebAssembly.
    """
    model = load(place)
    if not model.canister:
        return Run(model, observers)
    from interchain_events.icrc72.modules import modules_of

    return Run(model, observers, modules=modules_of(place))


def run_scenario(place: str) -> Result:
    """Run a scenario and print its summary."""
    with seldom_collected():
        outcome = _run(place).finish()
    for name, count in outcome.published.items():
        taken = outcome.taken[name]
        of = "" if taken == count else f"{taken} of "
        say(f"{name:<12} published {of}{counted(count, 'event')}")
    for name, (had, due, in_order) in outcome.handled.items():
        order = "in order" if in_order else "out of order after a loss"
        say(f"{name:<12} handled {had} of {counted(due, 'event')} addressed to it, {order}")
    for name, status in outcome.away.items():
        say(f"{name:<12} {'was killed' if status == EMPTY else f'is {status}'}")
    for name, reason in outcome.refused.items():
        say(f"{name:<12} was refused: {reason}")
    for number, state in outcome.replays.items():
        say(f"replay {number:<5} {state}")
    for finding in outcome.findings:
        actor = outcome.names.get(finding.actor, finding.actor.text)
        say(f"accused      {actor}: {finding.cheat} in round {finding.round}: {finding.evidence}")
    say(
        "",
        f"{counted(outcome.rounds, 'round')}, {counted(outcome.happenings, 'happening')}",
        f"digest: {outcome.digest}",
    )
    return Result(_document(outcome), 0 if outcome.good else 1)


def _document(outcome: Outcome) -> dict[str, object]:
    """Return the outcome of a run as a JSON document."""
    handled = {
        name: {"handled": had, "due": due, "in_order": in_order}
        for name, (had, due, in_order) in outcome.handled.items()
    }
    replays = {str(number): state for number, state in outcome.replays.items()}
    findings = [
        {
            "cheat": finding.cheat,
            "actor": finding.actor.text,
            "round": finding.round,
            "evidence": finding.evidence,
        }
        for finding in outcome.findings
    ]
    return {
        "rounds": outcome.rounds,
        "digest": outcome.digest,
        "published": outcome.published,
        "taken": outcome.taken,
        "refused": outcome.refused,
        "away": outcome.away,
        "handled": handled,
        "replays": replays,
        "findings": findings,
    }


def trace_event(place: str, namespace: str, number: int, svg: Path | None) -> Result:
    """Run a scenario and show the path of one event.

    Raises `Icrc72Error` if there is no such event.
    """
    recorder = Recorder()
    outcome = _run(place, recorder).finish()
    arrows = way(recorder.happenings, outcome.names, namespace, number)
    if not arrows:
        raise Icrc72Error(f"{place} has no event {number} in {namespace}")
    say(*as_text(arrows).split("\n"))
    if svg is not None:
        write_whole(svg, as_svg(arrows))
        say(f"drawn in {svg}")
    return Result({"arrows": [arrow._asdict() for arrow in arrows]})


def play_stories(cases: int, first: int, seed: str, out: Path, *, cheats: bool) -> Result:
    """Play stories and cheats, and write shrunk surprises to files."""
    surprises: list[str] = []
    rounds = 0
    for number, outcome in enumerate(campaign(seed, cases, first), first):
        rounds += outcome.rounds
        if outcome.surprise:
            smallest = shrink(outcome.plan)
            shown = smallest if smallest.surprise else outcome
            path = out / f"{seed}-{number}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            case = {**written(shown.plan), "surprise": shown.surprise}
            write_whole(path, json.dumps(case, indent=2) + "\n")
            surprises.append(str(path))
            say(f"story {number}: {shown.surprise} ({path})")
        played = number + 1 - first
        if played % _PROGRESS == 0 and played < cases:
            say(
                f"{played:,} of {cases:,} stories, {counted(len(surprises), 'surprise')};"
                f" continue with --first {number + 1}"
            )
    missed = (
        [words for number in range(len(CHEATS)) if (words := play_cheat(number))] if cheats else []
    )
    for words in missed:
        say(words)
    acted = f", {len(CHEATS) - len(missed)} of {len(CHEATS)} cheats found" if cheats else ""
    say(
        f"{counted(cases, 'story', 'stories')} of {counted(rounds, 'round')} in all,"
        f" {counted(len(surprises), 'surprise')}{acted}"
    )
    document = {"stories": cases, "rounds": rounds, "surprises": surprises, "cheats_missed": missed}
    return Result(document, 1 if surprises or missed else 0)


def replay_story(path: Path) -> Result:
    """Play the case in a file again. The exit code is 1 if it still has a surprise."""
    document = read_json(path, error=Icrc72Error)
    try:
        plan = read(document)
    except Icrc72Error as error:
        raise Icrc72Error(f"{path}: {error}") from error
    outcome = play_plan(plan)
    say(outcome.surprise or f"no surprise in {counted(outcome.rounds, 'round')}")
    return Result(
        {"surprise": outcome.surprise, "rounds": outcome.rounds}, 1 if outcome.surprise else 0
    )
