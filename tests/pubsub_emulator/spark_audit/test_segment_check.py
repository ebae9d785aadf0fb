"""Each candidate is judged again as the chain judged it; every difference is a finding with
evidence (AU-1, AU-2).
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.runtime.accounts import KEY, PUBLISHER, call, network, signed, signer
from support.spark_audit.audits import (
    SUBSCRIBER,
    Cheat,
    Scene,
    add_junk,
    drop_a_node,
    include_invalid,
    refuse_for_another_reason,
    refuse_valid,
    write_history,
)

from pubsub_emulator.collator.author import seal
from pubsub_emulator.emulator.network.records import BlockRecord, CheckpointRecord
from pubsub_emulator.primitives import signatures
from pubsub_emulator.primitives.ed25519 import sign
from pubsub_emulator.primitives.header import aura_seal
from pubsub_emulator.primitives.scale import Reader
from pubsub_emulator.primitives.types import RelayBlockNumber
from pubsub_emulator.runtime.framework.message_chains import (
    InboundDownwardMessage,
    InboundMessages,
)
from pubsub_emulator.runtime.parachain.block import Candidate, Verdict
from pubsub_emulator.spark_audit.audit.run import AuditResult, audit
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.canonical import digest_rows
from pubsub_emulator.spark_audit.history.reader import History
from pubsub_emulator.spark_audit.history.store import HistoryWriter
from pubsub_emulator.spark_audit.judge.evidence import judge
from pubsub_emulator.spark_audit.judge.findings import Severity, Thresholds
from pubsub_emulator.spark_audit.judge.results import Results


def _run(tmp_path: Path, **history: Any) -> AuditResult:
    write_history(tmp_path / "history", **history)
    return audit(tmp_path / "history", tmp_path / "out", engine="python")


def _status(result: AuditResult, chain: int = SUBSCRIBER) -> str:
    return next(row["status"] for row in result.chains if row["chain"] == chain)


def _findings(result: AuditResult, *, info: bool = False) -> list[dict[str, Any]]:
    rows = result.results.rows(schema.FINDINGS)
    return [row for row in rows if info or row["severity"] != Severity.INFO.value]


def _bad_seal(scene: Scene) -> list[BlockRecord]:
    header = scene.record.candidate.header
    forged = replace(
        header, digest=(header.digest[0], aura_seal(sign(b"\x07" * 32, header.pre_hash())))
    )
    return [scene.judged(Candidate(forged, scene.record.candidate.inherent)), scene.record]


def _bad_parent(scene: Scene) -> list[BlockRecord]:
    header = replace(scene.record.candidate.header, number=scene.record.candidate.header.number + 5)
    return [
        scene.judged(Candidate(seal(header, scene.seed), scene.record.candidate.inherent)),
        scene.record,
    ]


def _reproof(
    change: Callable[[tuple[bytes, ...]], tuple[bytes, ...]],
) -> Callable[[Scene], list[BlockRecord]]:
    def cheat(scene: Scene) -> list[BlockRecord]:
        return [
            scene.judged(scene.with_inherent(proof=change(scene.record.candidate.inherent.proof))),
            scene.record,
        ]

    return cheat


FORGED = InboundMessages((InboundDownwardMessage(RelayBlockNumber(1), b"never sent"),))
CHEATS: dict[Verdict, Callable[[Scene], list[BlockRecord]]] = {
    Verdict.BAD_SEAL: _bad_seal,
    Verdict.BAD_PARENT: _bad_parent,
    Verdict.MESSAGES_MISREPORTED: lambda scene: [
        scene.judged(scene.with_inherent(messages=FORGED)),
        scene.record,
    ],
    Verdict.DUPLICATE_NODE: _reproof(lambda proof: (*proof, proof[-1])),
    Verdict.UNSORTED_PROOF: _reproof(lambda proof: tuple(reversed(proof))),
    Verdict.ROOT_MISMATCH: _reproof(lambda _proof: ()),
    Verdict.OMITTED_BELOW_BUDGET: drop_a_node,
    Verdict.UNUSED_NODES: add_junk,
    Verdict.STATE_ROOT_MISMATCH: lambda scene: [
        scene.judged(scene.with_state_root(bytes(32))),
        scene.record,
    ],
    Verdict.BAD_VALIDATION_DATA: lambda scene: [
        scene.judged(scene.with_inherent(max_pov_size=77)),
        scene.record,
    ],
    Verdict.BAD_DESCENDANTS: lambda scene: [
        scene.judged(scene.with_inherent(descendants=(scene.record.candidate.header,))),
        scene.record,
    ],
}


@pytest.fixture(scope="module")
def cheated(tmp_path_factory: pytest.TempPathFactory) -> AuditResult:
    """Each cheat in a block of its own, and refused, so that the next block builds on the honest
    one.
    """
    return _run(
        tmp_path_factory.mktemp("cheated"), blocks=16, cheats=dict(enumerate(CHEATS.values(), 2))
    )


@pytest.mark.parametrize("verdict", CHEATS, ids=lambda verdict: verdict.value)
def test_a_refused_cheat_is_a_finding_and_the_audit_continues(
    cheated: AuditResult, verdict: Verdict
) -> None:
    assert (cheated.exit_code, _status(cheated), len(_findings(cheated))) == (
        1,
        "verified",
        len(CHEATS),
    )
    (row,) = [row for row in _findings(cheated) if row["code"] == verdict.value]
    number = list(CHEATS).index(verdict) + 2
    assert (row["severity"], row["number"]) == (
        "warning",
        number + 5 * (verdict is Verdict.BAD_PARENT),
    )
    assert judge(row["evidence"]).code == verdict.value
    measures = [
        row for row in cheated.results.rows(schema.BLOCK_MEASURES) if row["chain"] == SUBSCRIBER
    ]
    assert [each["position"] for each in measures if each["verdict"] == verdict.value] == [
        row["position"]
    ]
    assert all(each["judged"] for each in measures)


def test_the_verifier_and_nobody_else_is_believed_about_an_included_block(tmp_path: Path) -> None:
    result = _run(tmp_path, cheats={3: include_invalid})
    rows = _findings(result)
    assert [(row["code"], row["severity"]) for row in rows] == [("StateRootMismatch", "error")]
    assert (result.exit_code, _status(result), _status(result, 1000)) == (
        5,
        "not verified",
        "verified",
    )
    chain = next(row for row in result.chains if row["chain"] == SUBSCRIBER)
    assert "segment 0 was not judged to its end" in chain["reasons"]
    assert chain["judged"] == chain["candidates"] - 1, (
        "block 4 of segment 0 stands on a state that nobody vouches for"
    )


@pytest.mark.parametrize(
    ("cheat", "code", "words"),
    [
        (refuse_valid, "RejectedValid", ""),
        (refuse_for_another_reason, "VerdictMismatch", "UnusedNodes"),
    ],
)
def test_a_wrong_refusal_is_a_finding(tmp_path: Path, cheat: Cheat, code: str, words: str) -> None:
    rows = _findings(result := _run(tmp_path, cheats={4: cheat}))
    assert [(row["code"], row["severity"]) for row in rows] == [(code, "error")]
    shown = judge(rows[0]["evidence"])
    assert (shown.code, words in shown.detail) == (code, True)
    assert _status(result) == "not verified"


def test_callbacks_that_executing_does_not_give_are_a_finding(tmp_path: Path) -> None:
    def forge(scene: Scene) -> list[BlockRecord]:
        outcome = scene.record.outcome
        assert outcome is not None
        assert outcome.deliveries
        return [replace(scene.record, outcome=replace(outcome, deliveries=outcome.deliveries[1:]))]

    rows = _findings(_run(tmp_path, cheats={6: forge}))
    assert [row["code"] for row in rows] == ["DeliveryMismatch"]
    shown = judge(rows[0]["evidence"])
    assert (shown.code, shown.detail) == ("DeliveryMismatch", rows[0]["detail"])


def test_a_relay_root_that_is_not_the_relay_headers_is_a_finding(tmp_path: Path) -> None:
    """The row's own word on what the relay chain vouches for is never taken."""

    def forge(scene: Scene) -> list[BlockRecord]:
        return [replace(scene.record, relay_storage_root=b"\x01" * 32)]  # type: ignore[arg-type]  # a forged hash

    result = _run(tmp_path, cheats={6: forge})
    assert [(row["code"], row["number"]) for row in _findings(result)] == [("RelayRootMismatch", 6)]


