"""Histories, relay proofs, findings and evidence as targets of `pubsub fuzz --target`."""

import io
import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import chain as chained
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

from pubsub_emulator.emulator.network import Network
from pubsub_emulator.laboratory.mutation import target
from pubsub_emulator.laboratory.target_files import from_file, temporary_folder
from pubsub_emulator.laboratory.targets import judged_blocks
from pubsub_emulator.primitives.hashing import blake2_256
from pubsub_emulator.primitives.hexadecimal import hexed
from pubsub_emulator.primitives.pubsub import key_from_data
from pubsub_emulator.spark_audit.judge.evidence import (
    Recorded,
    block_evidence,
    equivocation_evidence,
    judge,
)
from pubsub_emulator.spark_audit.judge.finding_file import check_finding, finding_text

if TYPE_CHECKING:
    from pubsub_emulator.spark_audit.history.manifest import FileEntry


def _relay_proofs() -> Iterable[bytes]:
    block = {
        "chain": "Test",
        "relay": "relay",
        "para_id": 1000,
        "block": 7,
        "blockHash": "0x" + "11" * 32,
    }
    block |= {"relayParentNumber": 9, "relayParentStorageRoot": hexed(blake2_256(b"\x00"))}
    yield json.dumps(
        {**block, "trieNodes": ["0x00"], "downwardMessages": [], "horizontalMessages": {}}
    ).encode()


@target(
    "relay-proof", "a real inherent as JSON", _relay_proofs, "spark_audit.real_proofs", text=True
)
@from_file("proof.json")
def _read_relay_proof(path: Path) -> str:
    from pubsub_emulator.spark_audit.real_proofs.relay_proofs import read_relay_proof

    return f"{min(len(read_relay_proof(path).proof), 3)} nodes"


def _answers() -> Iterable[bytes]:
    call: dict[str, object] = {"jsonrpc": "2.0", "id": 1}
    answer = {**call, "result": {"at": "0x" + "22" * 32, "proof": ["0x00", "0x0102"]}}
    request = {**call, "method": "state_getReadProof", "params": [["0x3a636f6465"], None]}
    header: dict[str, object] = {
        "parentHash": "0x" + "00" * 32,
        "number": "0x1",
        "stateRoot": "0x" + "33" * 32,
    }
    header |= {"extrinsicsRoot": "0x" + "44" * 32, "digest": {"logs": []}}
    answers = [request, answer, {"jsonrpc": "2.0", "id": 2, "result": header}]
    return [
        json.dumps(answers).encode(),
        json.dumps(answer).encode(),
        "\n".join(map(json.dumps, answers)).encode(),
    ]


@target("node-json", "what a node answered", _answers, "spark_audit.real_proofs", text=True)
@from_file("node.json")
def _read_answers(path: Path) -> str:
    from pubsub_emulator.spark_audit.real_proofs.node_data import read_node_data

    data = read_node_data([path])
    return f"{min(len(data.proofs), 3)} proofs, {min(len(data.headers), 3)} headers"


@cache
def _history() -> Path:
    from pubsub_emulator.spark_audit.history.store import HistoryWriter

    folder = Path(mkdtemp(prefix="pubsub-fuzz-history-")) / "history"
    network = Network.of([1000], {2000: {1000: [key_from_data(b"key")]}}, seed="fuzz")
    writer = HistoryWriter(folder, "fuzz")
    network.observe(writer)
    network.publish(1000, key_from_data(b"key"), b"value")
    network.step(4)
    network.finish()
    writer.close()
    return folder


def _manifests() -> Iterable[bytes]:
    return [path.read_bytes() for path in sorted((_history() / "_commits").glob("*.json"))]


