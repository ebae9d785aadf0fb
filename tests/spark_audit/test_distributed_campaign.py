"""A campaign that is given out tries the same cheats and finds the same surprises as one in one process."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext

from pubsub_emulator.cli.main import main
from pubsub_emulator.collator.cheats import Strategy
from pubsub_emulator.laboratory.campaign import (
    BLOCKS_A_WORLD,
    IDLE_WORLDS,
    CampaignResult,
    UnknownStrategy,
    campaign,
    corpus,
    try_world,
)
from pubsub_emulator.runtime.parachain import validate
from pubsub_emulator.spark_audit.choice import open_mapper
from pubsub_emulator.spark_audit.engine import campaign as module
from pubsub_emulator.spark_audit.engine.campaign import distribute
from pubsub_emulator.spark_audit.engine.engine import Mapper, PythonMapper, Report, Unit
from pubsub_emulator.spark_audit.spark import job

ALONE = ("another-set", "any-mutation")


def _told(result: CampaignResult) -> dict[str, Any]:
    names = ("cases", "honest", "rejected", "accepted_equal", "stopped", "by_strategy")
    told = {name: getattr(result, name) for name in names}
    told["order"] = list(result.by_strategy)
    told["surprises"] = [case.to_json() for case in result.surprises]
    told["files"] = [path.name for path in result.files]
    return told


class _Noting(PythonMapper):
    """Tells how many units it was given, batch by batch."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def map(self, unit: Unit, tasks: Sequence[str], out: Path, report: Report) -> list[dict[str, Any]]:
        self.batches.append(len(tasks))
        return super().map(unit, tasks, out, report)


@pytest.mark.parametrize(
    ("cases", "strategies"), [(0, ALONE), (1, ALONE), (480, ALONE), (150, None), (60, ("no-seal",))]
)
def test_the_cases_are_those_of_one_process(cases: int, strategies: tuple[str, ...] | None) -> None:
    plain = campaign(cases, "given out", strategies, first=())
    assert plain.cases == cases
    assert _told(distribute(PythonMapper, cases, "given out", strategies, first=())) == _told(plain)


def test_a_campaign_that_is_stopped_has_whole_worlds_and_begins_as_one_that_is_not() -> None:
    asked: list[None] = []

    def stop() -> bool:
        asked.append(None)
        return len(asked) > 1

    stopped = distribute(PythonMapper, sys.maxsize, "given out", ALONE, first=(), stop=stop)
    assert stopped.cases > 0
    assert _told(stopped) == _told(campaign(stopped.cases, "given out", ALONE, first=()))


def test_the_world_of_the_last_case_ends_where_one_process_ends() -> None:
    """Situations after the last case are not counted, although they give no case."""
    only = ("drop-message",)
    worlds = ((seed, try_world(seed, 0, only, 1 << 30)) for seed in map(str, range(40)))
    seed, cases = next(
        (seed, world.cases)
        for seed, world in worlds
        if world.cases > 0 and try_world(seed, 0, only, world.cases).honest < world.honest
    )
    assert _told(distribute(PythonMapper, cases, seed, only, first=())) == _told(campaign(cases, seed, only, first=()))


def test_batches_follow_what_earlier_ones_gave(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CASES_A_WORLD", 600)
    seen: list[tuple[int, int]] = []
    mapper = _Noting()
    result = distribute(
        lambda: mapper, 1200, "batches", ALONE, lambda done, total: seen.append((done, total)), first=()
    )
    assert _told(result) == _told(campaign(1200, "batches", ALONE, first=()))
    assert len(mapper.batches) > 1
    assert seen[-1] == (sum(mapper.batches), sum(mapper.batches))


def test_a_campaign_that_finds_nothing_to_try_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    never = Strategy("never", "nothing", (), on_proof=True, propose=lambda _situation, _draws: None)
    monkeypatch.setattr("pubsub_emulator.laboratory.campaign.STRATEGIES", {"never": never})
    monkeypatch.setattr("pubsub_emulator.laboratory.campaign.for_any_chain", lambda: ["never"])
    plain = campaign(5, "idle", first=())
    assert (plain.cases, plain.honest) == (0, IDLE_WORLDS * BLOCKS_A_WORLD)
    assert _told(distribute(PythonMapper, 5, "idle", first=())) == _told(plain)


def test_surprises_are_the_same_and_written_to_the_same_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "_unused", lambda _source, _walked: [])
    plain = campaign(120, "planted", ("another-set",), out=tmp_path / "plain", first=())
    given = distribute(PythonMapper, 120, "planted", ("another-set",), out=tmp_path / "given", first=())
    assert plain.surprises
    assert _told(given) == _told(plain)
    assert {path.name: path.read_bytes() for path in given.files} == {
        path.name: path.read_bytes() for path in plain.files
    }


def test_kept_cases_are_replayed_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(validate, "check_parent", lambda _parent, _header: [])
    kept = [dict(corpus())["bad-parent.json"]]
    result = distribute(PythonMapper, 0, "kept", out=tmp_path, first=kept)
    assert [case.strategies for case in result.surprises] == [("bad-parent",)]
    assert [path.parent for path in result.files] == [tmp_path]


def test_no_engine_is_started_when_nothing_can_be_tried() -> None:
    def never() -> PythonMapper:
        raise AssertionError("an engine was started")

    with pytest.raises(UnknownStrategy):
        distribute(never, 5, "1", ("omit-everything",), first=())
    assert distribute(never, 0, "1", first=()).cases == 0


@pytest.mark.spark
def test_batches_on_spark_are_counted_once(spark: SparkContext, monkeypatch: pytest.MonkeyPatch) -> None:
    del spark
    monkeypatch.setattr(module, "_CASES_A_WORLD", 600)
    monkeypatch.setattr(job, "_POLL_SECONDS", 0.01)
    batches: list[int] = []

    def opened() -> Mapper:
        mapper = open_mapper("spark")
        given_out = mapper.map
        monkeypatch.setattr(mapper, "map", lambda *what: (batches.append(len(what[1])), given_out(*what))[1])
        return mapper

    seen: list[tuple[int, int]] = []
    told = distribute(opened, 600, "b", ALONE, lambda *done: seen.append(done), first=())
    assert told.cases == 600
    assert len(batches) > 1
    assert all(done <= total for done, total in seen)
    assert seen == sorted(seen)


@pytest.mark.spark
def test_the_command_tells_the_same_with_a_master_and_without(
    spark: SparkContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    del spark
    fuzz = ["fuzz", "--cases", "500", "--seed", "3", "--strategy", "another-set", "--out", str(tmp_path), "--json"]
    told = []
    for more in ([], ["--master", "local[2]"]):
        monkeypatch.setattr(sys, "argv", ["pubsub", *fuzz, *more])
        main()
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1]
    assert told[0]["cases"] == 500