def test_a_later_relay_parent_is_absent_when_the_block_is_judged(
    tmp_path: Path,
) -> None:
    """A collator may guess the number of a relay block to come, which the history holds by now."""

    def guess(scene: Scene) -> list[BlockRecord]:
        unknown = replace(scene, record=replace(scene.record, relay_storage_root=None))
        guessed = scene.with_inherent(
            relay_parent_number=RelayBlockNumber(scene.record.included_at + 1)
        )
        return [unknown.judged(guessed), scene.record]

    result = _run(tmp_path, cheats={6: guess})
    assert [(row["code"], row["severity"]) for row in _findings(result)] == [
        ("RootMismatch", "warning")
    ]
    assert _status(result) == "verified"


def test_an_open_seam_is_a_finding_and_its_chain_is_not_verified(
    tmp_path: Path,
) -> None:
    first: dict[int, CheckpointRecord] = {}

    def forge(record: CheckpointRecord) -> CheckpointRecord:
        kept = first.setdefault(record.chain, record)
        return (
            replace(kept, segment=1)
            if (record.chain, record.segment) == (SUBSCRIBER, 1)
            else record
        )

    result = _run(tmp_path, checkpoints=forge)
    assert [row["code"] for row in _findings(result) if row["code"] == "SeamMismatch"] == [
        "SeamMismatch"
    ]
    seam = next(row for row in _findings(result) if row["code"] == "SeamMismatch")
    assert judge(seam["evidence"]).code == "SeamMismatch"
    assert (_status(result), _status(result, 1000)) == ("not verified", "verified")


