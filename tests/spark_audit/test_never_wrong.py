"""An audit is never quietly wrong (AU-11, AU-5, AU-7): what failed is said, what is senseless is kept apart.

Nobody honest is accused. And what makes it quick, a pool of processes (AU-14) and chains that fold (AU-16), costs
nothing of that.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support import pool_units
from support.audits import SUBSCRIBER, Slip, drop_a_node, small_network, write_history
from support.world import SEEDS, Chain, Relay, filled, make_spec, numbered

from pubsub_emulator.emulator.network.records import CheckpointRecord
from pubsub_emulator.primitives import ed25519
from pubsub_emulator.primitives.header import turn_of
from pubsub_emulator.primitives.types import ParaId
from pubsub_emulator.runtime.framework.storage import State
from pubsub_emulator.runtime.pallet_subscriber.storage import PROCESSED_ROOTS, PROCESSING_CURSOR
from pubsub_emulator.runtime.parachain.storage import AUTHORITIES, LAST_DMQ_MQC_HEAD
from pubsub_emulator.spark_audit.audit.run import AuditFailed, AuditResult, audit
from pubsub_emulator.spark_audit.choice import choose_engine
from pubsub_emulator.spark_audit.engine import pool
from pubsub_emulator.spark_audit.engine.engine import EngineLost
from pubsub_emulator.spark_audit.engine.pool import PoolMapper
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.storage import LocalStore, open_store
from pubsub_emulator.spark_audit.history.store import HistoryWriter
from pubsub_emulator.spark_audit.judge import check, findings
from pubsub_emulator.spark_audit.judge.evidence import equivocation_evidence, judge
from pubsub_emulator.spark_audit.judge.finding_file import check_finding, finding_text
from pubsub_emulator.spark_audit.judge.results import RECEIPT
from pubsub_emulator.spark_audit.simulate.score import NoTruth, score

Rows = dict[bytes, bytes]


def _audit(history: Path, **options: Any) -> AuditResult:
    return audit(history, history.with_name("out"), engine="python", **options)


# A checkpoint that is consistent and makes no sense (AU-5)


def _put(key: bytes, value: bytes) -> Callable[[Rows], object]:
    return lambda rows: rows.__setitem__(key, value)


SENSELESS: dict[str, Callable[[Rows], object]] = {
    "no collators": _put(AUTHORITIES.key, b"\x00"),
    "collators gone": lambda rows: rows.pop(AUTHORITIES.key),
    "collators undecodable": _put(AUTHORITIES.key, b"\x04ab"),
    "a message head of 31 bytes": _put(LAST_DMQ_MQC_HEAD.key, bytes(31)),
    "cursor undecodable": _put(PROCESSING_CURSOR.key, b"x"),
    "roots undecodable": _put(PROCESSED_ROOTS.key, b"\xff"),
}


@pytest.mark.parametrize("label", SENSELESS)
def test_a_senseless_checkpoint_costs_its_segment_and_nothing_else(tmp_path: Path, label: str) -> None:
    def spoil(record: CheckpointRecord) -> CheckpointRecord:
        if (record.chain, record.segment) != (SUBSCRIBER, 1):
            return record
        rows = dict(record.state.top_entries())
        SENSELESS[label](rows)
        state = State.from_entries(rows.items())
        return replace(record, state=state, header=replace(record.header, state_root=state.root()))

    result = _audit(write_history(tmp_path / "history", 6, subscribers=2, segment_length=3, checkpoints=spoil))
    assert result.exit_code in {3, 5}
    statuses = {row["chain"]: row["status"] for row in result.chains}
    assert statuses == {1000: "verified", 2000: "not verified", 2001: "verified", 2100: "verified"}
    quarantined = list(result.results.rows(schema.QUARANTINE))
    assert {(row["chain"], row["segment"]) for row in quarantined} == {(SUBSCRIBER, 1)}
    assert set(result.codes) <= {"SeamMismatch"}, "the seam is open, and no collator is accused"


# Equivocation across chains


def test_one_key_that_seals_a_block_on_each_of_two_chains_is_not_proven_to_equivocate(tmp_path: Path) -> None:
    keys = numbered(3)
    relay = Relay(1, {1000: filled(keys)})
    chains = [Chain(replace(make_spec({1000: keys}), para_id=ParaId(para))) for para in (3000, 3001)]
    headers = [chain.author(relay).header for chain in chains]
    slot = headers[0].aura_slot() or 0
    author = ed25519.public_key(turn_of(slot, SEEDS))
    evidence = equivocation_evidence(author, headers[0].encode(), headers[1].encode())
    shown = judge(evidence)
    assert any("of one chain" in line for line in shown.rests_on)
    row = {
        "network": "any",
        "chain": 3000,
        "code": findings.EQUIVOCATION,
        "severity": "info",
        "detail": shown.detail,
        "verifier": "0",
        "segment": None,
        "position": None,
        "number": headers[1].number,
        "block": headers[1].hash(),
        "collator": author,
        "evidence": evidence,
    }
    row["id"] = findings.finding_id("any", 3000, findings.EQUIVOCATION, slot.to_bytes(8, "little") + author)
    path = tmp_path / "finding.json"
    path.write_text(finding_text(row))
    assert not check_finding(path).proven


# What a result rests on


def test_a_read_that_failed_is_tried_again_and_never_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is away for a minute and comes back untouched."""
    history = write_history(tmp_path / "history", 6, segment_length=3, cheats={2: drop_a_node})
    whole = audit(history, tmp_path / "whole", engine="python")
    real = LocalStore.open
    failing = [True]

    def away(place: LocalStore, path: str) -> Any:
        if failing[0] and path.startswith("blocks/"):
            raise OSError(5, "Input/output error")
        return real(place, path)

    monkeypatch.setattr(LocalStore, "open", away)
    lost = _audit(history)
    assert lost.exit_code == 3
    assert {row["status"] for row in lost.chains} == {"not verified"}
    assert not list((tmp_path / "out" / "items").rglob(RECEIPT)), "nothing of it is kept"
    failing[0] = False
    again = _audit(history)
    assert (again.digest, again.codes, again.exit_code) == (whole.digest, whole.codes, whole.exit_code)