@target(
    "manifest",
    "a manifest of a history, with a digest that is right",
    _manifests,
    "spark_audit.history",
    text=True,
)
def _read_manifest(data: bytes) -> str:
    """Read a manifest after giving it the digest and name that fit its content."""
    from pubsub_emulator.spark_audit.history import manifest
    from pubsub_emulator.spark_audit.history.storage import open_store

    name = "x-00000000-0000000000000000.json"
    try:
        body = json.loads(data)
        body.pop("digest")
        digest = manifest.digest_of(manifest.canonical_json(body))
        data = manifest.canonical_json({**body, "digest": digest})
        network = str(body["network"])[:40].replace("/", "_").replace("\0", "_")
        name = manifest.manifest_name(network, int(body["segment"]) % 10**8, digest)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError):
        pass
    folder = temporary_folder() / "manifests" / manifest.COMMITS
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    try:
        return f"{min(len(manifest.read_manifest(open_store(folder.parent), name).files), 3)} files"
    finally:
        (folder / name).unlink()


def _tables() -> Iterable[bytes]:
    return [
        bytes((index,)) + (_history() / entry.path).read_bytes()
        for index, entry in enumerate(_entries())
    ]


@cache
def _entries() -> "tuple[FileEntry, ...]":
    from pubsub_emulator.spark_audit.history.reader import History

    commits = History.open(_history()).commits
    return tuple(chained.from_iterable(commit.files for commit in commits))[:8]


@target(
    "table",
    "a Parquet file of a history, with digests that are right",
    _tables,
    "spark_audit.history",
)
def _read_table(data: bytes) -> str:
    """Read a Parquet file whose manifest states its true size and the digests of its parts."""
    from pubsub_emulator.spark_audit.history.commit import read_stretches
    from pubsub_emulator.spark_audit.history.manifest import digest_of
    from pubsub_emulator.spark_audit.history.reader import Fault, read_file

    entry = _entries()[(data[0] if data else 0) % len(_entries())]
    body = data[1:]
    path = temporary_folder() / "table" / Path(entry.path).name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(body)
    file = io.BytesIO(body)
    groups = tuple(
        replace(extent, digest=digest_of(read_stretches(file, [(extent.offset, extent.length)])))
        for extent in entry.row_groups
    )
    frame = (
        digest_of(read_stretches(file, entry.outside(len(body)))) if len(body) >= entry.size else ""
    )
    forged = replace(entry, path=path.name, size=len(body), row_groups=groups, frame=frame)
    outcomes = read_file(path.parent, forged)
    words = (
        extent.error.split(":")[0][:40] if isinstance(extent, Fault) else "rows"
        for extent in outcomes
    )
    return ", ".join(dict.fromkeys(words))


def _findings() -> Iterable[bytes]:
    row: dict[str, object] = dict.fromkeys(("segment", "position", "number", "block", "collator"))
    row |= {"network": "fuzz", "chain": 3000, "severity": "error", "verifier": "0", "id": bytes(32)}
    for evidence in _evidence():
        judgement = judge(evidence)
        row |= {"detail": judgement.detail, "code": judgement.code or "", "evidence": evidence}
        yield finding_text({**row, **judgement.facts}).encode()


@target("finding", "a finding's file", _findings, "spark_audit.audit", text=True)
@from_file("finding.json")
def _read_finding(path: Path) -> str:
    """Check a finding after giving it the digest that fits its content."""
    try:
        body = json.loads(path.read_bytes())
        content = {name: value for name, value in body.items() if name != "digest"}
        signed = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
        path.write_text(json.dumps({**body, "digest": blake2_256(signed).hex()}), encoding="utf-8")
    except (ValueError, AttributeError, RecursionError):
        pass
    return "confirmed" if check_finding(path).proven else "not provable"


def _evidence() -> Iterable[bytes]:
    for case, candidate, context in judged_blocks():
        yield block_evidence(case.judging.parent, candidate, context, recorded=Recorded(None))
    header = candidate.header.encode()
    yield equivocation_evidence(bytes(32), header, header)


@target("evidence", "the evidence of a finding", _evidence, "spark_audit.audit")
def _read_evidence(data: bytes) -> str:
    judgement = judge(data)
    return f"{judgement.kind} {judgement.code}"
