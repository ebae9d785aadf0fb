"""`python -m bench --check`: instructions where they are kept, else the median of three runs."""

from typing import Final

import pytest

from bench.measure import PURE, Race, Result

bench = pytest.importorskip("bench.__main__")

NAME: Final = "validate_block, of this test"


def work() -> None:
    sum(range(50))


def race(name: str, base: str = "hashing") -> Race:
    return Race(name, work, base, work, 3)


@pytest.mark.skipif(not PURE, reason="compiled code has no instructions to count")
def test_more_instructions_than_kept_are_told_and_as_many_are_not() -> None:
    counted: dict[str, int] = {}
    bench.count(race(NAME), counted)
    worse: list[str] = []
    bench.check(race(NAME), counted, 0.25, worse)
    assert worse == []
    bench.check(race(NAME), {NAME: counted[NAME] // 2}, 0.25, worse)
    assert worse == [f"{NAME}: {counted[NAME]} instructions, kept {counted[NAME] // 2}"]


def test_one_slow_run_is_not_told_and_two_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ratio of the kept table is 2, so 3 is too much."""
    monkeypatch.setattr(bench, "grown", lambda results, _: [r.name for r in results if r.ratio > 2])
    ratios: list[float] = []

    def run(self: Race) -> Result:
        return Result(self.name, self.base, 1, 1, ratios.pop(0))

    monkeypatch.setattr(Race, "run", run)
    for given, found, ratio in (
        ([1.0], [], 1.0),
        ([3.0, 1.0, 2.0], [], 2.0),
        ([3.0, 1.0, 4.0], ["W1"], 3.0),
    ):
        ratios[:] = given
        worse: list[str] = []
        assert bench.check(race("W1"), {}, 0.25, worse).ratio == ratio
        assert worse == found
        assert not ratios


def test_instructions_are_kept_by_version_of_python() -> None:
    assert all(
        python.startswith("CPython ") and all(steps > 0 for steps in lines.values())
        for python, lines in bench.json.loads(bench.KEPT_STEPS.read_text(encoding="utf-8")).items()
    )
    assert bench.kept_steps() == bench.json.loads(bench.KEPT_STEPS.read_text(encoding="utf-8")).get(
        bench.PYTHON, {}
    )
