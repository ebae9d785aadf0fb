"""PR-1 to PR-5, PR-32 to PR-35: from a log to tables, on both databases, with crashes and
rewinds.
"""

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.database.mortal import Crash, Mortal
from support.prism.prism_log import Chain, dump
from support.prism.wallet import ANY, DOCUMENT, Wallet, add

from interchain_events.database.database import Database, Dialect, migrate
from interchain_events.database.errors import StoreError
from interchain_events.database.opening import open_database
from interchain_events.events.errors import AnotherChain
from interchain_events.events.log.memory import MemoryStore
from interchain_events.events.rows import Row
from interchain_events.events.subscriptions.cursor import Cursor
from interchain_events.prism.core.identifiers import sha256
from interchain_events.prism.core.messages import RemoveKey
from interchain_events.prism.core.process import Status
from interchain_events.prism.core.wire import bytes_field
from interchain_events.prism.make import atala_object, sign_raw
from interchain_events.prism.tables import processor as module
from interchain_events.prism.tables.ledger import (
    LedgerCache,
    SqlLedger,
    load_batch,
    load_did,
    load_entry,
)
from interchain_events.prism.tables.processor import Processor, Source
from interchain_events.prism.tables.registry import PrismRegistry
from interchain_events.prism.tables.schema import FIRST, prepare


@pytest.fixture
def database(database_place: str) -> Iterator[Database]:
    made = open_database(database_place)
    yield made
    made.close()


@pytest.fixture
def chain() -> Chain:
    return Chain(MemoryStore("net"))


def rows(database: Database) -> list[tuple[Any, ...]]:
    with database.transaction() as session:
        return session.run(
            "SELECT atala_operation_seq_no, atala_operation_type, atala_operation_status,"
            " status_details, block_number FROM atala_operations ORDER BY atala_operation_seq_no"
        )


@pytest.mark.parametrize("history", DOCUMENT["histories"], ids=lambda each: each["name"])
def test_pr_4_tables_hold_what_the_vectors_state(
    history: dict[str, Any], database: Database, chain: Chain
) -> None:
    for block in history["blocks"]:
        while chain.number < block["number"] - 1:
            chain.build()
        chain.build(*map(bytes.fromhex, block["objects"]))
    processor = Processor(database, chain.log, depth=0)
    assert processor.run() == len(history["operations"])
    assert processor.ignored == history["objects_ignored"]
    names = (
        "signed_atala_operation_id",
        "operation_hash",
        "atala_object_id",
        "atala_operation_type",
    )
    names += (
        "atala_operation_status",
        "status_details",
        "atala_operation_did_suffix",
        "created_did_suffix",
    )
    names += ("credential_batch_id", "block_number", "object_index", "operation_index")
    names += ("storage_entry_id",)
    with database.transaction() as session:
        contents = session.run(
            "SELECT signed_atala_operation_id, atala_operation_content FROM atala_operations"
        )
        assert all(sha256(bytes(content)) == bytes(name) for name, content in contents)
        columns = ", ".join(names)
        listed = session.run(
            f"SELECT {columns} FROM atala_operations ORDER BY atala_operation_seq_no"  # noqa: S608
        )
        dids = {name: load_did(session, name) for name in history["state"]["dids"]}
        batches = {name: load_batch(session, name) for name in history["state"]["batches"]}
        entries = history["state"].get("storage_entries", {})
        found_entries = {name: load_entry(session, name) for name in entries}
    wanted = [
        tuple(None if each.get(name) in {None, "NONE"} else each[name] for name in (
            "operation_id", "operation_hash", "atala_object_id", "type", "status", "reason",
            "did_suffix", "created_did_suffix", "credential_batch_id", "block", "object_index",
            "operation_index", "storage_entry_id",
        ))
        for each in history["operations"]
    ]  # fmt: skip
    assert [
        tuple(each.hex() if isinstance(each, bytes) else each for each in row) for row in listed
    ] == wanted
    for name, state in history["state"]["dids"].items():
        did = dids[name]
        assert did is not None
        assert did.last_hash.hex() == state["last_operation_hash"]
        assert {key: each.active for key, each in did.keys.items()} == {
            key: each["active"] for key, each in state["keys"].items()
        }
        assert {key: each._asdict() for key, each in did.services.items()} == state["services"]
        assert list(did.context) == state["context"]
    for name, state in history["state"]["batches"].items():
        batch = batches[name]
        assert batch is not None
        assert (batch.issuer, batch.revoked) == (state["issuer_did_suffix"], state["revoked"])
        assert (
            sorted(each.hex() for each in batch.revoked_hashes)
            == state["revoked_credential_hashes"]
        )
    for name, state in entries.items():
        entry = found_entries[name]
        assert entry is not None
        assert (entry.owner, entry.active) == (state["did_suffix"], state["active"])
        assert entry.last_hash.hex() == state["last_operation_hash"]
        assert isinstance(entry.data, bytes)
        assert entry.data.hex() == state["bytes"]


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_pr_2_a_block_waits_for_its_depth(depth: int, database: Database, chain: Chain) -> None:
    processor = Processor(database, chain.log, depth=depth)
    chain.anchor(Wallet("a").created)
    for _ in range(depth):
        assert processor.run() == 0
        chain.build()
    assert processor.run() == 1
    assert processor.run() == 0
    assert rows(database) == [(1, "CREATE_DID", "APPLIED", None, 1)]


