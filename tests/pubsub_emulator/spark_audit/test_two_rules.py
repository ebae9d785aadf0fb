"""One process audits histories that were made with different rules, also through workers."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.plumbing.scenarios import scenario
from support.runtime.rules import CAP

from pubsub_emulator.emulator.scenario.file import parse_scenario
from pubsub_emulator.emulator.scenario.simulation import Simulation
from pubsub_emulator.emulator.user_file import read_rules
from pubsub_emulator.runtime.rules import SHIPPED, Rules, RulesError
from pubsub_emulator.spark_audit.audit.run import AuditFailed, audit
from pubsub_emulator.spark_audit.engine.engine import Mapper, PythonMapper
from pubsub_emulator.spark_audit.engine.pool import PoolMapper
from pubsub_emulator.spark_audit.engine.rules import SHIPPED_RULES, RulesFile
from pubsub_emulator.spark_audit.history.store import HistoryWriter
from pubsub_emulator.spark_audit.simulate.run import SimulationSettings
from pubsub_emulator.spark_audit.simulate.unit import NetworkTask

SCENARIO = (
    scenario("rules")
    + """
[[subscribers.collators]]
strategies = ["omit-node", "stale-root"]
rate = 0.5

[[subscribers.collators]]
"""
)


class _Shared:
    """An engine for several audits, which `close` does not stop."""

    def __init__(self, real: Mapper) -> None:
        self.name, self.map, self.cores = real.name, real.map, real.cores

    def close(self) -> None:
        """Do nothing: the test closes the engine."""


@pytest.fixture
def sides(tmp_path: Path) -> list[tuple[Rules, Path]]:
    """Rules, and the histories that networks with them wrote while they took turns."""
    made = [SHIPPED]
    for name, text in (("cap", CAP), ("five", CAP.replace("3", "5"))):
        path = tmp_path / f"{name}.py"
        path.write_text(text, encoding="utf-8")
        made.append(read_rules(path))
    places = [tmp_path / f"history-{at}" for at in range(len(made))]
    writers = [HistoryWriter(place, "n") for place in places]
    running = [
        Simulation(parse_scenario(SCENARIO, "two.toml", rules), (writer,), rules=rules)
        for rules, writer in zip(made, writers, strict=True)
    ]
    for _ in range(12):
        for simulation in running:
            simulation.step()
    for simulation, writer in zip(running, writers, strict=True):
        simulation.network.finish()
        writer.close()
    return list(zip(made, places, strict=True))


@pytest.mark.parametrize("engine", [PythonMapper, lambda: PoolMapper(1)], ids=["python", "pool"])
def test_one_worker_judges_histories_of_several_rules_in_turn(
    sides: list[tuple[Rules, Path]], engine: Callable[[], Mapper], tmp_path: Path
) -> None:
    mapper = engine()
    try:
        for turn in range(2):
            for at, (rules, history) in enumerate(sides):
                result = audit(
                    history,
                    tmp_path / f"out-{turn}-{at}",
                    rules=rules,
                    fail_on=None,
                    opener=lambda _name, _master: _Shared(mapper),
                )
                assert (result.read_errors, result.exit_code) == (0, 0)
                # Cheats are findings, whose evidence is judged by the same rules.
                assert result.codes
    finally:
        mapper.close()


def test_a_history_of_other_rules_is_refused(
    sides: list[tuple[Rules, Path]], tmp_path: Path
) -> None:
    for rules, _ in sides:
        for other, history in sides:
            if other is not rules:
                with pytest.raises(AuditFailed, match="the history was made with"):
                    audit(history, tmp_path / "out", engine="python", rules=rules)


def test_a_worker_refuses_a_changed_file_and_reads_none_for_shipped_rules(
    sides: list[tuple[Rules, Path]],
) -> None:
    rules = sides[1][0]
    name = RulesFile.of(rules)
    assert name.read().digest == rules.digest
    Path(rules.path).write_text(CAP.replace("3", "4"), encoding="utf-8")
    with pytest.raises(RulesError, match="the file was changed"):
        name.read()
    assert RulesFile.of(SHIPPED) == SHIPPED_RULES
    assert SHIPPED_RULES.read() is SHIPPED


def test_a_task_of_a_simulation_takes_its_rules_along(tmp_path: Path) -> None:
    path = tmp_path / "cap.py"
    path.write_text(CAP, encoding="utf-8")
    rules = read_rules(path)
    (task,) = SimulationSettings(1, 10, "seed", rules=rules).tasks()
    received = NetworkTask.from_json(task.to_json())
    assert received == task
    network = received.population.network(rules=received.rules.read())
    assert network.rules.digest == rules.digest
    assert {chain.spec().rules for chain in network.parachains.values()} == {rules.digest}
