"""Proof snapshots: what is kept, what exceeds, and what is said of it, by the command and by the
fixture.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from support.plumbing.scenarios import scenario

from pubsub_emulator.cli.main import pubsub
from pubsub_emulator.emulator.scenario.file import parse_scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.primitives.errors import PubsubError
from pubsub_emulator.testing.proof_sizes import (
    FOLDER,
    BadSnapshot,
    BadTolerance,
    ProofSizes,
    compare,
    parse_tolerance,
    read_sizes,
    scenario_hash,
    verdict,
)

pytest_plugins = ["pytester"]

# Loaded once and here: a run within a test forgets the modules that it was the first to load.
LOADED = import_module("pubsub_emulator.testing.networks")

SCENARIO = scenario("snapshots")


@pytest.fixture(scope="module")
def measured() -> ProofSizes:
    return ProofSizes.of(Simulation(parse_scenario(SCENARIO, "small.toml")))


def grown(sizes: ProofSizes, name: str, by: int) -> ProofSizes:
    return replace(sizes, figures={**sizes.figures, name: sizes.figures[name] + by})


def test_figures_are_those_of_the_blocks(measured: ProofSizes) -> None:
    simulation = Simulation(parse_scenario(SCENARIO, "small.toml"))
    ledgers, delivered = [], 0
    while simulation.network.number < 8:
        step = simulation.step()
        delivered += len(step.deliveries(2000))
        ledgers += [
            r.outcome.ledger for r in step.records if r.outcome is not None and r.chain == 2000
        ]
    figures = measured.figures
    assert figures["relay_blocks"] == 8
    assert figures["2000.blocks"] == len(ledgers) == 8
    assert figures["2000.delivered"] == delivered > 20
    assert figures["2000.proof_bytes"] == sum(ledger.proof_bytes for ledger in ledgers)
    assert figures["2000.largest_proof_bytes"] == max(ledger.proof_bytes for ledger in ledgers)
    by_part = [
        name
        for name in figures
        if name.endswith(("top_path_bytes", "child_node_bytes", "value_bytes"))
    ]
    assert len(by_part) == 6
    assert (
        figures["2000.static_bytes"] + sum(figures[name] for name in by_part)
        == figures["2000.proof_bytes"]
    )
    assert not [name for name in figures if name.startswith("100")], (
        "publishers subscribe to nothing"
    )


def test_a_file_says_what_was_measured(measured: ProofSizes, tmp_path: Path) -> None:
    path = tmp_path / "new" / "small.proof-snapshot"
    measured.write(path)
    assert list(path.parent.iterdir()) == [path]
    text = path.read_text(encoding="utf-8")
    assert text == measured.text()
    assert len(text) < 1000
    kept = read_sizes(path)
    assert (kept.scenario, kept.scenario_hash, kept.figures) == (
        "small",
        measured.scenario_hash,
        measured.figures,
    )
    assert verdict(kept, measured, Fraction(0)) == []


def test_growth_within_the_tolerance_is_accepted_and_a_byte_more_is_not(
    measured: ProofSizes,
) -> None:
    name = "2000.proof_bytes"
    before = measured.figures[name]
    most = before * 2 // 100
    assert verdict(measured, grown(measured, name, most), Fraction(2, 100)) == []
    [said] = verdict(measured, grown(measured, name, most + 1), Fraction(2, 100))
    assert said == f"{name}: {before:,} → {before + most + 1:,} (+2.0 %)"
    assert verdict(measured, grown(measured, name, -before // 2), Fraction(0)) == []


def test_figures_of_another_scenario_do_not_compare(measured: ProofSizes) -> None:
    [said] = verdict(replace(measured, scenario_hash="0x00"), measured, Fraction(1))
    assert said == "the snapshot is of another scenario than small, or of an earlier version of it"


def test_other_work_is_never_within_a_tolerance(measured: ProofSizes) -> None:
    for by in (1, -1):
        [said] = verdict(measured, grown(measured, "2000.delivered", by), Fraction(1))
        assert said.startswith("2000.delivered: ")
    more = replace(measured, figures={**measured.figures, "3000.blocks": 1, "3000.proof_bytes": 10})
    assert len(verdict(measured, more, Fraction(1))) == 2
    assert len(verdict(more, measured, Fraction(1))) == 2


def test_changes_are_told_in_the_order_of_the_file(measured: ProofSizes) -> None:
    now = replace(
        measured, figures={name: figure + 1 for name, figure in reversed(measured.figures.items())}
    )
    names = [change.name for change in compare(measured, now, Fraction(0))]
    assert names[:4] == ["relay_blocks", "2000.blocks", "2000.delivered", "2000.removed"]
    assert names[-3:] == [
        f"2000.publishers.1001.{part}_bytes" for part in ("top_path", "child_node", "value")
    ]


def test_the_scenario_s_hash_follows_what_it_says() -> None:
    def hashed(text: str) -> str:
        return scenario_hash(parse_scenario(text, "small.toml"))

    same = SCENARIO.replace("Twenty keys", "Some keys").replace(
        "[[subscribers]]", "# note\n[[subscribers]]"
    )
    assert hashed(same + 'cache = "slots"\n') == hashed(SCENARIO)
    assert hashed(SCENARIO.replace("0.2", "0.3")) != hashed(SCENARIO)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "format is None, this program reads 1"),
        ("format = 2", "format is 2, this program reads 1"),
        ("format = 1\nscenario = 5", "scenario and scenario_hash must be strings"),
        ("format = 1\n[2000]\nblocks = -1", "2000.blocks is -1, not a count or a size"),
        ("format = 1\n[2000]\nblocks = true", "2000.blocks is True, not a count or a size"),
        (
            "format = 1\n[2000.publishers.1000]\nvalue = 1",
            "2000.publishers.1000.value is not a field of a proof snapshot",
        ),
        ("format = x", "not a proof snapshot: Invalid value (at line 1, column 10"),
    ],
)
def test_a_file_that_is_none_is_refused_with_its_place(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "bad.proof-snapshot"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadSnapshot) as refused:
        read_sizes(path)
    assert str(refused.value).startswith(f"{path}: {said}")


@given(
    st.text(),
    st.dictionaries(
        st.sampled_from(["blocks", "proof_bytes", "value_bytes"]), st.integers(0, 2**63 - 1)
    ),
)
def test_any_name_and_figure_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, name: str, figures: dict[str, int]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.proof-snapshot"
    sizes = ProofSizes(
        name, "0x00" if name else "", {f"2000.{part}": figure for part, figure in figures.items()}
    )
    sizes.write(path)
    kept = read_sizes(path)
    assert (kept.scenario, kept.figures) == (sizes.scenario, sizes.figures)


def test_tolerances_are_shares() -> None:
    assert [parse_tolerance(text) for text in ("2%", "0.5 %", "0", " 0% ")] == [
        Fraction(2, 100),
        Fraction(5, 1000),
        Fraction(0),
        Fraction(0),
    ]
    for text in ("2", "-1%", "two%", "", "%", "1/0%"):
        with pytest.raises(BadTolerance):
            parse_tolerance(text)


# -- the command


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.chdir(tmp_path)
    Path("small.toml").write_text(SCENARIO, encoding="utf-8")

    def invoke(*args: str) -> Result:
        return CliRunner().invoke(pubsub, ["proof-snapshot", *args])

    return invoke


def test_the_command_writes_checks_and_shows_what_exceeds(run: Callable[..., Result]) -> None:
    written = run("small.toml", "--out", "small.proof-snapshot")
    assert written.exit_code == 0
    assert "written: small.proof-snapshot, " in written.stdout
    assert run("small.toml", "--check", "small.proof-snapshot").exit_code == 0

    file = Path("small.proof-snapshot")
    sizes = read_sizes(file)
    less = sizes.figures["2000.proof_bytes"] * 98 // 100
    replace(sizes, figures={**sizes.figures, "2000.proof_bytes": less}).write(file)
    within = run("small.toml", "--check", "small.proof-snapshot", "--tolerance", "3%")
    assert within.exit_code == 0
    assert "2000.proof_bytes" not in within.stdout
    assert (
        "2000.proof_bytes"
        in run("small.toml", "--check", "small.proof-snapshot", "--tolerance=3%", "--diff").stdout
    )
    beyond = run("small.toml", "--check", "small.proof-snapshot", "--tolerance", "1%")
    assert beyond.exit_code == 1
    assert "2000.proof_bytes" in beyond.stdout
    assert "1 of 15 figures exceeds the tolerance of 1%" in beyond.stdout


def test_the_command_says_that_a_scenario_has_changed(run: Callable[..., Result]) -> None:
    run("small.toml", "--out", "small.proof-snapshot")
    Path("small.toml").write_text(SCENARIO.replace("0.2", "0.3"), encoding="utf-8")
    changed = run("small.toml", "--check", "small.proof-snapshot", "--tolerance", "100%")
    assert changed.exit_code == 1
    assert "not a snapshot of this version of small" in changed.stdout


def test_the_command_refuses_what_it_cannot_do(run: Callable[..., Result]) -> None:
    for args in (
        ["small.toml"],
        ["small.toml", "--out", "a", "--check", "small.toml"],
        ["small.toml", "--out=a", "--diff"],
    ):
        assert run(*args).exit_code == 2
    for args in (["other.toml", "--out", "a"], ["small.toml", "--check", "small.toml"]):
        assert isinstance(run(*args).exception, PubsubError)
    assert sorted(path.name for path in Path().iterdir()) == ["small.toml"]


# -- the fixture

TEST = """
    import pytest

    @pytest.mark.parametrize("of", ["a/b", "a-b"])
    @pytest.mark.pubsub_scenario("small.toml", blocks=0)
    def test_sizes(pubsub_simulation, proof_snapshot, of):
        proof_snapshot(pubsub_simulation, tolerance="2%")
