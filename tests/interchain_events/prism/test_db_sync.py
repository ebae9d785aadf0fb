"""PRISM from a database of cardano-db-sync: objects, roll-backs, resuming, depth, and what is no
such database.
"""

import asyncio
import json
import os
import random
import time
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import cbor2
import grpc
import pytest
from support.plumbing.command import pubsub
from support.plumbing.postgres import MortalServer
from support.plumbing.told import alone
from support.prism.db_sync import MAINNET, DbSync, as_json, metadatum
from support.prism.prism_chain import running, until
from support.prism.prism_log import dump
from support.prism.prism_processes import PATIENCE, Cast, operations
from support.prism.prism_story_client import seen
from support.prism.wallet import ANY, Wallet

from interchain_events.database.errors import StoreUnavailable
from interchain_events.events.errors import (
    AnotherChain,
    CursorAbandoned,
    NotTheNextBlock,
    SourceError,
)
from interchain_events.events.log.sql_store import SqlStore, open_store
from interchain_events.events.log.store import Head, follows
from interchain_events.events.rows import ChainBlock, assemble
from interchain_events.events.subscriptions.cursor import Cursor
from interchain_events.prism.client import NodeError
from interchain_events.prism.core.filters import Filter, FilterType
from interchain_events.prism.core.metadata import LABEL
from interchain_events.prism.local import FollowedOperations
from interchain_events.prism.make import Signed, atala_object
from interchain_events.prism.protocol import prism_pb2 as pb
from interchain_events.prism.service import db_sync
from interchain_events.prism.service.db_sync import SOURCE, DbSyncChain
from interchain_events.prism.tables.operations import OperationLog
from interchain_events.prism.tables.processor import Processor
from pubsub_emulator.client.errors import ClientError, UnknownBlock

GOLDEN = "96adbbbff3f04850354d2c9b3021c67eb710808bd2835b6e983b2ac697e97d9b"


@pytest.fixture(params=(True, False), ids=("json", "cbor"))
def source(postgres_url: str, request: pytest.FixtureRequest) -> DbSync:
    """An empty db-sync, with JSON or without."""
    return DbSync(postgres_url, has_json=request.param)


@pytest.fixture
def cardano(postgres_url: str) -> DbSync:
    """An empty db-sync."""
    return DbSync(postgres_url)


def read(source: DbSync, log: SqlStore, depth: int = 0, first: int = 0) -> int:
    """What a node that starts now does before it serves; how many rows came."""
    with closing(DbSyncChain(source.url, depth, first)) as chain:
        asyncio.run(chain.catch_up(log))
    return Processor(log.database, log, SOURCE, 0).run()


def anchored(*signed: Signed) -> bytes:
    return atala_object([each.raw for each in signed])


def applied(log: SqlStore) -> list[tuple[Any, ...]]:
    """Number, kind and status of each row."""
    with log.database.transaction() as session:
        return session.run(
            "SELECT block_number, atala_operation_type, atala_operation_status FROM"
            " atala_operations ORDER BY atala_operation_seq_no"
        )


def test_real_transactions_of_mainnet_are_read_from_the_database_and_applied(
    source: DbSync, log: SqlStore
) -> None:
    for each in MAINNET:
        raw = bytes.fromhex(each["cbor"])
        text = json.dumps(as_json(cbor2.loads(raw)[LABEL])) if source.has_json else None
        source.build_raw([(text, raw)])
    assert read(source, log) == len(MAINNET) + 1
    assert {status for _, _, status in applied(log)} == {"APPLIED"}
    followed = FollowedOperations(
        OperationLog(log.database), [Filter(FilterType.DID_OWNER_ANY_FILTER, GOLDEN)], Cursor(0, 0)
    )
    kinds = ["CREATE_DID", "UPDATE_DID", "ISSUE_CREDENTIAL_BATCH", "REVOKE_CREDENTIALS"]
    assert [each.type.name for each in followed.new()] == kinds


