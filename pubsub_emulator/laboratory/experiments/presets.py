"""Measurements and figures for each question. `docs/findings.md` has the answers.

cache-policies    when does caching a trie on chain make a block smaller, and when larger?
latency           how many relay blocks from publication to delivery, by load?
unused-budget     how much of the budget does the stop rule leave unused?
attacker          what can each cheat gain at most, and how long can cheats delay a delivery?
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from pubsub_emulator.laboratory.attacker import cheat_gains, delays
from pubsub_emulator.laboratory.experiments.experiment import Measurement, Workload, measure
from pubsub_emulator.primitives.draws import MILLION
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.pallet_subscriber.config import (
    MIN_BUDGET,
    ROW_COST,
    CachePolicy,
    RuntimeSpec,
)
from pubsub_emulator.runtime.rules import SHIPPED, Rules

Row = Mapping[str, int | float | str]
"""A row of a table by column."""
OnStep = Callable[[str], None]
"""Called with a description of the next measurement."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A table, which is drawn as a chart if `y` is set."""

    name: str
    title: str
    rows: tuple[Row, ...]
    x: str = ""
    """The column of the horizontal axis."""
    y: str = ""
    """The column of the vertical axis."""
    series: str = ""
    """The column that separates lines or bars."""
    facet: str = ""
    """The column that separates panels."""
    bars: bool = False
    """Whether to draw bars instead of lines."""
    log_x: bool = False
    """Whether the horizontal axis is logarithmic."""
    log_y: bool = False
    """Whether the vertical axis is logarithmic."""
    rule: int | None = None
    """A bound that is drawn as a horizontal line."""
    columns: tuple[str, ...] = ()
    """The columns to print. Files have all columns."""


# Update rates. The share of one millionth is rounded up to one key.
ONE: Final = 1
TENTH: Final = MILLION // 10
ALL: Final = MILLION
_RATES: Final = {ONE: "one key changes", TENTH: "10 % of the keys change", ALL: "all keys change"}
"""Update rates in words."""
_POLICIES: Final = (CachePolicy.NONE, CachePolicy.NODES, CachePolicy.SLOTS)


def _measured(
    workloads: Iterable[Workload],
    label: Callable[[Workload], Row],
    on_step: OnStep,
    rules: Rules,
) -> list[dict[str, int | float | str]]:
    """Measure workloads and return their rows, each with additional columns from `label`."""
    rows = []
    for workload in workloads:
        labels = label(workload)
        on_step(
            ", ".join(
                str(value)
                for value in (*labels.values(), f"{workload.keys} keys", workload.cache.value)
            )
        )
        rows.append({**labels, **measure(workload, rules).row()})
    return rows


def cache_policies(on_step: OnStep, rules: Rules = SHIPPED) -> tuple[Figure, ...]:
    """Measure all cache policies by keys and update rates, and in special workloads."""
    by_keys = [
        Workload(keys=keys, update_rate=rate, cache=policy, spread=4)
        for rate, keys, policy in product(_RATES, (16, 64, 256, 1024, 4096), _POLICIES)
    ]
    rows = _measured(
        by_keys, lambda workload: {"changing": _RATES[workload.update_rate]}, on_step, rules=rules
    )
    return (
        Figure(
            "policies-by-keys",
            "Bytes of a block's PoV by subscribed keys, one publisher",
            tuple(rows),
            x="keys",
            y="pov",
            series="cache",
            facet="changing",
            log_x=True,
            log_y=True,
            columns=(
                "changing",
                "keys",
                "cache",
                "pov",
                "relay_bytes",
                "own_state_bytes",
                "cache_state_bytes",
            ),
        ),
        _policies_by_workload(on_step, rules),
    )


def _keys(count: int, shape: str = "") -> str:
    return f"{count} {shape} key{'s' if count > 1 else ''}".replace("  ", " ")


def _special_workloads() -> Iterator[tuple[str, Workload]]:
    """Yield workloads with other values, keys and publishers than usual, with their names."""
    for size, rate in product((1, 32, 1000), (ONE, ALL)):
        yield (
            f"{size:,}-byte values, {_RATES[rate]}",
            Workload(keys=64, value_size=size, update_rate=rate),
        )
    for description, rate in (("one", ONE), ("10 %", TENTH), ("all", ALL)):
        workload = Workload(keys=410, others=3686, update_rate=0, other_update_rate=rate)
        yield f"only unsubscribed keys change: {description}", workload
    many = Workload(publishers=200, update_rate=ONE)
    for keys, (description, rate) in product(
        (1, 2, 5, 6), (("a tenth of them change one", TENTH), ("each changes one", ALL))
    ):
        yield (
            f"200 publishers, {_keys(keys)} of each, {description}",
            replace(many, keys=keys, active_rate=rate),
        )
    for keys in (1, 5, 6):
        yield (
            f"200 publishers, {_keys(keys)} of each, all keys change",
            replace(many, keys=keys, update_rate=ALL),
        )
    for shape, rate in product(("binary", "chain"), (ONE, ALL)):
        yield (
            f"{shape} keys, {_RATES[rate]}",
            Workload(publishers=20, keys=14, key_shape=shape, update_rate=rate),
        )
    for count, keys, shape in ((200, 1, "random"), (50, 14, "random"), (50, 14, "chain")):
        workload = Workload(
            publishers=count, keys=keys, key_shape=shape, update_rate=ALL, equal_values=True
        )
        yield (
            f"equal entries: {count} publishers, {_keys(keys, shape)} of each, all keys change",
            workload,
        )


