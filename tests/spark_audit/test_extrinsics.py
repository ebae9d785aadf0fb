"""ND-15, ND-35: a history of chains with accounts is audited like any other; without extrinsics it is as ever."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.accounts import KEY, PUBLISHER, SUBSCRIBER, call, network, signed, signer
from support.audits import write_history

from pubsub_emulator.primitives import signatures
from pubsub_emulator.runtime.parachain.block import Verdict
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.canonical import digest_rows
from pubsub_emulator.spark_audit.history.reader import History
from pubsub_emulator.spark_audit.history.store import HistoryWriter
from pubsub_emulator.spark_audit.judge.results import Results


def recorded(path: Path, steps: int = 8) -> tuple[Path, int, int]:
    """A history in which accounts sign and one collator forges: how many extrinsics were included, and refusals."""
    net = network(subscriber=((("forge-extrinsic",), 500_000), ((), 0)))
    included = refused = 0
    with HistoryWriter(path, "signed") as writer:
        net.observe(writer)
        for at in range(steps):
            publish = call(net, PUBLISHER, "Publisher", "publish", [(KEY, b"%d" % at, 0)])
            net.offer(PUBLISHER, [signed(net, PUBLISHER, publish, signer("Eve"))])
            transfer = call(net, SUBSCRIBER, "Balances", "transfer_keep_alive", signer("Bob").account, 10**10)
            net.offer(SUBSCRIBER, [signed(net, SUBSCRIBER, transfer, signer("Alice"))])
            [step] = net.step()
            refused += len(step.refused)
            included += sum(len(record.candidate.extrinsics) for record in step.records if record.outcome is not None)
        net.finish()
    return path, included, refused


def test_nd35_a_history_with_extrinsics_is_verified_but_for_those_that_were_forged(tmp_path: Path) -> None:
    path, included, refused = recorded(tmp_path / "history")
    assert included
    assert refused
    result = audit(path, tmp_path / "out", engine="python")
    assert result.codes == {Verdict.BAD_EXTRINSIC.value: refused}
    assert {chain["status"] for chain in result.chains} == {"verified"}
    rows = list(Results.open(tmp_path / "out").rows(schema.BLOCK_MEASURES))
    assert sum(row["extrinsics_bytes"] or 0 for row in rows) > 0
    assert all((row["extrinsics_state_bytes"] or 0) > 0 for row in rows if row["extrinsics_bytes"])
    assert all(
        row["ref_time"] > 0 and row["proof_size"] > row["proof_bytes"] for row in rows if row["status"] == "included"
    )


def test_nd35_without_a_library_a_history_is_quarantined_and_nobody_accused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _, _ = recorded(tmp_path / "history", 3)

    def missing(name: str, package: str) -> None:
        raise signatures.MissingLibrary(f"{package} is not here, nor is {name}")

    signatures.verify.cache_clear()
    monkeypatch.setattr(signatures, "_library", missing)
    result = audit(path, tmp_path / "out", engine="python")
    assert result.codes == {}
    assert any("is not here" in row["error"] for row in Results.open(tmp_path / "out").rows(schema.QUARANTINE))


def test_nd15_a_file_without_extrinsics_is_what_it_always_was(tmp_path: Path) -> None:
    history = History.open(write_history(tmp_path / "history", 4))
    assert {entry.version for entry in history.files(schema.BLOCKS)} == {schema.BLOCKS.version}
    base = schema.BLOCK_MEASURES
    rows = [{column.name: None for column in base.columns}]
    assert base.for_rows(rows) is base
    assert base.for_rows([{**rows[0], "extrinsics_bytes": 0}]) is base
    assert base.for_rows([{**rows[0], "extrinsics_bytes": 1}]).version == base.version + 1
    assert digest_rows(base, rows) == digest_rows(base, [{**rows[0], "extrinsics_bytes": 0}])
    assert digest_rows(base, rows) != digest_rows(base, [{**rows[0], "extrinsics_bytes": 1}])


def test_nd15_both_versions_of_a_table_are_read_and_no_other(tmp_path: Path) -> None:
    path, _, _ = recorded(tmp_path / "history", 2)
    history = History.open(path)
    versions = {entry.version for entry in history.files(schema.BLOCKS)}
    assert schema.BLOCKS.version + 1 in versions
    assert schema.BLOCKS.version_of(schema.BLOCKS.version) is schema.BLOCKS
    assert schema.BLOCKS.version_of(schema.BLOCKS.wider.version + 1) is None
    schema.BLOCKS.check(schema.BLOCKS.schema)
    schema.BLOCKS.check(schema.BLOCKS.wider.schema)
    with pytest.raises(schema.SchemaError, match="version"):
        schema.BLOCKS.check(replace(schema.BLOCKS, version=schema.BLOCKS.wider.version + 1, added=()).schema)
