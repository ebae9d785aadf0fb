"""Campaigns of stories: play many, audit each, and shrink those with a surprise.

The plan of a story can be written as plain values (a case), so that it can be saved and played
again.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from interchain_events.icrc72.audit.core import Audit
from interchain_events.icrc72.cheats.catalogue import CHEATS
from interchain_events.icrc72.cheats.stage import run
from interchain_events.icrc72.errors import Icrc72Error
from interchain_events.icrc72.ic.messaging import Schedule
from interchain_events.icrc72.ic.principal import Principal
from interchain_events.icrc72.invariants import InvariantObserver
from interchain_events.icrc72.stories import Plan, Surprise, begin, drawn, finish

# The fields of a plan that are numbers, in the order of a case.
_NUMBERS: Final = (
    "rounds",
    "delay",
    "refuse",
    "load",
    "deaths",
    "pauses",
    "downs",
    "upgrades",
    "retires",
)


class Outcome(NamedTuple):
    """The outcome of a story."""

    plan: Plan
    rounds: int
    surprise: str = ""
    """The violated expectations; empty if all were met."""
    digest: bytes = b""


def play_plan(plan: Plan) -> Outcome:
    """Play a story, with the audit and the invariants. All participants are honest."""
    story = begin(plan)
    audit = Audit(story.system.orchestrator, story.system.broadcasters)
    watch = InvariantObserver(story.system)
    story.network.observers += [audit, watch]
    try:
        finish(story)
    except Surprise as surprise:
        return Outcome(plan, story.network.round, str(surprise))
    logs = story.system.logs()
    over: dict[Principal, list[int]] = {}
    for canister in story.steady:
        subscriber = story.system.app(canister).subscriber
        if subscriber is not None:
            over[canister] = list(subscriber.state.over)
    broken = watch.finish(logs, over)
    findings = audit.finish(logs, story.network.running())
    accusations = [
        f"{finding.cheat} by {finding.actor.text}: {finding.evidence}" for finding in findings
    ]
    accused: list[str] = []
    if accusations:
        accused.append(f"accused although honest: {'; '.join(accusations)}")
    return Outcome(plan, story.network.round, "; ".join(broken + accused))


def play_cheat(number: int) -> str:
    """Play a cheat under a schedule of its own, and return an error if the audit does not find it.

    `number` selects the cheat, in turn, and seeds the schedule. Returns an empty text on success.
    """
    cheat = CHEATS[number % len(CHEATS)]
    findings = run(cheat, Schedule(b"cheat %d" % number, number % 2, 0))
    names = [finding.cheat for finding in findings]
    if cheat.name in names:
        return ""
    return f"{cheat.name} was not found; found: {', '.join(names) or 'nothing'}"


def campaign(seed: str, cases: int, first: int = 0) -> Iterator[Outcome]:
    """Play stories `first` … `first + cases - 1` of a campaign."""
    for number in range(first, first + cases):
        yield play_plan(drawn(f"{seed} {number}".encode()))


def shrink(plan: Plan, most: int = 24) -> Outcome:
    """Simplify a plan as long as it still has a surprise, and return the last outcome.

    At most `most` simpler plans are played.
    """
    smallest = play_plan(plan)
    tries = 0
    candidates = _smaller(plan) if smallest.surprise else iter(())
    while tries < most and (candidate := next(candidates, None)) is not None:
        tries += 1
        outcome = play_plan(candidate)
        if outcome.surprise:
            smallest = outcome
            candidates = _smaller(candidate)
    return smallest


def _smaller(plan: Plan) -> Iterator[Plan]:
    """Yield plans that are simpler in one respect: without one kind of trouble, or half as long."""
    if plan.churn:
        yield replace(plan, churn=False)
    for name in ("deaths", "retires", "pauses", "downs", "upgrades", "refuse", "delay"):
        if getattr(plan, name):
            yield _changed(plan, name, 0)
    if plan.rounds > 10:
        yield replace(plan, rounds=plan.rounds // 2)


def _changed(plan: Plan, name: str, number: int) -> Plan:
    return replace(plan, **{name: number})  # type: ignore[arg-type]  # every field of `_NUMBERS` is an int


def written(plan: Plan) -> dict[str, object]:
    """Return a plan as plain values, which JSON can contain."""
    return {
        "seed": plan.seed.hex(),
        "churn": plan.churn,
        **{name: getattr(plan, name) for name in _NUMBERS},
    }


def read(case: object) -> Plan:
    """Return the plan in a case. Raises `Icrc72Error` if it is malformed or out of bounds."""
    if not isinstance(case, dict):
        raise Icrc72Error("not a case of a story")
    try:
        plan = Plan(bytes.fromhex(case["seed"]), churn=bool(case["churn"]))
        for name in _NUMBERS:
            plan = _changed(
                plan, name, int(case.get(name, 0)) if name == "retires" else int(case[name])
            )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise Icrc72Error(f"not a case of a story: {error}") from error
    most = {"rounds": 10_000, "delay": 20, "refuse": 90}
    for name in _NUMBERS:
        if not 0 <= getattr(plan, name) <= most.get(name, 100):
            raise Icrc72Error(
                f"a case has {name} from 0 to {most.get(name, 100):,}, not {getattr(plan, name)}"
            )
    return plan
