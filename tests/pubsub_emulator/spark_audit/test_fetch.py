"""Blocks of real chains come into a history: from nodes that fail and lie, from chunks, from
exports (AU-18).
"""

import asyncio
import csv
import gzip
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.node.nodes import Running, serving, story
from support.plumbing.scenarios import scenario
from support.spark_audit.real_chain import (
    CHAIN,
    FIRST_TIME,
    NAME,
    PEER,
    UPGRADE,
    Busy,
    Drop,
    Fault,
    RealChain,
    never,
    real_chain,
    runtime_metadata,
    telling,
)

from pubsub_emulator.emulator.scenario.file import parse_scenario
from pubsub_emulator.primitives.header import Header
from pubsub_emulator.primitives.types import Hash, ParaId
from pubsub_emulator.spark_audit.audit.run import AuditResult, audit
from pubsub_emulator.spark_audit.fetch import endpoints
from pubsub_emulator.spark_audit.fetch.chunks import ChunkSource
from pubsub_emulator.spark_audit.fetch.endpoints import Endpoints, RequestRate
from pubsub_emulator.spark_audit.fetch.errors import FetchError, SourceLost, WrongBlock
from pubsub_emulator.spark_audit.fetch.exports import ExportSource
from pubsub_emulator.spark_audit.fetch.fetch import BlockRange, BlockSource, Fetched, fetch
from pubsub_emulator.spark_audit.fetch.nodes import NodeBlockSource
from pubsub_emulator.spark_audit.history import schema
from pubsub_emulator.spark_audit.history.commit import HistoryPart, write_commit
from pubsub_emulator.spark_audit.history.names import read_names
from pubsub_emulator.spark_audit.history.reader import History
from pubsub_emulator.spark_audit.history.storage import open_store

QUICK = RequestRate(connections=4, timeout=60, rest=0.001)
ALL = BlockRange(1, None, 4)


def _ignore(_done: int, _total: int) -> None:
    """Nobody watches."""


async def _from_nodes(
    out: Path,
    faults: Sequence[tuple[RealChain, Fault | None]],
    wanted: BlockRange = ALL,
    limits: RequestRate = QUICK,
    relay: RealChain | None = None,
) -> Fetched:
    async with AsyncExitStack() as stack:
        urls = [
            (await stack.enter_async_context(telling(chain, fault))).url for chain, fault in faults
        ]
        above = None
        if relay is not None:
            told = await stack.enter_async_context(telling(relay, relay=True))
            above = await stack.enter_async_context(Endpoints([told.url], QUICK))
        nodes = await stack.enter_async_context(Endpoints(urls, limits))
        return await fetch(
            NodeBlockSource("polkadot", ParaId(CHAIN), nodes, above), wanted, out, _ignore
        )


def _rows(out: Path) -> list[dict[str, Any]]:
    history = History.open(out)
    return sorted(history.rows(history.files(schema.BLOCKS), []), key=lambda row: row["number"])


