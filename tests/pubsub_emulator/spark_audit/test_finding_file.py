"""A finding's file is checked offline from the file alone, and no altered one passes (AU-2)."""

import contextlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.plumbing.command import pubsub
from support.plumbing.processes import python
from support.spark_audit.audits import (
    add_junk,
    drop_a_node,
    include_invalid,
    refuse_for_another_reason,
    refuse_valid,
    write_history,
)

from pubsub_emulator.primitives import scale
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.scale import Reader, encode_bytes
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.runtime.pallet_subscriber.config import RuntimeSpec
from pubsub_emulator.runtime.parachain.block import Candidate
from pubsub_emulator.runtime.parachain.storage import AUTHORITIES
from pubsub_emulator.spark_audit.audit.run import audit
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.judge.evidence import (
    EvidenceError,
    judge,
    read_block_evidence,
    seam_evidence,
)
from pubsub_emulator.spark_audit.judge.finding_file import FindingError, check_finding, finding_text
from pubsub_emulator.spark_audit.judge.findings import (
    SEAM_MISMATCH,
    Severity,
    finding_id,
    finding_row,
)
from pubsub_emulator.spark_audit.judge.results import Results
from pubsub_emulator.trie import Trie

SPEC = RuntimeSpec(ParaId(2000), {}).encode()
Finding = dict[str, Any]
_nodes = scale.vec(scale.bytes_)


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("findings")
    write_history(path / "history", 10, cheats={4: drop_a_node, 6: add_junk})
    write_history(path / "history", 6, cheats={3: include_invalid}, name="captured")
    write_history(path / "history", 6, cheats={4: refuse_valid}, name="censored")
    write_history(path / "history", 6, cheats={4: refuse_for_another_reason}, name="misjudged")
    return audit(path / "history", path / "audit", engine="python").out


@pytest.fixture(scope="module")
def findings(audited: Path) -> list[Finding]:
    return list(Results.open(audited).rows(schema.FINDINGS))


@pytest.fixture(scope="module")
def omitted(findings: list[Finding]) -> Finding:
    return next(row for row in findings if row["code"] == "OmittedBelowBudget")


def _file(tmp_path: Path, row: Finding) -> Path:
    path = tmp_path / "finding.json"
    path.write_text(finding_text(row), encoding="utf-8")
    return path


def _forged(row: Finding, **columns: object) -> Finding:
    """The finding with other columns, its id made to fit: what a forger who knows the format would
    write.
    """
    out = {**row, **columns}
    subject = out["position"].to_bytes(8, "little") + out["block"]
    return {**out, "id": finding_id(out["network"], out["chain"], out["code"], subject)}


def _block_parts(evidence: bytes) -> tuple[Header, Candidate, bytes, list[bytes], bytes]:
    """Parent, candidate, relay root and slot, storage proof, and what was recorded."""
    reader = Reader(evidence)
    reader.take(1)
    reader.bytes_()
    parent, candidate = Header.decode(reader.bytes_()), Candidate.decode(reader.bytes_())
    start = reader.pos
    scale.option(scale.fixed(32)).read(reader)
    reader.take(8)
    relay = evidence[start : reader.pos]
    return parent, candidate, relay, _nodes.read(reader), evidence[reader.pos :]


def _block(
    parent: Header, candidate: Candidate, relay: bytes, proof: list[bytes], recorded: bytes
) -> bytes:
    parts = (
        encode_bytes(b"block"),
        encode_bytes(parent.encode()),
        encode_bytes(candidate.encode()),
    )
    return b"\x02" + b"".join((*parts, relay, _nodes.encode(proof), recorded))


