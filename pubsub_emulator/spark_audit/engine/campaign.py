"""A campaign of cheats whose worlds are given out to an engine: the same cases and surprises as in one process.

The worlds of a campaign follow from its seed and their numbers, so any of them can be tried anywhere. How many are
needed is known only once they were tried: they go out in batches, are counted in their order, and the one in which the
last case falls is tried once more, up to that case.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from pubsub_emulator.laboratory.campaign import IDLE_WORLDS, CampaignResult, named_untried, replay_kept, try_world
from pubsub_emulator.laboratory.cases import Case
from pubsub_emulator.spark_audit.engine.engine import Answer, Mapper

_CASES_A_WORLD: Final = 384
"""A first guess: three worlds of four have eight situations of sixty cases, the others of twelve."""

_MOST: Final = 2048
"""Worlds in a batch."""

_TIMED: Final = 16
"""Worlds in a batch of a campaign that ends by the clock: an engine is not interrupted in one."""

OnWorlds = Callable[[int, int], None]
"""Called with the worlds tried and an estimate of the worlds needed."""

_COUNTS: Final = ("cases", "honest", "rejected", "accepted_equal", "stopped")


@dataclass(frozen=True, slots=True)
class WorldTask:
    """One world of a campaign; no strategies mean all of them."""

    seed: str
    number: int
    strategies: tuple[str, ...]
    most: int

    def to_json(self) -> str:
        """The task as text for a worker."""
        return json.dumps(asdict(self))

    def run(self) -> CampaignResult:
        """Try the situations of this world."""
        return try_world(self.seed, self.number, self.strategies or None, self.most)


def fuzz(text: str, _out: str) -> Answer:
    """Try the world that a task names; its surprises come back as the text of their files."""
    result = WorldTask(**json.loads(text)).run()
    counts = {name: getattr(result, name) for name in _COUNTS}
    groups = [[group.count, group.case.to_json()] for group in result.found.groups.values()]
    return {**counts, "by_strategy": result.by_strategy, "surprises": groups}


def distribute(
    engine: Callable[[], Mapper],
    cases: int,
    seed: str,
    strategies: Sequence[str] | None = None,
    on_worlds: OnWorlds | None = None,
    *,
    out: Path | None = None,
    first: Iterable[Case] | None = None,
    stop: Callable[[], bool] | None = None,
) -> CampaignResult:
    """Run a campaign of cheats whose worlds are tried by an engine; arguments as of `laboratory.campaign.campaign`.

    With `stop`, `cases` is an upper bound: worlds go out in small batches until it says so. The engine is opened when
    the first world is to be tried, and closed. Raises what `campaign` and the engine raise.
    """
    result = replay_kept(seed, strategies, out, first)
    if cases < 1:
        return result
    mapper = engine()
    try:
        report = on_worlds or (lambda _done, _total: None)
        _try_worlds(mapper, result, cases, seed, tuple(strategies or ()), report, stop)
    finally:
        mapper.close()
    result.missed = named_untried(result, strategies)
    return result


def _try_worlds(  # noqa: PLR0917  # all of `distribute`
    mapper: Mapper,
    result: CampaignResult,
    cases: int,
    seed: str,
    strategies: tuple[str, ...],
    report: OnWorlds,
    stop: Callable[[], bool] | None,
) -> None:
    most = _MOST if stop is None else _TIMED
    number = idle = 0
    while result.cases < cases and idle < IDLE_WORLDS and not (stop is not None and stop()):
        average = max(result.cases // number, 1) if number else _CASES_A_WORLD
        count = min(-(-(cases - result.cases) // average), most)
        batch = [WorldTask(seed, number + at, strategies, cases) for at in range(count)]
        total = number + count
        tried = mapper.map(fuzz, [task.to_json() for task in batch], "", _shifted(report, number, total))
        for task, receipt in zip(batch, tried, strict=True):
            if result.cases >= cases or idle >= IDLE_WORLDS:
                break
            left = cases - result.cases
            world = _result(receipt) if receipt["cases"] < left else _last(task, left)
            idle = 0 if world.cases else idle + 1
            result.add(world)
            number = task.number + 1


def _shifted(report: OnWorlds, before: int, total: int) -> Callable[[float], None]:
    return lambda done: report(before + int(done), total)


def _last(task: WorldTask, left: int) -> CampaignResult:
    """The world in which the last case falls, up to that case."""
    return try_world(task.seed, task.number, task.strategies or None, left)


def _result(receipt: Answer) -> CampaignResult:
    counts = {name: receipt[name] for name in _COUNTS}
    world = CampaignResult(**counts, by_strategy=receipt["by_strategy"])
    for count, text in receipt["surprises"]:
        world.found.add(Case.from_json(text), count)
    return world