def _audited(out: Path) -> AuditResult:
    return audit(out, out.with_name(f"{out.name}-audit"), engine="python")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one honest node and a relay chain give."""
    out = tmp_path_factory.mktemp("fetch") / "whole"
    asyncio.run(_from_nodes(out, [(real_chain(), None)], relay=real_chain()))
    return out


@story
async def test_au18_a_range_of_our_own_node_is_fetched_once_and_audited(
    tmp_path: Path,
) -> None:
    async with serving() as node:
        await node.step(9)
        async with (
            Endpoints([node.urls[2000]], QUICK) as nodes,
            Endpoints([node.urls[None]], QUICK) as relay,
        ):
            source = NodeBlockSource("dev", ParaId(2000), nodes, relay)
            newest = await source.newest()
            assert newest > 4
            called = await nodes.ask(lambda _url, name: name, "system_chain")
            first = await fetch(source, BlockRange(1, None, 4), tmp_path / "history", _ignore)
            asked = nodes.requests
            again = await fetch(source, BlockRange(1, newest, 4), tmp_path / "history", _ignore)
            assert nodes.requests == asked
            with pytest.raises(
                FetchError, match="block 99 is not final yet; the newest final block is"
            ):
                await fetch(source, BlockRange(1, 99, 4), tmp_path / "history", _ignore)
    assert (first.fetched, first.there) == (newest, 0)
    assert (again.fetched, again.there) == (0, newest)
    result = _audited(tmp_path / "history")
    assert (result.exit_code, result.judged) == (0, newest)
    assert [row["segments"] for row in result.chains] == [
        len(History.open(tmp_path / "history").commits)
    ]
    assert all(row["relay_root_checked"] for row in result.results.rows(schema.BLOCK_MEASURES))
    assert [row["name"] for row in result.chains] == [called]


async def _from_own(node: Running, out: Path) -> None:
    """Fetch a subscriber's chain from the project's own node."""
    async with (
        Endpoints([node.urls[2000]], QUICK) as nodes,
        Endpoints([node.urls[None]], QUICK) as relay,
    ):
        await fetch(NodeBlockSource("dev", ParaId(2000), nodes, relay), BlockRange(1), out, _ignore)


@story
async def test_au18_a_publish_that_nobody_reads_accuses_nobody(tmp_path: Path) -> None:
    """The walk proves changed nodes down to where what it reads is unchanged: they lead to no
    entry.
    """
    async with serving() as node:
        await node.step(4)
        client = await node.connect()
        await client.call("pubsub_publish", 1000, "nobody reads this", "0x07")
        await node.step(4)
        await _from_own(node, tmp_path / "history")
    result = _audited(tmp_path / "history")
    assert (result.exit_code, result.codes) == (0, {})
    parts = list(result.results.rows(schema.PROOF_PARTS))
    assert sum(part["bytes"] for part in parts) == result.proof_bytes
    assert [part["nodes"] > 0 for part in parts if part["kind"] == "absence"] == [True]
    assert not [part for part in parts if part["kind"] in {"unread", "unplaced"}]


def _saying(document: dict[str, Any], *methods: str) -> Fault:
    """A node with one answer to these methods."""

    async def fault(asked: str, _params: list[Any], _before: int) -> dict[str, Any] | None:
        return document if asked.startswith(methods) else None

    return fault


@story
async def test_au18_a_node_that_hides_its_name_is_fetched_from_all_the_same(
    tmp_path: Path,
) -> None:
    nameless = _saying({"error": {"code": -32601, "message": "Method not found"}}, "system_chain")
    assert (await _from_nodes(tmp_path / "out", [(real_chain(), nameless)])).fetched == 11
    assert read_names(open_store(tmp_path / "out"), "polkadot") == ({}, None)


@story
async def test_au18_when_all_nodes_rest_the_same_command_can_continue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(endpoints, "_LONG_REST", 0.0)
    told: list[str] = []
    async with Endpoints(["ws://127.0.0.1:1"], QUICK, told.append) as nodes:
        with pytest.raises(SourceLost, match="the same command continues when a node answers"):
            await NodeBlockSource("polkadot", ParaId(CHAIN), nodes).newest()
    assert set(told) == {"nobody listens at ws://127.0.0.1:1"}


LAGGING = scenario("lagging")
"""Its subscriber stops at its budget, and goes on from nodes that it has stored."""


@story
async def test_au18_nodes_below_those_that_a_subscriber_has_stored_accuse_nobody(
    tmp_path: Path,
) -> None:
    async with serving(parse_scenario(LAGGING, "lagging.toml")) as node:
        await node.step(45)
        await _from_own(node, tmp_path / "history")
    result = _audited(tmp_path / "history")
    assert (result.exit_code, result.codes) == (0, {"UnplacedNodes": 1})
    [finding] = result.results.rows(schema.FINDINGS)
    assert finding["severity"] == "info"
    [part] = [
        part for part in result.results.rows(schema.PROOF_PARTS) if part["kind"] == "unplaced"
    ]
    assert part["nodes"] > 100


def test_au18_both_inherent_layouts_are_decoded_by_the_blocks_own_runtime(
    whole: Path,
) -> None:
    chain, rows = real_chain(), _rows(whole)
    assert [row["number"] for row in rows] == list(range(1, 12))
    for row, proof in zip(rows, chain.proofs, strict=True):
        newer = row["number"] >= UPGRADE
        assert row["runtime"] == f"recorded/{2 if newer else 1}"
        assert row["block_time"].timestamp() * 1000 == FIRST_TIME + row["number"] * 12_000
        assert (row["collator_peer_id"], len(row["descendants"])) == (
            (PEER, 1) if newer else (None, 0)
        )
        assert (row["relay_parent"], row["relay_parent_root"]) == (
            proof.relay_parent,
            proof.relay_root,
        )
        assert row["max_pov"] == proof.max_pov
        assert len(row["proof"]) == len(proof.proof)
        told = {each["sender"]: each["messages"] for each in row["horizontal"] if each["messages"]}
        there = {sender: messages for sender, messages in proof.horizontal if messages}
        assert [[m["data"] for m in each] for each in told.values()] == [
            [m.data for m in each] for each in there.values()
        ]
        assert [m["data"] for m in row["downward"]] == [m.msg for m in proof.downward]
    result = _audited(whole)
    assert (result.exit_code, [row["status"] for row in result.chains]) == (0, ["opened"])
    measures = list(result.results.rows(schema.BLOCK_MEASURES))
    assert all(row["relay_root_checked"] for row in measures)
    assert {str(row["day"]) for row in measures} == {"2023-11-14"}


def _once(
    answer: Callable[[], Awaitable[dict[str, Any] | None]], method: str, every: int = 3
) -> Fault:
    """Every third request of a method goes wrong, the first one too."""
    seen = 0

    async def fault(asked: str, _params: list[Any], _before: int) -> dict[str, Any] | None:
        nonlocal seen
        if asked != method:
            return None
        seen += 1
        return await answer() if seen % every == 1 % every else None

    return fault


async def _drop() -> None:
    raise Drop


async def _busy() -> None:
    raise Busy


async def _limited() -> dict[str, Any]:
    return {"error": {"code": -32005, "message": "rate limit exceeded"}}


async def _other_block() -> dict[str, Any]:
    return {"result": real_chain().blocks[3]}


async def _pruned() -> dict[str, Any]:
    return {"result": None}


async def _other_body() -> dict[str, Any]:
    block = real_chain().blocks[2]["block"]
    return {"result": {"block": {**block, "extrinsics": block["extrinsics"][:1]}}}


@pytest.mark.parametrize(
    ("trouble", "method"),
    [
        *(
            (trouble, "chain_getBlock")
            for trouble in (_busy, _limited, _other_block, _other_body, _pruned)
        ),
        *((trouble, "state_getMetadata") for trouble in (_drop, _pruned)),
    ],
)
@story
async def test_au18_a_node_that_fails_now_and_then_changes_nothing(
    trouble: Callable[[], Awaitable[dict[str, Any] | None]],
    method: str,
    tmp_path: Path,
    whole: Path,
) -> None:
    done = await _from_nodes(
        tmp_path / "out", [(real_chain(), _once(trouble, method))], relay=real_chain()
    )
    assert done.fetched == 11
    assert History.open(tmp_path / "out").head == History.open(whole).head


@story
async def test_au18_a_node_that_never_answers_is_left_for_another(
    tmp_path: Path, whole: Path
) -> None:
    async def hang(method: str, _params: list[Any], _before: int) -> dict[str, Any] | None:
        if method == "chain_getBlock":
            await never()
        return None

    limits = replace(QUICK, timeout=0.2)
    faults = [(real_chain(), hang), (real_chain(), None)]
    await _from_nodes(tmp_path / "out", faults, BlockRange(1, 11, 4), limits, real_chain())
    assert History.open(tmp_path / "out").head == History.open(whole).head


@story
async def test_au18_a_node_on_a_fork_below_a_units_end_changes_nothing(
    tmp_path: Path, whole: Path
) -> None:
    fork, good = real_chain(salt=b"fork"), real_chain()

    async def strays(method: str, params: list[Any], _before: int) -> dict[str, Any] | None:
        if method == "chain_getBlockHash" and params[0] not in {3, 7, 11}:
            return {"result": fork.hashes[params[0]]}
        if method == "chain_getBlock" and params[0] in fork.hashes[1:]:
            return {"result": fork.blocks[fork.hashes.index(params[0])]}
        return None

    await _from_nodes(
        tmp_path / "out", [(good, strays), (good, None)], BlockRange(1, 11, 4), relay=good
    )
    assert History.open(tmp_path / "out").head == History.open(whole).head


@story
async def test_au18_nodes_that_disagree_about_the_end_of_a_unit_are_both_named(
    tmp_path: Path,
) -> None:
    with pytest.raises(
        WrongBlock, match=r"the nodes disagree about block 3: 0x.* at http.*; 0x.* at http"
    ):
        await _from_nodes(
            tmp_path / "out",
            [(real_chain(), None), (real_chain(salt=b"fork"), None)],
            BlockRange(1, 11, 4),
        )
    assert not (tmp_path / "out").exists()


@story
async def test_au18_what_is_whole_is_kept_and_the_same_command_goes_on(
    tmp_path: Path, whole: Path
) -> None:
    chain = real_chain()

    async def until(method: str, params: list[Any], _before: int) -> dict[str, Any] | None:
        return (
            {"result": None} if (method, *params) == ("chain_getBlock", chain.hashes[9]) else None
        )

    said = r"block 9, 0x.*, is unknown to the node: it pruned the block or is on another fork"
    with pytest.raises(WrongBlock, match=said):
        await _from_nodes(tmp_path / "out", [(chain, until)], relay=chain)
    assert [row["number"] for row in _rows(tmp_path / "out")] == list(range(1, 8))
    done = await _from_nodes(tmp_path / "out", [(chain, None)], relay=chain)
    assert (done.fetched, done.there) == (4, 7)
    assert History.open(tmp_path / "out").head == History.open(whole).head


@story
async def test_au18_a_node_without_old_states_is_told_of(tmp_path: Path) -> None:
    said = "Client error: UnknownBlock: State already discarded"
    without = _saying({"error": {"code": 4003, "message": said}}, "state_")
    with pytest.raises(
        WrongBlock, match=r"no node provides the runtime of block 1; .*archive node.*State already"
    ):
        await _from_nodes(tmp_path / "out", [(real_chain(), without)])


@story
async def test_au18_another_fork_than_that_of_the_history_is_refused(tmp_path: Path) -> None:
    await _from_nodes(tmp_path / "out", [(real_chain(), None)], BlockRange(1, 5, 4))
    head = History.open(tmp_path / "out").head
    with pytest.raises(
        WrongBlock, match=r"polkadot 1000: block 6 names 0x.* and block 5 is 0x.*: two forks"
    ):
        await _from_nodes(tmp_path / "out", [(real_chain(salt=b"fork"), None)], BlockRange(1, 8, 4))
    assert History.open(tmp_path / "out").head == head


@story
async def test_au18_when_no_node_answers_the_machine_failed(tmp_path: Path) -> None:
    with pytest.raises(SourceLost, match="HTTP status 429") as failed:
        await _from_nodes(
            tmp_path / "out", [(real_chain(), _once(_busy, "chain_getFinalizedHead", 1))]
        )
    assert failed.value.is_infrastructure


@story
async def test_au18_requests_keep_to_the_rate_that_was_asked_for(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with (
        telling(real_chain()) as told,
        Endpoints([told.url], replace(QUICK, rate=100)) as nodes,
    ):
        await fetch(
            NodeBlockSource("polkadot", ParaId(CHAIN), nodes),
            BlockRange(1, 11, 11),
            tmp_path / "out",
            _ignore,
        )
        assert nodes.requests > 20
        assert loop.time() - began > (nodes.requests - 1) / 100


@story
async def test_au18_a_root_that_the_relay_chain_does_not_have_is_a_finding(tmp_path: Path) -> None:
    chain = real_chain()
    number = int(chain.proofs[4].relay_parent)
    true = Header(Hash(bytes(32)), number, Hash(b"\x05" * 32), Hash(bytes(32)))
    lied = replace(chain, relay={**chain.relay, number: true})
    done = await _from_nodes(tmp_path / "out", [(chain, None)], relay=lied)
    blocks = sum(proof.relay_parent == number for proof in chain.proofs)
    assert done.differing == blocks > 0
    result = _audited(tmp_path / "out")
    assert result.codes == {"RelayRootMismatch": blocks}
    assert result.exit_code == 1


@story
async def test_au18_without_a_relay_chain_roots_are_the_inherents_word(tmp_path: Path) -> None:
    await _from_nodes(tmp_path / "out", [(real_chain(), None)])
    result = _audited(tmp_path / "out")
    assert result.exit_code == 0
    assert not any(row["relay_root_checked"] for row in result.results.rows(schema.BLOCK_MEASURES))


# Chunks


def _write_chunks(
    base: Path, chain: RealChain, cuts: Sequence[tuple[int, int]] = ((1, 4), (5, 11))
) -> None:
    for first, last in cuts:
        folder = base / "0000000000" / f"{first:010d}-{last:010d}-{chain.hashes[last][-5:]}"
        folder.mkdir(parents=True)
        with gzip.open(folder / "blocks.jsonl.gz", "wt") as file:
            for number in range(first, last + 1):
                line = {
                    "height": number,
                    "hash": chain.hashes[number],
                    "block": chain.blocks[number],
                    "runtimeVersion": {
                        "specName": "recorded",
                        "specVersion": chain.version(number + 1),
                    },
                    "events": "0x00",
                }
                file.write(json.dumps(line) + "\n")
    metadata = base / "metadata"
    metadata.mkdir()
    for version, height in ((1, 1), (2, UPGRADE)):
        name = f"{height:010d}-{chain.hashes[height][-5:]}--recorded@{version}--recorded@0.gz"
        (metadata / name).write_bytes(gzip.compress(runtime_metadata(version)))


def _fetched(source: BlockSource, out: Path, wanted: BlockRange = ALL) -> Fetched:
    return asyncio.run(fetch(source, wanted, out, _ignore))


def _told(row: dict[str, Any], *without: str) -> dict[str, Any]:
    return {
        name: value
        for name, value in row.items()
        if name not in {"source", "position", "relay_root", *without}
    }


def test_au18_chunks_give_the_rows_that_nodes_give(tmp_path: Path, whole: Path) -> None:
    _write_chunks(tmp_path / "chunks", real_chain())
    done = _fetched(ChunkSource("polkadot", ParaId(CHAIN), tmp_path / "chunks"), tmp_path / "out")
    assert done.fetched == 11
    assert [_told(row) for row in _rows(tmp_path / "out")] == [_told(row) for row in _rows(whole)]
    names = [read_names(open_store(place), "polkadot") for place in (whole, tmp_path / "out")]
    assert names == [({CHAIN: NAME}, None), ({CHAIN: "recorded"}, None)]


def _cut_off(base: Path) -> None:
    file = next(base.glob("*/*-0000000011-*/blocks.jsonl.gz"))
    file.write_bytes(file.read_bytes()[:-40])


def _forget_metadata(base: Path) -> None:
    next((base / "metadata").glob("*recorded@2--*")).unlink()


def _alter(base: Path, old: str, new: str) -> None:
    file = next(base.glob("*/*-0000000011-*/blocks.jsonl.gz"))
    file.write_bytes(
        gzip.compress(gzip.decompress(file.read_bytes()).replace(old.encode(), new.encode(), 1))
    )


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        pytest.param(_cut_off, r"blocks\.jsonl\.gz: Compressed file ended", id="cut off"),
        pytest.param(
            _forget_metadata,
            "the folder metadata has no file of runtime recorded/2",
            id="no metadata",
        ),
        pytest.param(
            lambda base: _alter(base, '"height": 7', '"height": 8'),
            "block 7 is not in any chunk",
            id="a block twice",
        ),
        pytest.param(
            lambda base: _alter(base, '"height": 7', '"height": 77'),
            r":3: block 77 is in a chunk of blocks 5 to 11",
            id="a block out of range",
        ),
        pytest.param(
            lambda base: _alter(base, '"stateRoot": "0x', '"stateRoot": "0xff'),
            r":1: stateRoot has 33 bytes",
            id="a long state root",
        ),
        pytest.param(
            lambda base: _alter(base, "runtimeVersion", "x"),
            r":1: no runtimeVersion",
            id="no version",
        ),
        pytest.param(
            lambda base: _alter(base, '{"height"', '["height"'),
            r":1: the line is not a block in JSON",
            id="not a block",
        ),
    ],
)
def test_au18_a_damaged_chunk_is_named_with_its_line(
    damage: Callable[[Path], None], said: str, tmp_path: Path
) -> None:
    _write_chunks(tmp_path / "chunks", real_chain())
    damage(tmp_path / "chunks")
    with pytest.raises(FetchError, match=said):
        _fetched(ChunkSource("polkadot", ParaId(CHAIN), tmp_path / "chunks"), tmp_path / "out")
    assert all(row["number"] < 8 for row in _rows(tmp_path / "out"))


def test_au18_chunks_with_a_gap_or_none_at_all_are_refused(tmp_path: Path) -> None:
    _write_chunks(tmp_path / "gap", real_chain(), ((1, 4), (7, 11)))
    with pytest.raises(WrongBlock, match="block 7 follows where block 5 was expected"):
        _fetched(
            ChunkSource("polkadot", ParaId(CHAIN), tmp_path / "gap"),
            tmp_path / "out",
            BlockRange(1, 11, 11),
        )
    _write_chunks(tmp_path / "twice", real_chain(), ((1, 7), (7, 11)))
    with pytest.raises(FetchError, match="overlap"):
        ChunkSource("polkadot", ParaId(CHAIN), tmp_path / "twice")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FetchError, match="no chunks found"):
        ChunkSource("polkadot", ParaId(CHAIN), tmp_path / "empty")


# Exports


def _export(chain: RealChain) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    blocks, extrinsics = [], []
    for number, proof in enumerate(chain.proofs, 1):
        header = chain.blocks[number]["block"]["header"]
        time = FIRST_TIME // 1000 + number * 12
        blocks.append(
            {
                "number": number,
                "hash": chain.hashes[number],
                "parent_hash": header["parentHash"],
                "state_root": header["stateRoot"],
                "block_time": (
                    "2023-11-14"
                    f" {time % 86400 // 3600:02d}:{time % 3600 // 60:02d}:{time % 60:02d} UTC"
                ),
                "relay_block_number": int(proof.relay_parent),
                "relay_state_root": "0x" + proof.relay_root.hex(),
                "author_ss58": "not read",
            }
        )
        data = {
            "validationData": {
                "parentHead": "0x",
                "relayParentNumber": f"{int(proof.relay_parent):,}",
                "relayParentStorageRoot": "0x" + proof.relay_root.hex(),
                "maxPovSize": proof.max_pov,
            },
            "relayChainState": {"trieNodes": ["0x" + node.hex() for node in proof.proof]},
            "downwardMessages": [
                {"sentAt": m.sent_at, "msg": "0x" + m.msg.hex()} for m in proof.downward
            ],
            "horizontalMessages": {
                str(sender): [{"sentAt": m.sent_at, "data": "0x" + m.data.hex()} for m in messages]
                for sender, messages in proof.horizontal
            },
        }
        call = {"block_number": number, "section": "parachainSystem", "method": "setValidationData"}
        extrinsics.append({**call, "params": json.dumps({"data": data})})
        extrinsics.append({**call, "section": "timestamp", "method": "set", "params": "{}"})
    return blocks, extrinsics


def _write_export(
    base: Path, ending: str, tables: tuple[list[dict[str, Any]], list[dict[str, Any]]]
) -> None:
    base.mkdir()
    for name, rows in zip(("blocks1000", "extrinsics1000"), tables, strict=True):
        path = base / f"{name}.{ending}"
        if ending == "parquet":
            pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=3)
        elif ending == "csv":
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, list(rows[0]))
                writer.writeheader()
                writer.writerows(rows)
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in reversed(rows)))


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_au18_exported_tables_give_the_proofs_that_nodes_give(
    ending: str, tmp_path: Path, whole: Path
) -> None:
    _write_export(tmp_path / "export", ending, _export(real_chain()))
    done = _fetched(ExportSource("polkadot", ParaId(CHAIN), tmp_path / "export"), tmp_path / "out")
    assert done.fetched == 11
    # An export knows neither headers nor runtimes; what messages weigh follows from them, hashed
    # ones aside.
    unknown = (
        "header",
        "runtime",
        "descendants",
        "collator_peer_id",
        "messages_used",
        "horizontal",
    )
    assert [_told(row, *unknown) for row in _rows(tmp_path / "out")] == [
        _told(row, *unknown) for row in _rows(whole)
    ]
    assert _audited(tmp_path / "out").exit_code == 0


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("trieNodes", "nodes", "params of block .* have no trie nodes: the export has no proofs"),
        ('"relay_state_root": "0x', '"relay_state_root": "0xff', "differ from its inherent"),
        ('"parent_hash"', '"other_hash"', "has no parent_hash"),
        ('"number": 5,', '"number": 50,', "block 5 is not in the export"),
        ('"setValidationData"', '"set"', "the export has no set_validation_data of block"),
        ('"number": 5', '"number": "five"', "number is 'five'"),
        ('{"number": 5', '["number": 5', "blocks1000.jsonl: "),
        (
            '"relay_state_root": "0x',
            '"relay_state_root": [1], "x": "0x',
            r"relay_state_root is '\[1\]', not a 0x",
        ),
        (
            'downwardMessages\\": [',
            'downwardMessages\\": 7, \\"x\\": [',
            "downwardMessages is '7', not a list",
        ),
    ],
)
def test_au18_an_export_that_cannot_be_read_is_named(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    _write_export(tmp_path / "export", "jsonl", _export(real_chain()))
    for path in (tmp_path / "export").iterdir():
        path.write_text(path.read_text().replace(old, new))
    with pytest.raises(FetchError, match=said):
        _fetched(
            ExportSource("polkadot", ParaId(CHAIN), tmp_path / "export"),
            tmp_path / "out",
            BlockRange(1, 11, 4),
        )


def test_au18_a_folder_without_the_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FetchError, match="whose name begins with blocks"):
        ExportSource("polkadot", ParaId(CHAIN), tmp_path)


# Forged columns of imported blocks


@pytest.mark.parametrize(
    "column", ["block", "number", "parent", "state_root", "header", "relay_root", "descendants"]
)
def test_au18_columns_that_the_header_repeats_are_held_against_it(
    column: str, whole: Path, tmp_path: Path
) -> None:
    history = History.open(whole)
    rows = _rows(whole)[6:]
    other = {"number": 3, "descendants": rows[1]["descendants"], "header": rows[1]["header"]}
    rows[0] = {**rows[0], column: other.get(column, b"\x01" * 32)}
    commit = next(each for each in history.commits if each.segment == rows[0]["segment"])
    tables = {
        table: [
            row
            for row in history.rows(history.files(table), [])
            if row.get("segment", 0) in {0, commit.segment}
        ]
        for table in (schema.RELAY_HEADERS, schema.NODES)
    }
    rows = [
        {**row, "segment": 0, "position": at}
        for at, row in enumerate(rows)
        if row["segment"] == commit.segment
    ]
    nodes = [
        {**row, "segment": 0} for row in tables[schema.NODES] if row["segment"] == commit.segment
    ]
    parts = [
        HistoryPart(schema.RELAY_HEADERS, tables[schema.RELAY_HEADERS], "0"),
        HistoryPart(schema.BLOCKS, rows, "0", CHAIN),
        HistoryPart(schema.NODES, nodes, "0"),
    ]
    write_commit(tmp_path / "out", "polkadot", 0, parts, {CHAIN: len(rows)}, None)
    result = _audited(tmp_path / "out")
    assert result.exit_code in {3, 5}
    assert result.chains[0]["status"] == "not verified"
