"""Real inherents and exported tables, which `pubsub fetch` reads, as targets of the fuzzer."""

import itertools
import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pubsub_emulator.files.untrusted import parse_json
from pubsub_emulator.laboratory.mutation import target
from pubsub_emulator.node.fuzz_targets import event_loop, relay_with_accounts
from pubsub_emulator.primitives.types import ParaId

if TYPE_CHECKING:
    from pubsub_emulator.client.metadata import Metadata
    from pubsub_emulator.spark_audit.fetch.block import RawBlock
    from pubsub_emulator.spark_audit.real_proofs.imported import RelayProof


@cache
def _parachain() -> "tuple[Metadata, RawBlock]":
    """Return the metadata of a parachain with accounts, and a block of it with messages."""
    from pubsub_emulator.client.metadata import parse_metadata
    from pubsub_emulator.node import at
    from pubsub_emulator.spark_audit.fetch.block import RawBlock
    from pubsub_emulator.spark_audit.real_proofs.values import RawHeader

    network = relay_with_accounts()[0].fork()
    network.send_downward(2000, b"a message")
    records = list(itertools.chain.from_iterable(step.records for step in network.step(4)))
    candidate = next(
        record.candidate for record in records if record.candidate.inherent.messages.downward
    )
    chain = network.parachain(2000)
    header = candidate.header
    raw = at.metadata(at.At(None, chain.header, chain.state, network.relay.header.hash()), 14)
    roots = header.parent_hash, header.state_root, header.extrinsics_root
    of_block = RawHeader(header.number, header.hash(), *roots, header.encode())
    return parse_metadata(raw), RawBlock(of_block, candidate.body())


@target(
    "inherent",
    "a real block's inherent",
    lambda: [_parachain()[1].extrinsics[0]],
    "spark_audit.fetch",
)
def _read_inherent(data: bytes) -> str:
    from pubsub_emulator.spark_audit.fetch.inherent import relay_proof

    known, block = _parachain()
    proof = relay_proof(
        "block", known, replace(block, extrinsics=(data,)), "net", ParaId(2000), "a/1", "fuzz"
    )
    _keep(proof)
    return f"{min(len(proof.proof), 5)} nodes, {len(proof.downward)} downward"


def _keep(proof: "RelayProof") -> None:
    """Write a proof into a history. A proof that was read must not fail there."""
    from pubsub_emulator.spark_audit.history.storage import open_store
    from pubsub_emulator.spark_audit.real_proofs.imported import Present, write_segment

    with TemporaryDirectory(prefix="pubsub-fuzz-") as folder:
        store = open_store(folder)
        write_segment(store, Present.of(store), [proof])


def _exports() -> Iterable[bytes]:
    hash_ = "0x" + "11" * 32
    head = {"number": 1, **dict.fromkeys(("hash", "parent_hash", "state_root"), hash_)}
    head |= {
        "block_time": "2024-05-01 12:00:00 UTC",
        "relay_block_number": 7,
        "relay_state_root": hash_,
    }
    parent = {"relayParentNumber": 7, "relayParentStorageRoot": hash_, "maxPovSize": 5242880}
    data: dict[str, object] = {
        "validationData": parent,
        "relayChainState": {"trieNodes": ["0x00", "0x0102"]},
    }
    data |= {"downwardMessages": [{"sentAt": 3, "msg": "0x00"}]}
    data |= {"horizontalMessages": {"1000": [{"sentAt": 4, "data": "0x01"}]}}
    call = {
        "block_number": 1,
        "section": "parachainSystem",
        "method": "setValidationData",
        "params": {"data": data},
    }
    yield json.dumps([head, call]).encode()
    yield json.dumps([head, {**call, "params": json.dumps({"data": data})}]).encode()


@target("export", "rows of exported tables", _exports, "spark_audit.fetch", text=True)
def _read_export(data: bytes) -> str:
    """Read the blocks of an export with a row in each of two tables."""
    from pubsub_emulator.spark_audit.fetch.exports import ExportSource

    rows = parse_json(data, "rows")
    if not isinstance(rows, list) or len(rows) < 2:
        return "no two rows"
    with TemporaryDirectory(prefix="pubsub-fuzz-") as folder:
        for name, row in zip(("blocks", "extrinsics"), rows, strict=False):
            (Path(folder) / f"{name}.jsonl").write_text(json.dumps(row), encoding="utf-8")
        source = ExportSource("net", ParaId(1000), folder)
        (proof,) = event_loop().run_until_complete(source.blocks(1, 1, lambda _count: None))
    _keep(proof)
    return f"{min(len(proof.proof), 5)} nodes"
