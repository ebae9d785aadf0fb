"""`pubsub fuzz`: a campaign of cheats against the verifier, and what came of them."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import monotonic

from pubsub_emulator.cli.exits import FINDINGS
from pubsub_emulator.cli.result import Result
from pubsub_emulator.cli.screen import Advance, files, say, stage, table
from pubsub_emulator.collator.cheats import BUILT_IN, STRATEGIES, WITH_ACCOUNTS
from pubsub_emulator.laboratory.campaign import CampaignResult, UnknownStrategy, campaign, corpus
from pubsub_emulator.laboratory.cases import Case

MANY = {2: "two at once", 3: "three at once"}


def run_fuzz(cases: int, seed: str, strategies: Sequence[str], out: Path, master: str | None = None) -> Result:
    """The command; with a `master`, worlds are tried by Spark."""
    kept = [case for _, case in corpus()]
    began = monotonic()
    with stage(f"replaying {len(kept)} kept cases, then trying {cases:,} cheats", cases) as advance:
        if master is None:

            def watch(done: int, wanted: int) -> None:
                advance(done, wanted, "trying cheats")

            result = campaign(cases, seed, strategies or None, watch, out, kept)
        else:
            result = _on_spark(cases, seed, strategies, out, kept, master, advance)
    show_campaign(result, len(kept), monotonic() - began)
    if result.files:
        files("surprises, for `pubsub replay`:", ((path, "") for path in result.files))
    document = {
        "kept_cases": len(kept),
        "cases": result.cases,
        "honest_blocks": result.honest,
        "stopped_for_their_budget": result.stopped,
        "refused": result.rejected,
        "valid_because_canonical": result.accepted_equal,
        "surprising": len(result.surprises),
        "files": result.files,
        "by_strategy": result.by_strategy,
    }
    return Result(document, FINDINGS if result.surprises else 0)


def _on_spark(  # noqa: PLR0917  # all of `run_fuzz`
    cases: int, seed: str, strategies: Sequence[str], out: Path, kept: list[Case], master: str, advance: Advance
) -> CampaignResult:
    own = [name for name in STRATEGIES if name not in (*BUILT_IN, *WITH_ACCOUNTS)]
    if own:
        raise UnknownStrategy(f"Spark's workers do not know {own[0]!r}: strategies of one's own are for one process")
    from pubsub_emulator.spark_audit.engine.campaign import distribute
    from pubsub_emulator.spark_audit.engine.engine import open_mapper

    def watch(done: int, wanted: int) -> None:
        advance(done, wanted, "trying cheats: worlds")

    spark = partial(open_mapper, "spark", master)
    return distribute(spark, cases, seed, strategies or None, watch, out=out, first=kept)


def show_campaign(result: CampaignResult, kept: int, seconds: float) -> None:
    """The table by strategy and verdict, and the sums."""
    rows: dict[str, Counter[str]] = {}
    for names, verdicts in result.by_strategy.items():
        count = names.count("+") + 1
        rows.setdefault(MANY.get(count, names), Counter()).update(verdicts)
    singles = [name for name in STRATEGIES if name in rows]
    table(
        "cheats by the first verdict that they met",
        ("strategy", "cases", "verdicts"),
        (
            (name, rows[name].total(), ", ".join(f"{verdict} {count:,}" for verdict, count in rows[name].most_common()))
            for name in (*singles, *(name for name in MANY.values() if name in rows))
        ),
    )
    rate = f", {result.cases / seconds:,.0f} cases a second" if seconds > 1 else ""
    say(
        f"{kept} kept cases replayed; {result.cases:,} cheats tried on {result.honest:,} honest blocks, of which "
        f"{result.stopped:,} stopped for their budget{rate}"
    )
    say(
        f"{result.rejected:,} refused, {result.accepted_equal:,} valid because they came to the one set that is "
        f"accepted; {len(result.surprises)} surprising"
    )


def list_strategies() -> Result:
    """Every strategy, what it is after, and the verdicts that it must meet."""
    rows = (
        (each.name, each.gain, ", ".join(verdict.value for verdict in each.meets) or "by the case")
        for each in STRATEGIES.values()
    )
    table("strategies", ("name", "to gain", "meets"), rows)
    return Result(
        {
            each.name: {"gain": each.gain, "meets": [verdict.value for verdict in each.meets]}
            for each in STRATEGIES.values()
        }
    )