"""


def test_the_fixture_asks_for_a_snapshot_writes_it_and_holds_to_it(
    pytester: pytest.Pytester,
) -> None:
    pytester.makefile(".toml", small=SCENARIO)
    pytester.makepyfile(test_small=TEST)
    missing = pytester.runpytest_inprocess()
    missing.assert_outcomes(failed=2)
    missing.stdout.fnmatch_lines(
        ["*.proof-snapshot is not there yet: --proof-snapshot-update writes it"]
    )
    pytester.runpytest_inprocess("--proof-snapshot-update").assert_outcomes(passed=2)
    files = sorted((pytester.path / FOLDER).iterdir())
    assert [path.name for path in files] == [
        "test_small-test_sizes[a%2Fb].proof-snapshot",
        "test_small-test_sizes[a-b].proof-snapshot",
    ]
    pytester.runpytest_inprocess().assert_outcomes(passed=2)
    sizes = read_sizes(files[0])
    replace(sizes, figures={**sizes.figures, "2000.proof_bytes": 9}).write(files[0])
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*tolerance 2%; --proof-snapshot-update stores the present figures:",
            "*2000.proof_bytes: 9 → *",
        ]
    )


def test_the_fixture_takes_any_stretch_of_a_network(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_stretch="""
        from pubsub_emulator.primitives.pubsub import key_from_data
        from pubsub_emulator.testing.proof_sizes import ProofSizes

        def test_sizes(pubsub_network, proof_snapshot):
            pubsub_network.step(2)
            for name in ("first", "second"):
                sizes = ProofSizes()
                pubsub_network.observe(sizes)
                pubsub_network.publish(1000, key_from_data(b"key"), b"7.42")
                pubsub_network.step(3)
                proof_snapshot(sizes, name=name)
        """
    )
    pytester.runpytest_inprocess("--proof-snapshot-update").assert_outcomes(passed=1)
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    first = read_sizes(pytester.path / FOLDER / "test_stretch-test_sizes-first.proof-snapshot")
    assert (first.scenario, first.figures["2000.delivered"], first.figures["2000.blocks"]) == (
        "",
        1,
        3,
    )