def test_only_blocks_with_objects_cost_a_row(cardano: DbSync, log: SqlStore) -> None:
    cardano.empty(30_000)
    first = cardano.build(anchored(Wallet("a").created))
    cardano.empty(30_000)
    second = cardano.build(anchored(Wallet("b").created))
    cardano.empty(5)
    assert read(cardano, log) == 2
    assert log.database.select("SELECT anchor FROM log_blocks ORDER BY anchor") == [
        (1,),
        (first,),
        (second,),
    ]
    assert log.head().seq == 3


def test_a_block_is_read_once_it_lies_as_deep_as_wanted(cardano: DbSync, log: SqlStore) -> None:
    cardano.empty(1)
    number = cardano.build(anchored(Wallet("a").created))
    cardano.empty(2)
    assert read(cardano, log, depth=3) == 0
    cardano.empty(1)
    assert read(cardano, log, depth=3) == 1
    assert [row[0] for row in applied(log)] == [number]


def test_a_log_begins_with_the_block_that_is_asked_for(cardano: DbSync, log: SqlStore) -> None:
    cardano.build(anchored(Wallet("a").created))
    cardano.empty(3)
    cardano.build(anchored(Wallet("b").created))
    assert read(cardano, log, first=9) == 0
    assert read(cardano, log, first=2) == 1
    assert read(cardano, log, first=0) == 0


def test_a_transaction_that_failed_or_has_another_label_anchors_nothing(
    cardano: DbSync, log: SqlStore
) -> None:
    created = metadatum(anchored(Wallet("a").created))
    cardano.build_metadata(created, valid=False)
    cardano.build_metadata(created, key=674)
    assert read(cardano, log) == 0
    cardano.build_metadata(created)
    assert read(cardano, log) == 1


def test_metadata_of_16_mb_is_no_object_and_stops_nothing(cardano: DbSync, log: SqlStore) -> None:
    huge = f'{{"v": 1, "c": ["0x{"00" * (8 << 20)}"]}}'
    cardano.build_raw([(huge, b"\x00"), (None, bytes(16 << 20)), ("7", b"\x00"), (None, b"\xff")])
    cardano.build(anchored(Wallet("a").created))
    assert read(cardano, log) == 1
    assert log.database.select("SELECT max(length(body)) < 1000 FROM log_rows") == [(1,)]


def test_a_block_with_too_many_objects_is_refused_in_one_line(
    cardano: DbSync, log: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db_sync, "_MOST_OBJECTS", 4)
    monkeypatch.setattr(db_sync, "_OBJECTS", db_sync._OBJECTS.replace("LIMIT 1000", "LIMIT 4"))
    cardano.build(b"a", b"b")
    cardano.build(b"c", b"d", b"e")
    read(cardano, log)
    assert log.head().seq == 6
    cardano.build(b"a", b"b", b"c", b"d")
    with pytest.raises(SourceError, match=r"block 3 has 4 objects or more$"):
        read(cardano, log)


# Roll-backs


def test_a_rollback_deeper_than_the_log_is_refused_in_one_line(
    cardano: DbSync, log: SqlStore
) -> None:
    cardano.empty(4)
    cardano.build(anchored(Wallet("a").created))
    read(cardano, log, first=5)
    cardano.back_to(3)
    with pytest.raises(
        UnknownBlock, match=r"its newest block is 3, and the log begins with block 5$"
    ):
        read(cardano, log, first=5)
    cardano.empty(9)
    with pytest.raises(
        AnotherChain, match=r"shares no block with the log, which begins with block 5$"
    ):
        read(cardano, log, first=5)
    assert len(applied(log)) == 1


def test_a_log_of_another_chain_is_refused(cardano: DbSync, log: SqlStore) -> None:
    cardano.build(anchored(Wallet("a").created))
    log.bind(bytes(32))
    with pytest.raises(AnotherChain, match="genesis"):
        read(cardano, log)