def test_one_failed_read_in_three_costs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = write_history(tmp_path / "history", 4)
    real, calls = LocalStore.open, [0]

    def shaky(place: LocalStore, path: str) -> Any:
        calls[0] += 1
        if calls[0] % 3 == 0 and path.endswith(".parquet"):
            raise OSError(5, "Input/output error")
        return real(place, path)

    monkeypatch.setattr(LocalStore, "open", shaky)
    assert _audit(history).exit_code == 0


def test_what_a_worker_wrote_elsewhere_is_an_infrastructure_failure(tmp_path: Path) -> None:
    """An output that is not shared: the receipts come back, the files do not."""

    class Elsewhere:
        name = "elsewhere"
        cores = 1

        def map(self, unit: Any, tasks: Any, out: str, report: Any, weights: Any = None) -> Any:  # noqa: ARG002  # a mapper's
            return [unit(task, f"{out}-of-the-worker") for task in tasks]

        def close(self) -> None:
            pass

    history = write_history(tmp_path / "history", 4)
    with pytest.raises(AuditFailed, match="is missing although a worker wrote it") as failure:
        audit(history, tmp_path / "out", opener=lambda _engine, _master: Elsewhere())
    assert failure.value.exit_code == 4
    assert not list((tmp_path / "out").rglob("*.*")), "nothing is kept"
    assert _audit(history).exit_code == 0


def test_a_relative_history_is_the_same_for_every_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_history(tmp_path / "history", 4)
    monkeypatch.chdir(tmp_path)
    assert open_store("history").uri == str(tmp_path / "history")
    assert audit("history", "out", engine="pool").exit_code == 0


def test_a_history_without_a_truth_cannot_be_scored(tmp_path: Path) -> None:
    history = write_history(tmp_path / "history", 4)
    _audit(history)
    with pytest.raises(NoTruth, match="nothing can be scored"):
        score(history, tmp_path / "out")


def test_a_chain_that_never_builds_is_verified_in_every_segment(tmp_path: Path) -> None:
    network = small_network(segment_length=3)
    with HistoryWriter(tmp_path / "history", "dev") as writer:
        network.observe(Slip(writer, network))
        network.step(8)
        network.finish()
    result = _audit(tmp_path / "history")
    assert (result.exit_code, {row["status"] for row in result.chains}) == (0, {"verified"})


def test_a_failure_of_the_machine_while_judging_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = write_history(tmp_path / "history", 4)

    def fail(*_: object) -> None:
        raise ConnectionResetError("the network is away")

    with monkeypatch.context() as patched:
        patched.setattr(check, "judge_block", fail)
        assert _audit(history).quarantined
    assert not _audit(history).quarantined


# The pool of processes, AU-14


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find the units of the tests."""
    monkeypatch.setenv("PYTHONPATH", str(Path(pool_units.__file__).parents[1]))


def test_a_killed_worker_is_replaced_and_its_unit_done_again(tmp_path: Path, workers: None) -> None:  # noqa: ARG001  # a fixture
    mapper = PoolMapper(2)
    mapper.map(pool_units.die_once, [str(tmp_path / "a"), str(tmp_path / "b")], "", lambda _done: None)
    found = mapper.map(pool_units.die_once, [str(tmp_path / name) for name in "abcd"], "", lambda _done: None)
    mapper.close()
    assert [each["task"] for each in found] == [str(tmp_path / name) for name in "abcd"]


def test_a_unit_that_kills_every_worker_ends_the_run(workers: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001  # a fixture
    monkeypatch.setattr(pool, "ATTEMPTS", 2)
    mapper = PoolMapper(1)
    with pytest.raises(EngineLost, match="lost 2 times with its worker process"):
        mapper.map(pool_units.die, ["x"], "", lambda _done: None)
    mapper.close()


def test_the_engine_follows_from_master_and_work() -> None:
    assert choose_engine("auto", "spark://host:7077", 1) == "spark"
    assert choose_engine("auto", None, 1) == "python"
    assert choose_engine("python", "local[2]", 9) == "python"