def test_a_checkpoint_without_the_root_of_its_header_starts_nothing(tmp_path: Path) -> None:
    def forge(record: CheckpointRecord) -> CheckpointRecord:
        if (record.chain, record.segment) != (SUBSCRIBER, 1):
            return record
        state = record.state.fork()
        state.top.insert(b"planted", b"row")
        return replace(record, state=state)

    result = _run(tmp_path, checkpoints=forge)
    assert result.exit_code == 5, "the seam before it is broken too"
    errors = [row["error"] for row in result.results.rows(schema.READ_ERRORS)]
    assert errors == ["the checkpoint's state does not have the root that its header commits to"]


def test_two_headers_of_one_author_for_one_slot_are_equivocation(cheated: AuditResult) -> None:
    """Of each cheat but one: whoever forges a seal could accuse anyone."""
    rows = _findings(cheated, info=True)
    found = [row for row in rows if row["code"] == "Equivocation"]
    assert len(found) == len(CHEATS) - 1
    assert not {row["block"] for row in found} & {
        row["block"] for row in rows if row["code"] == "BadSeal"
    }
    assert judge(found[0]["evidence"]).code == "Equivocation"
    reader = Reader(found[0]["evidence"])
    reader.take(1)
    reader.bytes_()
    assert reader.take(32) == found[0]["collator"]


def test_old_relay_parents_and_standing_still_are_habits(tmp_path: Path) -> None:
    write_history(tmp_path / "history", 10)
    strict = Thresholds(relay_lag=1, stalled_blocks=1)
    result = audit(tmp_path / "history", tmp_path / "out", engine="python", thresholds=strict)
    codes = [row["code"] for row in _findings(result, info=True) if row["chain"] == SUBSCRIBER]
    assert "RelayParentLag" in codes
    assert "StallingCollator" not in codes
    assert result.exit_code == 0, "habits fail no run unless asked for"
    again = audit(
        tmp_path / "history",
        tmp_path / "out",
        engine="python",
        thresholds=strict,
        fail_on=Severity.INFO,
    )
    assert (again.exit_code, again.units_judged) == (1, 0)


def recorded(path: Path, steps: int = 8) -> tuple[Path, int, int]:
    """A history in which accounts sign and one collator forges: how many extrinsics were included,
    and refusals.
    """
    net = network(subscriber=((("forge-extrinsic",), 500_000), ((), 0)))
    included = refused = 0
    with HistoryWriter(path, "signed") as writer:
        net.observe(writer)
        for at in range(steps):
            publish = call(net, PUBLISHER, "Publisher", "publish", [(KEY, b"%d" % at, 0)])
            net.offer(PUBLISHER, [signed(net, PUBLISHER, publish, signer("Eve"))])
            transfer = call(
                net, SUBSCRIBER, "Balances", "transfer_keep_alive", signer("Bob").account, 10**10
            )
            net.offer(SUBSCRIBER, [signed(net, SUBSCRIBER, transfer, signer("Alice"))])
            [step] = net.step()
            refused += len(step.refused)
            included += sum(
                len(record.candidate.extrinsics)
                for record in step.records
                if record.outcome is not None
            )
        net.finish()
    return path, included, refused


def test_nd35_a_history_with_extrinsics_is_verified_but_for_those_that_were_forged(
    tmp_path: Path,
) -> None:
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
        row["ref_time"] > 0 and row["proof_size"] > row["proof_bytes"]
        for row in rows
        if row["status"] == "included"
    )


def test_nd35_without_a_library_a_history_is_a_read_error_and_nobody_accused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, _, _ = recorded(tmp_path / "history", 3)

    def missing(name: str, package: str) -> None:
        raise signatures.MissingLibrary(f"{package} is not here, nor is {name}")

    signatures.verify_cached.cache_clear()
    monkeypatch.setattr(signatures, "_library", missing)
    result = audit(path, tmp_path / "out", engine="python")
    assert result.codes == {}
    assert any(
        "is not here" in row["error"]
        for row in Results.open(tmp_path / "out").rows(schema.READ_ERRORS)
    )


def test_nd15_a_table_has_added_columns_only_if_a_row_has_a_value(tmp_path: Path) -> None:
    history = History.open(write_history(tmp_path / "history", 4))
    # Every candidate's inherent states the parent's header, one of the last columns.
    newest = schema.BLOCKS.wider.version
    assert {entry.version for entry in history.files(schema.BLOCKS)} == {newest}
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
    assert versions == {schema.BLOCKS.wider.version}
    assert schema.BLOCKS.version_of(schema.BLOCKS.version) is schema.BLOCKS
    assert schema.BLOCKS.version_of(schema.BLOCKS.wider.version + 1) is None
    schema.BLOCKS.check(schema.BLOCKS.schema)
    schema.BLOCKS.check(schema.BLOCKS.wider.schema)
    with pytest.raises(schema.SchemaError, match="version"):
        schema.BLOCKS.check(
            replace(schema.BLOCKS, version=schema.BLOCKS.wider.version + 1, added=()).schema
        )