def test_texts_of_a_forged_finding_do_not_reach_the_terminal(
    omitted: Finding,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Its evidence is true, so it is shown, with a network's name that would hide what follows."""
    path = _file(tmp_path, _forged(omitted, network="demo\x1b[8m\u202e"))
    for command in ("evidence", "inspect"):
        assert pubsub(monkeypatch, command, path) == 0
        out, err = capfd.readouterr()
        assert all(line.isprintable() for line in (out + err).split("\n"))
        assert "demo\\u001b[8m\\u202e" in out


def test_every_finding_is_borne_out_by_its_file(findings: list[Finding], tmp_path: Path) -> None:
    codes = set()
    for row in findings:
        checked = check_finding(_file(tmp_path, row))
        assert checked.finding == row
        assert checked.judgement.kind == "figures" or (
            checked.proven and checked.judgement.code == row["code"]
        )
        codes.add(row["code"])
    kinds = {
        "OmittedBelowBudget",
        "UnusedNodes",
        "StateRootMismatch",
        "RejectedValid",
        "VerdictMismatch",
    }
    assert codes >= kinds | {"Equivocation"}


def test_a_file_is_checked_in_a_fresh_process_without_spark_and_arrow(
    omitted: Finding, tmp_path: Path
) -> None:
    path = _file(tmp_path, omitted)
    code = (
        "import sys\n"
        "for name in ('pyspark', 'pyarrow', 'pandas', 'py4j'): sys.modules[name] = None\n"
        "from pubsub_emulator.cli.main import main\n"
        "main()\n"
    )
    run = python("-c", code, "evidence", path, "--json", folder=tmp_path)
    assert run.returncode == 0, run.stderr
    shown = json.loads(run.stdout)
    assert (shown["proven"], shown["code"], shown["chain"]) == (
        True,
        "OmittedBelowBudget",
        omitted["chain"],
    )
    assert any("its block" in line and "storage root" in line for line in shown["rests_on"])


def test_the_state_is_included_as_a_minimal_storage_proof(
    omitted: Finding,
) -> None:
    parent, candidate, relay, proof, recorded = _block_parts(omitted["evidence"])
    assert parent.state_root in map(blake2_256, proof)
    for at in range(len(proof)):
        less = _block(parent, candidate, relay, proof[:at] + proof[at + 1 :], recorded)
        with pytest.raises(EvidenceError, match=r"lacks node|does not have the root"):
            judge(less)
    more = _block(parent, candidate, relay, sorted([*proof, b"\xffnode"]), recorded)
    with pytest.raises(EvidenceError, match="the storage proof has 1 unneeded node, first"):
        judge(more)
    with pytest.raises(EvidenceError, match="strictly ascending"):
        judge(_block(parent, candidate, relay, proof[::-1], recorded))
    with pytest.raises(EvidenceError, match="strictly ascending"):
        judge(_block(parent, candidate, relay, sorted([*proof, proof[0]]), recorded))


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        ({}, "lacks node|does not decode"),
        ({b":code": b"none"}, "does not decode"),
        ({b":code": SPEC}, "not that of a parachain"),
        (
            {b":code": SPEC.replace(b"observe", b"unknown"), AUTHORITIES.key: b"\x04" + bytes(32)},
            "not that of a parachain",
        ),
    ],
)
def test_a_state_of_the_forgers_own_is_refused(
    omitted: Finding, entries: dict[bytes, bytes], reason: str
) -> None:
    parent, candidate, relay, _proof, recorded = _block_parts(omitted["evidence"])
    state = Trie.from_entries(entries.items())
    nodes: dict[Hash, bytes] = {}
    state.prove([b":code", AUTHORITIES.key], nodes)
    evidence = _block(
        replace(parent, state_root=state.root()), candidate, relay, sorted(nodes.values()), recorded
    )
    with pytest.raises(EvidenceError, match=reason):
        judge(evidence)