def _policies_by_workload(on_step: OnStep, rules: Rules) -> Figure:
    """Measure all cache policies in the special workloads."""
    rows = []
    for name, workload in _special_workloads():
        on_step(name)
        by_policy = {
            policy: measure(replace(workload, cache=policy, spread=3), rules)
            for policy in _POLICIES
        }
        uncached = by_policy[CachePolicy.NONE].pov
        rows += [
            {
                "workload": name,
                "share of none, %": round(100 * measurement.pov / uncached, 1),
                **measurement.row(),
            }
            for measurement in by_policy.values()
        ]
    return Figure(
        "policies-by-workload",
        "Bytes of a block's PoV in other workloads, none being 100 %",
        tuple(rows),
        x="share of none, %",
        y="workload",
        series="cache",
        bars=True,
        columns=("workload", "cache", "pov", "share of none, %"),
    )


def latency(on_step: OnStep, rules: Rules = SHIPPED) -> tuple[Figure, ...]:
    """Measure the latency by keys, update rate and messages.

    With messages, the budget is reduced to its minimum.
    """
    workloads = [
        Workload(
            publishers=publishers,
            keys=1024,
            value_size=512,
            update_rate=rate,
            message_bytes=messages,
            spread=10,
        )
        for messages, publishers, rate in product(
            (0, 8_000_000), (1, 2, 5, 10), (MILLION // 100, TENTH, ALL)
        )
    ]

    def label(workload: Workload) -> Row:
        return {
            "subscribed keys": workload.publishers * workload.keys,
            "updates": f"{100 * workload.update_rate // MILLION} % a block",
            "messages": "no messages" if not workload.message_bytes else "messages of 8 MB a block",
        }

    return (
        Figure(
            "latency-by-load",
            "Relay blocks from publish to delivery, the longest (values of 512 bytes)",
            tuple(_measured(workloads, label, on_step, rules=rules)),
            x="subscribed keys",
            y="latency_max",
            series="updates",
            facet="messages",
            log_x=True,
            columns=(
                *("messages", "updates", "subscribed keys", "budget", "catch_up_blocks"),
                *("latency_median", "latency_max", "undelivered"),
            ),
        ),
    )


def unused_budget(on_step: OnStep, rules: Rules = SHIPPED) -> tuple[Figure, ...]:
    """Measure the unused budget by value size, in blocks with the minimum budget of 1 MiB."""
    workloads = [
        Workload(
            publishers=2_600_000 // (1024 * (size + 200)) + 1,
            keys=1024,
            value_size=size,
            update_rate=ALL,
            message_bytes=8_800_000,
            cache=policy,
            spread=4,
        )
        for size, policy in product((1, 16, 64, 256, 512, 1024, 2048), _POLICIES)
    ]
    bound = RuntimeSpec(ParaId(0), {}).max_item_cost + ROW_COST
    columns = (
        "value_size",
        "cache",
        "stops",
        "budget",
        "unused_at_stop",
        "unused_at_stop_max",
        "catch_up_blocks",
    )
    return (
        Figure(
            "unused-at-stop",
            f"Bytes of a budget of {MIN_BUDGET:,} left unused where the stop rule fired, the most",
            tuple(
                _measured(
                    workloads, lambda workload: {"value": workload.value_size}, on_step, rules=rules
                )
            ),
            x="value_size",
            y="unused_at_stop_max",
            series="cache",
            log_x=True,
            rule=bound,
            columns=columns,
        ),
    )


def attacker(on_step: OnStep, rules: Rules = SHIPPED) -> tuple[Figure, ...]:
    """Measure the gain of every strategy, and the delay by cheating collators."""
    gains = tuple(gain.row() for gain in cheat_gains(on_step, rules))
    columns = (
        *("strategy", "blocks", "refused", "most bytes left out", "most bytes added"),
        *("most callbacks withheld", "verdicts"),
    )
    title = "Relay blocks from publish to delivery by share of collators who withhold, the longest"
    delayed = tuple(delay.row() for delay in delays(on_step=on_step, rules=rules))
    return (
        Figure(
            "cheats", "What each cheat would have won, had it been believed", gains, columns=columns
        ),
        Figure(
            "delay-by-cheating-share",
            title,
            delayed,
            x="cheating %",
            y="longest delay",
            series="placement",
        ),
    )


QUESTIONS: Final[Mapping[str, Callable[[OnStep, Rules], tuple[Figure, ...]]]] = {
    "cache-policies": cache_policies,
    "latency": latency,
    "unused-budget": unused_budget,
    "attacker": attacker,
}
"""The presets by name."""


def sweep_figure(parameter: str, y: str, measured: Iterable[Measurement]) -> Figure:
    """Return the figure of a sweep."""
    rows = tuple(measurement.row() for measurement in measured)
    return Figure(
        f"{y}-by-{parameter}", f"{y} by {parameter}", rows, x=parameter, y=y, series="cache"
    )
