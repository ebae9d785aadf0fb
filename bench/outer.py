"""The costs outside of the chains: history on disk, and the start of the command line."""

import importlib.util
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partialmethod
from pathlib import Path
from typing import Final

from bench.measure import Race, Result
from pubsub_emulator.emulator.network import Network
from pubsub_emulator.emulator.network.records import (
    AuthorityRecord,
    BlockRecord,
    CheckpointRecord,
    Observer,
    RelayRecord,
    SubscriptionRecord,
)
from pubsub_emulator.primitives.pubsub import key_from_data

ROOT: Final = Path(__file__).resolve().parents[1]
BLOCKS: Final = 16
KEYS: Final = tuple(key_from_data(b"%d" % index) for index in range(64))

Record = AuthorityRecord | BlockRecord | CheckpointRecord | RelayRecord | SubscriptionRecord


class Tape(Observer):
    """An observer that keeps the records of a network, to replay them to a history."""

    def __init__(self) -> None:
        self.records: list[tuple[str, Record]] = []

    def _keep(self, method: str, record: Record) -> None:
        self.records.append((method, record))

    relay_block = partialmethod(_keep, "relay_block")
    authorities = partialmethod(_keep, "authorities")
    subscriptions = partialmethod(_keep, "subscriptions")
    checkpoint = partialmethod(_keep, "checkpoint")
    candidate = partialmethod(_keep, "candidate")


def history() -> Iterator[Race]:
    """Yield a race between writing the history of a network and running the network.

    Without pyarrow there is no race.
    """
    if importlib.util.find_spec("pyarrow") is None:
        return
    from pubsub_emulator.spark_audit.history.store import (  # noqa: PLC0415  # an optional dependency
        HistoryWriter,
    )

    tape = Tape()
    run(tape)

    def write() -> None:
        with tempfile.TemporaryDirectory() as folder, HistoryWriter(Path(folder)) as writer:
            for method, record in tape.records:
                getattr(writer, method)(record)

    note = f"{sum(method == 'candidate' for method, _ in tape.records)} candidates"
    yield Race("history writing", write, "running the network", run, 7, note=note)


def run(tape: Tape | None = None) -> None:
    """Run sixteen relay blocks of a publisher with 64 keys and four subscribers.

    Each block has eight publishes.
    """
    network = Network.of(
        publishers=[1000], subscribers={2000 + index: {1000: KEYS} for index in range(4)}
    )
    if tape is not None:
        network.observe(tape)
    for block in range(BLOCKS):
        for index in range(8):
            network.publish(1000, KEYS[(8 * block + index) % len(KEYS)], b"%d" % block * 30)
        network.step()
    network.finish()


def cold_start() -> Result:
    """Compare `pubsub --help` with `import click`.

    Each runs in a new Python, and the child's CPU time is measured.
    """
    pairs = [
        (child("-m", "pubsub_emulator", "--help"), child("-c", "import click")) for _ in range(9)
    ]
    return Result.of("pubsub --help", "import click", pairs, 8.0)


def child(*args: str) -> float:
    """Run this Python with arguments and return its CPU seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *args], cwd=ROOT, stdout=subprocess.DEVNULL, check=False)  # noqa: S603
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