@pytest.mark.parametrize("seed", range(6))
def test_replay_rollback_and_a_kill_give_the_log_written_directly(
    seed: int, cardano: DbSync, log: SqlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers see each operation once, in order, and drop what is taken back."""
    draw = random.Random(seed)
    monkeypatch.setattr(db_sync, "_WINDOW", draw.choice((1, 3, 20_000)))
    monkeypatch.setattr(db_sync, "_PAGE", draw.choice((1, 500)))
    depth = draw.randrange(3)
    wallets = [Wallet(each) for each in "abc"]
    pool = (
        [anchored(each.created) for each in wallets]
        + [anchored(each.deactivate()) for each in wallets]
        + [b"\xff"]
    )
    blocks: list[list[bytes]] = [[]]
    cardano.build()
    chain, processor = DbSyncChain(cardano.url, depth), Processor(log.database, log, SOURCE, 0)
    client, seen_here = (
        FollowedOperations(OperationLog(log.database), [ANY], Cursor(0, 0)),
        list[Any](),
    )
    for _ in range(25):
        match draw.randrange(6):
            case 0 if len(blocks) > 2:
                kept = draw.randrange(1, len(blocks))
                cardano.back_to(kept)
                del blocks[kept:]
            case 1:
                chain.close()
                chain, processor = (
                    DbSyncChain(cardano.url, depth),
                    Processor(log.database, log, SOURCE, 0),
                )
            case _:
                cardano.has_json = draw.random() < 0.5
                objects = draw.choices(pool, k=draw.choice((0, 0, 1, 3)))
                cardano.build(*objects)
                blocks.append(objects)
        if draw.random() < 0.6:
            asyncio.run(chain.catch_up(log))
            processor.run()
        if draw.random() < 0.7:
            _follow(client, seen_here)
    for _ in range(depth):  # what was processed is deep again, though a roll-back left it less deep
        cardano.build()
        blocks.append([])
    asyncio.run(chain.catch_up(log))
    processor.run()
    chain.close()
    direct = open_store(str(tmp_path / "direct.db"), "net")
    parent = bytes(32)
    for number, objects in enumerate(blocks[: max(1, len(blocks) - depth)], 1):
        events = [(SOURCE.kind, {"object": raw}) for raw in objects]
        found = ChainBlock(
            None, number, _hash_of(cardano, number), (1_672_531_200 + 20 * number) * 1_000, events
        )
        direct.append([assemble(found, (), parent=parent)])
        parent = found.hash
    Processor(direct.database, direct, SOURCE, 0).run()
    tables = ("atala_operations", "atala_objects", "revoked_credentials")
    assert dump(log.database, tables) == dump(direct.database, tables)
    wanted = [
        each.operation_id
        for each in FollowedOperations(OperationLog(direct.database), [ANY], Cursor(0, 0)).new()
    ]
    direct.close()
    _follow(client, seen_here)
    assert [each.operation_id for each in seen_here] == wanted


def _follow(client: FollowedOperations, found: list[Any]) -> None:
    try:
        found += client.new()
    except CursorAbandoned as cut:
        del found[cut.common :]
        client.again(cut)
        found += client.new()


def _hash_of(cardano: DbSync, number: int) -> bytes:
    return bytes(cardano.run("SELECT hash FROM block WHERE block_no = %s", (number,))[0][0])


# What is no known database


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (
            "ALTER TABLE tx DROP COLUMN valid_contract",
            "there is no column valid_contract of db-sync's table tx to read",
        ),
        ("DROP TABLE tx_metadata", "there is no column key of db-sync's table tx_metadata to read"),
        (
            "DROP TABLE schema_version",
            "there is no column stage_two of db-sync's table schema_version to read",
        ),
        (
            "UPDATE schema_version SET stage_two = 51",
            "stage two of db-sync's schema is 51; 25 to 50 are known",
        ),
        (
            "UPDATE schema_version SET stage_two = 24",
            "stage two of db-sync's schema is 24; 25 to 50 are known",
        ),
        (
            "DELETE FROM schema_version",
            "stage two of db-sync's schema is not given; 25 to 50 are known",
        ),
    ],
)
def test_another_schema_ends_the_command_with_one_line(
    cardano: DbSync,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    statement: str,
    words: str,
    capsys: Any,
) -> None:
    cardano.run(statement)
    options = ("--db-sync", cardano.url, "--db", tmp_path / "prism.db", "--port", "0")
    assert pubsub(monkeypatch, "prism", "serve", *options) != 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(words)


def test_a_schema_whose_json_is_text_is_read(cardano: DbSync, log: SqlStore) -> None:
    cardano.run("ALTER TABLE tx_metadata ALTER COLUMN json TYPE VARCHAR")
    cardano.build(anchored(Wallet("a").created))
    assert read(cardano, log) == 1


def test_a_db_sync_without_blocks_is_asked_again(cardano: DbSync, log: SqlStore) -> None:
    with pytest.raises(UnknownBlock, match="db-sync has no block yet"):
        read(cardano, log)


def test_a_database_that_is_away_is_asked_again(log: SqlStore) -> None:
    chain = DbSyncChain("postgresql://postgres@127.0.0.1:1/cexplorer")
    with pytest.raises(StoreUnavailable):
        asyncio.run(chain.catch_up(log))
    chain.close()


def test_a_log_that_another_process_wrote_meanwhile_is_read_again(
    cardano: DbSync, log: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    cardano.build(anchored(Wallet("a").created))
    chain = DbSyncChain(cardano.url, 0)
    append = log.append
    monkeypatch.setattr(
        log, "append", lambda _: (_ for _ in ()).throw(NotTheNextBlock("meanwhile"))
    )
    with pytest.raises(UnknownBlock, match="meanwhile"):
        asyncio.run(chain.catch_up(log))
    monkeypatch.setattr(log, "append", append)
    asyncio.run(chain.catch_up(log))
    chain.close()
    assert log.head().anchor == 1


@pytest.mark.parametrize(
    ("number", "after_gap", "fits"),
    [
        (6, True, False),
        (7, True, False),
        (8, False, True),
        (9, False, False),
        (9, True, True),
    ],
)
def test_only_a_block_that_says_so_leaves_blocks_out_and_only_forward(
    number: int, after_gap: bool, fits: bool
) -> None:
    block = assemble(
        ChainBlock(None, number, b"n" * 32, 0, ()), (), parent=b"p" * 32, after_gap=after_gap
    )
    with nullcontext() if fits else pytest.raises(NotTheNextBlock):
        assert follows(Head(0, 0, 7, b"p" * 32), block, None)


# A whole node


def served(source: DbSync, log: SqlStore, depth: int = 0) -> Any:
    return running(
        log, DbSyncChain(source.url, depth, poll_seconds=0.02), source=SOURCE, anchors=False
    )


@alone
async def test_a_node_streams_operations_and_their_statuses(source: DbSync, log: SqlStore) -> None:
    wallet, told = Wallet("a"), list[tuple[str, int]]()
    source.empty(1)
    async with served(source, log, depth=3) as node:
        subscription = await node.client.subscribe([ANY])
        source.build(anchored(wallet.created))
        await until(lambda: node.service.branch.place(wallet.created.id) is not None)
        async for each in node.client.statuses(wallet.created.id):
            told.append((pb.OperationStatus.Name(each.status), each.confirmation_level))
            source.empty(1)
        async for message in node.client.events(subscription):
            if message.events:
                assert message.events[0].did_suffix == wallet.suffix
                break
    assert told == [
        ("IN_BLOCK", 0),
        ("CONFIRMATION_LEVEL", 1),
        ("CONFIRMATION_LEVEL", 2),
        ("APPROVED", 0),
    ]


@alone
async def test_a_node_that_only_reads_says_so_to_who_schedules(
    cardano: DbSync, log: SqlStore
) -> None:
    cardano.empty(1)
    async with served(cardano, log) as node:
        with pytest.raises(NodeError, match="this node only reads its chain") as refused:
            await node.client.schedule([Wallet("a").created.raw])
        assert refused.value.code == grpc.StatusCode.FAILED_PRECONDITION
    with pytest.raises(ClientError, match="anchors nothing"):
        await DbSyncChain(cardano.url).anchor(b"")
    assert not log.database.select("SELECT 1 FROM atala_objects")


@pytest.mark.xdist_group("postgres")
@alone
async def test_a_database_that_is_killed_and_comes_back_is_read_on(
    log: SqlStore, mortal_postgres: MortalServer
) -> None:
    """A node keeps its streams open meanwhile, and sends nothing twice."""
    source = DbSync(mortal_postgres.database())
    source.empty(1)
    seen: list[str] = []

    async def read_on() -> None:
        async for message in node.client.events(subscription):
            seen.extend(each.did_suffix for each in message.events)

    async with served(source, log) as node:
        subscription = await node.client.subscribe([ANY])
        reading = asyncio.create_task(read_on())
        for name in "ab":
            await asyncio.to_thread(source.build, anchored(Wallet(name).created))
            await until(lambda name=name: Wallet(name).suffix in seen)
            await asyncio.to_thread(mortal_postgres.kill)
        reading.cancel()
    assert seen == [Wallet(name).suffix for name in "ab"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(int(os.environ.get("PRISM_STORIES", "1"))))
def test_processes_that_are_killed_lose_nothing_and_send_nothing_twice(
    seed: int, cardano: DbSync, tmp_path: Path
) -> None:
    """A node of the command line and its client are killed while db-sync goes on and rolls back."""
    draw = random.Random(seed)
    pool = [atala_object([each]) for each in operations(seed)]
    cardano.empty(1)
    place = str(tmp_path / "prism.db")
    cast = Cast(("--db-sync", cardano.url), place, tmp_path)
    try:
        cast.start("node")
        asyncio.run(cast.subscribe())
        cast.start("client")
        for _ in range(12):
            cardano.build(*draw.sample(pool, draw.randrange(4)))
            if draw.random() < 0.3:
                cardano.back_to(max(1, cardano.number - draw.randrange(1, 6)))
                cardano.build(*draw.sample(pool, 2))
            if draw.random() < 0.4:
                who = draw.choice(("node", "client"))
                time.sleep(draw.choice((0, 0.1, 0.5)))
                cast.kill(who)
                cast.start(who)
            time.sleep(draw.uniform(0, 0.8))
        cardano.build(atala_object([Wallet("the last").created.raw]))
        cardano.empty(1)
        fresh = open_store(str(tmp_path / "fresh.db"), "net")
        read(cardano, fresh, depth=1)
        wanted = fresh.database.select(
            "SELECT atala_operation_seq_no, hex(signed_atala_operation_id), CASE"
            " atala_operation_status WHEN 'APPLIED' THEN 1 ELSE 2 END FROM atala_operations ORDER"
            " BY 1"
        )
        fresh.close()
        due = [[seq, name.lower(), status] for seq, name, status in wanted]
        deadline = time.monotonic() + PATIENCE
        while seen(cast.kept) != due:
            cast.tend()
            assert time.monotonic() < deadline, (
                f"{len(seen(cast.kept))} events, not {len(due)}\n{cast.told()}"
            )
            time.sleep(0.2)
    finally:
        cast.end()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "give --chain with a node, or --db-sync with a database"),
        (
            ("--chain", "ws://a", "--db-sync", "postgresql://a"),
            "give --chain with a node, or --db-sync",
        ),
        (
            ("--db-sync", "postgresql://a", "--event", "A.B"),
            "--event, --path and --seed-env belong to --chain",
        ),
    ],
)
def test_a_node_follows_one_chain(
    options: tuple[str, ...],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    assert pubsub(monkeypatch, "prism", "serve", *options, "--db", tmp_path / "prism.db") == 2
    assert words in capsys.readouterr().err


def test_a_block_that_is_missing_where_a_statement_ends_is_waited_for(
    cardano: DbSync, log: SqlStore
) -> None:
    cardano.empty(3)
    cardano.run("DELETE FROM block WHERE block_no = 2")
    with pytest.raises(UnknownBlock, match="there is no block 2 now"):
        read(cardano, log, depth=1)


def test_the_database_of_db_sync_is_not_taken_for_the_nodes_own(
    cardano: DbSync, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """It would get the tables of the node."""
    tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'"
    before = cardano.run(tables)
    options = ("--db-sync", cardano.url, "--db", cardano.url, "--port", "0")
    assert pubsub(monkeypatch, "prism", "serve", *options) == 2
    assert "is the database of db-sync, which is read-only here" in capsys.readouterr().err
    assert cardano.run(tables) == before


def test_db_sync_needs_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    options = ("--db-sync", "cexplorer", "--db", tmp_path / "x.db")
    assert pubsub(monkeypatch, "prism", "serve", *options) == 2
    assert "'cexplorer' is not a URL" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
