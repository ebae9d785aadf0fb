import csv
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.plumbing.processes import python

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.files.extras import brings
from pubsub_emulator.laboratory.experiments import charts as plot
from pubsub_emulator.laboratory.experiments import presets as questions
from pubsub_emulator.laboratory.experiments.experiment import (
    Workload,
    measure,
    with_field,
)
from pubsub_emulator.laboratory.experiments.presets import QUESTIONS, Figure
from pubsub_emulator.runtime.pallet_subscriber.config import CachePolicy
from pubsub_emulator.runtime.rules import Rules

SMALL = ("--sweep", "keys=4,20", "--set", "spread=2", "--set", "value_size=40")


def run(*args: object) -> Result:
    return CliRunner().invoke(pubsub, ["experiment", *map(str, args)])


def test_a_sweep_leaves_a_table_twice_and_a_plot_twice(tmp_path: Path) -> None:
    out = tmp_path / "sweep"
    result = run(*SMALL, "--cache", "none,slots", "--out", out)
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in out.iterdir()) == [
        f"pov-by-keys.{kind}" for kind in ("csv", "json", "png", "svg")
    ]
    rows = list(csv.DictReader((out / "pov-by-keys.csv").read_text(encoding="utf-8").splitlines()))
    assert [(row["keys"], row["cache"]) for row in rows] == [
        ("4", "none"),
        ("4", "slots"),
        ("20", "none"),
        ("20", "slots"),
    ]
    assert all(row["value_size"] == "40" for row in rows)
    assert result.output.count("differences") == 2
    header = next(line for line in result.output.splitlines() if "keys 4" in line)
    assert header.split() == ["figure", "keys", "4", "keys", "20", "change", "%"]
    body = json.loads((out / "pov-by-keys.json").read_text())
    assert [float(row["pov"]) for row in rows] == [row["pov"] for row in body["rows"]]
    assert (out / "pov-by-keys.svg").read_text().startswith("<svg")
    assert (out / "pov-by-keys.png").read_bytes().startswith(b"\x89PNG")


def test_the_picture_of_a_figure_is_the_same_each_time(tmp_path: Path) -> None:
    rows = tuple(
        {"x": x, "y": 2 * x, "s": s, "f": f} for x in (1, 10) for s in ("a", "b") for f in (1, 2)
    )
    figure = Figure(
        "figure", "A figure", rows, x="x", y="y", series="s", facet="f", log_x=True, rule=7
    )
    texts = []
    for _ in range(2):
        plot.draw(figure, tmp_path)
        texts.append((tmp_path / "figure.svg").read_bytes())
    assert texts[0] == texts[1]


def test_without_the_plot_extra_tables_appear_and_a_line_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    out = tmp_path / "sweep"
    result = run(*SMALL, "--cache", "none", "--out", out)
    assert result.exit_code == 0
    assert "drawing needs vl_convert" in result.stderr
    assert brings("plot") in result.stderr
    assert sorted(path.suffix for path in out.iterdir()) == [".csv", ".json"]


def test_the_presets_are_the_questions_and_each_writes_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(on_step: Callable[[str], None], _rules: Rules) -> tuple[Figure, ...]:
        on_step("measuring")
        return (Figure("answer", "An answer", ({"share": 40, "cheats": "none"},)),)

    help_text = run("--help").stdout
    assert all(name in help_text for name in QUESTIONS)
    monkeypatch.setattr(questions, "QUESTIONS", dict.fromkeys(QUESTIONS, answer))
    monkeypatch.setattr(
        "pubsub_emulator.cli.commands.experiment.run.QUESTIONS", questions.QUESTIONS
    )
    result = run("--preset", "attacker", "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "An answer" in result.stdout
    assert (tmp_path / "out" / "answer.csv").read_text() == "share,cheats\n40,none\n"


@pytest.mark.parametrize("shape", ["random", "binary", "chain"])
@pytest.mark.parametrize("rate", [1, 1_000_000])
def test_ps_69_slots_cost_no_more_than_no_cache_at_all(shape: str, rate: int) -> None:
    for workload in (
        Workload(keys=1, key_shape=shape, update_rate=rate, spread=3),
        Workload(keys=6, key_shape=shape, update_rate=rate, spread=3),
        Workload(keys=70, key_shape=shape, update_rate=rate, spread=3),
        Workload(publishers=20, keys=2, key_shape=shape, update_rate=rate, spread=3),
        Workload(publishers=20, keys=7, key_shape=shape, update_rate=rate, spread=3),
        Workload(
            keys=20, others=200, update_rate=0, other_update_rate=rate, key_shape=shape, spread=3
        ),
    ):
        none, slots = (
            measure(replace(workload, cache=policy))
            for policy in (CachePolicy.NONE, CachePolicy.SLOTS)
        )
        assert slots.pov <= none.pov, workload


def test_ps_70_a_sweep_delivers_everything_and_counts_from_the_block_of_the_publish() -> None:
    found = measure(Workload(keys=30, update_rate=1_000_000, spread=3))
    assert (found.latency_median, found.latency_max, found.undelivered, found.stops) == (1, 1, 0, 0)
    tight = measure(
        Workload(
            publishers=2,
            keys=1400,
            value_size=2000,
            update_rate=1_000_000,
            max_pov_size=7_500_000,
            message_bytes=1_200_000,
            spread=2,
        )
    )
    assert tight.stops > 0
    assert tight.latency_max > 1
    assert 0 <= tight.unused_at_stop_max < 2060 + 160
    assert tight.budget == 7_500_000 * 85 // 100 - 1_200_000 - 12


def test_a_field_of_a_workload_takes_text_as_a_person_writes_it() -> None:
    assert with_field(Workload(), "keys", "4_096").keys == 4096
    assert with_field(Workload(), "equal_values", "true").equal_values is True
    assert with_field(Workload(), "meter_cache_reads", "false").meter_cache_reads is False
    assert with_field(Workload(), "seed", "other").seed == "other"
    assert with_field(Workload(), "update_rate", "0.000001").update_rate == 1
    assert with_field(Workload(), "other_update_rate", "1").other_update_rate == 1_000_000
    assert with_field(Workload(), "update_rate", "0.25").value_of("update_rate") == 0.25


def test_help_loads_no_plotting_library() -> None:
    code = (
        "import sys; import pubsub_emulator.cli.commands.experiment.run; sys.exit('altair' in"
        " sys.modules)"
    )
    assert python("-c", code).returncode == 0
