"""Answers of channel 7, audited: each cheat is found, and nothing honest is accused (EV-40, EV-41, PR-61)."""

import asyncio
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext
from support.prism import Wallet
from support.prism_chain import Branches, running, until
from support.story_campaign import prism_player

from pubsub_emulator.events.log.sql_store import SqlStore
from pubsub_emulator.prism.core.identifiers import sha256
from pubsub_emulator.prism.core.status import FINAL, OperationStatus, Place, Update
from pubsub_emulator.prism.service.watch import FINISHED
from pubsub_emulator.prism.status_cheats import STATUS_CHEATS, Told
from pubsub_emulator.prism.status_deliveries import StatusDeliveries
from pubsub_emulator.spark_audit.spark.statuses import audit_statuses

DOCS = Path(__file__).resolve().parents[2] / "docs"
STORIES = 25


def at(number: int, branch: int = 0) -> Place:
    return Place(number, bytes((branch,)) * 32, 0, 0, number * 6_000)


def life(first: int) -> list[Update]:
    """Scheduled, built, dropped by a reorganisation, built again, confirmed, approved."""
    again = at(first + 1, 1)
    return [
        Update(OperationStatus.PENDING),
        Update(OperationStatus.IN_BLOCK, place=at(first)),
        Update(OperationStatus.PENDING),
        Update(OperationStatus.IN_BLOCK, place=again),
        Update(OperationStatus.CONFIRMATION_LEVEL, 1, place=again),
        Update(OperationStatus.CONFIRMATION_LEVEL, 2, place=again),
        Update(OperationStatus.APPROVED, place=again),
    ]


def stream(recorder: StatusDeliveries, name: str, truths: list[Update], told: list[Told]) -> None:
    """One operation's life, with one stream over it that tells this."""
    operation = sha256(name.encode())
    recorder.began(name, operation)
    for turn, truth in enumerate(truths):
        recorder.held(operation, truth)
        for each in told:
            if each.turn == turn:
                recorder.record(name, each.update)
        recorder.waits(name)
    recorder.stopped(name, FINISHED if told and told[-1].update.status in FINAL else "disconnected")


@pytest.mark.spark
def test_ev_41_every_cheat_of_channel_7_is_found_by_its_name(spark: SparkContext, tmp_path: Path) -> None:
    due = [Told(turn, update) for turn, update in enumerate(life(10))]
    others = [Told(turn, update) for turn, update in enumerate(life(50))]
    with StatusDeliveries(tmp_path, lambda: 1_700_000_000_000) as recorder:
        stream(recorder, "another", life(50), others)
        stream(recorder, "honest", life(10), due)
        stream(recorder, "honest and slow", life(10), [due[0], due[3], due[-1]])
        for cheat in STATUS_CHEATS.values():
            stream(recorder, cheat.name, life(10), cheat.change(due, others))
        hung_up = sha256(b"hung up")
        recorder.began("hung up", hung_up)
        recorder.held(hung_up, due[0].update)
        recorder.record("hung up", due[0].update)
        recorder.stopped("hung up", FINISHED)
    audited = audit_statuses(spark, tmp_path)
    found = defaultdict(set)
    for each in audited.findings:
        found[each["operation"]].add(each["finding"])
    expected = {sha256(name.encode()).hex(): {cheat.found_as} for name, cheat in STATUS_CHEATS.items()}
    assert found == expected | {hung_up.hex(): {"withheld"}}
    assert audited.streams == len(STATUS_CHEATS) + 4
    assert {each["day"] for each in audited.findings} == {"2023-11-14"}


@pytest.mark.spark
def test_ev_40_no_honest_node_is_accused_whatever_happens_to_its_chain_and_clients(
    spark: SparkContext, tmp_path: Path
) -> None:
    with prism_player(lambda: StatusDeliveries(tmp_path)) as play:
        for seed in range(STORIES):
            play(seed)
    answers = pq.read_table(tmp_path / "status_answers").to_pylist()
    assert len(answers) > STORIES
    audited = audit_statuses(spark, tmp_path)
    assert audited.findings == []
    assert audited.answers == len(answers)


def test_ev_40_a_node_writes_down_what_was_true_and_what_it_told(log: SqlStore, tmp_path: Path) -> None:
    async def story(recorder: StatusDeliveries) -> list[str]:
        async with running(log, Branches(), depth=1, status_recorder=recorder) as node:
            node.chain.build()
            ids, _ = await node.client.schedule([Wallet("a").created.raw])
            told, watching = node.watch(ids[0])
            await until(lambda: node.chain.pool and told)
            kept = len(node.chain.blocks)
            acts = (node.chain.build_pool, lambda: (node.chain.drop_to(kept), node.chain.build()))
            for act in (*acts, node.chain.build_pool, node.chain.build):
                length = len(told)
                act()
                await until(lambda length=length: len(told) > length)
            await watching
            await until(lambda: node.service.events.open_streams == 0)
        return [OperationStatus(each).name for each in told]

    with StatusDeliveries(tmp_path / "out") as recorder:
        told = asyncio.run(story(recorder))
    assert told == ["PENDING", "IN_BLOCK", "PENDING", "IN_BLOCK", "APPROVED"]
    for name in ("status_truths", "status_answers"):
        rows = sorted(pq.read_table(tmp_path / "out" / name).to_pylist(), key=lambda row: row["order"])
        assert [row["status"] for row in rows] == told
    (ended,) = pq.read_table(tmp_path / "out" / "status_streams").to_pylist()
    assert ended["ended"] == FINISHED