def test_pr_2_operations_are_ordered_by_block_event_and_place(
    database: Database, chain: Chain
) -> None:
    a, b = Wallet("a"), Wallet("b")
    steps = [a.created, a.update(add("1")), b.created, a.update(add("2"))]
    chain.build(
        atala_object([each.raw for each in steps[:2]]), atala_object([steps[2].raw]), b"\xff"
    )
    chain.build(b"", atala_object([steps[3].raw]))
    processor = Processor(database, chain.log, depth=0)
    assert processor.run() == 4
    assert processor.ignored == 2
    with database.transaction() as session:
        found = session.run(
            "SELECT signed_atala_operation_id, block_number, object_index, operation_index,"
            " block_time, block_hash FROM atala_operations ORDER BY atala_operation_seq_no"
        )
    places = [(1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 1, 0)]
    assert [bytes(row[0]) for row in found] == [each.id for each in steps]
    assert [row[1:4] for row in found] == places
    assert [(row[4], bytes(row[5])) for row in found] == [
        (at * 6_000, chain.hash(at)) for at, _, _ in places
    ]


@pytest.mark.parametrize("page", [1, 2, 7])
def test_pr_3_a_block_with_more_objects_than_a_page_is_one_transaction(
    page: int, database: Database, chain: Chain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PAGE", page)
    wallets = [Wallet(f"w{at}") for at in range(9)]
    chain.build(*(atala_object([each.created.raw]) for each in wallets[:5]))
    chain.build(*(atala_object([each.created.raw]) for each in wallets[5:8]))
    chain.anchor(wallets[8].created)
    commits: list[int] = []
    processor = Processor(
        database, chain.log, depth=0, committed=lambda: commits.append(len(rows(database)))
    )
    assert processor.run() == 9
    assert commits == [5, 8, 9]


def test_pr_5_a_block_that_a_rewind_left_less_deep_stays_processed(
    database: Database, chain: Chain
) -> None:
    processor = Processor(database, chain.log, depth=2)
    chain.anchor(Wallet("a").created)
    for _ in range(4):
        chain.build()
    processor.run()
    assert processor.processed == 3
    chain.back_to(1)
    processor.run()
    assert (processor.processed, processor.position().epoch) == (1, 0)
    again = Processor(database, chain.log, depth=2)
    again.run()
    assert again.processed == 1


def test_pr_5_and_pr_34_a_deeper_rewind_restores_rows_and_state_and_raises_the_epoch(
    database: Database, chain: Chain
) -> None:
    wallet, processor = Wallet("a"), Processor(database, chain.log, depth=0)
    batch = wallet.issue(bytes(32))
    chain.anchor(wallet.created, batch.signed)
    processor.run()
    before = dump(database)
    gone = wallet.update(add("x"))
    chain.anchor(gone, wallet.revoke(batch, bytes(32)), wallet.update(add("y")))
    processor.run()
    chain.back_to(1)
    wallet.last = wallet.created.hash
    assert processor.run() == 0
    assert dump(database) == before
    assert (processor.position().epoch, processor.position().seq_no) == (1, 2)
    chain.anchor(wallet.update(RemoveKey("issuing")), gone)
    assert processor.run() == 2
    assert [row[2:4] for row in rows(database)[2:]] == [
        ("APPLIED", None),
        ("REJECTED", "WRONG_PREVIOUS_HASH"),
    ]
    with database.transaction() as session:
        assert session.run("SELECT epoch, last_seq_no FROM epochs") == [(1, 2)]


def test_pr_23_a_rejected_operation_that_returns_makes_a_second_row_when_it_applies(
    database: Database, chain: Chain
) -> None:
    wallet, processor = Wallet("a"), Processor(database, chain.log, depth=0)
    first, second = wallet.update(add("1")), wallet.update(add("2"))
    chain.anchor(wallet.created, second)
    chain.anchor(second)
    chain.anchor(first)
    chain.anchor(second)
    chain.anchor(second)
    processor.run()
    assert [row[1:] for row in rows(database)] == [
        ("CREATE_DID", "APPLIED", None, 1),
        ("UPDATE_DID", "REJECTED", "WRONG_PREVIOUS_HASH", 1),
        ("UPDATE_DID", "APPLIED", None, 3),
        ("UPDATE_DID", "APPLIED", None, 4),
    ]
    with database.transaction() as session:
        assert session.run("SELECT count(*), min(block_number) FROM atala_objects") == [(3, 1)]


def story(seed: int, database: Database) -> None:
    """Blocks, rewinds and crashes; the tables are those of a fresh run over what the log has."""
    draw = random.Random(seed)
    chain = Chain(MemoryStore("net"))
    wallets = [Wallet(name, stores=True) for name in "abc"]
    pool = [each.created for each in wallets]
    for wallet in wallets:
        batch = wallet.issue(wallet.created.hash)
        pool += [
            wallet.update(add("1")),
            wallet.update(add("2")),
            batch.signed,
            wallet.revoke(batch),
        ]
        entry = wallet.store(b"1")
        changed = wallet.change(entry, "ipfs")
        pool += [entry, changed, wallet.change(changed, b""), wallet.end(changed)]
        pool += [wallet.revoke(batch, bytes(32)), wallet.deactivate()]
    mortal = Mortal(database, lambda: draw.random() < 0.03)
    depth = draw.randrange(3)
    processor: Processor | None = None
    for _ in range(draw.randrange(5, 30)):
        what = draw.random()
        if what < 0.75:
            objects = [
                [draw.choice(pool).raw for _ in range(draw.randrange(1, 4))]
                for _ in range(draw.randrange(3))
            ]
            chain.build(*map(atala_object, objects))
        elif chain.number > 1:
            chain.back_to(draw.randrange(1, chain.number))
        if draw.random() < 0.6:
            try:
                processor = processor or Processor(mortal, chain.log, depth=depth)
                processor.run()
            except Crash:
                processor = None
    last = Processor(database, chain.log, depth=depth)
    last.run()
    _compare(database, chain, depth)


def _compare(database: Database, chain: Chain, depth: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fresh = open_database(str(Path(folder) / "fresh.db"))
        Processor(fresh, chain.log, depth=depth).run()
        mine, theirs = dump(database), dump(fresh)
        fresh.close()
    number = max((row[0] for row in theirs["processed_blocks"]), default=-1)
    kept = [row for row in mine["processed_blocks"] if row[0] <= number]
    assert kept == theirs["processed_blocks"]
    if len(kept) == len(
        mine["processed_blocks"]
    ):  # else what is processed lies less deep now, and stays (PR-5)
        assert mine == theirs


@pytest.mark.parametrize("seed", range(12))
def test_pr_3_whatever_happens_the_tables_are_those_of_a_fresh_run(
    seed: int, database: Database
) -> None:
    story(seed, database)


def test_pr_32_a_hash_that_is_listed_twice_or_is_short_is_held_once(
    database: Database, chain: Chain
) -> None:
    wallet = Wallet("a")
    batch = wallet.issue(bytes(32))
    chain.anchor(wallet.created, batch.signed, wallet.revoke(batch, b"x", bytes(32), b"x"))
    Processor(database, chain.log, depth=0).run()
    with database.transaction() as session:
        found = session.run(
            "SELECT credential_hash, seq_no FROM revoked_credentials ORDER BY credential_hash"
        )
    assert [(bytes(each), number) for each, number in found] == [(bytes(32), 3), (b"x", 3)]
    assert rows(database)[2][3] == "MALFORMED_OPERATION"


@pytest.mark.parametrize(
    ("table", "column", "value"),
    [
        ("atala_operations", "signed_atala_operation_id", b"x" * 31),
        ("atala_operations", "atala_object_id", b"x" * 33),
        ("atala_operations", "operation_hash", b"x"),
        ("atala_operations", "atala_operation_status", "DONE"),
        ("atala_operations", "atala_operation_type", "SOMETHING_ELSE"),
        ("atala_operations", "atala_operation_seq_no", None),
        ("atala_operations", "status_details", "WRONG_KEY_USAGE"),
        ("atala_operations", "atala_operation_seq_no", 2),
        ("atala_operations", "operation_hash", sha256(Wallet("b").created.operation)),
        ("atala_objects", "atala_object_id", b""),
        ("atala_objects", "atala_object_status", "DONE"),
    ],
)
def test_pr_32_and_pr_33_the_tables_refuse_what_no_row_may_be(
    table: str, column: str, value: object, database: Database, chain: Chain
) -> None:
    chain.anchor(Wallet("a").created)
    chain.anchor(Wallet("b").created)
    Processor(database, chain.log, depth=0).run()
    assert [row[0] for row in rows(database)] == [1, 2]
    first = {"atala_operations": "atala_operation_seq_no = 1", "atala_objects": "block_number = 1"}[
        table
    ]
    before = dump(database)
    with pytest.raises(StoreError), database.transaction(write=True) as session:
        session.run(f"UPDATE {table} SET {column} = ? WHERE {first}", (value,))  # noqa: S608
    assert dump(database) == before


def test_pr_1_any_event_may_carry_the_bytes(database: Database) -> None:
    source = Source("Some.Event", ("data", 1, "raw"))
    body = '{"data":[0,{"raw":"0x0102"}]}'
    row = Row(1, 1, None, block=1, index=0, kind="Some.Event", id=b"", time=0, body=body)
    assert source.bytes_of(row) == b"\1\2"
    for other in (
        "{}",
        '{"data":[]}',
        '{"data":[0,{"raw":5}]}',
        '{"data":[0,{"raw":"0x0"}]}',
        '{"data":{"1":{}}}',
    ):
        assert source.bytes_of(row._replace(body=other)) == b""
    log = MemoryStore("net")
    Processor(database, log, source)
    with pytest.raises(AnotherChain, match="other events"):
        Processor(database, log)
    with pytest.raises(AnotherChain, match="another log"):
        Processor(database, MemoryStore("net"), source)


def test_pr_35_and_pr_33_the_second_migration_processes_the_log_again(
    database_place: str, chain: Chain
) -> None:
    a, b, c = Wallet("a"), Wallet("b"), Wallet("c")
    chain.anchor(a.created, a.update(add("1")))
    chain.anchor(a.update(add("2")))
    waiting = atala_object([b.created.raw, c.created.raw])
    database = open_database(database_place)
    migrate(database, "prism", [list(FIRST)])
    old = "INSERT INTO atala_objects VALUES (?, ?, ?)"
    with database.transaction(write=True) as session:
        done = atala_object([a.created.raw])
        session.run(old, (sha256(done), done, "PROCESSED"))
        session.run(old, (sha256(waiting), waiting, "PENDING"))
        for each, object_, status in (
            (a.created, done, "APPLIED"),
            (b.created, waiting, "RECEIVED"),
            (c.created, waiting, "CANCELLED"),
        ):
            session.run(
                "INSERT INTO atala_operations VALUES (?, ?, ?, NULL)",
                (each.id, status, sha256(object_)),
            )
    Processor(database, chain.log, depth=0).run()
    found = dump(database)
    assert [(row[0], row[1]) for row in found["atala_operations"] if row[7] is None] == sorted(
        [(b.created.id, Status.RECEIVED.value), (c.created.id, Status.CANCELLED.value)]
    )
    assert (sha256(waiting), waiting, "PENDING", None) in found["atala_objects"]
    with database.transaction(write=True) as session:
        session.run("DELETE FROM atala_operations WHERE atala_operation_seq_no IS NULL")
        session.run("DELETE FROM atala_objects WHERE block_number IS NULL")
    _compare(database, chain, 0)
    database.close()


INDEX_OF = {
    Dialect.SQLITE: "SELECT sql FROM sqlite_master WHERE name = 'operations_hash'",
    Dialect.POSTGRESQL: "SELECT indexdef FROM pg_indexes WHERE indexname = 'operations_hash'",
}


@pytest.mark.parametrize(
    ("version", "index", "condition"),
    [
        (2, "operations_hash", "status <> 'APPLIED'"),
        (3, "operations_received", ""),
    ],
)
def test_pr_35_the_third_and_fourth_migrations_keep_rows_and_index_hashes_once(
    version: int, index: str, condition: str, database: Database, chain: Chain
) -> None:
    chain.anchor(Wallet("a").created)
    Processor(database, chain.log, depth=0).run()
    before = dump(database)
    with database.transaction(write=True) as session:
        session.run("DROP INDEX operations_received")
        session.run("DROP INDEX operations_entry")
        session.run("ALTER TABLE atala_operations DROP COLUMN storage_entry_id")
        if version == 2:
            session.run("DROP INDEX operations_hash")
            session.run("CREATE INDEX operations_hash ON atala_operations (operation_hash)")
        session.run("UPDATE migrations SET version = ? WHERE component = 'prism'", (version,))
    prepare(database)
    ((made,),) = database.select(INDEX_OF[database.dialect].replace("operations_hash", index))
    assert condition in made
    assert dump(database) == before


@pytest.mark.parametrize("old_type", ["UNKNOWN", "CREATE_DID"])
def test_pr_35_the_fifth_migration_processes_again_what_older_code_read_differently(
    old_type: str, database: Database, chain: Chain
) -> None:
    a, b = Wallet("a", stores=True), Wallet("b")
    entry = a.store(b"1")
    chain.anchor(a.created, b.created)
    chain.anchor(b.update(add("1")), entry)
    chain.anchor(a.update(add("2")), a.change(entry, b"2"))
    Processor(database, chain.log, depth=0).run()
    token, cursor = PrismRegistry(database).add([ANY], Cursor(0, 0), "client")
    with database.transaction(write=True) as session:
        session.run("DROP INDEX operations_entry")
        session.run("ALTER TABLE atala_operations DROP COLUMN storage_entry_id")
        session.run(
            "UPDATE atala_operations SET atala_operation_type = ?, atala_operation_status ="
            " 'REJECTED', status_details = 'UNSUPPORTED_OPERATION', atala_operation_did_suffix ="
            " NULL WHERE atala_operation_type IN ('CREATE_STORAGE_ENTRY', 'UPDATE_STORAGE_ENTRY')",
            (old_type,),
        )
        session.run("UPDATE migrations SET version = 4 WHERE component = 'prism'")
    processor = Processor(database, chain.log, depth=0)
    assert database.select("SELECT epoch, last_seq_no FROM epochs") == [(1, 2)]
    assert processor.run() == 4
    _compare(database, chain, 0)
    with database.transaction() as session:
        found = load_entry(session, entry.hash.hex())
    assert found is not None
    assert found.data == b"2"
    assert PrismRegistry(database).get(token).after == cursor


def test_pr_35_the_fifth_migration_takes_nothing_back_without_such_operations(
    database: Database, chain: Chain
) -> None:
    a = Wallet("a")
    chain.anchor(a.created, sign_raw(bytes_field(10, b""), "master", a.master))
    chain.anchor(a.update(add("1")))
    Processor(database, chain.log, depth=0).run()
    before = dump(database)
    with database.transaction(write=True) as session:
        session.run("DROP INDEX operations_entry")
        session.run("ALTER TABLE atala_operations DROP COLUMN storage_entry_id")
        session.run("UPDATE migrations SET version = 4 WHERE component = 'prism'")
    prepare(database)
    assert dump(database) == before
    assert not database.select("SELECT epoch FROM epochs")


def test_tables_of_something_else_are_left_alone(database: Database) -> None:
    with database.transaction(write=True) as session:
        session.run("CREATE TABLE subscriptions (name TEXT)")
    with pytest.raises(StoreError, match="another program made its table"):
        prepare(database)


def test_the_state_equals_the_rows_however_little_memory_is_used(
    database: Database, chain: Chain
) -> None:
    wallets = [Wallet(f"w{at}") for at in range(4)]
    processor = Processor(database, chain.log, depth=0)
    processor._cache = LedgerCache(1)
    chain.anchor(*(each.created for each in wallets))
    for at in range(3):
        chain.anchor(*(each.update(add(f"s{at}")) for each in wallets))
    assert processor.run() == 16
    assert {row[2] for row in rows(database)} == {"APPLIED"}
    assert len(processor._cache.dids) == 1
    with database.transaction() as session:
        ledger = SqlLedger(session, LedgerCache())
        dids = [ledger.did(each.suffix) for each in wallets]
    assert [None if each is None else len(each.services) for each in dids] == [3] * 4
