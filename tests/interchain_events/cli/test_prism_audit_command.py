"""`pubsub prism audit` over real tables of a node: deliveries, and the statuses of channel 7."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark import SparkContext
from support.prism.prism_log import Chain
from support.prism.wallet import Wallet

from interchain_events.cli.commands.events import audit as event_audit
from interchain_events.cli.commands.events.audit import run_audit
from interchain_events.delivery_audit.deliveries import DeliveriesError
from interchain_events.events.log.sql_store import open_store
from interchain_events.prism.core.identifiers import sha256
from interchain_events.prism.core.status import OperationPlace, OperationStatus, StatusUpdate
from interchain_events.prism.status_deliveries import StatusDeliveries
from interchain_events.prism.tables.processor import Processor
from pubsub_emulator.cli.main import pubsub

IN_BLOCK = OperationPlace(2, bytes(32), 0, 0, 12_000)
LIFE = (
    StatusUpdate(OperationStatus.PENDING),
    StatusUpdate(OperationStatus.IN_BLOCK, place=IN_BLOCK),
    StatusUpdate(OperationStatus.APPROVED, place=IN_BLOCK),
)


class Session:
    """The Spark of all tests, which the command may not stop."""

    def __init__(self, spark: SparkContext) -> None:
        self._spark = spark

    def __getattr__(self, name: str) -> Any:
        return getattr(self._spark, name)

    def stop(self) -> None:
        """Goes on."""


@pytest.fixture
def audit(spark: SparkContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The command, over a folder and the database of a node that processed one operation."""
    monkeypatch.setattr(event_audit, "start_context", lambda _master: Session(spark))
    place = str(tmp_path / "prism.db")
    store = open_store(place, "prism")
    chain = Chain(store)
    chain.anchor(Wallet("a").created)
    Processor(store.database, store, depth=0).run()
    store.close()

    def run(folder: Path, *more: str) -> Result:
        return CliRunner().invoke(pubsub, ["prism", "audit", str(folder), "--db", place, *more])

    return run


def told(folder: Path, name: str, *updates: StatusUpdate) -> str:
    """Write down the life of an operation, and a stream that told these; returns the operation's id
    in hex.
    """
    operation = sha256(name.encode())
    with StatusDeliveries(folder, lambda: 1_700_000_000_000) as recorder:
        recorder.began(name, operation)
        for truth, update in zip(LIFE, updates, strict=True):
            recorder.held(operation, truth)
            recorder.record(name, update)
            recorder.waits(name)
        recorder.stopped(name, "disconnected")
    return operation.hex()


@pytest.mark.spark
def test_ev_40_honest_statuses_pass_and_a_false_one_is_named_with_its_operation(
    audit: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "deliveries"
    told(folder, "honest", *LIFE)
    found = audit(folder)
    assert found.exit_code == 0, found.output
    assert "3 statuses sent in 1 stream of" in found.output

    elsewhere = StatusUpdate(OperationStatus.APPROVED, place=IN_BLOCK._replace(number=9))
    operation = told(folder, "false", *LIFE[:2], elsewhere)
    found = audit(folder, "--json")
    assert found.exit_code == 1, found.output
    findings = json.loads(found.stdout)["statuses"]["findings"]
    assert [(each["operation"], each["finding"], each["count"]) for each in findings] == [
        (operation, "altered", 1)
    ]


def test_a_folder_without_tables_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(DeliveriesError, match="there is no table event_streams") as refused:
        run_audit(tmp_path, str(tmp_path / "prism.db"), None, with_statuses=True)
    assert str(refused.value).startswith(str(tmp_path))