@given(st.data())
def test_no_altered_byte_of_a_file_passes(
    omitted: Finding, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    text = bytearray(finding_text(omitted).encode())
    at = data.draw(st.integers(0, len(text) - 2))
    text[at] ^= data.draw(st.integers(1, 127))
    path = tmp_path_factory.mktemp("altered") / "finding.json"
    path.write_bytes(bytes(text))
    with contextlib.suppress(FindingError):
        assert check_finding(path).finding == omitted, "only space between fields says nothing"


@given(st.data())
def test_no_altered_block_is_believed_to_be_the_one_found(
    omitted: Finding, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A forger who makes id, hash and digest fit still has to find a block that the collator
    sealed.
    """
    parent, candidate, relay, proof, recorded = _block_parts(omitted["evidence"])
    part = data.draw(
        st.sampled_from(["header", "node", "dropped node", "parent", "state", "relay"])
    )
    if part == "header":
        name = data.draw(st.sampled_from(["parent_hash", "state_root", "extrinsics_root"]))
        flipped = _flip(getattr(candidate.header, name), data)
        candidate = replace(candidate, header=replace(candidate.header, **{name: flipped}))
    elif part in {"node", "dropped node"}:
        nodes = list(candidate.inherent.proof)
        at = data.draw(st.integers(0, len(nodes) - 1))
        nodes[at : at + 1] = [_flip(nodes[at], data)] if part == "node" else []
        candidate = replace(candidate, inherent=replace(candidate.inherent, proof=tuple(nodes)))
    elif part == "parent":
        parent = replace(parent, state_root=_flip(parent.state_root, data))
    elif part == "state":
        at = data.draw(st.integers(0, len(proof) - 1))
        proof = sorted([*proof[:at], _flip(proof[at], data), *proof[at + 1 :]])
    else:
        relay = relay[:1] + _flip(relay[1:33], data) + relay[33:]
    evidence = _block(parent, candidate, relay, proof, recorded)
    row = _forged(omitted, evidence=evidence, block=candidate.header.hash())
    path = _file(tmp_path_factory.mktemp("forged"), row)
    with pytest.raises(
        FindingError,
        match=r"the finding says OmittedBelowBudget|storage proof|does not have the root",
    ):
        check_finding(path)


def _flip(value: bytes, data: st.DataObject) -> Any:
    at = data.draw(st.integers(0, len(value) - 1))
    return value[:at] + bytes([value[at] ^ data.draw(st.integers(1, 255))]) + value[at + 1 :]


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        (
            "code",
            "UnusedNodes",
            "the finding says UnusedNodes, its evidence shows OmittedBelowBudget",
        ),
        ("collator", b"\x07" * 32, "collator is 0707"),
        ("collator", None, "collator is None"),
        ("chain", 2001, "chain is 2001, in the evidence it is 2000"),
        ("number", 5, "number is 5, in the evidence it is"),
        ("block", b"\x07" * 32, "block is 0707"),
    ],
)
def test_a_column_that_the_evidence_does_not_show_is_refused(
    omitted: Finding, tmp_path: Path, column: str, value: object, reason: str
) -> None:
    with pytest.raises(FindingError, match=reason):
        check_finding(_file(tmp_path, _forged(omitted, **{column: value})))


def test_an_id_of_another_finding_is_refused(omitted: Finding, tmp_path: Path) -> None:
    with pytest.raises(FindingError, match="the id is not that of this finding"):
        check_finding(_file(tmp_path, {**omitted, "position": omitted["position"] + 1}))


def test_a_forged_equivocation_is_refused(findings: list[Finding], tmp_path: Path) -> None:
    row = next(row for row in findings if row["code"] == "Equivocation")
    evidence = bytearray(row["evidence"])
    evidence[-40] ^= 1  # in the second header's seal
    with pytest.raises(FindingError, match="its evidence shows no fault: a header is not sealed"):
        check_finding(_file(tmp_path, {**row, "evidence": bytes(evidence)}))


REACHED = Header(Hash(bytes(32)), 7, Hash(b"\1" * 32), Hash(b"\2" * 32), ())


def _seam(**columns: object) -> Finding:
    """A finding about segment 3, which does not end where the next one starts."""
    row = finding_row(
        ("dev", 2000),
        SEAM_MISMATCH,
        Severity.ERROR,
        subject=(3).to_bytes(4, "little"),
        evidence=seam_evidence(REACHED, b"\1" + REACHED.encode()[1:], REACHED.state_root),
        detail="the next starts elsewhere",
        place={"segment": 3, "number": 7, "block": REACHED.hash()},
    )
    return {**row, **columns}


def test_a_seam_is_judged_by_both_headers_and_the_root() -> None:
    raw, root = REACHED.encode(), REACHED.state_root
    for stated, stated_root, code in (
        (raw, root, None),
        (raw, Hash(b"\7" * 32), SEAM_MISMATCH),
        (replace(REACHED, extrinsics_root=root).encode(), root, SEAM_MISMATCH),
    ):
        judgement = judge(seam_evidence(REACHED, stated, stated_root))
        assert (judgement.kind, judgement.code) == ("seam", code)
        assert judgement.facts == {"number": 7, "block": REACHED.hash()}
        assert read_block_evidence(seam_evidence(REACHED, stated, stated_root)) is None


def test_the_id_of_a_seam_is_checked_if_its_segment_is_known(tmp_path: Path) -> None:
    assert check_finding(_file(tmp_path, _seam())).proven
    assert check_finding(_file(tmp_path, _seam(segment=None))).proven
    with pytest.raises(FindingError, match="the id is not that of this finding"):
        check_finding(_file(tmp_path, _seam(segment=4)))


def test_the_digest_of_a_file_is_that_of_canonical_json() -> None:
    """Other programs, and later versions, must find the same digest."""
    body = json.loads(finding_text(_seam()))
    digest = body.pop("digest")
    text = json.dumps(body, sort_keys=True, separators=(",", ":"))
    assert digest == blake2_256(text.encode()).hex()


def test_a_kind_of_evidence_that_is_not_utf_8_is_not_known() -> None:
    with pytest.raises(EvidenceError, match="is not known"):
        judge(b"\2" + encode_bytes(b"\xffblock"))
    with pytest.raises(EvidenceError, match="version 1 is not known"):
        judge(b"\1" + encode_bytes(b"seam"))


@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda tail: b"\x02\x14block" + tail))
def test_bytes_that_are_no_evidence_are_an_evidence_error(data: bytes) -> None:
    with pytest.raises(EvidenceError):
        judge(data)


@given(st.data())
def test_altered_evidence_is_judged_or_refused_and_never_crashes(
    omitted: Finding, data: st.DataObject
) -> None:
    with contextlib.suppress(EvidenceError):
        judge(_flip(omitted["evidence"], data))


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "not JSON"),
        ("[]", "not a finding"),
        ('{"format": "pubsub-finding/9"}', "not a finding"),
        ('{"format": "pubsub-finding/1"}', "block is missing"),
    ],
)
def test_a_file_that_is_no_finding_is_refused(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "finding.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FindingError, match=reason):
        check_finding(path)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("id", "0x00"),
        ("chain", -1),
        ("evidence", "0xzz"),
        ("code", 7),
    ],
)
def test_a_field_of_another_kind_is_named(
    omitted: Finding, tmp_path: Path, column: str, value: object
) -> None:
    body = json.loads(finding_text(omitted))
    path = tmp_path / "finding.json"
    path.write_text(json.dumps({**body, column: value}), encoding="utf-8")
    with pytest.raises(FindingError, match=column):
        check_finding(path)


def test_the_command_lists_writes_and_checks(
    audited: Path,
    omitted: Finding,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert pubsub(monkeypatch, "evidence", audited) == 0
    assert f"{omitted['id'].hex()[:16]}  warning  OmittedBelowBudget" in capsys.readouterr().out
    out = tmp_path / "new" / "finding.json"
    assert (
        pubsub(
            monkeypatch, "evidence", audited, "--finding", omitted["id"].hex()[:12], "--out", out
        )
        == 0
    )
    capsys.readouterr()
    assert pubsub(monkeypatch, "evidence", out) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"OmittedBelowBudget (warning) in dev, chain {omitted['chain']}\n")
    assert "rests on" in shown
    body = json.loads(out.read_bytes())
    out.write_text(json.dumps({**body, "code": "UnusedNodes"}), encoding="utf-8")
    assert pubsub(monkeypatch, "evidence", out) == 2
    assert "the file was altered" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--finding", "00"], "go together"),
        (["--out", "finding.json"], "go together"),
        (["--finding", "zz", "--out", "finding.json"], "no finding with an id"),
        (["--finding", "", "--out", "finding.json"], "findings with an id"),
    ],
)
def test_the_command_names_what_it_cannot_do(
    audited: Path,
    arguments: list[str],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert pubsub(monkeypatch, "evidence", audited, *arguments) == 2
    assert reason in capsys.readouterr().err
    assert not Path("finding.json").exists()
